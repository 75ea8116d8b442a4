// RUN: fp8-opt %s --fp8-verify-import --split-input-file --verify-diagnostics

// expected-error @+1 {{expected argument 0 of 'main' to have the attribute 'fp8.path'; run fp8-analyze-signature first}}
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
// expected-error @+1 {{'func.func' is left beside '@main' after the import: expected one function}}
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

// expected-error @+1 {{expected one public function '@main' with a body of one block after the import}}
module {
  func.func public @step(%x: tensor<f32>) -> tensor<f32> {
    return %x : tensor<f32>
  }
}

// -----

func.func public @main(%x: tensor<f32> {fp8.path = "x", fp8.role = "frozen"}) -> (tensor<f32> {fp8.path = "result", fp8.kind = "output"}) {
  // expected-error @+1 {{'stablehlo.custom_call' op has the target 'my_kernel', which does not run here: expected only annotations of sharding; see docs/StableHLOSubset.md}}
  %0 = stablehlo.custom_call @my_kernel(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// What jax.debug.print leaves in a step.
func.func public @main(%x: tensor<f32> {fp8.path = "x", fp8.role = "frozen"}) -> (tensor<f32> {fp8.path = "result", fp8.kind = "output"}) {
  // expected-error @+1 {{'stablehlo.custom_call' op has the target 'xla_ffi_python_cpu_callback': a compiled step calls no Python, so expected no jax.debug.print, jax.debug.callback, jax.pure_callback or jax.experimental.io_callback}}
  stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) {has_side_effect = true} : (tensor<f32>) -> ()
  return %x : tensor<f32>
}

// -----

// What JAX says of partitioning it is no reason to refuse it.
func.func @main(%arg0: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{'stablehlo.custom_call' op has the target 'lapack_sgeqrf_ffi', which does not run here: expected only annotations of sharding; see docs/StableHLOSubset.md}}
  %0:2 = stablehlo.custom_call @lapack_sgeqrf_ffi(%arg0) {mhlo.backend_config = {}, sdy.sharding_rule = #sdy.op_sharding_rule<([..., i, j])->([..., i, j], [..., k]) {i=4, j=4, k=4}>} : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>)
  return %0#0 : tensor<4x4xf32>
}

// -----

func.func public @main(%x: f32 {fp8.path = "x", fp8.role = "frozen"}) -> (f32 {fp8.path = "result", fp8.kind = "output"}) {
  // expected-error @+1 {{'arith.addf' is not accepted after the import: expected stablehlo, chlo and fp8 ops; see docs/StableHLOSubset.md}}
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}

// -----

// expected-error @+1 {{expected attribute 'fp8.role' to be state, frozen, batch, key or constant but got "weight"}}
func.func public @main(%x: tensor<f32> {fp8.path = "x", fp8.role = "weight"}) -> (tensor<f32> {fp8.path = "result", fp8.kind = "output"}) {
  return %x : tensor<f32>
}

// -----

// expected-error @+1 {{expected unique argument paths but 'x' is there twice}}
func.func public @main(%x: tensor<f32> {fp8.path = "x", fp8.role = "frozen"}, %y: tensor<f32> {fp8.path = "x", fp8.role = "frozen"}) -> (tensor<f32> {fp8.path = "result", fp8.kind = "output"}) {
  return %x : tensor<f32>
}

// -----

// expected-error @+1 {{expected a result that replaces the state 'x'}}
func.func public @main(%x: tensor<f32> {fp8.path = "x", fp8.role = "state", fp8.kind = "other"}) -> (tensor<f32> {fp8.path = "result", fp8.kind = "output"}) {
  return %x : tensor<f32>
}

// -----

// expected-error @+1 {{expected result 'result' to replace a state argument but got 'y'}}
func.func public @main(%x: tensor<f32> {fp8.path = "x", fp8.role = "state", fp8.kind = "other"}) -> (tensor<f32> {fp8.path = "result", fp8.state = "y"}) {
  return %x : tensor<f32>
}

// -----

// expected-error @below {{expected argument 0 to be a statically shaped tensor of boolean, integer or floating-point values but got 'tensor<2xcomplex<f32>>'}}
func.func @main(%arg0: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
  return %arg0 : tensor<2xcomplex<f32>>
}

// -----

// expected-error @below {{expected argument 0 to be a statically shaped tensor of boolean, integer or floating-point values but got 'tensor<?xf32>'}}
func.func @main(%arg0: tensor<?xf32>) -> tensor<?xf32> {
  return %arg0 : tensor<?xf32>
}

// -----

func.func @main(%x: tensor<4xf32> {fp8.path = "x", fp8.role = "frozen"}) -> (tensor<4xf32> {fp8.path = "y", fp8.kind = "output"}) {
  // expected-error @+1 {{'stablehlo.all_gather' op needs a distributed run, which is not supported yet}}
  %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<8xf32>
  return %x : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32> {fp8.path = "x", fp8.role = "frozen"}) -> (tensor<4xf32> {fp8.path = "y", fp8.kind = "output"}) {
  // expected-error @+1 {{'stablehlo.all_to_all' op needs a distributed run, which is not supported yet}}
  %0 = "stablehlo.all_to_all"(%x) <{split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32> {fp8.path = "x", fp8.role = "frozen"}) -> (tensor<4xf32> {fp8.path = "y", fp8.kind = "output"}) {
  // expected-error @+1 {{'stablehlo.collective_permute' op needs a distributed run, which is not supported yet}}
  %0 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32> {fp8.path = "x", fp8.role = "frozen"}) -> (tensor<4xf32> {fp8.path = "y", fp8.kind = "output"}) {
  // expected-error @+1 {{'stablehlo.collective_broadcast' op needs a distributed run, which is not supported yet}}
  %0 = "stablehlo.collective_broadcast"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32> {fp8.path = "x", fp8.role = "frozen"}) -> (tensor<4xf32> {fp8.path = "y", fp8.kind = "output"}) {
  // expected-error @+1 {{'stablehlo.partition_id' op needs a distributed run, which is not supported yet}}
  %0 = stablehlo.partition_id : tensor<ui32>
  return %x : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32> {fp8.path = "x", fp8.role = "frozen"}) -> (tensor<4xf32> {fp8.path = "y", fp8.kind = "output"}) {
  // expected-error @+1 {{'stablehlo.replica_id' op needs a distributed run, which is not supported yet}}
  %0 = stablehlo.replica_id : tensor<ui32>
  return %x : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32> {fp8.path = "x", fp8.role = "frozen"}) -> (tensor<4xf32> {fp8.path = "y", fp8.kind = "output"}) {
  // expected-error @+1 {{'stablehlo.all_reduce' op needs a distributed run, which is not supported yet}}
  %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32> {fp8.path = "x", fp8.role = "frozen"}) -> (tensor<4xf32> {fp8.path = "y", fp8.kind = "output"}) {
  // expected-error @+1 {{'stablehlo.reduce_scatter' op needs a distributed run, which is not supported yet}}
  %0 = "stablehlo.reduce_scatter"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<2xf32>
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{expected attribute 'fp8.kind' to be parameter, moment1, moment2, gradient, average, step or other but got "loss"}}
func.func public @main(%x: tensor<f32> {fp8.path = "x", fp8.role = "state", fp8.kind = "loss"}) -> (tensor<f32> {fp8.path = "result", fp8.state = "x"}) {
  return %x : tensor<f32>
}

// -----

// expected-error @+1 {{expected attribute 'fp8.kind' to be state, loss, metric, output or one of trace_* but got "moment1"}}
func.func public @main(%x: tensor<f32> {fp8.path = "x", fp8.role = "frozen"}) -> (tensor<f32> {fp8.path = "result", fp8.kind = "moment1"}) {
  return %x : tensor<f32>
}

// -----

// expected-error @+1 {{expected state result 0 of 'main' to have the attribute 'fp8.state'; run fp8-analyze-signature first}}
func.func public @main(%x: tensor<f32> {fp8.path = "x", fp8.role = "state", fp8.kind = "parameter"}) -> (tensor<f32> {fp8.path = "result", fp8.kind = "state"}) {
  return %x : tensor<f32>
}

// -----

func.func public @main(%x: tensor<2xf32> {fp8.path = "x", fp8.role = "frozen"}) -> (tensor<2xf32> {fp8.path = "result", fp8.kind = "output"}) {
  // expected-error @+1 {{'stablehlo.constant' op has its value in a resource, which is not read here: expected dense elements, as JAX prints them unless a limit of large elements is set; see docs/StableHLOSubset.md}}
  %c = stablehlo.constant dense_resource<c> : tensor<2xf32>
  %0 = stablehlo.add %x, %c : tensor<2xf32>
  return %0 : tensor<2xf32>
}

{-#
  dialect_resources: {
    builtin: {
      c: "0x040000000000803F00000040"
    }
  }
#-}
