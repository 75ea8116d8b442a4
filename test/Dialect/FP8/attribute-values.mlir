// RUN: fp8-opt %s --verify-diagnostics --split-input-file

// A value that an attribute does not accept, for each attribute of the dialect
// that attribute-errors.mlir does not have.

// expected-error @+1 {{expected attribute 'fp8.state' to be a string but got 1 : i64}}
func.func private @f(%x: tensor<8xf32> {fp8.state = 1 : i64})

// -----

// expected-error @+1 {{expected attribute 'fp8.parameter' to be a string but got unit}}
func.func private @f(%x: tensor<8xf32> {fp8.parameter = unit})

// -----

// expected-error @+1 {{expected attribute 'fp8.zero_init' to be no value but got 1 : i64}}
func.func private @f(%x: tensor<8xf32> {fp8.zero_init = 1 : i64})

// -----

// expected-error @+1 {{expected attribute 'fp8.output' to be no value but got "y"}}
fp8.schedule @f(%x: memref<8xf32> {fp8.output = "y"}) {
  fp8.return
}

// -----

// expected-error @+1 {{expected attribute 'fp8.shard' to be a positive integer but got 0 : i64}}
func.func private @f(%x: tensor<8xf32> {fp8.shard = 0 : i64})

// -----

// expected-error @+1 {{expected attribute 'fp8.slices' to be a positive integer but got "two"}}
func.func private @f(%x: tensor<8xf32> {fp8.slices = "two"})

// -----

// expected-error @+1 {{expected attribute 'fp8.whole_reason' to be a string but got unit}}
func.func private @f(%x: tensor<8xf32> {fp8.whole_reason = unit})

// -----

// expected-error @+1 {{expected attribute 'fp8.state_verdict' to be a #fp8.state_verdict but got "f32"}}
func.func private @f(%x: tensor<8xf32> {fp8.state_verdict = "f32"})

// -----

// expected-error @+1 {{expected attribute 'fp8.node' to be an integer that is not negative but got -1 : i64}}
func.func private @f(%x: tensor<8xf32> {fp8.node = -1 : i64})

// -----

// expected-error @+1 {{expected attribute 'fp8.after' to be an array of i64 but got [1]}}
func.func private @f(%x: tensor<8xf32> {fp8.after = [1]})

// -----

// expected-error @+1 {{expected attribute 'fp8.trains' to be no value but got true}}
func.func private @f() -> (tensor<8xf32> {fp8.trains = true})

// -----

// expected-error @+1 {{expected attribute 'fp8.entry' to be "store" or "load" but got unit}}
func.func private @f() attributes {fp8.entry = unit}

// -----

// expected-error @+1 {{expected attribute 'fp8.recomputed' to be no value but got 1 : i64}}
memref.global "private" @g : memref<8xf32> {fp8.recomputed = 1 : i64}

// -----

// expected-error @+1 {{expected attribute 'fp8.tensors' to be a #fp8.dot_tensors but got "x"}}
memref.global "private" @g : memref<8xf32> {fp8.tensors = "x"}

// -----

// expected-error @+1 {{expected attribute 'fp8.gated_units' to be an array of dictionaries but got {}}
func.func private @f() attributes {fp8.gated_units = {}}

// -----

// expected-error @+1 {{expected attribute 'fp8.recipe' to be a #fp8.recipe but got "fp8"}}
module attributes {fp8.recipe = "fp8"} {}

// -----

// expected-error @+1 {{expected attribute 'fp8.data_parallel' to be no value but got true}}
module attributes {fp8.data_parallel = true} {}

// -----

// expected-error @+1 {{expected attribute 'fp8.zero' to be 1 but got 0 : i64}}
module attributes {fp8.zero = 0 : i64} {}

// -----

// expected-error @+1 {{expected attribute 'fp8.rows' to be an array of "none", "free" and "contracted" but got "free"}}
memref.global "private" @g : memref<8xf32> {fp8.rows = "free"}

// -----

// expected-error @+1 {{expected attribute 'fp8.wire_reason' to be a string but got 1 : i64}}
memref.global "private" @g : memref<8xf32> {fp8.wire_reason = 1 : i64}

// -----

// expected-error @+1 {{expected attribute 'fp8.verdict' to be a #fp8.verdict but got "fp8"}}
memref.global "private" @g : memref<8xf32> {fp8.verdict = "fp8"}

// -----

// expected-error @+1 {{expected attribute 'fp8.softmax_verdict' to be a #fp8.softmax_verdict but got "tiled"}}
memref.global "private" @g : memref<8xf32> {fp8.softmax_verdict = "tiled"}

// -----

// expected-error @+1 {{expected attribute 'fp8.promote_every' to be a positive integer but got 0 : i64}}
memref.global "private" @g : memref<8xf32> {fp8.promote_every = 0 : i64}

// -----

// expected-error @+1 {{expected attribute 'fp8.irregular' to be no value but got true}}
memref.global "private" @g : memref<8xf32> {fp8.irregular = true}

// -----

// expected-error @+1 {{expected attribute 'fp8.recompute' to be no value but got true}}
memref.global "private" @g : memref<8xf32> {fp8.recompute = true}

// -----

// expected-error @+1 {{expected attribute 'fp8.kept' to be no value but got true}}
memref.global "private" @g : memref<8xf32> {fp8.kept = true}

// -----

// expected-error @+1 {{expected attribute 'fp8.sweep' to be an integer that is not negative but got -1 : i64}}
memref.global "private" @g : memref<8xf32> {fp8.sweep = -1 : i64}

// -----

// expected-error @+1 {{expected attribute 'fp8.number' to be an integer that is not negative but got -1 : i64}}
memref.global "private" @g : memref<8xf32> {fp8.number = -1 : i64}

// -----

// expected-error @+1 {{expected attribute 'fp8.target' to be a #fp8.cpu_target or a #fp8.gpu_target but got "native"}}
module attributes {fp8.target = "native"} {}

// -----

// expected-error @+1 {{expected attribute 'fp8.scratch_bytes' to be an integer that is not negative but got -1 : i64}}
func.func private @f() attributes {fp8.scratch_bytes = -1 : i64}

// -----

// expected-error @+1 {{expected attribute 'fp8.task' to be no value but got true}}
func.func private @f() attributes {fp8.task = true}

// -----

// expected-error @+1 {{expected attribute 'fp8.gpu_launch' to be a #fp8.gpu_launch but got "grid"}}
func.func private @f() attributes {fp8.gpu_launch = "grid"}

// -----

// expected-error @+1 {{expected attribute 'fp8.dot_choices' to be an array of dictionaries but got "dots"}}
module attributes {fp8.dot_choices = "dots"} {}

// -----

// expected-error @+1 {{expected attribute 'fp8.device_control' to be no value but got true}}
func.func private @f() attributes {fp8.device_control = true}

// -----

func.func @f(%n: index) {
  // expected-error @+1 {{expected attribute 'fp8.device_loop' to be no value but got true}}
  scf.for %i = %n to %n step %n {
  } {fp8.device_loop = true}
  return
}

// -----

// expected-error @+1 {{expected attribute 'fp8.loops' to be a positive integer but got 0 : i64}}
module attributes {fp8.loops = 0 : i64} {}

// -----

// expected-error @+1 {{expected attribute 'fp8.sets' to be a positive integer but got 0 : i64}}
module attributes {fp8.sets = 0 : i64} {}

// -----

// expected-error @+1 {{expected attribute 'fp8.graph' to be the numbers of edges, nodes and path in a dictionary but got []}}
func.func private @f() attributes {fp8.graph = []}

// -----

// expected-error @+1 {{expected attribute 'fp8.entry' to be "store" or "load" but got "nonsense"}}
func.func private @f() attributes {fp8.entry = "nonsense"}

// -----

// expected-error @+1 {{expected attribute 'fp8.gated_units' to be an array of dictionaries but got ["x"]}}
func.func private @f() attributes {fp8.gated_units = ["x"]}

// -----

// expected-error @+1 {{expected attribute 'fp8.zero' to be 1 but got 99 : i64}}
module attributes {fp8.zero = 99 : i64} {}

// -----

// expected-error @+1 {{expected attribute 'fp8.rows' to be an array of "none", "free" and "contracted" but got ["zork"]}}
memref.global "private" @g : memref<8xf32> {fp8.rows = ["zork"]}

// -----

// expected-error @+1 {{expected attribute 'fp8.dot_choices' to be an array of dictionaries but got [1]}}
module attributes {fp8.dot_choices = [1]} {}

// -----

// expected-error @+1 {{expected attribute 'fp8.graph' to be the numbers of edges, nodes and path in a dictionary but got {foo = 1 : i64}}}
func.func private @f() attributes {fp8.graph = {foo = 1}}

// -----

// expected-error @+1 {{expected a triple of x86_64 or aarch64 but got 'foo-bar'}}
module attributes {fp8.target = #fp8.cpu_target<triple = "foo-bar", cpu = "znver4", features = "", vector_bits = 512>} {}

// -----

// expected-error @+1 {{expected a CPU that LLVM knows but got 'zz'}}
module attributes {fp8.target = #fp8.cpu_target<triple = "x86_64-unknown-linux-gnu", cpu = "zz", features = "", vector_bits = 512>} {}

// -----

// expected-error @+1 {{expected features of the CPU with '+' or '-' but got '+nope'}}
module attributes {fp8.target = #fp8.cpu_target<triple = "x86_64-unknown-linux-gnu", cpu = "znver4", features = "-avx512bf16,+nope", vector_bits = 512>} {}

// -----

// A message shows no more than a line of the value.
// expected-error @+1 {{23, 24, 25,...}}
func.func private @f(%x: tensor<8xf32> {fp8.path = dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63]> : tensor<64xi32>})
