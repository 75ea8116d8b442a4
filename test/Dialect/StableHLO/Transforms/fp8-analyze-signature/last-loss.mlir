// RUN: fp8-opt %s --fp8-analyze-signature=explain=true -o /dev/null | FileCheck %s

// The state holds the loss of the step before, which nothing reads. A norm of
// the gradient is another result, and no loss.

// CHECK: state['last'] f32[] constant a scalar that nothing reads
// CHECK: state['w'] {{.*}} state parameter the loss depends on it
// CHECK: result[0]['last'] f32[] loss gradients flow from it to the parameters
// CHECK: result[1]['norm'] f32[] metric

func.func public @main(%last: tensor<f32> loc("state['last']"), %w: tensor<8x6xf32> loc("state['w']"), %x: tensor<5x8xf32> loc("x"))
    -> (tensor<f32> {jax.result_info = "result[0]['last']"}, tensor<8x6xf32> {jax.result_info = "result[0]['w']"}, tensor<f32> {jax.result_info = "result[1]['norm']"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %rate = stablehlo.constant dense<0.1> : tensor<8x6xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<5x8xf32>, tensor<8x6xf32>) -> tensor<5x6xf32>
  %y2 = stablehlo.multiply %y, %y : tensor<5x6xf32>
  %loss = stablehlo.reduce(%y2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<5x6xf32>, tensor<f32>) -> tensor<f32>
  %dy = stablehlo.add %y, %y : tensor<5x6xf32>
  %g = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0] : (tensor<5x8xf32>, tensor<5x6xf32>) -> tensor<8x6xf32>
  %g2 = stablehlo.multiply %g, %g : tensor<8x6xf32>
  %sum = stablehlo.reduce(%g2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x6xf32>, tensor<f32>) -> tensor<f32>
  %norm = stablehlo.sqrt %sum : tensor<f32>
  %scaled = stablehlo.multiply %rate, %g : tensor<8x6xf32>
  %w1 = stablehlo.subtract %w, %scaled : tensor<8x6xf32>
  return %loss, %w1, %norm : tensor<f32>, tensor<8x6xf32>, tensor<f32>
}
