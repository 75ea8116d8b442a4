// RUN: fp8-opt %s --stablehlo-lower-collectives --split-input-file | FileCheck %s

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  // A small tensor is gathered, and every rank reduces all of it.
  // CHECK-LABEL: func.func @small
  // CHECK-NEXT: %[[INIT:.*]] = stablehlo.constant dense<-0.000000e+00> : tensor<f32>
  // CHECK-NEXT: %[[ALL:.*]] = fp8.exchange gather %arg0 ranks = dense<{{\[\[}}0, 1], [2, 3]]> : tensor<2x2xi64> summed label = "all_reduce" : tensor<4xf32> -> tensor<2x4xf32>
  // CHECK-NEXT: stablehlo.reduce(%[[ALL]] init: %[[INIT]]) applies stablehlo.add across dimensions = [0]
  func.func @small(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }

  // Each rank reduces a part of a large one; 10001 elements do not divide into parts.
  // CHECK-LABEL: func.func @large
  // CHECK: %[[INIT:.*]] = stablehlo.constant dense<0xFF800000>
  // CHECK: %[[FLAT:.*]] = stablehlo.reshape %arg0 : (tensor<73x137xf32>) -> tensor<10001xf32>
  // CHECK: %[[PAD:.*]] = stablehlo.pad %[[FLAT]], %[[INIT]], low = [0], high = [3], interior = [0]
  // CHECK: %[[PARTS:.*]] = stablehlo.reshape %[[PAD]] : (tensor<10004xf32>) -> tensor<4x2501xf32>
  // CHECK: %[[MINE:.*]] = fp8.exchange all_to_all %[[PARTS]] ranks = dense<{{\[\[}}0, 1, 2, 3]]>
  // CHECK: %[[MAX:.*]] = stablehlo.reduce(%[[MINE]] init: %[[INIT]]) applies stablehlo.maximum across dimensions = [0]
  // CHECK: %[[ALL:.*]] = fp8.exchange gather %[[MAX]]
  // CHECK: stablehlo.slice %{{.*}} [0:10001]
  func.func @large(%x: tensor<73x137xf32>) -> tensor<73x137xf32> {
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<73x137xf32>) -> tensor<73x137xf32>
    return %0 : tensor<73x137xf32>
  }

  // CHECK-LABEL: func.func @gather
  // CHECK-NEXT: %[[ALL:.*]] = fp8.exchange gather %arg0 {{.*}} : tensor<3x5xf32> -> tensor<2x3x5xf32>
  // CHECK-NEXT: %[[BACK:.*]] = stablehlo.transpose %[[ALL]], dims = [1, 0, 2]
  // CHECK-NEXT: stablehlo.reshape %[[BACK]] : (tensor<3x2x5xf32>) -> tensor<3x10xf32>
  func.func @gather(%x: tensor<3x5xf32>) -> tensor<3x10xf32> {
    %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>}> : (tensor<3x5xf32>) -> tensor<3x10xf32>
    return %0 : tensor<3x10xf32>
  }

  // CHECK-LABEL: func.func @scatter
  // CHECK: %[[SPLIT:.*]] = stablehlo.reshape %arg0 : (tensor<3x10xi32>) -> tensor<3x2x5xi32>
  // CHECK: %[[FRONT:.*]] = stablehlo.transpose %[[SPLIT]], dims = [1, 0, 2]
  // CHECK: %[[PARTS:.*]] = fp8.exchange all_to_all %[[FRONT]]
  // CHECK: stablehlo.reduce(%[[PARTS]] init: %{{.*}}) applies stablehlo.minimum across dimensions = [0] : {{.*}} -> tensor<3x5xi32>
  func.func @scatter(%x: tensor<3x10xi32>) -> tensor<3x5xi32> {
    %0 = "stablehlo.reduce_scatter"(%x) <{replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, scatter_dimension = 1 : i64}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %1 = stablehlo.minimum %a, %b : tensor<i32>
      stablehlo.return %1 : tensor<i32>
    }) : (tensor<3x10xi32>) -> tensor<3x5xi32>
    return %0 : tensor<3x5xi32>
  }

  // CHECK-LABEL: func.func @to_all
  // CHECK: %[[FRONT:.*]] = stablehlo.reshape %arg0 : (tensor<8x3xf32>) -> tensor<4x2x3xf32>
  // CHECK: %[[PARTS:.*]] = fp8.exchange all_to_all %[[FRONT]]
  // CHECK: %[[BACK:.*]] = stablehlo.transpose %[[PARTS]], dims = [1, 0, 2]
  // CHECK: stablehlo.reshape %[[BACK]] : (tensor<2x4x3xf32>) -> tensor<2x12xf32>
  func.func @to_all(%x: tensor<8x3xf32>) -> tensor<2x12xf32> {
    %0 = "stablehlo.all_to_all"(%x) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 4 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<8x3xf32>) -> tensor<2x12xf32>
    return %0 : tensor<2x12xf32>
  }

  // In a loop and in a branch, too.
  // CHECK-LABEL: func.func @pipeline
  // CHECK: stablehlo.while
  // CHECK: fp8.exchange permute %{{.*}} ranks = dense<{{\[\[}}0, 1], [1, 2], [2, 3]]>
  func.func @pipeline(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %0:2 = stablehlo.while(%i = %n, %v = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %1 = stablehlo.compare LT, %i, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = "stablehlo.collective_permute"(%v) <{source_target_pairs = dense<[[0, 1], [1, 2], [2, 3]]> : tensor<3x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
      %2 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %2, %1 : tensor<i32>, tensor<4xf32>
    }
    return %0#1 : tensor<4xf32>
  }

  // CHECK-LABEL: func.func @broadcast
  // CHECK: fp8.exchange permute %arg0 ranks = dense<{{\[\[}}2, 2], [2, 0], [1, 1], [1, 3]]>
  func.func @broadcast(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.collective_broadcast"(%x) <{replica_groups = dense<[[2, 0], [1, 3]]> : tensor<2x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }

  // Every rank gets its own number from all others.
  // CHECK-LABEL: func.func @number
  // CHECK: %[[IOTA:.*]] = stablehlo.iota dim = 0 : tensor<4xui32>
  // CHECK: %[[MINE:.*]] = fp8.exchange all_to_all %[[IOTA]] ranks = dense<{{\[\[}}0, 1, 2, 3]]>
  // CHECK: stablehlo.slice %[[MINE]] [0:1]
  func.func @number() -> tensor<ui32> {
    %0 = stablehlo.partition_id : tensor<ui32>
    return %0 : tensor<ui32>
  }
}

// -----

// The only replica has number 0, whichever partition asks.
// CHECK-LABEL: func.func @replica
// CHECK-NEXT: %[[ZERO:.*]] = stablehlo.constant dense<0> : tensor<ui32>
// CHECK-NEXT: return %[[ZERO]]
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @replica() -> tensor<ui32> {
    %0 = stablehlo.replica_id : tensor<ui32>
    return %0 : tensor<ui32>
  }
}

// -----

// One device is left to the next pass.
// CHECK-LABEL: func.func @one
// CHECK: stablehlo.partition_id
module attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @one() -> tensor<ui32> {
    %0 = stablehlo.partition_id : tensor<ui32>
    return %0 : tensor<ui32>
  }
}
