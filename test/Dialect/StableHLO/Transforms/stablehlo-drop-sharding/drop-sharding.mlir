// RUN: fp8-opt %s --stablehlo-drop-sharding | FileCheck %s

// CHECK: module {
module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-NOT: sdy.mesh
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  // CHECK: func.func public @main(%[[X:.*]]: tensor<8x4xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<8x4xf32> {jax.result_info = "result"})
  func.func public @main(%x: tensor<8x4xf32> {mhlo.sharding = "{replicated}", sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>, tf.aliasing_output = 0 : i32}) -> (tensor<8x4xf32> {jax.result_info = "result", mhlo.sharding = "{replicated}"}) {
    %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{replicated}"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    // CHECK-NEXT: %[[Y:.*]] = stablehlo.tanh %[[X]]
    %1 = stablehlo.tanh %0 : tensor<8x4xf32>
    %2 = sdy.sharding_constraint %1 <@mesh, [{"data"}, {}]> : tensor<8x4xf32>
    // CHECK-NEXT: return %[[Y]]
    return %2 : tensor<8x4xf32>
  }
}
