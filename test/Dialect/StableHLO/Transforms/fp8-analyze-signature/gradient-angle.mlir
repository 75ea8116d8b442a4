// RUN: fp8-opt %s --fp8-analyze-signature=explain=true -o /dev/null | FileCheck %s

// The sum of two losses, and the inner product of their gradients: this has dots
// that the loss does not have, but no gradient flows from it.

// CHECK: angle {{.*}} metric a scalar that is not state
// CHECK: loss {{.*}} loss gradients could flow from several scalars; this one has the name of a loss

func.func public @main(%v: tensor<4x8xf32> loc("v"), %w: tensor<8x6xf32> loc("w"), %x: tensor<5x4xf32> loc("x"), %z: tensor<5x6xf32> loc("z"))
    -> (tensor<4x8xf32> {jax.result_info = "v"}, tensor<8x6xf32> {jax.result_info = "w"}, tensor<f32> {jax.result_info = "angle"}, tensor<f32> {jax.result_info = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %h = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<5x4xf32>, tensor<4x8xf32>) -> tensor<5x8xf32>
  %y = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<5x8xf32>, tensor<8x6xf32>) -> tensor<5x6xf32>
  %e = stablehlo.subtract %y, %z : tensor<5x6xf32>
  %e2 = stablehlo.multiply %e, %e : tensor<5x6xf32>
  %y2 = stablehlo.multiply %y, %y : tensor<5x6xf32>
  %sum = stablehlo.add %e2, %y2 : tensor<5x6xf32>
  %loss = stablehlo.reduce(%sum init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<5x6xf32>, tensor<f32>) -> tensor<f32>
  %d1 = stablehlo.add %e, %e : tensor<5x6xf32>
  %gw1 = stablehlo.dot_general %h, %d1, contracting_dims = [0] x [0] : (tensor<5x8xf32>, tensor<5x6xf32>) -> tensor<8x6xf32>
  %dh1 = stablehlo.dot_general %d1, %w, contracting_dims = [1] x [1] : (tensor<5x6xf32>, tensor<8x6xf32>) -> tensor<5x8xf32>
  %gv1 = stablehlo.dot_general %x, %dh1, contracting_dims = [0] x [0] : (tensor<5x4xf32>, tensor<5x8xf32>) -> tensor<4x8xf32>
  %fv1 = stablehlo.reshape %gv1 : (tensor<4x8xf32>) -> tensor<32xf32>
  %fw1 = stablehlo.reshape %gw1 : (tensor<8x6xf32>) -> tensor<48xf32>
  %g1 = stablehlo.concatenate %fv1, %fw1, dim = 0 : (tensor<32xf32>, tensor<48xf32>) -> tensor<80xf32>
  %d2 = stablehlo.add %y, %y : tensor<5x6xf32>
  %gw2 = stablehlo.dot_general %h, %d2, contracting_dims = [0] x [0] : (tensor<5x8xf32>, tensor<5x6xf32>) -> tensor<8x6xf32>
  %dh2 = stablehlo.dot_general %d2, %w, contracting_dims = [1] x [1] : (tensor<5x6xf32>, tensor<8x6xf32>) -> tensor<5x8xf32>
  %gv2 = stablehlo.dot_general %x, %dh2, contracting_dims = [0] x [0] : (tensor<5x4xf32>, tensor<5x8xf32>) -> tensor<4x8xf32>
  %fv2 = stablehlo.reshape %gv2 : (tensor<4x8xf32>) -> tensor<32xf32>
  %fw2 = stablehlo.reshape %gw2 : (tensor<8x6xf32>) -> tensor<48xf32>
  %g2 = stablehlo.concatenate %fv2, %fw2, dim = 0 : (tensor<32xf32>, tensor<48xf32>) -> tensor<80xf32>
  %angle = stablehlo.dot_general %g1, %g2, contracting_dims = [0] x [0] : (tensor<80xf32>, tensor<80xf32>) -> tensor<f32>
  %g = stablehlo.add %g1, %g2 : tensor<80xf32>
  %sv = stablehlo.slice %g [0:32] : (tensor<80xf32>) -> tensor<32xf32>
  %sw = stablehlo.slice %g [32:80] : (tensor<80xf32>) -> tensor<48xf32>
  %rv = stablehlo.reshape %sv : (tensor<32xf32>) -> tensor<4x8xf32>
  %rw = stablehlo.reshape %sw : (tensor<48xf32>) -> tensor<8x6xf32>
  %v1 = stablehlo.subtract %v, %rv : tensor<4x8xf32>
  %w1 = stablehlo.subtract %w, %rw : tensor<8x6xf32>
  return %v1, %w1, %angle, %loss : tensor<4x8xf32>, tensor<8x6xf32>, tensor<f32>, tensor<f32>
}
