// RUN: fp8-opt %s --split-input-file --fp8-analyze-signature="initial=params['w']=tensor<4x4xf32>,memory['bank']=tensor<8x4xf32>,teacher['w']=tensor<4x4xf32>" | FileCheck %s
// RUN: fp8-opt %s --split-input-file --fp8-analyze-signature | FileCheck %s --check-prefix=UNKNOWN

// Activations are written into a bank that the loss reads. No chain of updates
// leads to its next value, but the initial values contain it, so it is no data,
// and one tree of results has its paths and types.
// CHECK-LABEL: @bank
// CHECK-SAME: fp8.path = "params['w']", fp8.role = "state"
// CHECK-SAME: fp8.path = "memory['bank']", fp8.role = "state"
// CHECK-SAME: fp8.path = "x", fp8.role = "batch"
// CHECK-SAME: fp8.path = "result[1]['bank']", fp8.state = "memory['bank']"
// It may be data whose reconstruction is returned if nothing else is known.
// UNKNOWN-LABEL: @bank
// UNKNOWN-NOT: fp8.state = "memory['bank']"
func.func public @bank(%w: tensor<4x4xf32> {fp8.path = "params['w']"}, %bank: tensor<8x4xf32> {fp8.path = "memory['bank']"}, %x: tensor<8x4xf32> {fp8.path = "x"})
    -> (tensor<4x4xf32> {fp8.path = "result[0]['w']"}, tensor<8x4xf32> {fp8.path = "result[1]['bank']"}, tensor<f32> {fp8.path = "result[2]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %rate = stablehlo.constant dense<0.1> : tensor<4x4xf32>
  %i = stablehlo.constant dense<0> : tensor<i32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %e = stablehlo.subtract %z, %bank : tensor<8x4xf32>
  %s = stablehlo.multiply %e, %e : tensor<8x4xf32>
  %loss = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
  %d = stablehlo.add %e, %e : tensor<8x4xf32>
  %g = stablehlo.dot_general %x, %d, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %u = stablehlo.multiply %g, %rate : tensor<4x4xf32>
  %new = stablehlo.subtract %w, %u : tensor<4x4xf32>
  %row = stablehlo.slice %z [0:1, 0:4] : (tensor<8x4xf32>) -> tensor<1x4xf32>
  %next = stablehlo.dynamic_update_slice %bank, %row, %i, %i : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
  return %new, %next, %loss : tensor<4x4xf32>, tensor<8x4xf32>, tensor<f32>
}

// -----

// Returned gradients have the paths and types of a frozen teacher, too.
// CHECK-LABEL: @teacher
// CHECK-SAME: fp8.path = "params['w']", fp8.role = "state"
// CHECK-SAME: fp8.path = "teacher['w']", fp8.role = "frozen"
// CHECK-SAME: fp8.kind = "output", fp8.path = "result[1]['w']"
// UNKNOWN-LABEL: @teacher
// UNKNOWN-NOT: fp8.state = "teacher['w']"
func.func public @teacher(%w: tensor<4x4xf32> {fp8.path = "params['w']"}, %t: tensor<4x4xf32> {fp8.path = "teacher['w']"}, %x: tensor<8x4xf32> {fp8.path = "x"})
    -> (tensor<4x4xf32> {fp8.path = "result[0]['w']"}, tensor<4x4xf32> {fp8.path = "result[1]['w']"}, tensor<f32> {fp8.path = "result[2]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %rate = stablehlo.constant dense<0.1> : tensor<4x4xf32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %y = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %e = stablehlo.subtract %z, %y : tensor<8x4xf32>
  %s = stablehlo.multiply %e, %e : tensor<8x4xf32>
  %loss = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
  %d = stablehlo.add %e, %e : tensor<8x4xf32>
  %g = stablehlo.dot_general %x, %d, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %u = stablehlo.multiply %g, %rate : tensor<4x4xf32>
  %new = stablehlo.subtract %w, %u : tensor<4x4xf32>
  return %new, %g, %loss : tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>
}
