// RUN: fp8-opt %s --fp8-data-parallel=global-batch=4 | FileCheck %s

// New state has the rows of all ranks that share a batch; outputs do not.

// CHECK-LABEL: func.func public @main
// CHECK-SAME: tensor<16xf32> {fp8.kind = "state"
// CHECK-SAME: tensor<4xf32> {fp8.kind = "output"
// CHECK: %[[Y:.*]] = stablehlo.dot_general
// CHECK: fp8.exchange gather
// CHECK: %[[ALL:.*]] = stablehlo.reshape {{.*}} -> tensor<16xf32>
// CHECK: return %{{.*}}, %[[ALL]], %{{.*}}, %[[Y]]
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %m: tensor<16xf32> {fp8.kind = "other", fp8.path = "m", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<16xf32> {fp8.kind = "state", fp8.path = "[1]", fp8.state = "m"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[2]"},
        tensor<16xf32> {fp8.kind = "output", fp8.path = "[3]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %next = stablehlo.add %m, %y : tensor<16xf32>
  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  return %w, %next, %loss, %y : tensor<8xf32>, tensor<16xf32>, tensor<f32>, tensor<16xf32>
}
