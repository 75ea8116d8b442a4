// shard_map on four devices (its collective replaced); as JAX 0.10 prints it, and printed back the same.
// RUN: fp8-opt %s --mlir-print-debuginfo | diff -B -I '^//' - %s
// RUN: fp8-opt %s --mlir-print-op-generic --mlir-print-debuginfo | fp8-opt --mlir-print-debuginfo | diff -B -I '^//' - %s
// RUN: fp8-opt %s --inline --canonicalize --cse --symbol-dce -o /dev/null

#loc1 = loc("x")
#loc6 = loc("shard_map")
#loc14 = loc("shard_map:"(#loc6))
module @jit__lambda attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["dp"=2, "tp"=2]> {stablehlo.mesh = {axes = [{name = "dp", size = 2 : i64}, {name = "tp", size = 2 : i64}]}} loc(#loc)
  func.func public @main(%arg0: tensor<4x8xf32> loc("x")) -> (tensor<2x8xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"dp"}, {"tp"}]>] out_shardings=[<@mesh, [{}, {"tp"}]>] manual_axes={"dp", "tp"} (%arg1: tensor<2x4xf32> loc("shard_map:"(#loc6))) {
      %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32> loc(#loc14)
      %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x4xf32> loc(#loc19)
      %3 = stablehlo.multiply %arg1, %2 : tensor<2x4xf32> loc(#loc19)
      %4 = stablehlo.negate %3 : tensor<2x4xf32> loc(#loc20)
      sdy.return %4 : tensor<2x4xf32> loc(#loc14)
    } : (tensor<4x8xf32>) -> tensor<2x8xf32> loc(#loc25)
    %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"dp", "tp"}]> : tensor<2x8xf32> loc(#loc26)
    return %1 : tensor<2x8xf32> loc(#loc24)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("model.py":10:53 to :58)
#loc3 = loc("<string>":6:8 to :51)
#loc4 = loc("<string>":3:7 to :34)
#loc5 = loc("model.py":10:0 to :109)
#loc7 = loc("model.py":8:36 to :39)
#loc8 = loc("model.py":8:27 to :45)
#loc9 = loc("model.py":10:24 to :99)
#loc10 = loc("<lambda>"(#loc2))
#loc11 = loc("w_"(#loc3))
#loc12 = loc("w"(#loc4))
#loc13 = loc("<module>"(#loc5))
#loc15 = loc("<lambda>"(#loc7))
#loc16 = loc("<lambda>"(#loc8))
#loc17 = loc("<lambda>"(#loc9))
#loc18 = loc(callsite(#loc12 at #loc13))
#loc19 = loc("mul"(#loc15))
#loc20 = loc("psum_invariant"(#loc16))
#loc21 = loc(callsite(#loc11 at #loc18))
#loc22 = loc(callsite(#loc10 at #loc21))
#loc23 = loc(callsite(#loc17 at #loc21))
#loc24 = loc("jit(<lambda>)"(#loc21))
#loc25 = loc("jit(<lambda>)/shard_map"(#loc22))
#loc26 = loc("jit(<lambda>)/sharding_constraint"(#loc23))

