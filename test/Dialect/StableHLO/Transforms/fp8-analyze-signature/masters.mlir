// RUN: fp8-opt %S/Inputs/masters.mlir --stablehlo-inline-calls --stablehlo-simplify --cse --fp8-analyze-signature=explain=true -o /dev/null | FileCheck %s --strict-whitespace

// Weights in bf16 with f32 master copies: the loss depends on the former, and
// the moments feed the latter.

// CHECK:arguments:
// CHECK-NEXT:  p16['b']        bf16[11]    state parameter  the loss depends on it; replaced by result[0]['b'] (same tree path and type)
// CHECK-NEXT:  p16['emb']      bf16[11,4]  state parameter  the loss depends on it; replaced by result[0]['emb'] (same tree path and type)
// CHECK-NEXT:  p16['out']      bf16[4,11]  state parameter  the loss depends on it; replaced by result[0]['out'] (same tree path and type)
// CHECK-NEXT:  p['b']          f32[11]     state other      the master copy of p16['b']; replaced by result[1]['b'] (same tree path, type and update chain)
// CHECK-NEXT:  p['emb']        f32[11,4]   state other      the master copy of p16['emb']; replaced by result[1]['emb'] (same tree path, type and update chain)
// CHECK-NEXT:  p['out']        f32[4,11]   state other      the master copy of p16['out']; replaced by result[1]['out'] (same tree path, type and update chain)
// CHECK-NEXT:  o[0].count      i32[]       state step       a counter; replaced by result[2][0].count (same tree path, type and update chain)
// CHECK-NEXT:  o[0].mu['b']    f32[11]     state moment1    linear in the gradient of p16['b']; replaced by result[2][0].mu['b'] (same tree path, type and update chain)
// CHECK-NEXT:  o[0].mu['emb']  f32[11,4]   state moment1    linear in the gradient of p16['emb']; replaced by result[2][0].mu['emb'] (same tree path, type and update chain)
// CHECK-NEXT:  o[0].mu['out']  f32[4,11]   state moment1    linear in the gradient of p16['out']; replaced by result[2][0].mu['out'] (same tree path, type and update chain)
// CHECK-NEXT:  o[0].nu['b']    f32[11]     state moment2    square of the gradient of p16['b']; replaced by result[2][0].nu['b'] (same tree path, type and update chain)
// CHECK-NEXT:  o[0].nu['emb']  f32[11,4]   state moment2    square of the gradient of p16['emb']; replaced by result[2][0].nu['emb'] (same tree path, type and update chain)
// CHECK-NEXT:  o[0].nu['out']  f32[4,11]   state moment2    square of the gradient of p16['out']; replaced by result[2][0].nu['out'] (same tree path, type and update chain)
// CHECK-NEXT:  tok             i32[2,4]    batch            an integer array that no result replaces; values are below 11: it indexes a table of that many rows
// CHECK-NEXT:results:
// CHECK-NEXT:  result[0]['b']          bf16[11]    state p16['b']
// CHECK-NEXT:  result[0]['emb']        bf16[11,4]  state p16['emb']
// CHECK-NEXT:  result[0]['out']        bf16[4,11]  state p16['out']
// CHECK-NEXT:  result[1]['b']          f32[11]     state p['b']
// CHECK-NEXT:  result[1]['emb']        f32[11,4]   state p['emb']
// CHECK-NEXT:  result[1]['out']        f32[4,11]   state p['out']
// CHECK-NEXT:  result[2][0].count      i32[]       state o[0].count
// CHECK-NEXT:  result[2][0].mu['b']    f32[11]     state o[0].mu['b']
// CHECK-NEXT:  result[2][0].mu['emb']  f32[11,4]   state o[0].mu['emb']
// CHECK-NEXT:  result[2][0].mu['out']  f32[4,11]   state o[0].mu['out']
// CHECK-NEXT:  result[2][0].nu['b']    f32[11]     state o[0].nu['b']
// CHECK-NEXT:  result[2][0].nu['emb']  f32[11,4]   state o[0].nu['emb']
// CHECK-NEXT:  result[2][0].nu['out']  f32[4,11]   state o[0].nu['out']
// CHECK-NEXT:  result[3]               bf16[]      loss                  gradients flow from it to the parameters
