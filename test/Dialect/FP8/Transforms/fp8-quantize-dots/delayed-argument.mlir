// RUN: fp8-opt %s --fp8-quantize='recipe=delayed set=rules=[]' | FileCheck %s

// Whether a call updates the parameter is an argument: the histories roll where
// it says so.
// CHECK: func.func @main(
// CHECK-SAME: %[[TAKEN:[^:]*]]: tensor<i1>
// CHECK: stablehlo.and %[[TAKEN]],
func.func @main(%w: tensor<32x16xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
                %x: tensor<4x32xf32> {fp8.path = "x", fp8.role = "batch"},
                %g: tensor<32x16xf32> {fp8.path = "g", fp8.role = "batch"},
                %taken: tensor<i1> {fp8.path = "taken", fp8.role = "constant"})
    -> (tensor<32x16xf32> {fp8.path = "result[0]", fp8.state = "w"}, tensor<f32> {fp8.kind = "loss", fp8.path = "result[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<32x16xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x16xf32>, tensor<f32>) -> tensor<f32>
  %2 = stablehlo.select %taken, %g, %zeros : tensor<i1>, tensor<32x16xf32>
  %3 = stablehlo.add %w, %2 : tensor<32x16xf32>
  return %3, %1 : tensor<32x16xf32>, tensor<f32>
}
