// Functions with a stated accuracy; as JAX 0.10 prints it, and printed back the same.
// RUN: fp8-opt %s --mlir-print-debuginfo | diff -B -I '^//' - %s
// RUN: fp8-opt %s --mlir-print-op-generic --mlir-print-debuginfo | fp8-opt --mlir-print-debuginfo | diff -B -I '^//' - %s
// RUN: fp8-opt %s --inline --canonicalize --cse --symbol-dce -o /dev/null

#loc1 = loc("x")
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32> loc("x")) -> (tensor<4xf32> {jax.result_info = "result[0]"}, tensor<4xf32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.exponential %arg0 : tensor<4xf32> loc(#loc17)
    %1 = stablehlo.exponential %arg0 {result_accuracy = #stablehlo.result_accuracy<ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<4xf32> loc(#loc17)
    %2 = stablehlo.tanh %arg0 : tensor<4xf32> loc(#loc18)
    %3 = stablehlo.tanh %arg0 {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<4xf32> loc(#loc18)
    return %1, %3 : tensor<4xf32>, tensor<4xf32> loc(#loc16)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("model.py":17:18 to :73)
#loc3 = loc("<string>":6:8 to :51)
#loc4 = loc("<string>":3:7 to :34)
#loc5 = loc("model.py":17:0 to :128)
#loc6 = loc("model.py":17:74 to :119)
#loc7 = loc("<lambda>"(#loc2))
#loc8 = loc("w_"(#loc3))
#loc9 = loc("w"(#loc4))
#loc10 = loc("<module>"(#loc5))
#loc11 = loc("<lambda>"(#loc6))
#loc12 = loc(callsite(#loc9 at #loc10))
#loc13 = loc(callsite(#loc8 at #loc12))
#loc14 = loc(callsite(#loc7 at #loc13))
#loc15 = loc(callsite(#loc11 at #loc13))
#loc16 = loc("jit(<lambda>)"(#loc13))
#loc17 = loc("jit(<lambda>)/exp"(#loc14))
#loc18 = loc("jit(<lambda>)/tanh"(#loc15))
