// RUN: fp8-opt %S/Inputs/init.mlir --stablehlo-inline-calls --stablehlo-simplify --cse --fp8-analyze-signature=explain=true -o /dev/null | FileCheck %s --strict-whitespace

// An initializer has no state: its integer is the key that it starts from.

// CHECK:arguments:
// CHECK-NEXT:  seed  ui32[]  key  an integer that a function without floats starts from
// CHECK-NEXT:results:
// CHECK-NEXT:  result[0]['b']             f32[11]    output
// CHECK-NEXT:  result[0]['emb']           f32[11,4]  output
// CHECK-NEXT:  result[0]['out']           f32[4,11]  output
// CHECK-NEXT:  result[1][1][0].count      i32[]      output
// CHECK-NEXT:  result[1][1][0].mu['b']    f32[11]    output
// CHECK-NEXT:  result[1][1][0].mu['emb']  f32[11,4]  output
// CHECK-NEXT:  result[1][1][0].mu['out']  f32[4,11]  output
// CHECK-NEXT:  result[1][1][0].nu['b']    f32[11]    output
// CHECK-NEXT:  result[1][1][0].nu['emb']  f32[11,4]  output
// CHECK-NEXT:  result[1][1][0].nu['out']  f32[4,11]  output
// CHECK-NEXT:  result[1][1][2].count      i32[]      output
