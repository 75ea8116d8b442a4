// RUN: fp8-opt %s --fp8-analyze-signature --split-input-file --verify-diagnostics

// A step with momentum that returns everything but the loss.
// expected-error @+1 {{no loss found: expected a scalar floating-point result that is not state and that parameters are updated from; scalar results are: none}}
func.func public @main(%w: tensor<4xf32> loc("w"), %m: tensor<4xf32> loc("m"), %x: tensor<8x4xf32> loc("x"), %y: tensor<8xf32> loc("y")) -> (tensor<4xf32> {jax.result_info = "result[0]"}, tensor<4xf32> {jax.result_info = "result[1]"}) {
  %decay = stablehlo.constant dense<0.9> : tensor<4xf32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %d = stablehlo.subtract %z, %y : tensor<8xf32>
  %g = stablehlo.dot_general %d, %x, contracting_dims = [0] x [0] : (tensor<8xf32>, tensor<8x4xf32>) -> tensor<4xf32>
  %0 = stablehlo.multiply %m, %decay : tensor<4xf32>
  %1 = stablehlo.add %0, %g : tensor<4xf32>
  %2 = stablehlo.subtract %w, %1 : tensor<4xf32>
  return %2, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// The norm of the gradient is no loss.
// expected-error @+1 {{no loss found: expected a scalar floating-point result that is not state and that parameters are updated from; scalar results are: result['norm'], result['n']; if the loss is one of them, name it with a loss option}}
func.func public @main(%w: tensor<4xf32> loc("w"), %x: tensor<8x4xf32> loc("x"), %y: tensor<8xf32> loc("y"), %n: tensor<i32> loc("n")) -> (tensor<4xf32> {jax.result_info = "result['w']"}, tensor<f32> {jax.result_info = "result['norm']"}, tensor<i32> {jax.result_info = "result['n']"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %d = stablehlo.subtract %z, %y : tensor<8xf32>
  %g = stablehlo.dot_general %d, %x, contracting_dims = [0] x [0] : (tensor<8xf32>, tensor<8x4xf32>) -> tensor<4xf32>
  %0 = stablehlo.subtract %w, %g : tensor<4xf32>
  %1 = stablehlo.multiply %g, %g : tensor<4xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %3 = stablehlo.multiply %n, %n : tensor<i32>
  return %0, %2, %3 : tensor<4xf32>, tensor<f32>, tensor<i32>
}
