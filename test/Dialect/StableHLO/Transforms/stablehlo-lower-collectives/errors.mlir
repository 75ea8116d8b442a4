// RUN: fp8-opt %s --stablehlo-lower-collectives --split-input-file --verify-diagnostics

module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @computation(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{expected a computation of one add, maximum, minimum, and, or of its two arguments but got stablehlo.multiply}}
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.multiply %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @some(%x: tensor<4xf32>) -> tensor<8xf32> {
    // expected-error @+1 {{expected each of 4 devices in a group}}
    %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @beyond(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{expected device numbers below 2 but got 2}}
    %0 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 2]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 2 : i32} {
  func.func @both() -> tensor<ui32> {
    // expected-error @+1 {{expected several partitions or several replicas but got 2 partitions of 2 replicas}}
    %0 = stablehlo.partition_id : tensor<ui32>
    return %0 : tensor<ui32>
  }
}
