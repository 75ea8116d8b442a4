// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide=emit-remarks --verify-diagnostics -o /dev/null

// Where a branch that vmap runs for all examples reads a weight, the weight is
// repeated for each of them. Its products are batched, but no attention.
func.func public @main(
    %w: tensor<32x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "w"},
    %v: tensor<16x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "v"},
    %x: tensor<4x8x32xf32> {fp8.role = "batch", fp8.path = "x"}, %flags: tensor<4xi1> {fp8.role = "batch", fp8.path = "flags"})
    -> (tensor<32x16xf32> {fp8.state = "w"}, tensor<16x16xf32> {fp8.state = "v"}, tensor<f32> {fp8.kind = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<4x8x16xf32>
  %each = stablehlo.broadcast_in_dim %w, dims = [1, 2] : (tensor<32x16xf32>) -> tensor<4x32x16xf32>
  %eachv = stablehlo.broadcast_in_dim %v, dims = [1, 2] : (tensor<16x16xf32>) -> tensor<4x16x16xf32>
  %if = stablehlo.broadcast_in_dim %flags, dims = [0] : (tensor<4xi1>) -> tensor<4x8x16xi1>
  // expected-remark @+1 {{high_precision: other of w (batch 4, M 8, N 16, K 32; bf16 x bf16): not a linear layer: its weight is repeated in the batch, as vmap does for lax.cond}}
  %h = stablehlo.dot_general %x, %each, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x8x32xf32>, tensor<4x32x16xf32>) -> tensor<4x8x16xf32>
  %chosen = stablehlo.select %if, %h, %zeros : tensor<4x8x16xi1>, tensor<4x8x16xf32>
  // expected-remark @+1 {{high_precision: other of v (batch 4, M 8, N 16, K 16; bf16 x bf16): not a linear layer: its weight is repeated in the batch}}
  %y = stablehlo.dot_general %chosen, %eachv, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x8x16xf32>, tensor<4x16x16xf32>) -> tensor<4x8x16xf32>
  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<4x8x16xf32>, tensor<f32>) -> tensor<f32>
  %dy = stablehlo.add %y, %y : tensor<4x8x16xf32>
  // expected-remark @+1 {{high_precision: other (batch 4, M 16, N 16, K 8; bf16 x bf16): not a linear layer: a weight gradient of each example}}
  %dvs = stablehlo.dot_general %chosen, %dy, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<4x8x16xf32>, tensor<4x8x16xf32>) -> tensor<4x16x16xf32>
  // expected-remark @+1 {{high_precision: other of v (batch 4, M 8, N 16, K 16; bf16 x bf16): not a linear layer: its weight is repeated in the batch}}
  %dh = stablehlo.dot_general %dy, %eachv, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x8x16xf32>, tensor<4x16x16xf32>) -> tensor<4x8x16xf32>
  %dchosen = stablehlo.select %if, %dh, %zeros : tensor<4x8x16xi1>, tensor<4x8x16xf32>
  // expected-remark @+1 {{high_precision: other (batch 4, M 32, N 16, K 8; bf16 x bf16): not a linear layer: a weight gradient of each example}}
  %dws = stablehlo.dot_general %x, %dchosen, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<4x8x32xf32>, tensor<4x8x16xf32>) -> tensor<4x32x16xf32>
  %dw = stablehlo.reduce(%dws init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x32x16xf32>, tensor<f32>) -> tensor<32x16xf32>
  %dv = stablehlo.reduce(%dvs init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x16x16xf32>, tensor<f32>) -> tensor<16x16xf32>
  %new = stablehlo.subtract %w, %dw : tensor<32x16xf32>
  %newv = stablehlo.subtract %v, %dv : tensor<16x16xf32>
  return %new, %newv, %loss : tensor<32x16xf32>, tensor<16x16xf32>, tensor<f32>
}
