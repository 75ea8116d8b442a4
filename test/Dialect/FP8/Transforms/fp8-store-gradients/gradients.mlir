// RUN: fp8-opt %s --fp8-store-gradients | FileCheck %s

// Wgrad dots are known by their verdicts. The sum of two stored gradients is
// stored too; what a rule keeps in high precision stays.
// CHECK-LABEL: @sum
// CHECK: %[[A:.*]] = stablehlo.dot_general
// CHECK: %[[A16:.*]] = fp8.round %[[A]] rounding = nearest_even : tensor<32x16xf32> -> tensor<32x16xbf16>
// CHECK: %[[A32:.*]] = stablehlo.convert %[[A16]]
// CHECK: %[[B:.*]] = stablehlo.dot_general
// CHECK: %[[B16:.*]] = fp8.round %[[B]] rounding = nearest_even : tensor<32x16xf32> -> tensor<32x16xbf16>
// CHECK: %[[B32:.*]] = stablehlo.convert %[[B16]]
// CHECK: %[[SUM:.*]] = stablehlo.add %[[A32]], %[[B32]]
// CHECK: fp8.round %[[SUM]] rounding = nearest_even : tensor<32x16xf32> -> tensor<32x16xbf16>
// CHECK-LABEL: @kept
// CHECK-NOT: fp8.round
module attributes {fp8.recipe = #fp8.recipe<{name = mine, gradients = {format = bf16}}>} {
  func.func @sum(%x: tensor<4x32xf32>, %dy: tensor<4x16xf32>, %w: tensor<32x16xf32>) -> tensor<32x16xf32> {
    %0 = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0] {fp8.verdict = #fp8.verdict<high_precision, role = wgrad, category = linear, layer = "p['w']", lhs = activation, rhs = gradient, batch = 1, m = 32, n = 16, k = 4, lhs_format = f32, rhs_format = f32, reason = "no key">} : (tensor<4x32xf32>, tensor<4x16xf32>) -> tensor<32x16xf32>
    %1 = stablehlo.cosine %dy : tensor<4x16xf32>
    %2 = stablehlo.dot_general %x, %1, contracting_dims = [0] x [0] {fp8.verdict = #fp8.verdict<high_precision, role = wgrad, category = linear, layer = "p['w']", lhs = activation, rhs = gradient, batch = 1, m = 32, n = 16, k = 4, lhs_format = f32, rhs_format = f32, reason = "no key">} : (tensor<4x32xf32>, tensor<4x16xf32>) -> tensor<32x16xf32>
    %3 = stablehlo.add %0, %2 : tensor<32x16xf32>
    %4 = stablehlo.subtract %w, %3 : tensor<32x16xf32>
    return %4 : tensor<32x16xf32>
  }
  func.func @kept(%x: tensor<4x32xf32>, %dy: tensor<4x16xf32>, %w: tensor<32x16xf32>) -> tensor<32x16xf32> {
    %0 = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0] {fp8.verdict = #fp8.verdict<high_precision, role = wgrad, category = linear, layer = "p['w']", lhs = activation, rhs = gradient, batch = 1, m = 32, n = 16, k = 4, lhs_format = f32, rhs_format = f32, rule = 1, reason = "linear layer">} : (tensor<4x32xf32>, tensor<4x16xf32>) -> tensor<32x16xf32>
    %1 = stablehlo.subtract %w, %0 : tensor<32x16xf32>
    return %1 : tensor<32x16xf32>
  }
}
