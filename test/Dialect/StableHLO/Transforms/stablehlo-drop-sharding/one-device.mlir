// RUN: fp8-opt %s --stablehlo-drop-sharding --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: @manual
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32>)
// CHECK-NEXT: %[[Y:.*]] = stablehlo.add %[[X]], %[[X]]
// CHECK-NEXT: return %[[Y]]
sdy.mesh @mesh = <["data"=1, "model"=1]>
func.func @manual(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"data"} ]>] out_shardings=[<@mesh, [{"data"} ]>] manual_axes={"data"} (%a: tensor<8xf32>) {
    %1 = stablehlo.add %a, %a : tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sdy.mesh @other = <["data"=1]>
sdy.mesh @mesh = <["data"=2, "model"=3]>
func.func @several(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{'sdy.manual_computation' op over 6 devices needs a distributed run, which is not supported yet}}
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"data"} ]>] out_shardings=[<@mesh, [{"data"} ]>] manual_axes={"data"} (%a: tensor<4xf32>) {
    %1 = stablehlo.add %a, %a : tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// The collectives of a module for one device, as JAX prints them.
// CHECK-LABEL: @alone
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32>)
// CHECK-NEXT: %[[ID:.*]] = stablehlo.constant dense<0> : tensor<ui32>
// CHECK-NEXT: return %[[X]], %[[ID]]
module attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @alone(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<ui32>) {
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<0> : tensor<1x1xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %5 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %5 : tensor<f32>
    }) : (tensor<8xf32>) -> tensor<8xf32>
    %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
    %2 = "stablehlo.collective_permute"(%1) <{source_target_pairs = dense<0> : tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
    %3 = stablehlo.partition_id : tensor<ui32>
    return %2, %3 : tensor<8xf32>, tensor<ui32>
  }
}

// -----

// CHECK-LABEL: @pair
// CHECK: stablehlo.all_reduce
// CHECK: stablehlo.partition_id
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @pair(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<ui32>) {
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %5 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %5 : tensor<f32>
    }) : (tensor<8xf32>) -> tensor<8xf32>
    %3 = stablehlo.partition_id : tensor<ui32>
    return %0, %3 : tensor<8xf32>, tensor<ui32>
  }
}
