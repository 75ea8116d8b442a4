// Rng_bit_generator; as JAX 0.10 prints it, and printed back the same.
// RUN: fp8-opt %s --mlir-print-debuginfo | diff -B -I '^//' - %s
// RUN: fp8-opt %s --mlir-print-op-generic --mlir-print-debuginfo | fp8-opt --mlir-print-debuginfo | diff -B -I '^//' - %s
// RUN: fp8-opt %s --inline --canonicalize --cse --symbol-dce -o /dev/null

#loc1 = loc("k")
module @jit_rng attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xui32> loc("k")) -> (tensor<4xui32> {jax.result_info = "result[0][0]"}, tensor<4x8xui32> {jax.result_info = "result[0][1]"}, tensor<4xui32> {jax.result_info = "result[1][0]"}, tensor<4x8xui32> {jax.result_info = "result[1][1]"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32> loc(#loc17)
    %1 = stablehlo.bitcast_convert %0 : (tensor<2x2xui32>) -> tensor<2xui64> loc(#loc17)
    %output_state, %output = stablehlo.rng_bit_generator %1, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4x8xui32>) loc(#loc17)
    %2 = stablehlo.bitcast_convert %output_state : (tensor<2xui64>) -> tensor<2x2xui32> loc(#loc17)
    %3 = stablehlo.reshape %2 : (tensor<2x2xui32>) -> tensor<4xui32> loc(#loc17)
    %4 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32> loc(#loc18)
    %5 = stablehlo.bitcast_convert %4 : (tensor<2x2xui32>) -> tensor<2xui64> loc(#loc18)
    %output_state_0, %output_1 = stablehlo.rng_bit_generator %5, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4x8xui32>) loc(#loc18)
    %6 = stablehlo.bitcast_convert %output_state_0 : (tensor<2xui64>) -> tensor<2x2xui32> loc(#loc18)
    %7 = stablehlo.reshape %6 : (tensor<2x2xui32>) -> tensor<4xui32> loc(#loc18)
    return %3, %output, %7, %output_1 : tensor<4xui32>, tensor<4x8xui32>, tensor<4xui32>, tensor<4x8xui32> loc(#loc16)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("model.py":94:19 to :49)
#loc3 = loc("model.py":8:8 to :51)
#loc4 = loc("model.py":5:7 to :34)
#loc5 = loc("model.py":95:0 to :50)
#loc6 = loc("model.py":94:51 to :122)
#loc7 = loc("rng"(#loc2))
#loc8 = loc("w_"(#loc3))
#loc9 = loc("w"(#loc4))
#loc10 = loc("<module>"(#loc5))
#loc11 = loc("rng"(#loc6))
#loc12 = loc(callsite(#loc9 at #loc10))
#loc13 = loc(callsite(#loc8 at #loc12))
#loc14 = loc(callsite(#loc7 at #loc13))
#loc15 = loc(callsite(#loc11 at #loc13))
#loc16 = loc("jit(rng)"(#loc13))
#loc17 = loc("jit(rng)/rng_bit_generator"(#loc14))
#loc18 = loc("jit(rng)/rng_bit_generator"(#loc15))
