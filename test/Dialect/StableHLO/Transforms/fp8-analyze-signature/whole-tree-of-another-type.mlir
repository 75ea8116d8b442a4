// RUN: fp8-opt %s --verify-diagnostics --fp8-analyze-signature=kind=step

// All of a tree has another type, so that no parameter is updated.
// expected-error @+1 {{no loss found: expected a scalar floating-point result that is not state and that parameters are updated from; scalar results are: result[2]; if the loss is one of them, name it with a loss option; 'p['w']' is 'tensor<4x3xbf16>', but result[0]['w'] is 'tensor<4x3xf32>': state has to come back as the type that it has}}
func.func public @main(%w: tensor<4x3xbf16> loc("p['w']"), %m: tensor<4x3xf32> loc("m['w']"), %x: tensor<2x4xf32> loc("x")) -> (tensor<4x3xf32> {jax.result_info = "result[0]['w']"}, tensor<4x3xf32> {jax.result_info = "result[1]['w']"}, tensor<f32> {jax.result_info = "result[2]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %half = stablehlo.constant dense<0.5> : tensor<4x3xf32>
  %wide = stablehlo.convert %w : (tensor<4x3xbf16>) -> tensor<4x3xf32>
  %z = stablehlo.dot_general %x, %wide, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %z2 = stablehlo.multiply %z, %z : tensor<2x3xf32>
  %loss = stablehlo.reduce(%z2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %z, contracting_dims = [0] x [0] : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %decayed = stablehlo.multiply %m, %half : tensor<4x3xf32>
  %next = stablehlo.add %decayed, %g : tensor<4x3xf32>
  %new = stablehlo.subtract %wide, %next : tensor<4x3xf32>
  return %new, %next, %loss : tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>
}
