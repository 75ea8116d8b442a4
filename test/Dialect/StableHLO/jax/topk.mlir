// Approx_max_k: a custom call; as JAX 0.10 prints it, and printed back the same.
// RUN: fp8-opt %s --mlir-print-debuginfo | diff -B -I '^//' - %s
// RUN: fp8-opt %s --mlir-print-op-generic --mlir-print-debuginfo | fp8-opt --mlir-print-debuginfo | diff -B -I '^//' - %s
// RUN: fp8-opt %s --inline --canonicalize --cse --symbol-dce -o /dev/null

#loc1 = loc("approx_top_k")
#loc2 = loc("x")
#loc7 = loc("approx_top_k:"(#loc1))
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @top_k_gt_f32_comparator(%arg0: tensor<f32> loc("approx_top_k:"(#loc1)), %arg1: tensor<f32> loc("approx_top_k:"(#loc1)), %arg2: tensor<i32> loc("approx_top_k:"(#loc1)), %arg3: tensor<i32> loc("approx_top_k:"(#loc1))) -> tensor<i1> {
    %0 = stablehlo.compare GT, %arg0, %arg1 : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loc7)
    stablehlo.return %0 : tensor<i1> loc(#loc7)
  } loc(#loc7)
  func.func public @main(%arg0: tensor<4x8xf32> loc("x")) -> (tensor<4x2xf32> {jax.result_info = "result[0]"}, tensor<4x2xi32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.iota dim = 1 : tensor<4x8xi32> loc(#loc16)
    %c = stablehlo.constant dense<-1> : tensor<i32> loc(#loc16)
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32> loc(#loc16)
    %1:2 = stablehlo.custom_call @ApproxTopK(%arg0, %0, %cst, %c) {backend_config = "", called_computations = [@top_k_gt_f32_comparator], mhlo.backend_config = {aggregate_to_topk = true, is_fallback = true, recall_target = 0.949999988 : f32, reduction_dim = 1 : i64, reduction_input_size_override = -1 : i64, top_k = 2 : i64}} : (tensor<4x8xf32>, tensor<4x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<4x2xf32>, tensor<4x2xi32>) loc(#loc16)
    return %1#0, %1#1 : tensor<4x2xf32>, tensor<4x2xi32> loc(#loc15)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("model.py":20:18 to :39)
#loc4 = loc("<string>":6:8 to :51)
#loc5 = loc("<string>":3:7 to :34)
#loc6 = loc("model.py":20:0 to :49)
#loc8 = loc("<lambda>"(#loc3))
#loc9 = loc("w_"(#loc4))
#loc10 = loc("w"(#loc5))
#loc11 = loc("<module>"(#loc6))
#loc12 = loc(callsite(#loc10 at #loc11))
#loc13 = loc(callsite(#loc9 at #loc12))
#loc14 = loc(callsite(#loc8 at #loc13))
#loc15 = loc("jit(<lambda>)"(#loc13))
#loc16 = loc("jit(<lambda>)/approx_top_k"(#loc14))
