// RUN: fp8-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expected a payload of f8E4M3FN, f8E5M2, f8E4M3, f8E4M3FNUZ, f8E5M2FNUZ or f16 but got 'f32'}}
func.func private @f(!fp8.scaled<4x4xf32, tile = [*, *], scale = f32>)

// -----

// expected-error@+1 {{expected a tile of rank 2 but got rank 1}}
func.func private @f(!fp8.scaled<4x4xf8E4M3FN, tile = [*], scale = f32>)

// -----

// expected-error@+1 {{expected positive tile extents or * but got 0}}
func.func private @f(!fp8.scaled<4x4xf8E4M3FN, tile = [1, 0], scale = f32>)

// -----

// expected-error@+1 {{expected a scale of f32 or f8E8M0FNU but got 'bf16'}}
func.func private @f(!fp8.scaled<4x4xf8E4M3FN, tile = [1, 1], scale = bf16>)

// -----

// expected-error@+1 {{expected a tile of 32 along one dimension and 1 along the others with f8E8M0FNU scales but got [1, *]}}
func.func private @f(!fp8.scaled<4x64xf8E4M3FN, tile = [1, *], scale = f8E8M0FNU>)

// -----

// expected-error@+1 {{expected a payload of f8E4M3FN or f8E5M2 with f8E8M0FNU scales but got 'f8E4M3FNUZ'}}
func.func private @f(!fp8.scaled<4x64xf8E4M3FNUZ, tile = [1, 32], scale = f8E8M0FNU>)

// -----

func.func @amax(%x: tensor<64x32xf32>) {
  // expected-error@+1 {{expected a result of type 'tensor<64x2xf32>' but got 'tensor<f32>'}}
  %0 = fp8.amax %x tile = [1, 16] : tensor<64x32xf32> -> tensor<f32>
  return
}

// -----

func.func @amax_rank(%x: tensor<64x32xf32>) {
  // expected-error@+1 {{expected a tile of rank 2 but got rank 1}}
  %0 = fp8.amax %x tile = [16] : tensor<64x32xf32> -> tensor<f32>
  return
}

// -----

func.func @e8m0_exact(%x: tensor<64x2xf32>) {
  // expected-error@+1 {{expected rule pow2 or ocp_floor for f8E8M0FNU scales but got exact}}
  %0, %1 = fp8.compute_scale %x {rule = #fp8.scale_rule<exact>, format = f8E4M3FN} : tensor<64x2xf32> -> tensor<64x2xf8E8M0FNU>
  return
}

// -----

func.func @margin(%x: tensor<f32>) {
  // expected-error@+1 {{expected a margin from -64 to 64 but got 100}}
  %0, %1 = fp8.compute_scale %x {rule = #fp8.scale_rule<exact>, margin = 100, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
  return
}

// -----

func.func @scale_shape(%x: tensor<2xf32>) {
  // expected-error@+1 {{expected a scale of the shape of 'tensor<2xf32>' but got 'tensor<f32>'}}
  %0, %1 = fp8.compute_scale %x {rule = #fp8.scale_rule<exact>, format = f8E4M3FN} : tensor<2xf32> -> tensor<f32>
  return
}

// -----

func.func @quantize_shape(%x: tensor<64x32xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{expected the shape of '!fp8.scaled<32x64xf8E4M3FN, tile = [*, *], scale = f32>' but got 'tensor<64x32xf32>'}}
  %0 = fp8.quantize %x, %s, %s rounding = nearest_even, overflow = saturate
      : tensor<64x32xf32> -> !fp8.scaled<32x64xf8E4M3FN, tile = [*, *], scale = f32>
  return
}

// -----

// expected-note@+1 {{prior use here}}
func.func @quantize_scale(%x: tensor<64x32xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{expects different type than prior uses: 'tensor<64x1xf32>' vs 'tensor<f32>'}}
  %0 = fp8.quantize %x, %s, %s rounding = nearest_even, overflow = saturate
      : tensor<64x32xf32> -> !fp8.scaled<64x32xf8E4M3FN, tile = [1, *], scale = f32>
  return
}

// -----

!x = !fp8.scaled<64x256xf8E4M3FN, tile = [1, 128], scale = f32>
func.func @contract_along_rows(%x: !x) {
  // expected-error@+1 {{expected scales that are constant along a contracting dimension in common blocks of a multiple of 32 (or *) but got tiles of 1 and 1 along lhs dimension 0 and rhs dimension 0}}
  %0 = fp8.dot_general %x, %x, contracting_dims = [0] x [0] {accumulator = f32} : (!x, !x) -> tensor<256x256xf32>
  return
}

// -----

!x = !fp8.scaled<64x256xf8E4M3FN, tile = [*, *], scale = f32>
func.func @accumulator(%x: !x) {
  // expected-error@+1 {{expected accumulator f32 but got 'f16'}}
  %0 = fp8.dot_general %x, %x, contracting_dims = [1] x [1] {accumulator = f16} : (!x, !x) -> tensor<64x64xf32>
  return
}

// -----

!x = !fp8.scaled<64x256xf8E4M3FN, tile = [*, *], scale = f32>
func.func @sizes(%x: !x) {
  // expected-error@+1 {{expected contracting dimensions of equal size but got 64 and 256}}
  %0 = fp8.dot_general %x, %x, contracting_dims = [0] x [1] {accumulator = f32} : (!x, !x) -> tensor<256x64xf32>
  return
}

// -----

!x = !fp8.scaled<64x256xf8E4M3FN, tile = [*, *], scale = f32>
func.func @result(%x: !x) {
  // expected-error@+1 {{expected a result of type 'tensor<64x64xf32>' but got 'tensor<64xf32>'}}
  %0 = fp8.dot_general %x, %x, contracting_dims = [1] x [1] {accumulator = f32} : (!x, !x) -> tensor<64xf32>
  return
}

// -----

!x = !fp8.scaled<64x256xf8E4M3FN, tile = [*, *], scale = f32>
func.func @dims(%x: !x) {
  // expected-error@+1 {{expected lhs dimensions below 2 but got 2}}
  %0 = fp8.dot_general %x, %x, contracting_dims = [2] x [1] {accumulator = f32} : (!x, !x) -> tensor<64x64xf32>
  return
}

// -----

!x = !fp8.scaled<64x64xf8E4M3FN, tile = [*, *], scale = f32>
func.func @twice(%x: !x) {
  // expected-error@+1 {{expected distinct lhs dimensions but got 1 twice}}
  %0 = fp8.dot_general %x, %x, batching_dims = [1] x [0], contracting_dims = [1] x [1] {accumulator = f32} : (!x, !x) -> tensor<64xf32>
  return
}

// -----

!x = !fp8.scaled<64x256xf8E4M3FN, tile = [1, 96], scale = f32>
!w = !fp8.scaled<64x256xf8E4M3FN, tile = [1, 80], scale = f32>
func.func @common_blocks(%x: !x, %w: !w) {
  // expected-error@+1 {{in common blocks of a multiple of 32 (or *) but got tiles of 96 and 80 along lhs dimension 1 and rhs dimension 1}}
  %0 = fp8.dot_general %x, %w, contracting_dims = [1] x [1] {accumulator = f32} : (!x, !w) -> tensor<64x64xf32>
  return
}

// -----

!x = !fp8.scaled<64x256xf8E4M3FN, tile = [*, *], scale = f32>
func.func @bits(%x: !x) {
  // expected-error@+1 {{expected 4 to 23 accumulator_bits but got 24}}
  %0 = fp8.dot_general %x, %x, contracting_dims = [1] x [1] {accumulator = f32, accumulator_bits = 24} : (!x, !x) -> tensor<64x64xf32>
  return
}

// -----

!x = !fp8.scaled<64x256xf8E4M3FN, tile = [*, *], scale = f32>
func.func @promote(%x: !x) {
  // expected-error@+1 {{expected promote_every to be a positive multiple of 32 but got 100}}
  %0 = fp8.dot_general %x, %x, contracting_dims = [1] x [1] {accumulator = f32, promote_every = 100} : (!x, !x) -> tensor<64x64xf32>
  return
}

// -----

!x = !fp8.scaled<64x256xf8E4M3FN, tile = [1, 64], scale = f32>
func.func @narrow_blocks(%x: !x) {
  // expected-error@+1 {{expected promote_every to divide the 64 elements between changes of the scales, along a single contracting dimension, with accumulator_bits}}
  %0 = fp8.dot_general %x, %x, contracting_dims = [1] x [1] {accumulator = f32, accumulator_bits = 14, promote_every = 128} : (!x, !x) -> tensor<64x64xf32>
  return
}

// -----

func.func @no_seed(%x: tensor<64x256xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{expected a seed with rounding stochastic}}
  %0 = fp8.quantize %x, %s, %s rounding = stochastic, overflow = saturate
      : tensor<64x256xf32> -> !fp8.scaled<64x256xf8E4M3FN, tile = [*, *], scale = f32>
  return
}

// -----

func.func @seed(%x: tensor<64x256xf32>, %s: tensor<f32>, %seed: tensor<i64>) {
  // expected-error@+1 {{expected a seed and a tensor's number with rounding stochastic only but got rounding nearest_even}}
  %0 = fp8.quantize %x, %s, %s seed = %seed rounding = nearest_even, overflow = saturate
      : tensor<64x256xf32> -> !fp8.scaled<64x256xf8E4M3FN, tile = [*, *], scale = f32>
  return
}

// -----

!x = !fp8.scaled<64x256xf8E4M3FN, tile = [1, 128], scale = f32>
func.func @permutation(%x: !x) {
  // expected-error@+1 {{expected a permutation of 2 dimensions but got [1, 1]}}
  %0 = fp8.transpose %x, [1, 1] : !x -> !x
  return
}

// -----

!x = !fp8.scaled<64x256xf8E4M3FN, tile = [1, 128], scale = f32>
func.func @transposed_tile(%x: !x) {
  // expected-error@+1 {{expected a result of type '!fp8.scaled<256x64xf8E4M3FN, tile = [128, 1], scale = f32>' but got '!fp8.scaled<256x64xf8E4M3FN, tile = [1, 128], scale = f32>'}}
  %0 = fp8.transpose %x, [1, 0] : !x -> !fp8.scaled<256x64xf8E4M3FN, tile = [1, 128], scale = f32>
  return
}

// -----

// Blocks of two rows are no blocks of a row.
!x = !fp8.scaled<64x256xf8E4M3FN, tile = [2, 128], scale = f32>
func.func @reshaped_tile(%x: !x) {
  // expected-error@+1 {{expected a tile that gives every element of '!fp8.scaled<64x256xf8E4M3FN, tile = [2, 128], scale = f32>' the scale it has but got '!fp8.scaled<16384xf8E4M3FN, tile = [128], scale = f32>'}}
  %0 = fp8.reshape %x : !x -> !fp8.scaled<16384xf8E4M3FN, tile = [128], scale = f32>
  return
}

// -----

!x = !fp8.scaled<64x256xf8E4M3FN, tile = [1, 128], scale = f32>
func.func @reshaped_size(%x: !x) {
  // expected-error@+1 {{expected a result of 16384 elements but got '!fp8.scaled<64x128xf8E4M3FN, tile = [1, 128], scale = f32>'}}
  %0 = fp8.reshape %x : !x -> !fp8.scaled<64x128xf8E4M3FN, tile = [1, 128], scale = f32>
  return
}

// -----

!x = !fp8.scaled<64x256xf8E4M3FN, tile = [1, 128], scale = f32>
func.func @sliced_tile(%x: !x) {
  // expected-error@+1 {{expected a start at a multiple of the tile of 128 along dimension 1 but got 64}}
  %0 = fp8.slice %x, [0, 64] to [64, 192] : !x -> !fp8.scaled<64x128xf8E4M3FN, tile = [1, 128], scale = f32>
  return
}

// -----

!x = !fp8.scaled<64x256xf8E4M3FN, tile = [1, 128], scale = f32>
func.func @sliced_range(%x: !x) {
  // expected-error@+1 {{expected a part of the 256 elements of dimension 1 but got 128 to 257}}
  %0 = fp8.slice %x, [0, 128] to [64, 257] : !x -> !fp8.scaled<64x129xf8E4M3FN, tile = [1, 128], scale = f32>
  return
}

// -----

// expected-error@+1 {{expected one f32 scale for the whole tensor (a tile of * along every dimension) with a payload of f16}}
func.func private @f(!fp8.scaled<4x64xf16, tile = [1, *], scale = f32>)

// -----

!h = !fp8.scaled<64x64xf16, tile = [*, *], scale = f32>
func.func @dot_of_f16(%x: !h) {
  // expected-error@+1 {{expected operands of an FP8 format but got '!fp8.scaled<64x64xf16, tile = [*, *], scale = f32>'}}
  %0 = fp8.dot_general %x, %x, contracting_dims = [1] x [0] {accumulator = f32} : (!h, !h) -> tensor<64x64xf32>
  return
}

// -----

func.func @round_shape(%x: tensor<64x32xf32>) {
  // expected-error@+1 {{expected the shape of 'tensor<64x32xf32>' but got 'tensor<32x64xbf16>'}}
  %0 = fp8.round %x rounding = nearest_even : tensor<64x32xf32> -> tensor<32x64xbf16>
  return
}

// -----

func.func @round_without_seed(%x: tensor<64x32xf32>) {
  // expected-error@+1 {{expected a seed with rounding stochastic}}
  %0 = fp8.round %x rounding = stochastic : tensor<64x32xf32> -> tensor<64x32xbf16>
  return
}

// -----

func.func @round_with_seed(%x: tensor<64x32xf32>, %seed: tensor<i64>) {
  // expected-error@+1 {{expected a seed and a tensor's number with rounding stochastic only but got rounding nearest_even}}
  %0 = fp8.round %x seed = %seed rounding = nearest_even : tensor<64x32xf32> -> tensor<64x32xbf16>
  return
}

// -----

func.func @amin(%x: tensor<64x32xf32>) {
  // expected-error@+1 {{expected a result of type 'tensor<64x2xf32>' but got 'tensor<64x4xf32>'}}
  %0 = fp8.amin %x tile = [1, 16] : tensor<64x32xf32> -> tensor<64x4xf32>
  return
}

// -----

func.func @expand_tile(%x: tensor<64x32xf32>, %c: tensor<64x4xf32>) {
  // expected-error@+1 {{expected a center and an exponent of type 'tensor<64x2xf32>' but got 'tensor<64x4xf32>'}}
  %0 = fp8.expand_range %x, %c, %c tile = [1, 16] : tensor<64x32xf32>, tensor<64x4xf32> -> tensor<64x32xf32>
  return
}

// -----

func.func @restore_result(%x: tensor<64x32xf32>, %c: tensor<f32>) {
  // expected-error@+1 {{expected a result of type 'tensor<64x32xf32>' but got 'tensor<32x64xf32>'}}
  %0 = fp8.restore_range %x, %c, %c : tensor<64x32xf32>, tensor<f32> -> tensor<32x64xf32>
  return
}

// -----

func.func @rescale_rank(%x: tensor<4x8xf32>, %s: tensor<8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{expected one of dims for each dimension of the factor, 1, but got 2}}
  %0 = fp8.rescale %x, %s dims = [0, 1] : tensor<4x8xf32>, tensor<8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @rescale_range(%x: tensor<4x8xf32>, %s: tensor<8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{expected dims from 0 to 2 (exclusive) but got 2}}
  %0 = fp8.rescale %x, %s dims = [2] : tensor<4x8xf32>, tensor<8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @rescale_twice(%x: tensor<4x8xf32>, %s: tensor<8x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{expected different dims but got 1 twice}}
  %0 = fp8.rescale %x, %s dims = [1, 1] : tensor<4x8xf32>, tensor<8x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @rescale_size(%x: tensor<4x8xf32>, %s: tensor<4xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{expected 8 factors along dimension 1 but got 4}}
  %0 = fp8.rescale %x, %s dims = [1] : tensor<4x8xf32>, tensor<4xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @attention_arguments(%q: tensor<16x8xf32>) -> tensor<16x8xf32> {
  // expected-error @+1 {{expected a body with arguments ('tensor<16x8xf32>') but got ('tensor<8x16xf32>')}}
  %0 = fp8.attention %q : (tensor<16x8xf32>) -> tensor<16x8xf32> {
  ^bb0(%a: tensor<8x16xf32>):
    %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
    fp8.yield %t : tensor<16x8xf32>
  }
  return %0 : tensor<16x8xf32>
}

// -----

func.func @attention_results(%q: tensor<16x8xf32>) -> tensor<16x8xf32> {
  // expected-error @+1 {{expected the body to end with fp8.yield of ('tensor<16x8xf32>')}}
  %0 = fp8.attention_backward %q : (tensor<16x8xf32>) -> tensor<16x8xf32> {
  ^bb0(%a: tensor<16x8xf32>):
    fp8.yield
  }
  return %0 : tensor<16x8xf32>
}

// -----

func.func @attention_captures(%q: tensor<16x8xf32>) -> tensor<16x8xf32> {
  // expected-note @+1 {{required by region isolation constraints}}
  %0 = fp8.attention : () -> tensor<16x8xf32> {
    // expected-error @+1 {{using value defined outside the region}}
    fp8.yield %q : tensor<16x8xf32>
  }
  return %0 : tensor<16x8xf32>
}

// -----

func.func @window_dims(%x: tensor<2x8x8x4xf32>) {
  // expected-error@+1 {{expected ascending dimensions of a tensor of rank 4 but got [2, 1]}}
  %0 = fp8.windows %x dims = [2, 1] sizes = [3, 3] strides = [1, 1] dilations = [1, 1]
      low = [0, 0] high = [0, 0] interior = [0, 0] reversed = [false, false] : tensor<2x8x8x4xf32> -> tensor<2x6x3x6x3x4xf32>
  return
}

// -----

func.func @window_numbers(%x: tensor<2x8x8x4xf32>) {
  // expected-error@+1 {{expected 'high' to have 2 numbers but got 1}}
  %0 = fp8.windows %x dims = [1, 2] sizes = [3, 3] strides = [1, 1] dilations = [1, 1]
      low = [0, 0] high = [0] interior = [0, 0] reversed = [false, false] : tensor<2x8x8x4xf32> -> tensor<2x6x3x6x3x4xf32>
  return
}

// -----

func.func @window_flags(%x: tensor<2x8x8x4xf32>) {
  // expected-error@+1 {{expected 'reversed' to have 1 flags but got 2}}
  %0 = fp8.windows %x dims = [1] sizes = [3] strides = [1] dilations = [1]
      low = [0] high = [0] interior = [0] reversed = [false, false] : tensor<2x8x8x4xf32> -> tensor<2x6x3x8x4xf32>
  return
}

// -----

func.func @window_stride(%x: tensor<2x8x8x4xf32>) {
  // expected-error@+1 {{expected sizes, strides and dilations to be positive but got [0]}}
  %0 = fp8.windows %x dims = [1] sizes = [3] strides = [0] dilations = [1]
      low = [0] high = [0] interior = [0] reversed = [false] : tensor<2x8x8x4xf32> -> tensor<2x6x3x8x4xf32>
  return
}

// -----

func.func @window_interior(%x: tensor<2x8x8x4xf32>) {
  // expected-error@+1 {{expected no negative interior padding but got [-1]}}
  %0 = fp8.windows %x dims = [1] sizes = [3] strides = [1] dilations = [1]
      low = [0] high = [0] interior = [-1] reversed = [false] : tensor<2x8x8x4xf32> -> tensor<2x6x3x8x4xf32>
  return
}

// -----

func.func @window_type(%x: tensor<2x8x8x4xf32>) {
  // expected-error@+1 {{expected a result of type 'tensor<2x4x3x8x4xf32>' but got 'tensor<2x6x3x8x4xf32>'}}
  %0 = fp8.windows %x dims = [1] sizes = [3] strides = [2] dilations = [1]
      low = [1] high = [0] interior = [0] reversed = [false] : tensor<2x8x8x4xf32> -> tensor<2x6x3x8x4xf32>
  return
}
