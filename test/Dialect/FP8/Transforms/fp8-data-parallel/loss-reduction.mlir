// RUN: fp8-opt %s --fp8-data-parallel=loss-reduction=sum | FileCheck %s --check-prefixes=CHECK,SUM
// RUN: fp8-opt %s --fp8-data-parallel=loss-reduction=mean | FileCheck %s --check-prefixes=CHECK,MEAN
// RUN: not fp8-opt %s --fp8-data-parallel=loss-reduction=max 2>&1 | FileCheck %s --check-prefix=ERROR

// A sum of squares may be meant as a sum or as a mean.
// ERROR: expected loss-reduction 'mean' or 'sum' but got 'max'
// CHECK-LABEL: func.func public @main
// SUM: fp8.all_reduce sum %{{.*}} label = "gradient w"
// MEAN: fp8.all_reduce mean %{{.*}} label = "gradient w"
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %s = stablehlo.reduce(%y0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %y0, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16xf32>) -> tensor<8xf32>
  %new = stablehlo.subtract %w, %g : tensor<8xf32>
  return %new, %s : tensor<8xf32>, tensor<f32>
}
