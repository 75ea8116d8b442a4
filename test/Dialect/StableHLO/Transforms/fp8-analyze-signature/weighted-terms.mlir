// RUN: fp8-opt %s --split-input-file --fp8-analyze-signature | FileCheck %s

// A loss weights its terms by parameters. The gradients of these are the terms,
// values of the forward pass.
// CHECK-LABEL: func.func public @weighted
func.func public @weighted(%v: tensor<2xf32>, %w: tensor<4x2xf32>, %x: tensor<3x4xf32>) -> (tensor<2xf32>, tensor<4x2xf32>, tensor<f32>) {
  // CHECK-SAME: tensor<2xf32> {fp8.kind = "parameter", fp8.path = "arg0", fp8.role = "state"}
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %rate = stablehlo.constant dense<0.1> : tensor<2xf32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %z2 = stablehlo.multiply %z, %z : tensor<3x2xf32>
  %terms = stablehlo.reduce(%z2 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<3x2xf32>, tensor<f32>) -> tensor<2xf32>
  %weighted = stablehlo.multiply %v, %terms : tensor<2xf32>
  %both = stablehlo.subtract %weighted, %v : tensor<2xf32>
  %loss = stablehlo.reduce(%both init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
  %vs = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<2xf32>) -> tensor<3x2xf32>
  %dz = stablehlo.multiply %vs, %z : tensor<3x2xf32>
  %g = stablehlo.dot_general %x, %dz, contracting_dims = [0] x [0] : (tensor<3x4xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  %new = stablehlo.subtract %w, %g : tensor<4x2xf32>
  %step = stablehlo.multiply %rate, %terms : tensor<2xf32>
  %moved = stablehlo.subtract %v, %step : tensor<2xf32>
  return %moved, %new, %loss : tensor<2xf32>, tensor<4x2xf32>, tensor<f32>
}

// -----

// The difference of data and what is predicted is an output: no term of the loss
// is the prediction times a function of the data.
// CHECK-LABEL: func.func public @difference
func.func public @difference(%y: tensor<3x2xf32>, %w: tensor<4x2xf32>, %x: tensor<3x4xf32>) -> (tensor<3x2xf32>, tensor<4x2xf32>, tensor<f32>) {
  // CHECK-SAME: tensor<3x2xf32> {fp8.path = "arg0", fp8.role = "batch"}
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %e = stablehlo.subtract %y, %z : tensor<3x2xf32>
  %e2 = stablehlo.multiply %e, %e : tensor<3x2xf32>
  %loss = stablehlo.reduce(%e2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x2xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %e, contracting_dims = [0] x [0] : (tensor<3x4xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  %new = stablehlo.add %w, %g : tensor<4x2xf32>
  return %e, %new, %loss : tensor<3x2xf32>, tensor<4x2xf32>, tensor<f32>
}
