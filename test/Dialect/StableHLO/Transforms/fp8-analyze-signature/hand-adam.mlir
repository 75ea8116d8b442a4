// RUN: fp8-opt %S/Inputs/hand-adam.mlir --stablehlo-inline-calls --stablehlo-simplify --cse --fp8-analyze-signature=explain=true -o /dev/null | FileCheck %s --strict-whitespace

// Three tensors of one type without a tree, in another order than their
// results, and an L2 decay that adds the weights into the first moment.

// CHECK:arguments:
// CHECK-NEXT:  v  f32[4,11]  state moment2    square of the gradient of w; replaced by result[2] (update chain and type)
// CHECK-NEXT:  m  f32[4,11]  state moment1    linear in the gradient of w; replaced by result[0] (update chain and type)
// CHECK-NEXT:  w  f32[4,11]  state parameter  the loss depends on it; replaced by result[1] (update chain and type)
// CHECK-NEXT:  x  f32[2,4]   batch            weights are applied to it, or it meets results of the model one by one
// CHECK-NEXT:  y  f32[2,11]  batch            weights are applied to it, or it meets results of the model one by one
// CHECK-NEXT:results:
// CHECK-NEXT:  result[0]  f32[4,11]  state m
// CHECK-NEXT:  result[1]  f32[4,11]  state w
// CHECK-NEXT:  result[2]  f32[4,11]  state v
// CHECK-NEXT:  result[3]  f32[]      loss     gradients flow from it to the parameters
