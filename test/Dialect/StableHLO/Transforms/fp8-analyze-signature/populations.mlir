// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-analyze-signature=explain=true -o /dev/null | FileCheck %s

// Two sets of weights change places after each step: the new %idle is the
// trained %w. That is their order, too.

// CHECK:      arg0  f32[4,3]  state parameter  the loss depends on it; replaced by result1
// CHECK-NEXT: arg1  f32[4,3]  state {{.*}}replaced by result2
func.func public @main(%w: tensor<4x3xf32>, %idle: tensor<4x3xf32>, %x: tensor<2x4xf32>, %y: tensor<2x3xf32>) -> (tensor<f32>, tensor<4x3xf32>, tensor<4x3xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %rate = stablehlo.constant dense<0.1> : tensor<4x3xf32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %e = stablehlo.subtract %z, %y : tensor<2x3xf32>
  %e2 = stablehlo.multiply %e, %e : tensor<2x3xf32>
  %loss = stablehlo.reduce(%e2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %e, contracting_dims = [0] x [0] : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %c = stablehlo.multiply %g, %rate : tensor<4x3xf32>
  %new = stablehlo.subtract %w, %c : tensor<4x3xf32>
  return %loss, %idle, %new : tensor<f32>, tensor<4x3xf32>, tensor<4x3xf32>
}

// -----

// The same step with its results in the other order: then %idle stays as it is.

// CHECK:      arg0  f32[4,3]  state parameter  {{.*}}replaced by result1
// CHECK-NEXT: arg1  f32[4,3]  state {{.*}}never changes;{{.*}}replaced by result2
func.func public @main(%w: tensor<4x3xf32>, %idle: tensor<4x3xf32>, %x: tensor<2x4xf32>, %y: tensor<2x3xf32>) -> (tensor<f32>, tensor<4x3xf32>, tensor<4x3xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %rate = stablehlo.constant dense<0.1> : tensor<4x3xf32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %e = stablehlo.subtract %z, %y : tensor<2x3xf32>
  %e2 = stablehlo.multiply %e, %e : tensor<2x3xf32>
  %loss = stablehlo.reduce(%e2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %e, contracting_dims = [0] x [0] : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %c = stablehlo.multiply %g, %rate : tensor<4x3xf32>
  %new = stablehlo.subtract %w, %c : tensor<4x3xf32>
  return %loss, %new, %idle : tensor<f32>, tensor<4x3xf32>, tensor<4x3xf32>
}

// -----

// The biases show that results are not in the order of the arguments, so
// nothing tells whether the weights change places. Donated buffers do not,
// because they follow the order, too.
// expected-error @+1 {{ambiguous state: several results could replace arg1: result1, result2; choose with the option 'states' (fp8-run: --state ARGUMENT=RESULT)}}
func.func public @main(%w: tensor<4x3xf32> {tf.aliasing_output = 1 : i32}, %idle: tensor<4x3xf32> {tf.aliasing_output = 2 : i32}, %b: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<2x4xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %rate = stablehlo.constant dense<0.1> : tensor<4x3xf32>
  %brate = stablehlo.constant dense<0.1> : tensor<2x3xf32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %zb = stablehlo.add %z, %b : tensor<2x3xf32>
  %e = stablehlo.subtract %zb, %y : tensor<2x3xf32>
  %e2 = stablehlo.multiply %e, %e : tensor<2x3xf32>
  %loss = stablehlo.reduce(%e2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %e, contracting_dims = [0] x [0] : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %c = stablehlo.multiply %g, %rate : tensor<4x3xf32>
  %new = stablehlo.subtract %w, %c : tensor<4x3xf32>
  %be = stablehlo.multiply %e, %brate : tensor<2x3xf32>
  %bnew = stablehlo.subtract %b, %be : tensor<2x3xf32>
  return %bnew, %idle, %new, %loss : tensor<2x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>
}
