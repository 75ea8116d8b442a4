// RUN: fp8-opt %s --stablehlo-one-rank --split-input-file | FileCheck %s

// Rows are split over both axes, in the order of devices; state is whole.
// CHECK-LABEL: func.func public @rows(
// CHECK-SAME: %[[W:[^:]*]]: tensor<3xf32>, %[[X:[^:]*]]: tensor<8x3xf32> {stablehlo.rows}) -> (tensor<3xf32>, tensor<f32>)
// CHECK-SAME: stablehlo.devices = 4 : i64
// CHECK: %[[TABLE:.*]] = stablehlo.constant dense<[0, 2, 4, 6]> : tensor<4xi32>
// CHECK: %[[ID:.*]] = stablehlo.partition_id
// CHECK: %[[N:.*]] = stablehlo.convert %[[ID]] : (tensor<ui32>) -> tensor<i32>
// CHECK: %[[AT:.*]] = stablehlo.dynamic_slice %[[TABLE]], %[[N]], sizes = [1]
// CHECK: %[[BEGIN:.*]] = stablehlo.reshape %[[AT]]
// CHECK: %[[ZERO:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK: %[[MINE:.*]] = stablehlo.dynamic_slice %[[X]], %[[BEGIN]], %[[ZERO]], sizes = [2, 3]
// CHECK: %[[C:.*]] = stablehlo.constant dense<0.0
// CHECK: %[[R:.*]] = stablehlo.reduce(%[[MINE]] init: %[[C]])
// CHECK: %[[S:.*]] = stablehlo.add %[[W]], %[[R]]
// CHECK: return %[[S]], %[[C]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @rows(%w: tensor<3xf32>, %x: tensor<8x3xf32>) -> (tensor<3xf32>, tensor<f32>) {
    %0:2 = sdy.manual_computation(%w, %x) in_shardings=[<@mesh, [{}]>, <@mesh, [{"a", "b"}, {}]>] out_shardings=[<@mesh, [{}]>, <@mesh, []>] manual_axes={"a", "b"} (%v: tensor<3xf32>, %y: tensor<2x3xf32>) {
      %c = stablehlo.constant dense<0.0> : tensor<f32>
      %1 = stablehlo.reduce(%y init: %c) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
      %2 = stablehlo.add %v, %1 : tensor<3xf32>
      sdy.return %2, %c : tensor<3xf32>, tensor<f32>
    } : (tensor<3xf32>, tensor<8x3xf32>) -> (tensor<3xf32>, tensor<f32>)
    return %0#0, %0#1 : tensor<3xf32>, tensor<f32>
  }
}

// -----

// Of a mesh of 2 x 3 the axis "b" splits rows, in any order of axes, and "a"
// columns. What is outside reads whole values.
// CHECK-LABEL: func.func public @parts(
// CHECK-SAME: %[[X:[^:]*]]: tensor<6x4xf32>) -> tensor<6x4xf32>
// CHECK: %[[OUTSIDE:.*]] = stablehlo.negate %[[X]] : tensor<6x4xf32>
// CHECK: stablehlo.constant dense<[0, 2, 4, 0, 2, 4]> : tensor<6xi32>
// CHECK: stablehlo.constant dense<[0, 0, 0, 2, 2, 2]> : tensor<6xi32>
// CHECK: stablehlo.dynamic_slice %[[OUTSIDE]], {{.*}}, sizes = [2, 2] {stablehlo.part = {offsets = dense<{{\[}}[0, 0], [2, 0], [4, 0], [0, 2], [2, 2], [4, 2]]> : tensor<6x2xi64>, whole = array<i64: 6, 4>}}
// CHECK: %[[E:.*]] = stablehlo.exponential
// CHECK: %[[ROWS:.*]] = "stablehlo.all_gather"(%[[E]]) <{all_gather_dim = 0 : i64, replica_groups = dense<{{\[}}[0, 1, 2], [3, 4, 5]]> : tensor<2x3xi64>}> : (tensor<2x2xf32>) -> tensor<6x2xf32>
// CHECK: %[[ALL:.*]] = "stablehlo.all_gather"(%[[ROWS]]) <{all_gather_dim = 1 : i64, replica_groups = dense<{{\[}}[0, 3], [1, 4], [2, 5]]> : tensor<3x2xi64>}> : (tensor<6x2xf32>) -> tensor<6x4xf32>
// CHECK: stablehlo.add %[[ALL]], %[[X]]
module attributes {mhlo.num_partitions = 6 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=3]>
  func.func public @parts(%x: tensor<6x4xf32>) -> tensor<6x4xf32> {
    %0 = stablehlo.negate %x : tensor<6x4xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"b"}, {"a"}]>] out_shardings=[<@mesh, [{"b"}, {"a"}]>] manual_axes={"a", "b"} (%y: tensor<2x2xf32>) {
      %2 = stablehlo.exponential %y : tensor<2x2xf32>
      sdy.return %2 : tensor<2x2xf32>
    } : (tensor<6x4xf32>) -> tensor<6x4xf32>
    %3 = stablehlo.add %1, %x : tensor<6x4xf32>
    return %3 : tensor<6x4xf32>
  }
}

// -----

// Two axes for one dimension, the first the slower: device 1 has the third part.
// CHECK-LABEL: func.func public @order(
// CHECK: stablehlo.constant dense<[0, 2, 1, 3]> : tensor<4xi32>
// CHECK: replica_groups = dense<{{\[}}[0, 2, 1, 3]]> : tensor<1x4xi64>
module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @order(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"b", "a"}]>] out_shardings=[<@mesh, [{"b", "a"}]>] manual_axes={"a", "b"} (%y: tensor<1xf32>) {
      sdy.return %y : tensor<1xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// A jit splits the rows of its batch: devices share it. What constraints say of
// values in between does not change them.
// CHECK-LABEL: func.func public @jit(
// CHECK-SAME: tensor<3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %{{[^:]*}}: tensor<8x3xf32> {sdy.sharding = {{.*}}, stablehlo.rows}
// CHECK-SAME: attributes {stablehlo.sharing = 4 : i64}
module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @jit(%w: tensor<3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %x: tensor<8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}]>}) -> (tensor<3xf32>, tensor<8x3xf32>) {
    %0 = sdy.sharding_constraint %x <@mesh, [{}, {"b"}]> : tensor<8x3xf32>
    return %w, %0 : tensor<3xf32>, tensor<8x3xf32>
  }
}

// -----

// The same as GSPMD writes it; the devices of a tile hold the same rows.
// CHECK-LABEL: func.func public @tiles(
// CHECK-SAME: %{{[^:]*}}: tensor<3xf32> {mhlo.sharding = "{replicated}"}, %{{[^:]*}}: tensor<8x3xf32> {mhlo.sharding = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}", stablehlo.rows}
// CHECK-SAME: attributes {stablehlo.sharing = 4 : i64}
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func public @tiles(%w: tensor<3xf32> {mhlo.sharding = "{replicated}"}, %x: tensor<8x3xf32> {mhlo.sharding = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"}) -> tensor<3xf32> {
    return %w : tensor<3xf32>
  }
}
