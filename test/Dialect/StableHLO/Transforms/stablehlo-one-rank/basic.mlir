// RUN: fp8-opt %s --stablehlo-one-rank | FileCheck %s

// Rows are split over both axes, in the order of devices; state is whole.
// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %[[W:[^:]*]]: tensor<3xf32>, %[[X:[^:]*]]: tensor<2x3xf32> {stablehlo.rows}) -> (tensor<3xf32>, tensor<f32>)
// CHECK-NEXT: %[[C:.*]] = stablehlo.constant
// CHECK-NEXT: %[[R:.*]] = stablehlo.reduce(%[[X]] init: %[[C]])
// CHECK-NEXT: %[[S:.*]] = stablehlo.add %[[W]], %[[R]]
// CHECK-NEXT: return %[[S]], %[[C]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @main(%w: tensor<3xf32>, %x: tensor<8x3xf32>) -> (tensor<3xf32>, tensor<f32>) {
    %0:2 = sdy.manual_computation(%w, %x) in_shardings=[<@mesh, [{}]>, <@mesh, [{"a", "b"}, {}]>] out_shardings=[<@mesh, [{}]>, <@mesh, []>] manual_axes={"a", "b"} (%v: tensor<3xf32>, %y: tensor<2x3xf32>) {
      %c = stablehlo.constant dense<0.0> : tensor<f32>
      %1 = stablehlo.reduce(%y init: %c) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
      %2 = stablehlo.add %v, %1 : tensor<3xf32>
      sdy.return %2, %c : tensor<3xf32>, tensor<f32>
    } : (tensor<3xf32>, tensor<8x3xf32>) -> (tensor<3xf32>, tensor<f32>)
    return %0#0, %0#1 : tensor<3xf32>, tensor<f32>
  }
}
