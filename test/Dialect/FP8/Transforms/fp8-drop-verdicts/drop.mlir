// RUN: fp8-opt %s --fp8-drop-verdicts | FileCheck %s
// RUN: fp8-opt %s --fp8-drop-verdicts --cse | FileCheck %s --check-prefix=CSE
// RUN: fp8-opt %s --cse | FileCheck %s --check-prefix=KEPT

// The recipe and the marks of the import stage stay.
// CHECK: module attributes {fp8.recipe
// CHECK: func.func @main(%{{.*}}: tensor<4x32xf32>, %{{.*}}: tensor<32x16xf32> {fp8.path = "w"}) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
// CHECK-NOT: verdict

// Dots that compute the same are one only without them.
// CSE-COUNT-1: stablehlo.dot_general
// CSE-NOT: stablehlo.dot_general
// KEPT-COUNT-2: stablehlo.dot_general
module attributes {fp8.recipe = #fp8.recipe<{name = mine}>} {
  func.func @main(%x: tensor<4x32xf32>,
                  %w: tensor<32x16xf32> {fp8.path = "w", fp8.state_verdict = #fp8.state_verdict<kind = "parameter", elements = 512, from = f32, to = f32, bytes = 2048, reason = "the recipe stores it as it is">})
      -> (tensor<4x16xf32>, tensor<4x16xf32>) attributes {fp8.gated_units = []} {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {fp8.verdict = #fp8.verdict<fp8, role = forward, category = linear, layer = "p['w']", lhs = activation, rhs = weight, batch = 1, m = 4, n = 16, k = 32, lhs_format = f8E4M3FN, rhs_format = f8E4M3FN, lhs_tile = tensor, rhs_tile = tensor, reason = "linear layer">} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {fp8.verdict = #fp8.verdict<fp8, role = forward, category = linear, layer = "p['w']", lhs = activation, rhs = weight, batch = 1, m = 4, n = 16, k = 32, lhs_format = f8E4M3FN, rhs_format = f8E4M3FN, lhs_tile = tensor, rhs_tile = tensor, recomputed = true, reason = "linear layer">, fp8.softmax_verdict = #fp8.softmax_verdict<stored, batch = 1, queries = 4, keys = 16, reason = "">} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    return %0, %1 : tensor<4x16xf32>, tensor<4x16xf32>
  }
}
