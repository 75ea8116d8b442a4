// RUN: fp8-opt %s --fp8-analyze-signature | FileCheck %s

// Nesterov's method with the average of the iterate, without names. The iterate
// x becomes y - 0.1 g, and the extrapolated point y, at which the gradient is
// taken, becomes x' + 0.9 (x' - x). The results are not in the order of the
// arguments: that x becomes x' + 0.9 (x' - x) would be evidence for a state that
// is subtracted. The pair of the average, which agrees with the order, does not
// make this loss of evidence slight.

// CHECK: fp8.kind = "other", fp8.path = "arg0"
// CHECK-SAME: fp8.kind = "parameter", fp8.path = "arg1"
// CHECK-SAME: -> (tensor<4x4xf32> {fp8.path = "result0", fp8.state = "arg1"}
// CHECK-SAME: tensor<4x4xf32> {fp8.path = "result1", fp8.state = "arg0"}
// CHECK-SAME: tensor<4x4xf32> {fp8.path = "result2", fp8.state = "arg2"}
func.func public @main(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>, %average: tensor<4x4xf32>, %data: tensor<8x4xf32>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %two = stablehlo.constant dense<2.0> : tensor<8x4xf32>
  %rate = stablehlo.constant dense<0.1> : tensor<4x4xf32>
  %momentum = stablehlo.constant dense<0.9> : tensor<4x4xf32>
  %keep = stablehlo.constant dense<0.95> : tensor<4x4xf32>
  %take = stablehlo.constant dense<0.05> : tensor<4x4xf32>
  %h = stablehlo.dot_general %data, %y, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %square = stablehlo.multiply %h, %h : tensor<8x4xf32>
  %loss = stablehlo.reduce(%square init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
  %dh = stablehlo.multiply %h, %two : tensor<8x4xf32>
  %gradient = stablehlo.dot_general %data, %dh, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %step = stablehlo.multiply %gradient, %rate : tensor<4x4xf32>
  %new_x = stablehlo.subtract %y, %step : tensor<4x4xf32>
  %moved = stablehlo.subtract %new_x, %x : tensor<4x4xf32>
  %ahead = stablehlo.multiply %moved, %momentum : tensor<4x4xf32>
  %new_y = stablehlo.add %new_x, %ahead : tensor<4x4xf32>
  %kept = stablehlo.multiply %average, %keep : tensor<4x4xf32>
  %taken = stablehlo.multiply %new_x, %take : tensor<4x4xf32>
  %new_average = stablehlo.add %kept, %taken : tensor<4x4xf32>
  return %new_y, %new_x, %new_average, %loss : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>
}
