// RUN: fp8-opt %s --verify-diagnostics --split-input-file

// What stays on functions, arguments and results is checked.

// expected-error @+1 {{expected attribute 'fp8.role' to be state, frozen, batch, key or constant but got "stat"}}
func.func private @f(%x: tensor<8xf32> {fp8.role = "stat"})

// -----

// expected-error @+1 {{expected attribute 'fp8.kind' to be parameter, moment1, moment2, gradient, average, step or other but got "weights"}}
func.func private @f(%x: tensor<8xf32> {fp8.kind = "weights"})

// -----

// expected-error @+1 {{expected attribute 'fp8.kind' to be parameter, moment1, moment2, gradient, average, step or other but got "loss"}}
func.func private @f(%x: tensor<8xf32> {fp8.kind = "loss"})

// -----

// expected-error @+1 {{expected attribute 'fp8.kind' to be state, loss, metric, output or one of trace_* but got "moment1"}}
func.func private @f() -> (tensor<8xf32> {fp8.kind = "moment1"})

// -----

// The results of a step are arguments of its schedule.
fp8.schedule @step(%m: memref<8xf32> {fp8.kind = "moment1"}, %loss: memref<f32> {fp8.kind = "loss"}) {
  fp8.return
}

// -----

// expected-error @+1 {{expected attribute 'fp8.kind' to be parameter, moment1, moment2, gradient, average, step or other, or state, loss, metric, output or one of trace_* but got "weights"}}
fp8.schedule @step(%m: memref<8xf32> {fp8.kind = "weights"}) {
  fp8.return
}

// -----

// expected-error @+1 {{expected attribute 'fp8.path' to be a string but got 7 : i64}}
func.func private @f(%x: tensor<8xf32> {fp8.path = 7 : i64})

// -----

// expected-error @+1 {{expected no attribute 'fp8.role' on results}}
func.func private @f() -> (tensor<8xf32> {fp8.role = "state"})

// -----

// expected-error @+1 {{expected no attribute 'fp8.path' on functions}}
func.func private @f() attributes {fp8.path = "x"}

// -----

// expected-error @+1 {{expected an attribute that the fp8 dialect has on arguments (fp8.path, fp8.role, fp8.kind, }}
func.func private @f(%x: tensor<8xf32> {fp8.rolle = "state"})

// -----

// expected-error @+1 {{expected attribute 'fp8.tasks' to be a positive integer but got 0 : i64}}
func.func private @f() attributes {fp8.tasks = 0 : i64}

// -----

// expected-error @+1 {{expected attribute 'fp8.vocabulary' to be a positive integer but got "many"}}
func.func private @f(%x: tensor<8xi32> {fp8.vocabulary = "many"})

// -----

func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{expected 'fp8.task_dims' inside a kernel}}
  %0 = arith.negf %x {fp8.task_dims = array<i64>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

fp8.kernel @k(update %x: tensor<8xf32>) -> tensor<8xf32> domain = [8, 4] {
  // expected-error @+1 {{expected a loop for each of the domain's 2 but got 1}}
  %0 = arith.negf %x {fp8.task_dims = array<i64: 0>} : tensor<8xf32>
  fp8.return %0 : tensor<8xf32>
}

// -----

// An attribute of one kind of op is an error on others.

// expected-error @+1 {{expected no attribute 'fp8.target' on functions}}
func.func private @f() attributes {fp8.target = #fp8.cpu_target<triple = "x86_64-unknown-linux-gnu", cpu = "znver4", features = "", vector_bits = 512>}

// -----

// expected-error @+1 {{expected no attribute 'fp8.data_parallel' on functions}}
func.func private @f() attributes {fp8.data_parallel}

// -----

// expected-error @+1 {{expected no attribute 'fp8.number' on functions}}
func.func private @f() attributes {fp8.number = 5}

// -----

// expected-error @+1 {{expected no attribute 'fp8.tasks' on modules}}
module attributes {fp8.tasks = 1 : i64} {}

// -----

func.func @f() {
  // expected-error @+1 {{expected no attribute 'fp8.device_loop' on operations}}
  %zero = arith.constant {fp8.device_loop} 0 : index
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{expected no attribute 'fp8.graph' on operations}}
  %zero = arith.constant {fp8.graph = {edges = 1, nodes = 2, path = 3}} 0 : index
  return
}

// -----

func.func @f(%n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // expected-error @+1 {{expected no attribute 'fp8.scratch_bytes' on loops}}
  scf.for %i = %zero to %n step %one {
  } {fp8.scratch_bytes = 8}
  return
}

// -----

// expected-error @+1 {{expected no attribute 'fp8.output' but on arguments of a schedule}}
func.func private @f(%x: tensor<8xf32> {fp8.output})
