// RUN: fp8-opt %s --fp8-deal-state | FileCheck %s

// An optimizer in a loop over layers, found by fp8-reduce. A value of the loop's body is sent by its owner until what it is computed from is sent
// too: then all ranks compute it.
// CHECK-LABEL: func.func public @main
// CHECK: %[[MOMENT:.*]] = linalg.generic {{.*}} attrs = {fp8.shard = 2 : i64}
// CHECK: %[[SENT:.*]] = fp8.all_reduce owner %[[MOMENT]] shard = 2 label = "owner of m['w']" : tensor<64x64xf32>
// CHECK: linalg.generic {{.*}} ins(%[[SENT]] : tensor<64x64xf32>)
// CHECK-NOT: fp8.all_reduce
// CHECK: return
#id = affine_map<(d0, d1) -> (d0, d1)>
#none = affine_map<(d0, d1) -> ()>
module attributes {fp8.data_parallel, fp8.zero = 1 : i64} {
  func.func public @main(%arg0: tensor<3x64x64xf32> {fp8.kind = "parameter", fp8.path = "p['w']", fp8.role = "state"}, %arg1: tensor<3x64x64xf32> {fp8.kind = "parameter", fp8.path = "m['w']", fp8.role = "state"}) -> (tensor<3x64x64xf32> {fp8.path = "result[1]['w']", fp8.state = "m['w']"}) {
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c0 = arith.constant 0 : index
    %cst = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<3x64x64xf32>
    %0:2 = scf.for %arg2 = %c0 to %c3 step %c1 iter_args(%arg3 = %cst_0, %arg4 = %cst_0) -> (tensor<3x64x64xf32>, tensor<3x64x64xf32>) {
      %w = tensor.extract_slice %arg0[%arg2, 0, 0] [1, 64, 64] [1, 1, 1] : tensor<3x64x64xf32> to tensor<64x64xf32>
      %m = tensor.extract_slice %arg1[%arg2, 0, 0] [1, 64, 64] [1, 1, 1] : tensor<3x64x64xf32> to tensor<64x64xf32>
      %e0 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
      %e1 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
      %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%m, %e0 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e1 : tensor<64x64xf32>) {
      ^bb0(%in: f32, %in_4: f32, %out: f32):
        linalg.yield %in : f32
      } -> tensor<64x64xf32>
      %2 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction", "reduction"]} ins(%1 : tensor<64x64xf32>) outs(%cst : tensor<f32>) {
      ^bb0(%in: f32, %out: f32):
        linalg.yield %out : f32
      } -> tensor<f32>
      %3 = linalg.generic {indexing_maps = [#id, #id, #none, #id], iterator_types = ["parallel", "parallel"]} ins(%w, %1, %2 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<f32>) outs(%e1 : tensor<64x64xf32>) {
      ^bb0(%in: f32, %in_4: f32, %in_5: f32, %out: f32):
        linalg.yield %in : f32
      } -> tensor<64x64xf32>
      %inserted_slice = tensor.insert_slice %3 into %arg3[%arg2, 0, 0] [1, 64, 64] [1, 1, 1] : tensor<64x64xf32> into tensor<3x64x64xf32>
      %kept = tensor.insert_slice %m into %arg4[%arg2, 0, 0] [1, 64, 64] [1, 1, 1] : tensor<64x64xf32> into tensor<3x64x64xf32>
      scf.yield %inserted_slice, %kept : tensor<3x64x64xf32>, tensor<3x64x64xf32>
    }
    return %0#1 : tensor<3x64x64xf32>
  }
}
