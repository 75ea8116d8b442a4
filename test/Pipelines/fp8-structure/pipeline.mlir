// RUN: fp8-opt %s --fp8-structure | FileCheck %s
// RUN: fp8-opt %s --fp8-structure --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s --check-prefix=PASSES

// PASSES: fp8-fold-transposes
// PASSES: convert-fp8-to-linalg
// PASSES: convert-stablehlo-to-linalg
// PASSES: fp8-verify-structured

// A linear layer in FP8: names survive, the scales follow the dot.
// CHECK: func.func @main(%{{.*}}: tensor<16x32xf32> {fp8.path = "x"}
// CHECK-NOT: stablehlo.
// CHECK-NOT: fp8.dot_general
// CHECK: ins(%{{.*}}, %{{.*}} : tensor<16x32xf8E4M3FN>, tensor<32x8xf8E4M3FN>)
func.func @main(%x: tensor<16x32xf32> {fp8.path = "x"}, %w: tensor<32x8xf32> {fp8.path = "w"}) -> (tensor<16x8xf32> {fp8.path = "y"}) {
  %ax = fp8.amax %x : tensor<16x32xf32> -> tensor<f32>
  %sx, %qx = fp8.compute_scale %ax {rule = #fp8.scale_rule<exact>, margin = 0, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
  %xs = fp8.quantize %x, %sx, %qx rounding = nearest_even, overflow = saturate : tensor<16x32xf32> -> !fp8.scaled<16x32xf8E4M3FN, tile = [*, *], scale = f32>
  %aw = fp8.amax %w : tensor<32x8xf32> -> tensor<f32>
  %sw, %qw = fp8.compute_scale %aw {rule = #fp8.scale_rule<exact>, margin = 0, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
  %ws = fp8.quantize %w, %sw, %qw rounding = nearest_even, overflow = saturate : tensor<32x8xf32> -> !fp8.scaled<32x8xf8E4M3FN, tile = [*, *], scale = f32>
  %0 = fp8.dot_general %xs, %ws, batching_dims = [] x [], contracting_dims = [1] x [0] {accumulator = f32}
    : (!fp8.scaled<16x32xf8E4M3FN, tile = [*, *], scale = f32>, !fp8.scaled<32x8xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<16x8xf32>
  %1 = stablehlo.logistic %0 : tensor<16x8xf32>
  return %1 : tensor<16x8xf32>
}
