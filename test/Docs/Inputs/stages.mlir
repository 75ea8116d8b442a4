// Two linear layers, their loss, and the step of both weights: what
// docs/Architecture.md follows through the stages.
func.func public @main(
    %w: tensor<64x128xf32> {fp8.path = "params['w']"},
    %head: tensor<128x32xf32> {fp8.path = "params['head']"},
    %x: tensor<16x64xf32> {fp8.path = "x"},
    %y: tensor<16x32xf32> {fp8.path = "y"})
    -> (tensor<64x128xf32> {jax.result_info = "params['w']"},
        tensor<128x32xf32> {jax.result_info = "params['head']"},
        tensor<f32> {jax.result_info = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %rate = stablehlo.constant dense<0.01> : tensor<64x128xf32>
  %headRate = stablehlo.constant dense<0.01> : tensor<128x32xf32>
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x64xf32>, tensor<64x128xf32>) -> tensor<16x128xf32>
  %p = stablehlo.dot_general %h, %head, contracting_dims = [1] x [0] : (tensor<16x128xf32>, tensor<128x32xf32>) -> tensor<16x32xf32>
  %e = stablehlo.subtract %p, %y : tensor<16x32xf32>
  %s = stablehlo.multiply %e, %e : tensor<16x32xf32>
  %loss = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32xf32>, tensor<f32>) -> tensor<f32>
  %dp = stablehlo.add %e, %e : tensor<16x32xf32>
  %dh = stablehlo.dot_general %dp, %head, contracting_dims = [1] x [1] : (tensor<16x32xf32>, tensor<128x32xf32>) -> tensor<16x128xf32>
  %dhead = stablehlo.dot_general %h, %dp, contracting_dims = [0] x [0] : (tensor<16x128xf32>, tensor<16x32xf32>) -> tensor<128x32xf32>
  %dw = stablehlo.dot_general %x, %dh, contracting_dims = [0] x [0] : (tensor<16x64xf32>, tensor<16x128xf32>) -> tensor<64x128xf32>
  %uw = stablehlo.multiply %rate, %dw : tensor<64x128xf32>
  %uhead = stablehlo.multiply %headRate, %dhead : tensor<128x32xf32>
  %nw = stablehlo.subtract %w, %uw : tensor<64x128xf32>
  %nhead = stablehlo.subtract %head, %uhead : tensor<128x32xf32>
  return %nw, %nhead, %loss : tensor<64x128xf32>, tensor<128x32xf32>, tensor<f32>
}
