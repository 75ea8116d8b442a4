// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide=emit-remarks --verify-diagnostics -o /dev/null

// A parameter that mixes the scores of heads is no linear layer: masked scores
// would be the amax. So it is behind the softmax. What follows from attention's
// result is one, and what follows from products of channels without a sum, as in
// the gradient of a filter (forces are gradients in the forward pass).

func.func public @main(
    %mix: tensor<4x4xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['mix']"},
    %wo: tensor<32x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['wo']"},
    %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %mask: tensor<2x4x8x8xi1> {fp8.role = "batch", fp8.path = "mask"},
    %q: tensor<2x8x4x8xf32> {fp8.role = "batch", fp8.path = "q"},
    %k: tensor<2x8x4x8xf32> {fp8.role = "batch", fp8.path = "k"})
    -> (tensor<4x4xf32> {fp8.state = "p['mix']"}, tensor<32x16xf32> {fp8.state = "p['wo']"}, tensor<f32> {fp8.kind = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<-1.0e9> : tensor<2x4x8x8xf32>
  // expected-remark @+1 {{high_precision: attention (batch 8, M 8, N 8, K 8; bf16 x bf16): attention: a batched product of two activations}}
  %s = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3]
      : (tensor<2x8x4x8xf32>, tensor<2x8x4x8xf32>) -> tensor<2x4x8x8xf32>
  %masked = stablehlo.select %mask, %s, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %t = stablehlo.transpose %masked, dims = [0, 2, 3, 1] : (tensor<2x4x8x8xf32>) -> tensor<2x8x8x4xf32>
  // expected-remark @+1 {{high_precision: other (batch 1, M 128, N 4, K 4; bf16 x bf16): not a linear layer: mixes the scores of heads}}
  %m = stablehlo.dot_general %t, %mix, contracting_dims = [3] x [0] : (tensor<2x8x8x4xf32>, tensor<4x4xf32>) -> tensor<2x8x8x4xf32>
  %e = stablehlo.exponential %m : tensor<2x8x8x4xf32>
  // expected-remark @+1 {{high_precision: other (batch 1, M 128, N 4, K 4; bf16 x bf16): not a linear layer: mixes the scores of heads}}
  %m2 = stablehlo.dot_general %e, %mix, contracting_dims = [3] x [0] : (tensor<2x8x8x4xf32>, tensor<4x4xf32>) -> tensor<2x8x8x4xf32>
  // expected-remark @+1 {{high_precision: attention (batch 8, M 8, N 8, K 8; bf16 x bf16): attention: a batched product of two activations}}
  %a = stablehlo.dot_general %m2, %k, batching_dims = [0, 3] x [0, 2], contracting_dims = [2] x [1]
      : (tensor<2x8x8x4xf32>, tensor<2x8x4x8xf32>) -> tensor<2x4x8x8xf32>
  %u = stablehlo.transpose %a, dims = [0, 2, 1, 3] : (tensor<2x4x8x8xf32>) -> tensor<2x8x4x8xf32>
  %o = stablehlo.reshape %u : (tensor<2x8x4x8xf32>) -> tensor<2x8x32xf32>
  // expected-remark @+1 {{fp8: forward of p['wo'] (batch 1, M 16, N 16, K 32; f8E4M3FN x f8E4M3FN): linear layer}}
  %h = stablehlo.dot_general %o, %wo, contracting_dims = [2] x [0] : (tensor<2x8x32xf32>, tensor<32x16xf32>) -> tensor<2x8x16xf32>
  // expected-remark @+1 {{high_precision: forward of p['head'] (batch 1, M 16, N 8, K 16; bf16 x bf16): head: no other layer reads the layer's output}}
  %y = stablehlo.dot_general %h, %head, contracting_dims = [2] x [0] : (tensor<2x8x16xf32>, tensor<16x8xf32>) -> tensor<2x8x8xf32>
  // expected-remark @+1 {{high_precision: attention (batch 32, M 8, N 8, K 1; f32 x f32): attention: a batched product of two activations}}
  %filters = stablehlo.dot_general %h, %h, batching_dims = [0, 2] x [0, 2], contracting_dims = [] x []
      : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x16x8x8xf32>
  // expected-remark @+1 {{fp8: forward of p['wo'] (batch 1, M 128, N 32, K 16; f8E4M3FN x f8E4M3FN): linear layer}}
  %f = stablehlo.dot_general %filters, %wo, contracting_dims = [1] x [1] : (tensor<2x16x8x8xf32>, tensor<32x16xf32>) -> tensor<2x8x8x32xf32>
  %fs = stablehlo.reduce(%f init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8x8x32xf32>, tensor<f32>) -> tensor<2x8x32xf32>
  // expected-remark @+1 {{high_precision: forward of p['wo'] (batch 1, M 16, N 16, K 32; bf16 x bf16): head: no other layer reads the layer's output}}
  %g = stablehlo.dot_general %fs, %wo, contracting_dims = [2] x [0] : (tensor<2x8x32xf32>, tensor<32x16xf32>) -> tensor<2x8x16xf32>
  %both = stablehlo.concatenate %y, %g, dim = 2 : (tensor<2x8x8xf32>, tensor<2x8x16xf32>) -> tensor<2x8x24xf32>
  %loss = stablehlo.reduce(%both init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x8x24xf32>, tensor<f32>) -> tensor<f32>
  return %mix, %wo, %loss : tensor<4x4xf32>, tensor<32x16xf32>, tensor<f32>
}
