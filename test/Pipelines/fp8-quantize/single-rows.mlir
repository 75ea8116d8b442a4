// RUN: fp8-opt %s --fp8-quantize="recipe=none data-parallel" | FileCheck %s

// Each of two ranks has one of the two rows that a jit splits over devices: a
// sum over a single row is none.

// CHECK-LABEL: func.func public @main
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<1x8xf32> {fp8.path = "x"
// CHECK-NOT: stablehlo.reduce(%[[X]]
// CHECK: %[[ROW:.*]] = stablehlo.reshape %[[X]] : (tensor<1x8xf32>) -> tensor<8xf32>
// CHECK: fp8.all_reduce sum %[[ROW]]
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"},
    %x: tensor<2x8xf32> {fp8.path = "x", fp8.role = "batch", stablehlo.rows})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]['w']", fp8.state = "params['w']"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) attributes {stablehlo.sharing = 2 : i64} {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %g = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2x8xf32>, tensor<f32>) -> tensor<8xf32>
  %loss = stablehlo.reduce(%g init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %new = stablehlo.subtract %w, %g : tensor<8xf32>
  return %new, %loss : tensor<8xf32>, tensor<f32>
}
