// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide=emit-remarks --verify-diagnostics -o /dev/null

// Losses that read what the gradients of another loss have changed. The model is
// y = tanh(x w) v, its loss the sum of the squares of y, so that y is half the
// gradient of y.

// Adversarial training: the batch moves along its gradient. The backward pass
// that finds it is no part of the forward pass of the loss that reads it.
func.func @adversarial(%w: tensor<32x64xf32> {fp8.kind = "parameter", fp8.role = "state", fp8.path = "w"},
    %v: tensor<64x16xf32> {fp8.kind = "parameter", fp8.role = "state", fp8.path = "v"},
    %x: tensor<16x32xf32> {fp8.role = "batch", fp8.path = "x"})
    -> (tensor<32x64xf32> {fp8.state = "w"}, tensor<64x16xf32> {fp8.state = "v"}, tensor<f32> {fp8.kind = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-remark @+1 {{fp8: forward of w}}
  %h0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  %a0 = stablehlo.tanh %h0 : tensor<16x64xf32>
  // expected-remark @+1 {{high_precision: forward of v}}
  %y0 = stablehlo.dot_general %a0, %v, contracting_dims = [1] x [0] : (tensor<16x64xf32>, tensor<64x16xf32>) -> tensor<16x16xf32>
  // expected-remark @+1 {{high_precision: dgrad of v}}
  %da0 = stablehlo.dot_general %y0, %v, contracting_dims = [1] x [1] : (tensor<16x16xf32>, tensor<64x16xf32>) -> tensor<16x64xf32>
  %dh0 = stablehlo.multiply %da0, %a0 : tensor<16x64xf32>
  // expected-remark @+1 {{fp8: dgrad of w}}
  %dx0 = stablehlo.dot_general %dh0, %w, contracting_dims = [1] x [1] : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %sign = stablehlo.sign %dx0 : tensor<16x32xf32>
  %x1 = stablehlo.add %x, %sign : tensor<16x32xf32>
  // expected-remark @+1 {{fp8: forward of w}}
  %h1 = stablehlo.dot_general %x1, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  %a1 = stablehlo.tanh %h1 : tensor<16x64xf32>
  // expected-remark @+1 {{high_precision: forward of v}}
  %y1 = stablehlo.dot_general %a1, %v, contracting_dims = [1] x [0] : (tensor<16x64xf32>, tensor<64x16xf32>) -> tensor<16x16xf32>
  %squares = stablehlo.multiply %y1, %y1 : tensor<16x16xf32>
  %loss = stablehlo.reduce(%squares init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x16xf32>, tensor<f32>) -> tensor<f32>
  // expected-remark @+1 {{high_precision: dgrad of v}}
  %da1 = stablehlo.dot_general %y1, %v, contracting_dims = [1] x [1] : (tensor<16x16xf32>, tensor<64x16xf32>) -> tensor<16x64xf32>
  %dh1 = stablehlo.multiply %da1, %a1 : tensor<16x64xf32>
  // expected-remark @+1 {{fp8: wgrad of w}}
  %dw = stablehlo.dot_general %x1, %dh1, contracting_dims = [0] x [0] : (tensor<16x32xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
  // expected-remark @+1 {{high_precision: wgrad of v}}
  %dv = stablehlo.dot_general %a1, %y1, contracting_dims = [0] x [0] : (tensor<16x64xf32>, tensor<16x16xf32>) -> tensor<64x16xf32>
  %w1 = stablehlo.subtract %w, %dw : tensor<32x64xf32>
  %v1 = stablehlo.subtract %v, %dv : tensor<64x16xf32>
  return %w1, %v1, %loss : tensor<32x64xf32>, tensor<64x16xf32>, tensor<f32>
}

// Two updates in one step, of which the second one's loss is returned. Its layers
// read the weights that the first one has changed.
func.func @updates(%w: tensor<32x64xf32> {fp8.kind = "parameter", fp8.role = "state", fp8.path = "w"},
    %v: tensor<64x16xf32> {fp8.kind = "parameter", fp8.role = "state", fp8.path = "v"},
    %x: tensor<16x32xf32> {fp8.role = "batch", fp8.path = "x"})
    -> (tensor<32x64xf32> {fp8.state = "w"}, tensor<64x16xf32> {fp8.state = "v"}, tensor<f32> {fp8.kind = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-remark @+1 {{fp8: forward of w}}
  %h0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  %a0 = stablehlo.tanh %h0 : tensor<16x64xf32>
  // expected-remark @+1 {{high_precision: forward of v}}
  %y0 = stablehlo.dot_general %a0, %v, contracting_dims = [1] x [0] : (tensor<16x64xf32>, tensor<64x16xf32>) -> tensor<16x16xf32>
  // expected-remark @+1 {{high_precision: dgrad of v}}
  %da0 = stablehlo.dot_general %y0, %v, contracting_dims = [1] x [1] : (tensor<16x16xf32>, tensor<64x16xf32>) -> tensor<16x64xf32>
  %dh0 = stablehlo.multiply %da0, %a0 : tensor<16x64xf32>
  // expected-remark @+1 {{fp8: wgrad of w}}
  %dw0 = stablehlo.dot_general %x, %dh0, contracting_dims = [0] x [0] : (tensor<16x32xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
  // expected-remark @+1 {{high_precision: wgrad of v}}
  %dv0 = stablehlo.dot_general %a0, %y0, contracting_dims = [0] x [0] : (tensor<16x64xf32>, tensor<16x16xf32>) -> tensor<64x16xf32>
  %w1 = stablehlo.subtract %w, %dw0 : tensor<32x64xf32>
  %v1 = stablehlo.subtract %v, %dv0 : tensor<64x16xf32>
  // expected-remark @+1 {{fp8: forward of w}}
  %h1 = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  %a1 = stablehlo.tanh %h1 : tensor<16x64xf32>
  // expected-remark @+1 {{high_precision: forward of v}}
  %y1 = stablehlo.dot_general %a1, %v1, contracting_dims = [1] x [0] : (tensor<16x64xf32>, tensor<64x16xf32>) -> tensor<16x16xf32>
  %squares = stablehlo.multiply %y1, %y1 : tensor<16x16xf32>
  %loss = stablehlo.reduce(%squares init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x16xf32>, tensor<f32>) -> tensor<f32>
  // expected-remark @+1 {{high_precision: dgrad of v}}
  %da1 = stablehlo.dot_general %y1, %v1, contracting_dims = [1] x [1] : (tensor<16x16xf32>, tensor<64x16xf32>) -> tensor<16x64xf32>
  %dh1 = stablehlo.multiply %da1, %a1 : tensor<16x64xf32>
  // expected-remark @+1 {{fp8: wgrad of w}}
  %dw1 = stablehlo.dot_general %x, %dh1, contracting_dims = [0] x [0] : (tensor<16x32xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
  // expected-remark @+1 {{high_precision: wgrad of v}}
  %dv1 = stablehlo.dot_general %a1, %y1, contracting_dims = [0] x [0] : (tensor<16x64xf32>, tensor<16x16xf32>) -> tensor<64x16xf32>
  %w2 = stablehlo.subtract %w1, %dw1 : tensor<32x64xf32>
  %v2 = stablehlo.subtract %v1, %dv1 : tensor<64x16xf32>
  return %w2, %v2, %loss : tensor<32x64xf32>, tensor<64x16xf32>, tensor<f32>
}

// The batch moves by its gradient, and the gradient of the loss passes through
// that: the first backward pass belongs to the forward pass.
func.func @differentiated(%w: tensor<32x64xf32> {fp8.kind = "parameter", fp8.role = "state", fp8.path = "w"},
    %v: tensor<64x16xf32> {fp8.kind = "parameter", fp8.role = "state", fp8.path = "v"},
    %x: tensor<16x32xf32> {fp8.role = "batch", fp8.path = "x"})
    -> (tensor<32x64xf32> {fp8.state = "w"}, tensor<64x16xf32> {fp8.state = "v"}, tensor<f32> {fp8.kind = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-remark @+1 {{fp8: forward of w}}
  %h0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  %a0 = stablehlo.tanh %h0 : tensor<16x64xf32>
  // expected-remark @+1 {{fp8: forward of v}}
  %y0 = stablehlo.dot_general %a0, %v, contracting_dims = [1] x [0] : (tensor<16x64xf32>, tensor<64x16xf32>) -> tensor<16x16xf32>
  // expected-remark @+1 {{fp8: forward of v}}
  %da0 = stablehlo.dot_general %y0, %v, contracting_dims = [1] x [1] : (tensor<16x16xf32>, tensor<64x16xf32>) -> tensor<16x64xf32>
  %dh0 = stablehlo.multiply %da0, %a0 : tensor<16x64xf32>
  // expected-remark @+1 {{fp8: forward of w}}
  %dx0 = stablehlo.dot_general %dh0, %w, contracting_dims = [1] x [1] : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %x1 = stablehlo.add %x, %dx0 : tensor<16x32xf32>
  // expected-remark @+1 {{fp8: forward of w}}
  %h1 = stablehlo.dot_general %x1, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  %a1 = stablehlo.tanh %h1 : tensor<16x64xf32>
  // expected-remark @+1 {{high_precision: forward of v}}
  %y1 = stablehlo.dot_general %a1, %v, contracting_dims = [1] x [0] : (tensor<16x64xf32>, tensor<64x16xf32>) -> tensor<16x16xf32>
  %squares = stablehlo.multiply %y1, %y1 : tensor<16x16xf32>
  %loss = stablehlo.reduce(%squares init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x16xf32>, tensor<f32>) -> tensor<f32>
  // expected-remark @+1 {{fp8: dgrad of v}}
  %da1 = stablehlo.dot_general %y1, %v, contracting_dims = [1] x [1] : (tensor<16x16xf32>, tensor<64x16xf32>) -> tensor<16x64xf32>
  %dh1 = stablehlo.multiply %da1, %a1 : tensor<16x64xf32>
  // expected-remark @+1 {{fp8: dgrad of w}}
  %dx1 = stablehlo.dot_general %dh1, %w, contracting_dims = [1] x [1] : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  // expected-remark @+1 {{fp8: dgrad of w}}
  %ddh0 = stablehlo.dot_general %dx1, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  %dda0 = stablehlo.multiply %ddh0, %a0 : tensor<16x64xf32>
  // expected-remark @+1 {{fp8: dgrad of v}}
  %ddy0 = stablehlo.dot_general %dda0, %v, contracting_dims = [1] x [0] : (tensor<16x64xf32>, tensor<64x16xf32>) -> tensor<16x16xf32>
  // expected-remark @+1 {{fp8: wgrad of w}}
  %dw = stablehlo.dot_general %dx1, %dh0, contracting_dims = [0] x [0] : (tensor<16x32xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
  // expected-remark @+1 {{fp8: wgrad of v}}
  %dv = stablehlo.dot_general %dda0, %y0, contracting_dims = [0] x [0] : (tensor<16x64xf32>, tensor<16x16xf32>) -> tensor<64x16xf32>
  %w1 = stablehlo.subtract %w, %dw : tensor<32x64xf32>
  %v1 = stablehlo.subtract %v, %dv : tensor<64x16xf32>
  return %w1, %v1, %loss : tensor<32x64xf32>, tensor<64x16xf32>, tensor<f32>
}

// A restricted Boltzmann machine reads its weight both ways. The loss compares
// the batch with what comes back: no gradient of another loss.
func.func @reconstruction(%w: tensor<32x64xf32> {fp8.kind = "parameter", fp8.role = "state", fp8.path = "w"},
    %v: tensor<64x16xf32> {fp8.kind = "parameter", fp8.role = "state", fp8.path = "v"},
    %x: tensor<16x32xf32> {fp8.role = "batch", fp8.path = "x"})
    -> (tensor<32x64xf32> {fp8.state = "w"}, tensor<64x16xf32> {fp8.state = "v"}, tensor<f32> {fp8.kind = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-remark @+1 {{fp8: forward of w}}
  %h0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  %a0 = stablehlo.tanh %h0 : tensor<16x64xf32>
  // expected-remark @+1 {{high_precision: forward of w}}
  %back = stablehlo.dot_general %a0, %w, contracting_dims = [1] x [1] : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
  %x1 = stablehlo.tanh %back : tensor<16x32xf32>
  %e = stablehlo.subtract %x, %x1 : tensor<16x32xf32>
  // expected-remark @+1 {{high_precision: dgrad of w}}
  %h1 = stablehlo.dot_general %x1, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  %squares = stablehlo.multiply %e, %e : tensor<16x32xf32>
  %loss = stablehlo.reduce(%squares init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32xf32>, tensor<f32>) -> tensor<f32>
  // expected-remark @+1 {{fp8: wgrad of w}}
  %dw0 = stablehlo.dot_general %x, %a0, contracting_dims = [0] x [0] : (tensor<16x32xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
  // expected-remark @+1 {{high_precision: wgrad of w}}
  %dw1 = stablehlo.dot_general %x1, %h1, contracting_dims = [0] x [0] : (tensor<16x32xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
  %dw = stablehlo.subtract %dw0, %dw1 : tensor<32x64xf32>
  %w1 = stablehlo.add %w, %dw : tensor<32x64xf32>
  return %w1, %v, %loss : tensor<32x64xf32>, tensor<64x16xf32>, tensor<f32>
}
