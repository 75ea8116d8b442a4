// A mixed-precision dot; as JAX 0.10 prints it, and printed back the same.
// RUN: fp8-opt %s --mlir-print-debuginfo | diff -B -I '^//' - %s
// RUN: fp8-opt %s --mlir-print-op-generic --mlir-print-debuginfo | fp8-opt --mlir-print-debuginfo | diff -B -I '^//' - %s
// RUN: fp8-opt %s --inline --canonicalize --cse --symbol-dce -o /dev/null

#loc1 = loc("x")
#loc2 = loc("y")
module @jit_bf attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x8xbf16> loc("x"), %arg1: tensor<8x4xbf16> loc("y")) -> (tensor<4x4xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<4x8xbf16>, tensor<8x4xbf16>) -> tensor<4x4xf32> loc(#loc15)
    return %0 : tensor<4x4xf32> loc(#loc14)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("model.py":71:20 to :129)
#loc4 = loc("model.py":8:8 to :51)
#loc5 = loc("model.py":5:7 to :34)
#loc6 = loc("model.py":72:0 to :97)
#loc7 = loc("bf"(#loc3))
#loc8 = loc("w_"(#loc4))
#loc9 = loc("w"(#loc5))
#loc10 = loc("<module>"(#loc6))
#loc11 = loc(callsite(#loc9 at #loc10))
#loc12 = loc(callsite(#loc8 at #loc11))
#loc13 = loc(callsite(#loc7 at #loc12))
#loc14 = loc("jit(bf)"(#loc12))
#loc15 = loc("jit(bf)/dot_general"(#loc13))
