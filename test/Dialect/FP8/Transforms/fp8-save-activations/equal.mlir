// RUN: fp8-opt %s --fp8-resolve-recipe="recipe=none set=compute.saved=bf16" --fp8-decide --fp8-save-activations | FileCheck %s

// The gradient of a maximum goes where the operand equals it. The operand is
// saved as bf16 for all else that reads it; rounded, no element would be equal.
// So the comparison reads it as it is, where it is, and its result is kept.
// CHECK: %[[H:.*]] = stablehlo.tanh %{{.*}} : tensor<64x128xf32>
// CHECK: stablehlo.convert %[[H]] : (tensor<64x128xf32>) -> tensor<64x128xbf16>
// CHECK: %[[MAX:.*]] = stablehlo.reduce(%[[H]] init: %{{.*}}) applies stablehlo.maximum
// CHECK: %[[ROWS:.*]] = stablehlo.broadcast_in_dim %[[MAX]], dims = [0]
// CHECK: %[[MASK:.*]] = stablehlo.compare EQ, %[[H]], %[[ROWS]]
// CHECK: stablehlo.dot_general
// CHECK: stablehlo.select %[[MASK]],
func.func @main(
    %w: tensor<32x128xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "w"},
    %x: tensor<64x32xf32> {fp8.role = "batch", fp8.path = "x"})
    -> (tensor<32x128xf32> {fp8.path = "w", fp8.state = "w"}, tensor<f32> {fp8.kind = "loss", fp8.path = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<64x128xf32>
  %ones = stablehlo.constant dense<1.0> : tensor<64x128xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x32xf32>, tensor<32x128xf32>) -> tensor<64x128xf32>
  %h = stablehlo.tanh %y : tensor<64x128xf32>
  %max = stablehlo.reduce(%h init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<64x128xf32>, tensor<f32>) -> tensor<64xf32>
  %loss = stablehlo.reduce(%max init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
  %rows = stablehlo.broadcast_in_dim %max, dims = [0] : (tensor<64xf32>) -> tensor<64x128xf32>
  %mask = stablehlo.compare EQ, %h, %rows, FLOAT : (tensor<64x128xf32>, tensor<64x128xf32>) -> tensor<64x128xi1>
  %squares = stablehlo.multiply %h, %h : tensor<64x128xf32>
  %slope = stablehlo.subtract %ones, %squares : tensor<64x128xf32>
  %again = stablehlo.dot_general %slope, %w, contracting_dims = [1] x [1] : (tensor<64x128xf32>, tensor<32x128xf32>) -> tensor<64x32xf32>
  %dh = stablehlo.select %mask, %slope, %zeros : tensor<64x128xi1>, tensor<64x128xf32>
  %dx = stablehlo.add %again, %x : tensor<64x32xf32>
  %dw = stablehlo.dot_general %dx, %dh, contracting_dims = [0] x [0] : (tensor<64x32xf32>, tensor<64x128xf32>) -> tensor<32x128xf32>
  %next = stablehlo.subtract %w, %dw : tensor<32x128xf32>
  return %next, %loss : tensor<32x128xf32>, tensor<f32>
}
