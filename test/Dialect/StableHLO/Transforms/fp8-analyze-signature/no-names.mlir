// RUN: fp8-opt %S/Inputs/no-names.mlir --stablehlo-inline-calls --stablehlo-simplify --cse --fp8-analyze-signature=explain=true -o /dev/null | FileCheck %s --strict-whitespace

// The same step without debug information, result names or donation: only
// update chains and types tell state apart, in any order.

// CHECK:arguments:
// CHECK-NEXT:  arg0   f32[11]    state parameter  the loss depends on it; replaced by result9 (update chain and type)
// CHECK-NEXT:  arg1   f32[11,4]  state parameter  the loss depends on it; replaced by result10 (update chain and type)
// CHECK-NEXT:  arg2   f32[4,11]  state parameter  the loss depends on it; replaced by result11 (update chain and type)
// CHECK-NEXT:  arg3   i32[]      state step       a counter; replaced by result1 (update chain and type)
// CHECK-NEXT:  arg4   f32[11]    state moment1    linear in the gradient of arg0; replaced by result2 (update chain and type)
// CHECK-NEXT:  arg5   f32[11,4]  state moment1    linear in the gradient of arg1; replaced by result3 (update chain and type)
// CHECK-NEXT:  arg6   f32[4,11]  state moment1    linear in the gradient of arg2; replaced by result4 (update chain and type)
// CHECK-NEXT:  arg7   f32[11]    state moment2    square of the gradient of arg0; replaced by result5 (update chain and type)
// CHECK-NEXT:  arg8   f32[11,4]  state moment2    square of the gradient of arg1; replaced by result6 (update chain and type)
// CHECK-NEXT:  arg9   f32[4,11]  state moment2    square of the gradient of arg2; replaced by result7 (update chain and type)
// CHECK-NEXT:  arg10  i32[]      state step       a counter; replaced by result8 (update chain and type)
// CHECK-NEXT:  arg11  i32[2,4]   batch            an integer array that no result replaces; values are below 11: it indexes a table of that many rows
// CHECK-NEXT:results:
// CHECK-NEXT:  result0   f32[]      loss         gradients flow from it to the parameters
// CHECK-NEXT:  result1   i32[]      state arg3
// CHECK-NEXT:  result2   f32[11]    state arg4
// CHECK-NEXT:  result3   f32[11,4]  state arg5
// CHECK-NEXT:  result4   f32[4,11]  state arg6
// CHECK-NEXT:  result5   f32[11]    state arg7
// CHECK-NEXT:  result6   f32[11,4]  state arg8
// CHECK-NEXT:  result7   f32[4,11]  state arg9
// CHECK-NEXT:  result8   i32[]      state arg10
// CHECK-NEXT:  result9   f32[11]    state arg0
// CHECK-NEXT:  result10  f32[11,4]  state arg1
// CHECK-NEXT:  result11  f32[4,11]  state arg2
