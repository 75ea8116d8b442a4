// Donation alone pairs the queue with its next value; this is the reason that is printed, and all other arguments keep theirs.
// RUN: fp8-run %s --explain-signature | FileCheck %s
// CHECK: w {{ *}}f32[3,3] {{ *}}state parameter {{ *}}the loss depends on it; replaced by result[0]
// CHECK-NEXT: queue {{ *}}f32[2,3] {{ *}}state parameter {{ *}}the loss depends on it; replaced by result[1] (donated, no other of its type is left)
// CHECK-NEXT: x {{ *}}f32[4,3] {{ *}}batch {{ *}}weights are applied to it
// CHECK: result[2] {{ *}}f32[] {{ *}}loss {{ *}}gradients flow from it

module @step {
  func.func public @main(%w: tensor<3x3xf32> {tf.aliasing_output = 0 : i32} loc("w"),
                         %queue: tensor<2x3xf32> {tf.aliasing_output = 1 : i32} loc("queue"), %x: tensor<4x3xf32> loc("x"))
      -> (tensor<3x3xf32> {jax.result_info = "result[0]"}, tensor<2x3xf32> {jax.result_info = "result[1]"},
          tensor<f32> {jax.result_info = "result[2]"}) {
    %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %rate = stablehlo.constant dense<1.000000e-01> : tensor<3x3xf32>
    %ones = stablehlo.constant dense<1.000000e+00> : tensor<4x2xf32>
    // The loss is the sum of all products of activations and the queue.
    %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<4x3xf32>
    %scores = stablehlo.dot_general %h, %queue, contracting_dims = [1] x [1] : (tensor<4x3xf32>, tensor<2x3xf32>) -> tensor<4x2xf32>
    %loss = stablehlo.reduce(%scores init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x2xf32>, tensor<f32>) -> tensor<f32>
    %dh = stablehlo.dot_general %ones, %queue, contracting_dims = [1] x [0] : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
    %dw = stablehlo.dot_general %x, %dh, contracting_dims = [0] x [0] : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<3x3xf32>
    %change = stablehlo.multiply %rate, %dw : tensor<3x3xf32>
    %next = stablehlo.subtract %w, %change : tensor<3x3xf32>
    %keys = stablehlo.slice %h [0:2, 0:3] : (tensor<4x3xf32>) -> tensor<2x3xf32>
    return %next, %keys, %loss : tensor<3x3xf32>, tensor<2x3xf32>, tensor<f32>
  }
}
