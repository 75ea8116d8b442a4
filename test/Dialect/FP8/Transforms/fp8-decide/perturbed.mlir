// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide=emit-remarks --verify-diagnostics -o /dev/null

// A step away from the parameters, as SAM and line searches take it: the dot is
// no layer's, and the reason says whose parameter it reads. A bias is none.
func.func @main(%w: tensor<32x16xf32> {fp8.kind = "parameter", fp8.role = "state", fp8.path = "p['w']"},
                %b: tensor<16xf32> {fp8.kind = "parameter", fp8.role = "state", fp8.path = "p['b']"},
                %x: tensor<4x32xf32> {fp8.role = "batch", fp8.path = "x"}, %d: tensor<32x16xf32> {fp8.role = "batch", fp8.path = "d"})
    -> (tensor<f32> {fp8.kind = "loss", fp8.path = "loss"}) {
  %radius = stablehlo.constant dense<0.05> : tensor<32x16xf32>
  %step = stablehlo.multiply %d, %radius : tensor<32x16xf32>
  %moved = stablehlo.add %w, %step : tensor<32x16xf32>
  // expected-remark @below {{not a linear layer: rhs is parameter p['w'] plus what depends on data, as in SAM or a line search}}
  %y = stablehlo.dot_general %x, %moved, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
  %bias = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<16xf32>) -> tensor<4x16xf32>
  %z = stablehlo.add %y, %bias : tensor<4x16xf32>
  // expected-remark @below {{not a linear layer: no operand comes from parameters alone, and it is the weight gradient of no layer}}
  %gram = stablehlo.dot_general %z, %z, contracting_dims = [1] x [1] : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x4xf32>
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %loss = stablehlo.reduce(%gram init: %init) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}
