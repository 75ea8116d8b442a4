// Two linear layers, their loss, and the step of both weights, with dots that
// are large enough for every way of computing them.
func.func public @main(
    %w: tensor<128x512xf32> {fp8.path = "params['w']"},
    %head: tensor<512x64xf32> {fp8.path = "params['head']"},
    %x: tensor<256x128xf32> {fp8.path = "x"},
    %y: tensor<256x64xf32> {fp8.path = "y"})
    -> (tensor<128x512xf32> {jax.result_info = "params['w']"},
        tensor<512x64xf32> {jax.result_info = "params['head']"},
        tensor<f32> {jax.result_info = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %rate = stablehlo.constant dense<0.01> : tensor<128x512xf32>
  %headRate = stablehlo.constant dense<0.01> : tensor<512x64xf32>
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<256x128xf32>, tensor<128x512xf32>) -> tensor<256x512xf32>
  %p = stablehlo.dot_general %h, %head, contracting_dims = [1] x [0] : (tensor<256x512xf32>, tensor<512x64xf32>) -> tensor<256x64xf32>
  %e = stablehlo.subtract %p, %y : tensor<256x64xf32>
  %s = stablehlo.multiply %e, %e : tensor<256x64xf32>
  %loss = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<256x64xf32>, tensor<f32>) -> tensor<f32>
  %dp = stablehlo.add %e, %e : tensor<256x64xf32>
  %dh = stablehlo.dot_general %dp, %head, contracting_dims = [1] x [1] : (tensor<256x64xf32>, tensor<512x64xf32>) -> tensor<256x512xf32>
  %dhead = stablehlo.dot_general %h, %dp, contracting_dims = [0] x [0] : (tensor<256x512xf32>, tensor<256x64xf32>) -> tensor<512x64xf32>
  %dw = stablehlo.dot_general %x, %dh, contracting_dims = [0] x [0] : (tensor<256x128xf32>, tensor<256x512xf32>) -> tensor<128x512xf32>
  %uw = stablehlo.multiply %rate, %dw : tensor<128x512xf32>
  %uhead = stablehlo.multiply %headRate, %dhead : tensor<512x64xf32>
  %nw = stablehlo.subtract %w, %uw : tensor<128x512xf32>
  %nhead = stablehlo.subtract %head, %uhead : tensor<512x64xf32>
  return %nw, %nhead, %loss : tensor<128x512xf32>, tensor<512x64xf32>, tensor<f32>
}
