// RUN: fp8-opt %s --split-input-file --fp8-resolve-recipe=recipe=bf16 --fp8-decide --fp8-save-activations | FileCheck %s

// The backward pass computes scores again, with the bias: what is saved of it is
// f32, and an argument is read as it is.
// CHECK-LABEL: @biases
// CHECK: %[[BIAS:.*]] = stablehlo.cosine %{{.*}} : tensor<2x16x16xf32>
// CHECK: %[[SAVED:.*]] = stablehlo.optimization_barrier %[[BIAS]] : tensor<2x16x16xf32>
// CHECK: stablehlo.add %{{.*}}, %[[SAVED]] : tensor<2x16x16xf32>
// CHECK: stablehlo.multiply %{{.*}}, %arg2 : tensor<2x16x16xf32>
// CHECK: return
func.func @biases(
    %w: tensor<8x8xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "w"},
    %x: tensor<2x16x8xf32> {fp8.role = "batch", fp8.path = "x"},
    %y: tensor<2x16x16xf32> {fp8.role = "batch", fp8.path = "y"})
    -> (tensor<8x8xf32> {fp8.path = "w1", fp8.state = "w"}, tensor<f32> {fp8.kind = "loss", fp8.path = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %q = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<2x16x8xf32>, tensor<8x8xf32>) -> tensor<2x16x8xf32>
  %s = stablehlo.dot_general %q, %x, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<2x16x16xf32>
  %means = stablehlo.dot_general %y, %y, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x16x16xf32>, tensor<2x16x16xf32>) -> tensor<2x16x16xf32>
  %bias = stablehlo.cosine %means : tensor<2x16x16xf32>
  %biased = stablehlo.add %s, %bias : tensor<2x16x16xf32>
  %e = stablehlo.exponential %biased : tensor<2x16x16xf32>
  %weighted = stablehlo.multiply %e, %y : tensor<2x16x16xf32>
  %loss = stablehlo.reduce(%weighted init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x16x16xf32>, tensor<f32>) -> tensor<f32>
  // Scores once more.
  %s1 = stablehlo.dot_general %q, %x, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<2x16x16xf32>
  %biased1 = stablehlo.add %s1, %bias : tensor<2x16x16xf32>
  %e1 = stablehlo.exponential %biased1 : tensor<2x16x16xf32>
  %ds = stablehlo.multiply %e1, %y : tensor<2x16x16xf32>
  %dq = stablehlo.dot_general %ds, %x, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x16x16xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
  %dw = stablehlo.dot_general %x, %dq, contracting_dims = [0, 1] x [0, 1] : (tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<8x8xf32>
  %w1 = stablehlo.subtract %w, %dw : tensor<8x8xf32>
  return %w1, %loss : tensor<8x8xf32>, tensor<f32>
}
