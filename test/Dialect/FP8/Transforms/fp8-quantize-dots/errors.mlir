// RUN: fp8-opt %s --fp8-quantize-dots --verify-diagnostics --split-input-file

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

// -----

module attributes {fp8.recipe = #fp8.recipe<{name = mine}>} {
  func.func @main(%x: tensor<4x32xf32>, %w: tensor<32x16xf32>) -> tensor<4x16xf32> {
    // expected-error @+1 {{expected recipe 'mine' to have the key 'forward', since the verdict of this dot is fp8}}
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {fp8.verdict = #fp8.verdict<fp8, role = forward, category = linear, layer = "p['w']", lhs = activation, rhs = weight, batch = 1, m = 4, n = 16, k = 32, lhs_format = f8E4M3FN, rhs_format = f8E4M3FN, lhs_tile = tensor, rhs_tile = tensor, reason = "linear layer">} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    return %0 : tensor<4x16xf32>
  }
}
