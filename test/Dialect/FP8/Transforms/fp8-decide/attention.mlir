// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide=emit-remarks --verify-diagnostics -o /dev/null
// RUN: fp8-opt %s --fp8-quantize="recipe=tensorwise" | FileCheck %s

// Attention's dots of two activations stay as they are; the output projection
// reads a layout of attention's result, and its weight gradient the same one.
// The layout op is common to both, so that the payload is made behind it.

// CHECK: %[[MERGED:.*]] = stablehlo.reshape
// CHECK: fp8.quantize %[[MERGED]]
// CHECK-NOT: fp8.unpack
func.func public @main(
    %wo: tensor<32x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['wo']"},
    %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %q: tensor<2x4x8x8xf32> {fp8.role = "batch", fp8.path = "q"},
    %k: tensor<2x4x8x8xf32> {fp8.role = "batch", fp8.path = "k"})
    -> (tensor<32x16xf32> {fp8.state = "p['wo']"}, tensor<f32> {fp8.kind = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-remark @+1 {{high_precision: attention (batch 8, M 8, N 8, K 8; bf16 x bf16): attention: a batched product of two activations}}
  %s = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3]
      : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %t = stablehlo.transpose %s, dims = [0, 2, 1, 3] : (tensor<2x4x8x8xf32>) -> tensor<2x8x4x8xf32>
  %o = stablehlo.reshape %t : (tensor<2x8x4x8xf32>) -> tensor<2x8x32xf32>
  // expected-remark @+1 {{fp8: forward of p['wo'] (batch 1, M 16, N 16, K 32; f8E4M3FN x f8E4M3FN): linear layer}}
  %h = stablehlo.dot_general %o, %wo, contracting_dims = [2] x [0]
      : (tensor<2x8x32xf32>, tensor<32x16xf32>) -> tensor<2x8x16xf32>
  // expected-remark @+1 {{high_precision: forward of p['head'] (batch 1, M 16, N 8, K 16; bf16 x bf16): head: no other layer reads the layer's output}}
  %y = stablehlo.dot_general %h, %head, contracting_dims = [2] x [0]
      : (tensor<2x8x16xf32>, tensor<16x8xf32>) -> tensor<2x8x8xf32>
  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1, 2]
      : (tensor<2x8x8xf32>, tensor<f32>) -> tensor<f32>
  // expected-remark @+1 {{high_precision: dgrad of p['head']}}
  %dh = stablehlo.dot_general %y, %head, contracting_dims = [2] x [1]
      : (tensor<2x8x8xf32>, tensor<16x8xf32>) -> tensor<2x8x16xf32>
  // expected-remark @+1 {{fp8: wgrad of p['wo'] (batch 1, M 16, N 32, K 16; f8E5M2 x f8E4M3FN): linear layer}}
  %dwt = stablehlo.dot_general %dh, %o, contracting_dims = [0, 1] x [0, 1]
      : (tensor<2x8x16xf32>, tensor<2x8x32xf32>) -> tensor<16x32xf32>
  %dw = stablehlo.transpose %dwt, dims = [1, 0] : (tensor<16x32xf32>) -> tensor<32x16xf32>
  %new = stablehlo.subtract %wo, %dw : tensor<32x16xf32>
  // expected-remark @+1 {{high_precision: other (batch 1, M 32, N 32, K 16; bf16 x bf16): not a linear layer: both operands come from parameters}}
  %norm = stablehlo.dot_general %wo, %wo, contracting_dims = [1] x [1]
      : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x32xf32>
  return %new, %loss : tensor<32x16xf32>, tensor<f32>
}
