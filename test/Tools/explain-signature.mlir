// A step is explained as a run takes it, even if nothing in it is recognized as a gradient.
// RUN: fp8-run %s --explain-signature | FileCheck %s
// CHECK: w {{ *}}f32[4] {{ *}}state parameter {{ *}}the loss depends on it; replaced by result[0]
// CHECK-NEXT: noise {{ *}}f32[4] {{ *}}frozen
// CHECK: result[1] {{ *}}f32[] {{ *}}loss

// What is fed from a file is data; of the rest, the reasons stay.
// RUN: fp8-run %s --explain-signature --batch noise=x.npy | FileCheck %s --check-prefix=FED
// FED: w {{ *}}f32[4] {{ *}}state parameter {{ *}}the loss depends on it; replaced by result[0]
// FED-NEXT: noise {{ *}}f32[4] {{ *}}batch {{ *}}set by the user

// The initializer of a step is a function.
// RUN: fp8-run %s --explain-signature --entry initial | FileCheck %s --check-prefix=FUNCTION
// FUNCTION: key {{ *}}f32[4] {{ *}}frozen

module @step {
  func.func public @main(%w: tensor<4xf32> loc("w"), %noise: tensor<4xf32> loc("noise"))
      -> (tensor<4xf32> {jax.result_info = "result[0]"}, tensor<f32> {jax.result_info = "result[1]"}) {
    %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %rate = stablehlo.constant dense<2.000000e-01> : tensor<4xf32>
    %away = stablehlo.subtract %w, %noise : tensor<4xf32>
    %square = stablehlo.multiply %away, %away : tensor<4xf32>
    %loss = stablehlo.reduce(%square init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %change = stablehlo.multiply %rate, %away : tensor<4xf32>
    %next = stablehlo.subtract %w, %change : tensor<4xf32>
    return %next, %loss : tensor<4xf32>, tensor<f32>
  }
  func.func public @initial(%key: tensor<4xf32> loc("key")) -> (tensor<4xf32> {jax.result_info = "result"}) {
    return %key : tensor<4xf32>
  }
}
