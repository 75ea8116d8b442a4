// Lax.composite; as JAX 0.10 prints it, and printed back the same.
// RUN: fp8-opt %s --mlir-print-debuginfo | diff -B -I '^//' - %s
// RUN: fp8-opt %s --mlir-print-op-generic --mlir-print-debuginfo | fp8-opt --mlir-print-debuginfo | diff -B -I '^//' - %s
// RUN: fp8-opt %s --inline --canonicalize --cse --symbol-dce -o /dev/null

#loc = loc(unknown)
#loc1 = loc("x")
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32> loc("x")) -> (tensor<4xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.composite "my.op" %arg0 {composite_attributes = {k = 2.000000e+00 : f64}, decomposition = @my.op} : (tensor<4xf32>) -> tensor<4xf32> loc(#loc19)
    return %0 : tensor<4xf32> loc(#loc18)
  } loc(#loc)
  func.func private @my.op(%arg0: tensor<4xf32> loc(unknown)) -> tensor<4xf32> {
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32> loc(#loc)
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32> loc(#loc15)
    %1 = stablehlo.multiply %arg0, %0 : tensor<4xf32> loc(#loc15)
    return %1 : tensor<4xf32> loc(#loc)
  } loc(#loc12)
} loc(#loc)
#loc2 = loc("model.py":105:28 to :41)
#loc3 = loc("model.py":8:8 to :51)
#loc4 = loc("model.py":5:7 to :34)
#loc5 = loc("model.py":105:5 to :49)
#loc6 = loc("composite")
#loc7 = loc("model.py":104:24 to :27)
#loc8 = loc("<lambda>"(#loc2))
#loc9 = loc("w_"(#loc3))
#loc10 = loc("w"(#loc4))
#loc11 = loc("<module>"(#loc5))
#loc12 = loc("composite:"(#loc6))
#loc13 = loc("comp"(#loc7))
#loc14 = loc(callsite(#loc10 at #loc11))
#loc15 = loc("mul"(#loc13))
#loc16 = loc(callsite(#loc9 at #loc14))
#loc17 = loc(callsite(#loc8 at #loc16))
#loc18 = loc("jit(<lambda>)"(#loc16))
#loc19 = loc("jit(<lambda>)/composite"(#loc17))
