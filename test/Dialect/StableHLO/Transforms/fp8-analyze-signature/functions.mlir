// RUN: fp8-opt %s --fp8-analyze-signature --split-input-file | FileCheck %s

// No names anywhere; nothing trains, so that an elementwise result of an
// argument's type is no state.
// CHECK: %{{.*}}: tensor<4xf32> {fp8.path = "arg0", fp8.role = "frozen"}
// CHECK-SAME: (tensor<4xf32> {fp8.kind = "output", fp8.path = "result0"})
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Equal names are told apart.
// CHECK: fp8.path = "x", fp8.role = "frozen"
// CHECK-SAME: fp8.path = "x#2", fp8.role = "frozen"
func.func public @main(%x: tensor<4xf32> loc("x"), %y: tensor<4xf32> loc("x")) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %y : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A key is never batch.
// CHECK: fp8.path = "key", fp8.role = "key"
func.func public @main(%key: tensor<2xui32> loc("key")) -> tensor<2xui32> {
  %0 = stablehlo.xor %key, %key : tensor<2xui32>
  return %0 : tensor<2xui32>
}

// -----

// A residual block with an auxiliary loss adds to its input as an optimizer does
// to weights, but what it adds is no gradient: no step.
// CHECK: %{{.*}}: tensor<8x16xf32> {fp8.path = "arg0", fp8.role = "frozen"}
// CHECK-SAME: (tensor<8x16xf32> {fp8.kind = "output", fp8.path = "result0"}
func.func public @main(%x: tensor<8x16xf32>, %w1: tensor<16x16xf32>, %w2: tensor<16x16xf32>) -> (tensor<8x16xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %h = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %a = stablehlo.tanh %h : tensor<8x16xf32>
  %y = stablehlo.dot_general %a, %w2, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %out = stablehlo.add %x, %y : tensor<8x16xf32>
  %square = stablehlo.multiply %h, %h : tensor<8x16xf32>
  %aux = stablehlo.reduce(%square init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<f32>
  return %out, %aux : tensor<8x16xf32>, tensor<f32>
}

// -----

// Two numbers are a key only if bits are drawn from them.
// CHECK: fp8.path = "arg0", fp8.role = "frozen"
// CHECK-SAME: fp8.path = "arg1", fp8.role = "batch"
func.func public @main(%table: tensor<11x4xf32>, %rows: tensor<2xui32>) -> tensor<2x4xf32> {
  %0 = stablehlo.reshape %rows : (tensor<2xui32>) -> tensor<2x1xui32>
  %1 = "stablehlo.gather"(%table, %0) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<11x4xf32>, tensor<2x1xui32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// -----

// The loss of an evaluation is the scalar named so, and no part of it.
// CHECK: fp8.path = "w", fp8.role = "frozen"
// CHECK-SAME: (tensor<f32> {fp8.kind = "metric", fp8.path = "accuracy"},
// CHECK-SAME: tensor<f32> {fp8.kind = "metric", fp8.path = "parts['loss']"},
// CHECK-SAME: tensor<1xf32> {fp8.kind = "loss", fp8.path = "loss"})
func.func public @main(%w: tensor<f32> loc("w")) -> (tensor<f32> {jax.result_info = "accuracy"}, tensor<f32> {jax.result_info = "parts['loss']"}, tensor<1xf32> {jax.result_info = "loss"}) {
  %0 = stablehlo.exponential %w : tensor<f32>
  %1 = stablehlo.negate %w : tensor<f32>
  %2 = stablehlo.reshape %0 : (tensor<f32>) -> tensor<1xf32>
  return %0, %1, %2 : tensor<f32>, tensor<f32>, tensor<1xf32>
}
