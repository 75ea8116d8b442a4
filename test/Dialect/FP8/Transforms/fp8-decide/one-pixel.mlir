// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide=emit-remarks --verify-diagnostics -o /dev/null

// A convolution of images of one pixel (squeeze and excite): its weight gradient
// contracts the examples alone, and has the kernel's dimension of one element.
func.func public @main(
    %w: tensor<1x8x8xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "w"},
    %head: tensor<8x4xf32> {fp8.role = "frozen", fp8.path = "head"}, %x: tensor<4x1x8xf32> {fp8.role = "batch", fp8.path = "x"})
    -> (tensor<1x8x8xf32> {fp8.state = "w"}, tensor<f32> {fp8.kind = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %kernel = stablehlo.reshape %w : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
  // expected-remark @+1 {{fp8: forward of w (batch 1, M 4, N 8, K 8; f8E4M3FN x f8E4M3FN): linear layer}}
  %h = stablehlo.dot_general %x, %kernel, contracting_dims = [2] x [0] : (tensor<4x1x8xf32>, tensor<8x8xf32>) -> tensor<4x1x8xf32>
  // expected-remark @+1 {{forward of head}}
  %y = stablehlo.dot_general %h, %head, contracting_dims = [2] x [0] : (tensor<4x1x8xf32>, tensor<8x4xf32>) -> tensor<4x1x4xf32>
  %squares = stablehlo.multiply %y, %y : tensor<4x1x4xf32>
  %loss = stablehlo.reduce(%squares init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<4x1x4xf32>, tensor<f32>) -> tensor<f32>
  %dy = stablehlo.add %y, %y : tensor<4x1x4xf32>
  // expected-remark @+1 {{dgrad of head}}
  %dh = stablehlo.dot_general %dy, %head, contracting_dims = [2] x [1] : (tensor<4x1x4xf32>, tensor<8x4xf32>) -> tensor<4x1x8xf32>
  %g = stablehlo.reshape %dh : (tensor<4x1x8xf32>) -> tensor<4x8xf32>
  // expected-remark @+1 {{fp8: wgrad of w (batch 1, M 8, N 8, K 4; f8E4M3FN x f8E5M2): linear layer}}
  %dw = stablehlo.dot_general %x, %g, contracting_dims = [0] x [0] : (tensor<4x1x8xf32>, tensor<4x8xf32>) -> tensor<1x8x8xf32>
  %new = stablehlo.subtract %w, %dw : tensor<1x8x8xf32>
  return %new, %loss : tensor<1x8x8xf32>, tensor<f32>
}
