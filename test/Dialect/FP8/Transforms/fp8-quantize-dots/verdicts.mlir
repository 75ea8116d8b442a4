// RUN: fp8-opt %s --fp8-quantize-dots | FileCheck %s

// The verdict decides, also one written by hand: the dot becomes FP8 though no
// argument is marked as a parameter. It stays on the dot, for the report.
// CHECK: fp8.quantize %arg0
// CHECK: fp8.quantize %arg1
// CHECK: fp8.dot_general {{.*}} {accumulator = f32, fp8.verdict = #fp8.verdict<fp8, role = forward,
// CHECK: stablehlo.dot_general %{{.*}}, %{{.*}}, contracting_dims = [1] x [1] {fp8.verdict = #fp8.verdict<high_precision,
module attributes {fp8.recipe = #fp8.recipe<{name = mine, forward = {activation = {format = f8E4M3FN}, weight = {format = f8E4M3FN}}}>} {
  func.func @main(%x: tensor<4x32xf32>, %w: tensor<32x16xf32>) -> tensor<4x4xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {fp8.verdict = #fp8.verdict<fp8, role = forward, category = linear, layer = "p['w']", lhs = activation, rhs = weight, batch = 1, m = 4, n = 16, k = 32, lhs_format = f8E4M3FN, rhs_format = f8E4M3FN, lhs_tile = tensor, rhs_tile = tensor, reason = "linear layer">} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [1]
        {fp8.verdict = #fp8.verdict<high_precision, role = other, category = other, batch = 1, m = 4, n = 4, k = 16, lhs_format = f32, rhs_format = f32, reason = "no layer">}
        : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x4xf32>
    return %1 : tensor<4x4xf32>
  }
}
