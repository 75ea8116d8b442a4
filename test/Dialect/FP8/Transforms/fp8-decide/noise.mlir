// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide=emit-remarks --verify-diagnostics -o /dev/null

// A weight with noise, one random number for each element, is a weight. A
// learned input with noise for each example is an activation. So are logits with
// noise to draw from them, even if they follow from parameters alone.
func.func public @main(
    %mu: tensor<32x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['mu']"},
    %sigma: tensor<32x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['sigma']"},
    %input: tensor<32xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['input']"},
    %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %key: tensor<4xui32> {fp8.role = "key", fp8.path = "key"})
    -> (tensor<32x16xf32> {fp8.state = "p['mu']"}, tensor<32x16xf32> {fp8.state = "p['sigma']"},
        tensor<32xf32> {fp8.state = "p['input']"}, tensor<f32> {fp8.kind = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %pairs = stablehlo.reshape %key : (tensor<4xui32>) -> tensor<2x2xui32>
  %state = stablehlo.bitcast_convert %pairs : (tensor<2x2xui32>) -> tensor<2xui64>
  %next, %bits = stablehlo.rng_bit_generator %state, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<32x16xui32>)
  %last, %more = stablehlo.rng_bit_generator %next, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4x32xui32>)
  %noise = stablehlo.convert %bits : (tensor<32x16xui32>) -> tensor<32x16xf32>
  %scaled = stablehlo.multiply %sigma, %noise : tensor<32x16xf32>
  %w = stablehlo.add %mu, %scaled : tensor<32x16xf32>
  %inputs = stablehlo.broadcast_in_dim %input, dims = [1] : (tensor<32xf32>) -> tensor<4x32xf32>
  %each = stablehlo.convert %more : (tensor<4x32xui32>) -> tensor<4x32xf32>
  %x = stablehlo.add %inputs, %each : tensor<4x32xf32>
  // expected-remark @+1 {{fp8: forward of p['mu'] (batch 1, M 4, N 16, K 32; f8E4M3FN x f8E4M3FN): linear layer}}
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
  // expected-remark @+1 {{high_precision: forward of p['head'] (batch 1, M 4, N 8, K 16; bf16 x bf16): head: no other layer reads the layer's output}}
  %y = stablehlo.dot_general %h, %head, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  // expected-remark @+1 {{high_precision: other (batch 1, M 1, N 16, K 32; bf16 x bf16): not a linear layer: both operands come from parameters}}
  %logits = stablehlo.dot_general %input, %mu, contracting_dims = [0] x [0] : (tensor<32xf32>, tensor<32x16xf32>) -> tensor<16xf32>
  %rows = stablehlo.broadcast_in_dim %logits, dims = [1] : (tensor<16xf32>) -> tensor<4x16xf32>
  %gumbel = stablehlo.slice %each [0:4, 0:16] : (tensor<4x32xf32>) -> tensor<4x16xf32>
  %drawn = stablehlo.add %rows, %gumbel : tensor<4x16xf32>
  // expected-remark @+1 {{fp8: forward of p['mu'] (batch 1, M 4, N 32, K 16; f8E4M3FN x f8E4M3FN): linear layer}}
  %more_h = stablehlo.dot_general %drawn, %mu, contracting_dims = [1] x [1] : (tensor<4x16xf32>, tensor<32x16xf32>) -> tensor<4x32xf32>
  // expected-remark @+1 {{high_precision: forward of p['mu'] (batch 1, M 4, N 16, K 32; bf16 x bf16): head: no other layer reads the layer's output}}
  %z = stablehlo.dot_general %more_h, %mu, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
  %all = stablehlo.concatenate %y, %z, dim = 1 : (tensor<4x8xf32>, tensor<4x16xf32>) -> tensor<4x24xf32>
  %loss = stablehlo.reduce(%all init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x24xf32>, tensor<f32>) -> tensor<f32>
  return %mu, %sigma, %input, %loss : tensor<32x16xf32>, tensor<32x16xf32>, tensor<32xf32>, tensor<f32>
}
