// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide=emit-remarks --verify-diagnostics --split-input-file -o /dev/null

// Gradients of each of four examples, which are clipped before they are added
// up. They are batched products, but no attention.
func.func public @main(
    %w: tensor<32x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "w"},
    %v: tensor<16x24xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "v"},
    %x: tensor<4x8x32xf32> {fp8.role = "batch", fp8.path = "x"}, %clip: tensor<4xf32> {fp8.role = "batch", fp8.path = "clip"})
    -> (tensor<32x16xf32> {fp8.state = "w"}, tensor<16x24xf32> {fp8.state = "v"}, tensor<f32> {fp8.kind = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-remark @+1 {{fp8: forward of w}}
  %h = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<4x8x32xf32>, tensor<32x16xf32>) -> tensor<4x8x16xf32>
  %a = stablehlo.tanh %h : tensor<4x8x16xf32>
  // expected-remark @+1 {{forward of v}}
  %y = stablehlo.dot_general %a, %v, contracting_dims = [2] x [0] : (tensor<4x8x16xf32>, tensor<16x24xf32>) -> tensor<4x8x24xf32>
  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<4x8x24xf32>, tensor<f32>) -> tensor<f32>
  %dy = stablehlo.add %y, %y : tensor<4x8x24xf32>
  // expected-remark @+1 {{high_precision: other of v (batch 4, M 16, N 24, K 8; bf16 x bf16): not a linear layer: a weight gradient of each example}}
  %dvs = stablehlo.dot_general %a, %dy, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<4x8x16xf32>, tensor<4x8x24xf32>) -> tensor<4x16x24xf32>
  // expected-remark @+1 {{dgrad of v}}
  %da = stablehlo.dot_general %dy, %v, contracting_dims = [2] x [1] : (tensor<4x8x24xf32>, tensor<16x24xf32>) -> tensor<4x8x16xf32>
  %dh = stablehlo.multiply %da, %a : tensor<4x8x16xf32>
  // The layer has no dgrad.
  // expected-remark @+1 {{high_precision: other of w (batch 4, M 32, N 16, K 8; bf16 x bf16): not a linear layer: a weight gradient of each example}}
  %dws = stablehlo.dot_general %x, %dh, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<4x8x32xf32>, tensor<4x8x16xf32>) -> tensor<4x32x16xf32>
  %cw = stablehlo.broadcast_in_dim %clip, dims = [0] : (tensor<4xf32>) -> tensor<4x32x16xf32>
  %cv = stablehlo.broadcast_in_dim %clip, dims = [0] : (tensor<4xf32>) -> tensor<4x16x24xf32>
  %dwc = stablehlo.multiply %dws, %cw : tensor<4x32x16xf32>
  %dvc = stablehlo.multiply %dvs, %cv : tensor<4x16x24xf32>
  %dw = stablehlo.reduce(%dwc init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x32x16xf32>, tensor<f32>) -> tensor<32x16xf32>
  %dv = stablehlo.reduce(%dvc init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x16x24xf32>, tensor<f32>) -> tensor<16x24xf32>
  %new = stablehlo.subtract %w, %dw : tensor<32x16xf32>
  %newv = stablehlo.subtract %v, %dv : tensor<16x24xf32>
  return %new, %newv, %loss : tensor<32x16xf32>, tensor<16x24xf32>, tensor<f32>
}

// -----

// Gradients of two losses, of which the update takes the smaller ones.
func.func public @main(
    %w: tensor<32x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "w"},
    %x: tensor<8x32xf32> {fp8.role = "batch", fp8.path = "x"}, %scale: tensor<2xf32> {fp8.role = "constant", fp8.path = "scale"})
    -> (tensor<32x16xf32> {fp8.state = "w"}, tensor<f32> {fp8.kind = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %inf = stablehlo.constant dense<0x7F800000> : tensor<f32>
  // expected-remark @+1 {{forward of w}}
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<f32>
  %ys = stablehlo.broadcast_in_dim %y, dims = [1, 2] : (tensor<8x16xf32>) -> tensor<2x8x16xf32>
  %scales = stablehlo.broadcast_in_dim %scale, dims = [0] : (tensor<2xf32>) -> tensor<2x8x16xf32>
  %dys = stablehlo.multiply %ys, %scales : tensor<2x8x16xf32>
  // expected-remark @+1 {{high_precision: other of w (batch 1, M 32, N 32, K 8; bf16 x bf16): not a linear layer: a weight gradient of each loss}}
  %dws = stablehlo.dot_general %dys, %x, contracting_dims = [1] x [0] : (tensor<2x8x16xf32>, tensor<8x32xf32>) -> tensor<2x16x32xf32>
  %dw = stablehlo.reduce(%dws init: %inf) applies stablehlo.minimum across dimensions = [0] : (tensor<2x16x32xf32>, tensor<f32>) -> tensor<16x32xf32>
  %dwt = stablehlo.transpose %dw, dims = [1, 0] : (tensor<16x32xf32>) -> tensor<32x16xf32>
  %new = stablehlo.subtract %w, %dwt : tensor<32x16xf32>
  return %new, %loss : tensor<32x16xf32>, tensor<f32>
}
