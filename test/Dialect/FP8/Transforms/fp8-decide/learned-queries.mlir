// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide=emit-remarks --verify-diagnostics -o /dev/null

// An attention over learned queries alone, as the first block of a decoder has
// it, reads no data. Its weights and values are activations all the same.
func.func public @main(
    %query: tensor<6x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['query']"},
    %wv: tensor<16x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['v']"},
    %x: tensor<4x6x16xf32> {fp8.role = "batch", fp8.path = "x"})
    -> (tensor<6x16xf32> {fp8.state = "p['query']"}, tensor<16x16xf32> {fp8.state = "p['v']"}, tensor<f32> {fp8.kind = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %q = stablehlo.broadcast_in_dim %query, dims = [1, 2] : (tensor<6x16xf32>) -> tensor<4x6x16xf32>
  // expected-remark @+1 {{high_precision: other (batch 1, M 24, N 16, K 16; bf16 x bf16): not a linear layer: both operands come from parameters}}
  %v = stablehlo.dot_general %q, %wv, contracting_dims = [2] x [0] : (tensor<4x6x16xf32>, tensor<16x16xf32>) -> tensor<4x6x16xf32>
  // expected-remark @+1 {{high_precision: attention (batch 4, M 6, N 6, K 16; bf16 x bf16): attention: a batched product of two activations}}
  %s = stablehlo.dot_general %q, %v, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x6x16xf32>, tensor<4x6x16xf32>) -> tensor<4x6x6xf32>
  %e = stablehlo.exponential %s : tensor<4x6x6xf32>
  %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<4x6x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<4x6xf32>) -> tensor<4x6x6xf32>
  %w = stablehlo.divide %e, %sums : tensor<4x6x6xf32>
  // expected-remark @+1 {{high_precision: attention (batch 4, M 6, N 16, K 6; bf16 x bf16): attention: a batched product of two activations}}
  %o = stablehlo.dot_general %w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x6x6xf32>, tensor<4x6x16xf32>) -> tensor<4x6x16xf32>
  %y = stablehlo.multiply %o, %x : tensor<4x6x16xf32>
  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<4x6x16xf32>, tensor<f32>) -> tensor<f32>
  return %query, %wv, %loss : tensor<6x16xf32>, tensor<16x16xf32>, tensor<f32>
}
