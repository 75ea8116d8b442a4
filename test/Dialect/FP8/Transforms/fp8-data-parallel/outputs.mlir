// RUN: fp8-opt %s --fp8-data-parallel | FileCheck %s
// RUN: fp8-opt %s --fp8-data-parallel=global-batch=4 | FileCheck %s --check-prefix=SHARED

// Each rank returns the outputs of its own rows.
// CHECK-LABEL: func.func public @main
// CHECK-SAME: tensor<16xf32> {fp8.kind = "output"
// CHECK: fp8.all_reduce mean {{.*}} label = "[1]"
// CHECK-NOT: fp8.all_reduce
// SHARED-LABEL: func.func public @main
// SHARED-SAME: tensor<4xf32> {fp8.kind = "output"
// SHARED: fp8.all_reduce sum {{.*}} label = "[1]"
// SHARED-NOT: fp8.all_reduce
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"},
        tensor<16xf32> {fp8.kind = "output", fp8.path = "[2]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  return %w, %loss, %y : tensor<8xf32>, tensor<f32>, tensor<16xf32>
}
