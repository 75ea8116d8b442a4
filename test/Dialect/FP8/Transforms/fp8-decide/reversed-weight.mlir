// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide=emit-remarks --verify-diagnostics -o /dev/null

// A transposed convolution reads its kernel reversed, and its dgrad reads the
// kernel as it is: this is no forward pass of another loss, and neither is what
// the gradient comes from.

func.func public @main(
    %w: tensor<16x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "w"},
    %v: tensor<16x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "v"},
    %head: tensor<16x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "head"},
    %x: tensor<32x16xf32> {fp8.role = "batch", fp8.path = "x"})
    -> (tensor<16x16xf32> {fp8.state = "w"}, tensor<16x16xf32> {fp8.state = "v"}, tensor<16x16xf32> {fp8.state = "head"}, tensor<f32> {fp8.kind = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-remark @+1 {{fp8: forward of v}}
  %a = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<32x16xf32>, tensor<16x16xf32>) -> tensor<32x16xf32>
  %t = stablehlo.tanh %a : tensor<32x16xf32>
  %turned = stablehlo.reverse %w, dims = [0] : tensor<16x16xf32>
  // expected-remark @+1 {{fp8: forward of w}}
  %b = stablehlo.dot_general %t, %turned, contracting_dims = [1] x [0] : (tensor<32x16xf32>, tensor<16x16xf32>) -> tensor<32x16xf32>
  %u = stablehlo.tanh %b : tensor<32x16xf32>
  // expected-remark @+1 {{high_precision: forward of head}}
  %y = stablehlo.dot_general %u, %head, contracting_dims = [1] x [0] : (tensor<32x16xf32>, tensor<16x16xf32>) -> tensor<32x16xf32>
  %s = stablehlo.multiply %y, %y : tensor<32x16xf32>
  %loss = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x16xf32>, tensor<f32>) -> tensor<f32>
  %dy = stablehlo.add %y, %y : tensor<32x16xf32>
  // expected-remark @+1 {{high_precision: wgrad of head}}
  %dhead = stablehlo.dot_general %u, %dy, contracting_dims = [0] x [0] : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<16x16xf32>
  // expected-remark @+1 {{high_precision: dgrad of head}}
  %du = stablehlo.dot_general %dy, %head, contracting_dims = [1] x [1] : (tensor<32x16xf32>, tensor<16x16xf32>) -> tensor<32x16xf32>
  %db = stablehlo.multiply %du, %u : tensor<32x16xf32>
  // expected-remark @+1 {{fp8: wgrad of w}}
  %dturned = stablehlo.dot_general %t, %db, contracting_dims = [0] x [0] : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<16x16xf32>
  %dw = stablehlo.reverse %dturned, dims = [0] : tensor<16x16xf32>
  // The rows of the image's windows are reversed instead.
  // expected-remark @+1 {{fp8: dgrad of w}}
  %dt = stablehlo.dot_general %db, %w, contracting_dims = [1] x [1] : (tensor<32x16xf32>, tensor<16x16xf32>) -> tensor<32x16xf32>
  %back = stablehlo.reverse %dt, dims = [1] : tensor<32x16xf32>
  %da = stablehlo.multiply %back, %t : tensor<32x16xf32>
  // expected-remark @+1 {{fp8: wgrad of v}}
  %dv = stablehlo.dot_general %x, %da, contracting_dims = [0] x [0] : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<16x16xf32>
  %w1 = stablehlo.subtract %w, %dw : tensor<16x16xf32>
  %v1 = stablehlo.subtract %v, %dv : tensor<16x16xf32>
  %head1 = stablehlo.subtract %head, %dhead : tensor<16x16xf32>
  return %w1, %v1, %head1, %loss : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<f32>
}
