// RUN: fp8-opt %S/Inputs/interpolated-adam.mlir --stablehlo-inline-calls --stablehlo-simplify --cse --fp8-analyze-signature=explain=true -o /dev/null | FileCheck %s --strict-whitespace

// Moments as interpolations, m + (g - m) 0.1 and v - 0.001 (v - g g), with an
// L2 decay in the gradient: their factors add up to less than 1.

// CHECK:arguments:
// CHECK-NEXT:  w  f32[4,11]  state parameter  the loss depends on it; replaced by result[0] (update chain and type)
// CHECK-NEXT:  m  f32[4,11]  state moment1    linear in the gradient of w; replaced by result[1] (update chain and type)
// CHECK-NEXT:  v  f32[4,11]  state moment2    square of the gradient of w; replaced by result[2] (update chain and type)
// CHECK-NEXT:  t  i32[]      state step       a counter; replaced by result[3] (update chain and type)
