// RUN: fp8-opt %s --fp8-check-verdicts --verify-diagnostics --split-input-file

// expected-error @+1 {{expected #fp8.recipe in 'fp8.recipe' but got none; run fp8-resolve-recipe first}}
module {}

// -----

module attributes {fp8.recipe = #fp8.recipe<{name = mine}>} {
  func.func @main(%x: tensor<4x32xf32>, %w: tensor<32x16xf32>) -> tensor<4x16xf32> {
    // expected-error @+1 {{'stablehlo.dot_general' op expected #fp8.verdict in 'fp8.verdict' but got none; run fp8-decide first}}
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    return %0 : tensor<4x16xf32>
  }
}
