// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide=emit-remarks --verify-diagnostics --split-input-file -o /dev/null

// The distances to the entries of a codebook only choose one: no gradient passes
// through them, and FP8 would change the choice. What reads the entry is a layer.

func.func public @main(
    %code: tensor<64x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['code']"},
    %w: tensor<16x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['w']"},
    %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %norms: tensor<64xf32> {fp8.role = "batch", fp8.path = "norms"},
    %z: tensor<32x16xf32> {fp8.role = "batch", fp8.path = "z"})
    -> (tensor<64x16xf32> {fp8.state = "p['code']"}, tensor<16x16xf32> {fp8.state = "p['w']"}, tensor<f32> {fp8.kind = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %largest = stablehlo.constant dense<0x7F800000> : tensor<f32>
  %first = stablehlo.constant dense<0> : tensor<i32>
  // expected-remark @+1 {{high_precision: other of p['code'] (batch 1, M 32, N 64, K 16; bf16 x bf16): not a linear layer: its result only chooses indices}}
  %products = stablehlo.dot_general %z, %code, contracting_dims = [1] x [1] : (tensor<32x16xf32>, tensor<64x16xf32>) -> tensor<32x64xf32>
  %b = stablehlo.broadcast_in_dim %norms, dims = [1] : (tensor<64xf32>) -> tensor<32x64xf32>
  %distances = stablehlo.subtract %b, %products : tensor<32x64xf32>
  %iota = stablehlo.iota dim = 1 : tensor<32x64xi32>
  %nearest:2 = stablehlo.reduce(%distances init: %largest), (%iota init: %first) across dimensions = [1]
      : (tensor<32x64xf32>, tensor<32x64xi32>, tensor<f32>, tensor<i32>) -> (tensor<32xf32>, tensor<32xi32>)
    reducer(%a: tensor<f32>, %c: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
      %less = stablehlo.compare LT, %a, %c, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %value = stablehlo.select %less, %a, %c : tensor<i1>, tensor<f32>
      %index = stablehlo.select %less, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %value, %index : tensor<f32>, tensor<i32>
    }
  %indices = stablehlo.reshape %nearest#1 : (tensor<32xi32>) -> tensor<32x1xi32>
  %q = "stablehlo.gather"(%code, %indices) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 16>}>
      : (tensor<64x16xf32>, tensor<32x1xi32>) -> tensor<32x16xf32>
  // expected-remark @+1 {{fp8: forward of p['w']}}
  %h = stablehlo.dot_general %q, %w, contracting_dims = [1] x [0] : (tensor<32x16xf32>, tensor<16x16xf32>) -> tensor<32x16xf32>
  // expected-remark @+1 {{high_precision: forward of p['head']}}
  %y = stablehlo.dot_general %h, %head, contracting_dims = [1] x [0] : (tensor<32x16xf32>, tensor<16x8xf32>) -> tensor<32x8xf32>
  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x8xf32>, tensor<f32>) -> tensor<f32>
  return %code, %w, %loss : tensor<64x16xf32>, tensor<16x16xf32>, tensor<f32>
}

// -----

// The scores of a router choose, and scale what was chosen: a layer.

func.func public @main(
    %router: tensor<16x64xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['router']"},
    %w: tensor<16x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['w']"},
    %bias: tensor<64x16xf32> {fp8.role = "frozen", fp8.path = "p['bias']"},
    %z: tensor<32x16xf32> {fp8.role = "batch", fp8.path = "z"})
    -> (tensor<16x64xf32> {fp8.state = "p['router']"}, tensor<16x16xf32> {fp8.state = "p['w']"}, tensor<f32> {fp8.kind = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-remark @+1 {{fp8: forward of p['router'] (batch 1, M 32, N 64, K 16; f8E4M3FN x f8E4M3FN): linear layer}}
  %scores = stablehlo.dot_general %z, %router, contracting_dims = [1] x [0] : (tensor<32x16xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
  %top:2 = chlo.top_k(%scores, k = 1) : tensor<32x64xf32> -> (tensor<32x1xf32>, tensor<32x1xi32>)
  %chosen = "stablehlo.gather"(%bias, %top#1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 16>}>
      : (tensor<64x16xf32>, tensor<32x1xi32>) -> tensor<32x16xf32>
  %score = stablehlo.reshape %top#0 : (tensor<32x1xf32>) -> tensor<32xf32>
  %b = stablehlo.broadcast_in_dim %score, dims = [0] : (tensor<32xf32>) -> tensor<32x16xf32>
  %scaled = stablehlo.multiply %chosen, %b : tensor<32x16xf32>
  // expected-remark @+1 {{high_precision: forward of p['w']}}
  %y = stablehlo.dot_general %scaled, %w, contracting_dims = [1] x [0] : (tensor<32x16xf32>, tensor<16x16xf32>) -> tensor<32x16xf32>
  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x16xf32>, tensor<f32>) -> tensor<f32>
  return %router, %w, %loss : tensor<16x64xf32>, tensor<16x16xf32>, tensor<f32>
}
