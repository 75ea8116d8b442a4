// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide=emit-remarks --verify-diagnostics -o /dev/null

// Two layers with merged adapters, W + A B, read the same data. Each weight
// gradient belongs to the layer whose adapter it updates.
func.func public @main(
    %a0: tensor<32x4xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "a0"},
    %a1: tensor<32x4xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "a1"},
    %b0: tensor<4x16xf32> {fp8.role = "frozen", fp8.path = "b0"}, %b1: tensor<4x16xf32> {fp8.role = "frozen", fp8.path = "b1"},
    %base0: tensor<32x16xf32> {fp8.role = "frozen", fp8.path = "base0"}, %base1: tensor<32x16xf32> {fp8.role = "frozen", fp8.path = "base1"},
    %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "head"}, %x: tensor<8x32xf32> {fp8.role = "batch", fp8.path = "x"})
    -> (tensor<32x4xf32> {fp8.state = "a0"}, tensor<32x4xf32> {fp8.state = "a1"}, tensor<f32> {fp8.kind = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-remark @+1 {{not a linear layer: both operands come from parameters}}
  %ab0 = stablehlo.dot_general %a0, %b0, contracting_dims = [1] x [0] : (tensor<32x4xf32>, tensor<4x16xf32>) -> tensor<32x16xf32>
  %w0 = stablehlo.add %base0, %ab0 : tensor<32x16xf32>
  // expected-remark @+1 {{fp8: forward of base0 (batch 1, M 8, N 16, K 32; f8E4M3FN x f8E4M3FN): linear layer}}
  %h0 = stablehlo.dot_general %x, %w0, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  // expected-remark @+1 {{not a linear layer: both operands come from parameters}}
  %ab1 = stablehlo.dot_general %a1, %b1, contracting_dims = [1] x [0] : (tensor<32x4xf32>, tensor<4x16xf32>) -> tensor<32x16xf32>
  %w1 = stablehlo.add %base1, %ab1 : tensor<32x16xf32>
  // expected-remark @+1 {{fp8: forward of base1 (batch 1, M 8, N 16, K 32; f8E4M3FN x f8E4M3FN): linear layer}}
  %h1 = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  %z = stablehlo.multiply %h0, %h1 : tensor<8x16xf32>
  // expected-remark @+1 {{forward of head}}
  %y = stablehlo.dot_general %z, %head, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %squares = stablehlo.multiply %y, %y : tensor<8x8xf32>
  %loss = stablehlo.reduce(%squares init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32>
  %dy = stablehlo.add %y, %y : tensor<8x8xf32>
  // expected-remark @+1 {{dgrad of head}}
  %dz = stablehlo.dot_general %dy, %head, contracting_dims = [1] x [1] : (tensor<8x8xf32>, tensor<16x8xf32>) -> tensor<8x16xf32>
  %g1 = stablehlo.multiply %dz, %h0 : tensor<8x16xf32>
  // expected-remark @+1 {{fp8: wgrad of base1 (batch 1, M 32, N 16, K 8; f8E4M3FN x f8E5M2): linear layer}}
  %dw1 = stablehlo.dot_general %x, %g1, contracting_dims = [0] x [0] : (tensor<8x32xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
  // expected-remark @+1 {{not a linear layer: reads a parameter, but not in the forward pass}}
  %da1 = stablehlo.dot_general %dw1, %b1, contracting_dims = [1] x [1] : (tensor<32x16xf32>, tensor<4x16xf32>) -> tensor<32x4xf32>
  %new1 = stablehlo.subtract %a1, %da1 : tensor<32x4xf32>
  %g0 = stablehlo.multiply %dz, %h1 : tensor<8x16xf32>
  // expected-remark @+1 {{fp8: wgrad of base0 (batch 1, M 32, N 16, K 8; f8E4M3FN x f8E5M2): linear layer}}
  %dw0 = stablehlo.dot_general %x, %g0, contracting_dims = [0] x [0] : (tensor<8x32xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
  // expected-remark @+1 {{not a linear layer: reads a parameter, but not in the forward pass}}
  %da0 = stablehlo.dot_general %dw0, %b0, contracting_dims = [1] x [1] : (tensor<32x16xf32>, tensor<4x16xf32>) -> tensor<32x4xf32>
  %new0 = stablehlo.subtract %a0, %da0 : tensor<32x4xf32>
  return %new0, %new1, %loss : tensor<32x4xf32>, tensor<32x4xf32>, tensor<f32>
}
