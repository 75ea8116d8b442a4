// RUN: fp8-opt %s --fp8-data-parallel --split-input-file --verify-diagnostics | FileCheck %s

// State is whole; a rank is fed its rows of the batch. A batch of which it reads
// these alone is read as it comes, of the other one it asks for those of all.
// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %[[W:[^:]*]]: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"}
// CHECK-SAME: %[[X:[^:]*]]: tensor<4xf32> {fp8.path = "x", fp8.role = "batch"}
// CHECK-SAME: %[[Y:[^:]*]]: tensor<4x3xf32> {fp8.path = "y", fp8.role = "batch"}
// CHECK-NOT: stablehlo.devices
// CHECK: %[[PARTS:.*]] = fp8.exchange gather %[[Y]] ranks = dense<{{\[}}[0, 1]]> : tensor<1x2xi64> label = "rows of y" : tensor<4x3xf32> -> tensor<2x4x3xf32>
// CHECK-NEXT: %[[ALL:.*]] = stablehlo.reshape %[[PARTS]] : (tensor<2x4x3xf32>) -> tensor<8x3xf32>
// CHECK-NOT: exchange
// CHECK: stablehlo.reduce(%[[ALL]]
// CHECK: stablehlo.reduce(%[[X]]
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state", stablehlo.rows},
    %x: tensor<8xf32> {fp8.path = "x", fp8.role = "batch", stablehlo.rows},
    %y: tensor<8x3xf32> {fp8.path = "y", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) attributes {stablehlo.devices = 2 : i64} {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %numbers = stablehlo.constant dense<[0, 1]> : tensor<2xi32>
  %sent = fp8.exchange all_to_all %numbers ranks = dense<[[0, 1]]> : tensor<1x2xi64> : tensor<2xi32> -> tensor<2xi32>
  %one = stablehlo.slice %sent [0:1] : (tensor<2xi32>) -> tensor<1xi32>
  %begin = stablehlo.reshape %one : (tensor<1xi32>) -> tensor<i32>
  %rows = stablehlo.dynamic_slice %x, %begin, sizes = [4] : (tensor<8xf32>, tensor<i32>) -> tensor<4xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x3xf32>, tensor<f32>) -> tensor<f32>
  %t = stablehlo.reduce(%rows init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.add %s, %t : tensor<f32>
  return %w, %loss : tensor<8xf32>, tensor<f32>
}

// -----

func.func public @odd(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    // expected-error @+1 {{expected as many rows of 'x' on each of 2 ranks but got 5 for all}}
    %x: tensor<5xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"}) attributes {stablehlo.devices = 2 : i64} {
  return %w : tensor<8xf32>
}
