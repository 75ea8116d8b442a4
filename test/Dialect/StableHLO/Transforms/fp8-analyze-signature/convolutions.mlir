// RUN: fp8-opt %s --stablehlo-convolutions-to-dots --fp8-analyze-signature | FileCheck %s

// The gradient of a kernel is a product of other windows of the data than the
// forward pass multiplies. It makes averages of the kernel known as such: one
// that no loss reads, and one that is the target of the loss.
// CHECK: tensor<3x2x4xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"}
// CHECK-SAME: tensor<3x2x4xf32> {fp8.kind = "average", fp8.path = "unread", fp8.role = "state"}
// CHECK-SAME: tensor<3x2x4xf32> {fp8.kind = "average", fp8.path = "target", fp8.role = "state"}
func.func public @main(%w: tensor<3x2x4xf32> loc("w"), %unread: tensor<3x2x4xf32> loc("unread"), %target: tensor<3x2x4xf32> loc("target"), %x: tensor<2x8x2xf32> loc("x")) -> (tensor<3x2x4xf32>, tensor<3x2x4xf32>, tensor<3x2x4xf32>, tensor<f32>) {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], pad = [[0, 1]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x2xf32>, tensor<3x2x4xf32>) -> tensor<2x4x4xf32>
  %goal = stablehlo.convolution(%x, %target) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], pad = [[0, 1]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x2xf32>, tensor<3x2x4xf32>) -> tensor<2x4x4xf32>
  %d = stablehlo.subtract %y, %goal : tensor<2x4x4xf32>
  %d2 = stablehlo.multiply %d, %d : tensor<2x4x4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %loss = stablehlo.reduce(%d2 init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x4x4xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.convolution(%x, %d) dim_numbers = [f, 0, b]x[i, 0, o]->[0, b, f], window = {stride = [1], pad = [[0, 1]], lhs_dilate = [1], rhs_dilate = [2], reverse = [false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x2xf32>, tensor<2x4x4xf32>) -> tensor<3x2x4xf32>
  %tenth = stablehlo.constant dense<0.1> : tensor<3x2x4xf32>
  %rest = stablehlo.constant dense<0.9> : tensor<3x2x4xf32>
  %step = stablehlo.multiply %tenth, %g : tensor<3x2x4xf32>
  %new = stablehlo.subtract %w, %step : tensor<3x2x4xf32>
  %part = stablehlo.multiply %tenth, %new : tensor<3x2x4xf32>
  %old = stablehlo.multiply %rest, %unread : tensor<3x2x4xf32>
  %average = stablehlo.add %old, %part : tensor<3x2x4xf32>
  %oldTarget = stablehlo.multiply %rest, %target : tensor<3x2x4xf32>
  %newTarget = stablehlo.add %oldTarget, %part : tensor<3x2x4xf32>
  return %new, %average, %newTarget, %loss : tensor<3x2x4xf32>, tensor<3x2x4xf32>, tensor<3x2x4xf32>, tensor<f32>
}
