// RUN: fp8-opt %s --fp8-analyze-signature=explain=true -o /dev/null | FileCheck %s

// Dion takes the factors of its momentum for the gradient, so that none of the
// weight is recognized. The only scalar that follows from it is the loss.

// CHECK: w {{.*}} state parameter the loss depends on it
// CHECK: m {{.*}} state other
// CHECK: result[3] {{.*}} loss gradients flow from it to the parameters

func.func public @main(%w: tensor<8x6xf32> loc("w"), %m: tensor<8x6xf32> loc("m"), %q: tensor<6x2xf32> loc("q"), %x: tensor<5x8xf32> loc("x"))
    -> (tensor<8x6xf32> {jax.result_info = "w"}, tensor<8x6xf32> {jax.result_info = "m"}, tensor<6x2xf32> {jax.result_info = "q"}, tensor<f32> {jax.result_info = "result[3]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %rate = stablehlo.constant dense<0.1> : tensor<8x2xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<5x8xf32>, tensor<8x6xf32>) -> tensor<5x6xf32>
  %y2 = stablehlo.multiply %y, %y : tensor<5x6xf32>
  %loss = stablehlo.reduce(%y2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<5x6xf32>, tensor<f32>) -> tensor<f32>
  %dy = stablehlo.add %y, %y : tensor<5x6xf32>
  %g = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0] : (tensor<5x8xf32>, tensor<5x6xf32>) -> tensor<8x6xf32>
  %b = stablehlo.add %m, %g : tensor<8x6xf32>
  %p = stablehlo.dot_general %b, %q, contracting_dims = [1] x [0] : (tensor<8x6xf32>, tensor<6x2xf32>) -> tensor<8x2xf32>
  %r = stablehlo.dot_general %b, %p, contracting_dims = [0] x [0] : (tensor<8x6xf32>, tensor<8x2xf32>) -> tensor<6x2xf32>
  %slow = stablehlo.multiply %p, %rate : tensor<8x2xf32>
  %s = stablehlo.dot_general %slow, %r, contracting_dims = [1] x [1] : (tensor<8x2xf32>, tensor<6x2xf32>) -> tensor<8x6xf32>
  %t = stablehlo.dot_general %p, %r, contracting_dims = [1] x [1] : (tensor<8x2xf32>, tensor<6x2xf32>) -> tensor<8x6xf32>
  %w1 = stablehlo.subtract %w, %t : tensor<8x6xf32>
  %m1 = stablehlo.subtract %b, %s : tensor<8x6xf32>
  return %w1, %m1, %r, %loss : tensor<8x6xf32>, tensor<8x6xf32>, tensor<6x2xf32>, tensor<f32>
}
