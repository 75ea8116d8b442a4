// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide=emit-remarks --verify-diagnostics -o /dev/null

// What an optimizer sums over a parameter and its gradient, as one number, is
// no layer: neither of a weight that the loss reads in a dot nor of one that it
// reads otherwise.

func.func public @main(
    %w: tensor<32x1xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['w']"},
    %b: tensor<1xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['b']"},
    %x: tensor<8x32xf32> {fp8.role = "batch", fp8.path = "x"})
    -> (tensor<32x1xf32> {fp8.state = "p['w']"}, tensor<1xf32> {fp8.state = "p['b']"}, tensor<f32> {fp8.kind = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-remark @+1 {{forward of p['w']}}
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x1xf32>) -> tensor<8x1xf32>
  %spread = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<1xf32>) -> tensor<8x1xf32>
  %y = stablehlo.add %h, %spread : tensor<8x1xf32>
  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1]
      : (tensor<8x1xf32>, tensor<f32>) -> tensor<f32>
  // expected-remark @+1 {{wgrad of p['w']}}
  %dw = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<8x32xf32>, tensor<8x1xf32>) -> tensor<32x1xf32>
  %db = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<8x1xf32>, tensor<f32>) -> tensor<1xf32>
  %w1 = stablehlo.reshape %w : (tensor<32x1xf32>) -> tensor<32xf32>
  %dw1 = stablehlo.reshape %dw : (tensor<32x1xf32>) -> tensor<32xf32>
  // expected-remark @+1 {{high_precision: other (batch 1, M 1, N 1, K 32; bf16 x bf16): not a linear layer: an inner product, one number}}
  %dotw = stablehlo.dot_general %dw1, %w1, contracting_dims = [0] x [0] : (tensor<32xf32>, tensor<32xf32>) -> tensor<f32>
  // expected-remark @+1 {{high_precision: other (batch 1, M 1, N 1, K 1; f32 x f32): not a linear layer: an inner product, one number}}
  %dotb = stablehlo.dot_general %db, %b, contracting_dims = [0] x [0] : (tensor<1xf32>, tensor<1xf32>) -> tensor<f32>
  %rate = stablehlo.add %dotw, %dotb : tensor<f32>
  %ratew = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<32x1xf32>
  %rateb = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<1xf32>
  %stepw = stablehlo.multiply %ratew, %dw : tensor<32x1xf32>
  %stepb = stablehlo.multiply %rateb, %db : tensor<1xf32>
  %neww = stablehlo.subtract %w, %stepw : tensor<32x1xf32>
  %newb = stablehlo.subtract %b, %stepb : tensor<1xf32>
  return %neww, %newb, %loss : tensor<32x1xf32>, tensor<1xf32>, tensor<f32>
}
