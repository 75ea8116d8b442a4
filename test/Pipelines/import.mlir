// RUN: fp8-opt %fp8_src_root/test/Dialect/StableHLO/Transforms/fp8-analyze-signature/Inputs/loss-first.mlir --fp8-import | FileCheck %s
// RUN: fp8-opt %fp8_src_root/test/Dialect/StableHLO/Transforms/fp8-analyze-signature/Inputs/loss-first.mlir --fp8-import | fp8-opt --fp8-import | FileCheck %s
// RUN: fp8-opt %fp8_src_root/test/Dialect/StableHLO/Transforms/fp8-analyze-signature/Inputs/eval.mlir --fp8-import=kind=function | FileCheck %s --check-prefix=EVAL
// RUN: not fp8-opt %s --fp8-import=kind=foo 2>&1 | FileCheck %s --check-prefix=KIND

// KIND: Cannot find option named 'foo'

// The whole stage, and the stage again on its own result: hints of JAX are gone
// and what was found stands in their place.
// CHECK-NOT: mhlo.num_partitions
// CHECK: func.func public @main(
// CHECK-NOT: tf.aliasing_output
// CHECK-SAME: %arg0: tensor<11xf32> {fp8.kind = "parameter", fp8.path = "p['b']", fp8.role = "state"}
// CHECK-SAME: {fp8.kind = "moment1", fp8.parameter = "p['b']", fp8.path = "o[1][0].mu['b']", fp8.role = "state"}
// CHECK-SAME: {fp8.kind = "moment2", fp8.parameter = "p['b']", fp8.path = "o[1][0].nu['b']", fp8.role = "state"}
// CHECK-SAME: {fp8.kind = "step", fp8.path = "o[1][2].count", fp8.role = "state"}
// CHECK-SAME: {fp8.path = "tok", fp8.role = "batch", fp8.vocabulary = 11 : i64}
// CHECK-SAME: -> (tensor<f32> {fp8.kind = "loss", fp8.path = "result[0]"}
// CHECK-SAME: {fp8.path = "result[1][1][0].mu['b']", fp8.state = "o[1][0].mu['b']"}
// CHECK-SAME: {fp8.path = "result[2]['b']", fp8.state = "p['b']"}
// CHECK-NOT: jax.result_info
// CHECK-NOT: call @
// CHECK-COUNT-3: stablehlo.dot_general
// CHECK-NOT: stablehlo.dot_general
// CHECK-NOT: func.func

// EVAL: func.func public @main(
// EVAL-SAME: {fp8.path = "p['b']", fp8.role = "frozen"}
// EVAL-SAME: -> (tensor<f32> {fp8.kind = "loss", fp8.path = "result"})
