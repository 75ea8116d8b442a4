// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide=emit-remarks --verify-diagnostics -o /dev/null

// Products of pairs of rows, channel by channel, as in a protein's triangles. A
// norm along the channels tells them from heads of scores, so the layer that
// follows is linear. An outer product of a parameter contracts nothing.

func.func public @main(
    %rates: tensor<32x4xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['rates']"},
    %wo: tensor<32x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['wo']"},
    %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %a: tensor<2x8x6x32xf32> {fp8.role = "batch", fp8.path = "a"},
    %b: tensor<2x8x6x32xf32> {fp8.role = "batch", fp8.path = "b"})
    -> (tensor<32x4xf32> {fp8.state = "p['rates']"}, tensor<32x16xf32> {fp8.state = "p['wo']"}, tensor<f32> {fp8.kind = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %channels = stablehlo.constant dense<32.0> : tensor<2x8x8xf32>
  // expected-remark @+1 {{high_precision: attention (batch 64, M 8, N 8, K 6; bf16 x bf16): attention: a batched product of two activations}}
  %s = stablehlo.dot_general %a, %b, batching_dims = [0, 3] x [0, 3], contracting_dims = [2] x [2]
      : (tensor<2x8x6x32xf32>, tensor<2x8x6x32xf32>) -> tensor<2x32x8x8xf32>
  %t = stablehlo.transpose %s, dims = [0, 2, 3, 1] : (tensor<2x32x8x8xf32>) -> tensor<2x8x8x32xf32>
  %sum = stablehlo.reduce(%t init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x8x8x32xf32>, tensor<f32>) -> tensor<2x8x8xf32>
  %mean = stablehlo.divide %sum, %channels : tensor<2x8x8xf32>
  %means = stablehlo.broadcast_in_dim %mean, dims = [0, 1, 2] : (tensor<2x8x8xf32>) -> tensor<2x8x8x32xf32>
  %n = stablehlo.subtract %t, %means : tensor<2x8x8x32xf32>
  // expected-remark @+1 {{fp8: forward of p['wo'] (batch 1, M 128, N 16, K 32; f8E4M3FN x f8E4M3FN): linear layer}}
  %h = stablehlo.dot_general %n, %wo, contracting_dims = [3] x [0] : (tensor<2x8x8x32xf32>, tensor<32x16xf32>) -> tensor<2x8x8x16xf32>
  // expected-remark @+1 {{high_precision: forward of p['head'] (batch 1, M 128, N 8, K 16; bf16 x bf16): head: no other layer reads the layer's output}}
  %y = stablehlo.dot_general %h, %head, contracting_dims = [3] x [0] : (tensor<2x8x8x16xf32>, tensor<16x8xf32>) -> tensor<2x8x8x8xf32>
  // expected-remark @+1 {{not a linear layer: contracts nothing}}
  %decays = stablehlo.dot_general %n, %rates, batching_dims = [3] x [0], contracting_dims = [] x [] : (tensor<2x8x8x32xf32>, tensor<32x4xf32>) -> tensor<32x2x8x8x4xf32>
  %first = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<2x8x8x8xf32>, tensor<f32>) -> tensor<f32>
  %second = stablehlo.reduce(%decays init: %zero) applies stablehlo.add across dimensions = [0, 1, 2, 3, 4] : (tensor<32x2x8x8x4xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.add %first, %second : tensor<f32>
  return %rates, %wo, %loss : tensor<32x4xf32>, tensor<32x16xf32>, tensor<f32>
}
