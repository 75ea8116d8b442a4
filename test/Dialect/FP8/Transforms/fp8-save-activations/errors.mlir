// RUN: fp8-opt %s --fp8-save-activations --verify-diagnostics --split-input-file

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

module attributes {fp8.recipe = #fp8.recipe<{name = mine, compute = {saved = bf16}}>} {
  func.func @main(%x: !fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>,
                  %w: !fp8.scaled<32x16xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<4x16xf32> {
    // expected-error @+1 {{expected activations to be saved before dots are quantized; run fp8-quantize-dots later}}
    %0 = fp8.dot_general %x, %w, contracting_dims = [1] x [0] {accumulator = f32, fp8.verdict = #fp8.verdict<fp8, role = forward, category = linear, layer = "p['w']", lhs = activation, rhs = weight, batch = 1, m = 4, n = 16, k = 32, lhs_format = f8E4M3FN, rhs_format = f8E4M3FN, lhs_tile = tensor, rhs_tile = tensor, reason = "linear layer">}
        : (!fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>, !fp8.scaled<32x16xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<4x16xf32>
    return %0 : tensor<4x16xf32>
  }
}
