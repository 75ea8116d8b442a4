// RUN: fp8-opt %s --fp8-analyze-signature=explain=true -o /dev/null | FileCheck %s

// A metric that weights the loss by what follows from the parameters, too. It is
// more than a function of the loss, and the loss is no term of it: a gradient
// through the product would read both factors.

// CHECK: weighted {{.*}} metric
// CHECK: plain {{.*}} loss gradients flow from it to the parameters

func.func public @main(%v: tensor<4x8xf32> loc("v"), %w: tensor<8x6xf32> loc("w"), %x: tensor<5x4xf32> loc("x"))
    -> (tensor<4x8xf32> {jax.result_info = "v"}, tensor<8x6xf32> {jax.result_info = "w"}, tensor<f32> {jax.result_info = "weighted"}, tensor<f32> {jax.result_info = "plain"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %h = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<5x4xf32>, tensor<4x8xf32>) -> tensor<5x8xf32>
  %y = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<5x8xf32>, tensor<8x6xf32>) -> tensor<5x6xf32>
  %y2 = stablehlo.multiply %y, %y : tensor<5x6xf32>
  %plain = stablehlo.reduce(%y2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<5x6xf32>, tensor<f32>) -> tensor<f32>
  %e = stablehlo.exponential %y : tensor<5x6xf32>
  %weight = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<5x6xf32>, tensor<f32>) -> tensor<f32>
  %weighted = stablehlo.multiply %plain, %weight : tensor<f32>
  %dy = stablehlo.add %y, %y : tensor<5x6xf32>
  %gw = stablehlo.dot_general %h, %dy, contracting_dims = [0] x [0] : (tensor<5x8xf32>, tensor<5x6xf32>) -> tensor<8x6xf32>
  %dh = stablehlo.dot_general %dy, %w, contracting_dims = [1] x [1] : (tensor<5x6xf32>, tensor<8x6xf32>) -> tensor<5x8xf32>
  %gv = stablehlo.dot_general %x, %dh, contracting_dims = [0] x [0] : (tensor<5x4xf32>, tensor<5x8xf32>) -> tensor<4x8xf32>
  %v1 = stablehlo.subtract %v, %gv : tensor<4x8xf32>
  %w1 = stablehlo.subtract %w, %gw : tensor<8x6xf32>
  return %v1, %w1, %weighted, %plain : tensor<4x8xf32>, tensor<8x6xf32>, tensor<f32>, tensor<f32>
}
