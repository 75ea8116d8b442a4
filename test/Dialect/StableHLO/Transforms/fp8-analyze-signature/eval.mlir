// RUN: fp8-opt %S/Inputs/eval.mlir --stablehlo-inline-calls --stablehlo-simplify --cse --fp8-analyze-signature=explain=true -o /dev/null | FileCheck %s --strict-whitespace

// An evaluation has no state: its parameters are frozen.

// CHECK:arguments:
// CHECK-NEXT:  p['b']    f32[11]    frozen  a float tensor
// CHECK-NEXT:  p['emb']  f32[11,4]  frozen  a float tensor
// CHECK-NEXT:  p['out']  f32[4,11]  frozen  a float tensor
// CHECK-NEXT:  tok       i32[2,4]   batch   an integer array; values are below 11: it indexes a table of that many rows
// CHECK-NEXT:results:
// CHECK-NEXT:  result  f32[]  loss  the first scalar
