// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide=emit-remarks --verify-diagnostics -o /dev/null

// A step whose metrics include the loss of averaged weights on other data:
// nothing is trained by that forward pass, and it is no layer of the step.
func.func public @main(
    %w: tensor<32x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "w"},
    %average: tensor<32x16xf32> {fp8.role = "state", fp8.kind = "average", fp8.path = "average"},
    %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "head"},
    %x: tensor<8x32xf32> {fp8.role = "batch", fp8.path = "x"}, %held: tensor<8x32xf32> {fp8.role = "batch", fp8.path = "held"})
    -> (tensor<32x16xf32> {fp8.state = "w"}, tensor<32x16xf32> {fp8.state = "average"}, tensor<f32> {fp8.kind = "loss"}, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-remark @+1 {{fp8: forward of w (}}
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  // expected-remark @+1 {{forward of head}}
  %y = stablehlo.dot_general %h, %head, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %squares = stablehlo.multiply %y, %y : tensor<8x8xf32>
  %loss = stablehlo.reduce(%squares init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32>
  %dy = stablehlo.add %y, %y : tensor<8x8xf32>
  // expected-remark @+1 {{dgrad of head}}
  %dh = stablehlo.dot_general %dy, %head, contracting_dims = [1] x [1] : (tensor<8x8xf32>, tensor<16x8xf32>) -> tensor<8x16xf32>
  // expected-remark @+1 {{fp8: wgrad of w (}}
  %dw = stablehlo.dot_general %x, %dh, contracting_dims = [0] x [0] : (tensor<8x32xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
  %new = stablehlo.subtract %w, %dw : tensor<32x16xf32>
  %sum = stablehlo.add %average, %new : tensor<32x16xf32>
  // expected-remark @+1 {{high_precision: other of average (batch 1, M 8, N 16, K 32; bf16 x bf16): not a linear layer: neither the loss nor an update of parameters follows from it, as from a validation}}
  %h1 = stablehlo.dot_general %held, %sum, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  %metric = stablehlo.reduce(%h1 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<f32>
  return %new, %sum, %loss, %metric : tensor<32x16xf32>, tensor<32x16xf32>, tensor<f32>, tensor<f32>
}
