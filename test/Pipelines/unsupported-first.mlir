// RUN: fp8-opt %s --fp8-import --verify-diagnostics

// An op that is not supported is reported before an ambiguous signature: the
// answer to the latter would be of no use.
func.func public @main(%w: tensor<4xf32> loc("w"), %x: tensor<8x4xf32> loc("x"), %y: tensor<8xf32> loc("y")) -> (tensor<4xf32> {jax.result_info = "result['w']"}, tensor<f32> {jax.result_info = "result['a']"}, tensor<f32> {jax.result_info = "result['b']"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %d = stablehlo.subtract %z, %y : tensor<8xf32>
  %s = stablehlo.multiply %d, %d : tensor<8xf32>
  %mse = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %a = stablehlo.multiply %d, %y : tensor<8xf32>
  %loss = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %d, %x, contracting_dims = [0] x [0] : (tensor<8xf32>, tensor<8x4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{'stablehlo.custom_call' op has the target 'my_kernel', which does not run here}}
  %k = stablehlo.custom_call @my_kernel(%g) : (tensor<4xf32>) -> tensor<4xf32>
  %0 = stablehlo.subtract %w, %k : tensor<4xf32>
  return %0, %mse, %loss : tensor<4xf32>, tensor<f32>, tensor<f32>
}
