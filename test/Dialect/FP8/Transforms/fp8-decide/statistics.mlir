// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide=emit-remarks --verify-diagnostics -o /dev/null

// The second moments of a square layer's input, which the update reads, have the
// shape of its weight and sum over tokens, but they are no weight gradient.

func.func public @main(
    %w: tensor<16x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['w']"},
    %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %x: tensor<32x16xf32> {fp8.role = "batch", fp8.path = "x"},
    %d: tensor<32x8xf32> {fp8.role = "batch", fp8.path = "d"})
    -> (tensor<16x16xf32> {fp8.state = "p['w']"}, tensor<f32> {fp8.kind = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-remark @+1 {{fp8: forward of p['w']}}
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<32x16xf32>, tensor<16x16xf32>) -> tensor<32x16xf32>
  // expected-remark @+1 {{high_precision: forward of p['head']}}
  %y = stablehlo.dot_general %h, %head, contracting_dims = [1] x [0] : (tensor<32x16xf32>, tensor<16x8xf32>) -> tensor<32x8xf32>
  %weighted = stablehlo.multiply %y, %d : tensor<32x8xf32>
  %loss = stablehlo.reduce(%weighted init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x8xf32>, tensor<f32>) -> tensor<f32>
  // expected-remark @+1 {{high_precision: dgrad of p['head']}}
  %dh = stablehlo.dot_general %d, %head, contracting_dims = [1] x [1] : (tensor<32x8xf32>, tensor<16x8xf32>) -> tensor<32x16xf32>
  // expected-remark @+1 {{fp8: wgrad of p['w']}}
  %dw = stablehlo.dot_general %x, %dh, contracting_dims = [0] x [0] : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<16x16xf32>
  // expected-remark @+1 {{not a linear layer: no operand comes from parameters alone, and it is the weight gradient of no layer}}
  %moments = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<16x16xf32>
  %scaled = stablehlo.divide %dw, %moments : tensor<16x16xf32>
  %next = stablehlo.subtract %w, %scaled : tensor<16x16xf32>
  return %next, %loss : tensor<16x16xf32>, tensor<f32>
}
