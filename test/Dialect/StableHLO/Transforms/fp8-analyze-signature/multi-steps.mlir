// RUN: fp8-opt %S/Inputs/multi-steps.mlir --stablehlo-inline-calls --stablehlo-simplify --cse --fp8-analyze-signature=explain=true -o /dev/null | FileCheck %s --strict-whitespace

// Without names: accumulated gradients are no moments, although the moments
// read them, and an average of weights is no moment, although it reads all.

// CHECK:arguments:
// CHECK-NEXT:  arg0   f32[11]    state parameter  the loss depends on it; replaced by result0 (update chain and type)
// CHECK-NEXT:  arg1   f32[11,4]  state parameter  the loss depends on it; replaced by result1 (update chain and type)
// CHECK-NEXT:  arg2   f32[4,11]  state parameter  the loss depends on it; replaced by result2 (update chain and type)
// CHECK-NEXT:  arg3   i32[]      state step       a counter; replaced by result3 (update chain and type)
// CHECK-NEXT:  arg4   i32[]      state step       a counter; replaced by result4 (update chain and type)
// CHECK-NEXT:  arg5   i32[]      state step       a counter; replaced by result5 (update chain and type)
// CHECK-NEXT:  arg6   f32[11]    state moment1    linear in the gradient of arg0; replaced by result6 (update chain and type)
// CHECK-NEXT:  arg7   f32[11,4]  state moment1    linear in the gradient of arg1; replaced by result7 (update chain and type)
// CHECK-NEXT:  arg8   f32[4,11]  state moment1    linear in the gradient of arg2; replaced by result8 (update chain and type)
// CHECK-NEXT:  arg9   f32[11]    state moment2    square of the gradient of arg0; replaced by result9 (update chain and type)
// CHECK-NEXT:  arg10  f32[11,4]  state moment2    square of the gradient of arg1; replaced by result10 (update chain and type)
// CHECK-NEXT:  arg11  f32[4,11]  state moment2    square of the gradient of arg2; replaced by result11 (update chain and type)
// CHECK-NEXT:  arg12  f32[11]    state gradient   accumulates the gradient of arg0; replaced by result12 (update chain and type)
// CHECK-NEXT:  arg13  f32[11,4]  state gradient   accumulates the gradient of arg1; replaced by result13 (update chain and type)
// CHECK-NEXT:  arg14  f32[4,11]  state gradient   accumulates the gradient of arg2; replaced by result14 (update chain and type)
// CHECK-NEXT:  arg15  f32[11]    state average    follows the weights of arg0; replaced by result15 (update chain and type)
// CHECK-NEXT:  arg16  f32[11,4]  state average    follows the weights of arg1; replaced by result16 (update chain and type)
// CHECK-NEXT:  arg17  f32[4,11]  state average    follows the weights of arg2; replaced by result17 (update chain and type)
// CHECK-NEXT:  arg18  i32[2,4]   batch            an integer array that no result replaces; values are below 11: it indexes a table of that many rows
// CHECK-NEXT:results:
// CHECK-NEXT:  result0   f32[11]    state arg0
// CHECK-NEXT:  result1   f32[11,4]  state arg1
// CHECK-NEXT:  result2   f32[4,11]  state arg2
// CHECK-NEXT:  result3   i32[]      state arg3
// CHECK-NEXT:  result4   i32[]      state arg4
// CHECK-NEXT:  result5   i32[]      state arg5
// CHECK-NEXT:  result6   f32[11]    state arg6
// CHECK-NEXT:  result7   f32[11,4]  state arg7
// CHECK-NEXT:  result8   f32[4,11]  state arg8
// CHECK-NEXT:  result9   f32[11]    state arg9
// CHECK-NEXT:  result10  f32[11,4]  state arg10
// CHECK-NEXT:  result11  f32[4,11]  state arg11
// CHECK-NEXT:  result12  f32[11]    state arg12
// CHECK-NEXT:  result13  f32[11,4]  state arg13
// CHECK-NEXT:  result14  f32[4,11]  state arg14
// CHECK-NEXT:  result15  f32[11]    state arg15
// CHECK-NEXT:  result16  f32[11,4]  state arg16
// CHECK-NEXT:  result17  f32[4,11]  state arg17
// CHECK-NEXT:  result18  f32[]      loss         gradients flow from it to the parameters
