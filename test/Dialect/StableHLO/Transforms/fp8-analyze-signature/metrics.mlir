// RUN: fp8-opt %S/Inputs/metrics.mlir --stablehlo-inline-calls --stablehlo-simplify --cse --fp8-analyze-signature=explain=true -o /dev/null | FileCheck %s --strict-whitespace

// The loss is not called loss: the norm of the gradients comes after them, the
// accuracy has no gradient, the norm of the weights does not read the batch and
// the perplexity is a function of the loss.

// CHECK:arguments:
// CHECK-NEXT:  p['b']             f32[11]    state parameter  the loss depends on it; replaced by result[1]['b'] (same tree path, type and update chain)
// CHECK-NEXT:  p['emb']           f32[11,4]  state parameter  the loss depends on it; replaced by result[1]['emb'] (same tree path, type and update chain)
// CHECK-NEXT:  p['out']           f32[4,11]  state parameter  the loss depends on it; replaced by result[1]['out'] (same tree path, type and update chain)
// CHECK-NEXT:  o[1][0].count      i32[]      state step       a counter; replaced by result[2][1][0].count (same tree path, type and update chain)
// CHECK-NEXT:  o[1][0].mu['b']    f32[11]    state moment1    linear in the gradient of p['b']; replaced by result[2][1][0].mu['b'] (same tree path, type and update chain)
// CHECK-NEXT:  o[1][0].mu['emb']  f32[11,4]  state moment1    linear in the gradient of p['emb']; replaced by result[2][1][0].mu['emb'] (same tree path, type and update chain)
// CHECK-NEXT:  o[1][0].mu['out']  f32[4,11]  state moment1    linear in the gradient of p['out']; replaced by result[2][1][0].mu['out'] (same tree path, type and update chain)
// CHECK-NEXT:  o[1][0].nu['b']    f32[11]    state moment2    square of the gradient of p['b']; replaced by result[2][1][0].nu['b'] (same tree path, type and update chain)
// CHECK-NEXT:  o[1][0].nu['emb']  f32[11,4]  state moment2    square of the gradient of p['emb']; replaced by result[2][1][0].nu['emb'] (same tree path, type and update chain)
// CHECK-NEXT:  o[1][0].nu['out']  f32[4,11]  state moment2    square of the gradient of p['out']; replaced by result[2][1][0].nu['out'] (same tree path, type and update chain)
// CHECK-NEXT:  o[1][2].count      i32[]      state step       a counter; replaced by result[2][1][2].count (same tree path, type and update chain)
// CHECK-NEXT:  tok                i32[2,4]   batch            an integer array that no result replaces; values are below 11: it indexes a table of that many rows
// CHECK-NEXT:results:
// CHECK-NEXT:  result[0]['accuracy']       f32[]      metric                   a scalar that is not state
// CHECK-NEXT:  result[0]['grad_norm']      f32[]      metric                   a scalar that is not state
// CHECK-NEXT:  result[0]['learning_rate']  f32[]      metric                   a scalar that is not state
// CHECK-NEXT:  result[0]['nll']            f32[]      loss                     gradients flow from it to the parameters
// CHECK-NEXT:  result[0]['perplexity']     f32[]      metric                   a scalar that is not state
// CHECK-NEXT:  result[0]['weight_norm']    f32[]      metric                   a scalar that is not state
// CHECK-NEXT:  result[1]['b']              f32[11]    state p['b']
// CHECK-NEXT:  result[1]['emb']            f32[11,4]  state p['emb']
// CHECK-NEXT:  result[1]['out']            f32[4,11]  state p['out']
// CHECK-NEXT:  result[2][1][0].count       i32[]      state o[1][0].count
// CHECK-NEXT:  result[2][1][0].mu['b']     f32[11]    state o[1][0].mu['b']
// CHECK-NEXT:  result[2][1][0].mu['emb']   f32[11,4]  state o[1][0].mu['emb']
// CHECK-NEXT:  result[2][1][0].mu['out']   f32[4,11]  state o[1][0].mu['out']
// CHECK-NEXT:  result[2][1][0].nu['b']     f32[11]    state o[1][0].nu['b']
// CHECK-NEXT:  result[2][1][0].nu['emb']   f32[11,4]  state o[1][0].nu['emb']
// CHECK-NEXT:  result[2][1][0].nu['out']   f32[4,11]  state o[1][0].nu['out']
// CHECK-NEXT:  result[2][1][2].count       i32[]      state o[1][2].count
