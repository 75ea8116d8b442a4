// RUN: fp8-opt %s -split-input-file -verify-diagnostics

// Ops outside of the subset: one error each.

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{stablehlo.fft is not supported by the fp8 importer; see docs/StableHLOSubset.md for the supported ops}}
  %0 = stablehlo.fft %a, type = RFFT, length = [8] : (tensor<4x8xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{stablehlo.fft is not supported by the fp8 importer; see docs/StableHLOSubset.md for the supported ops}}
  %0 = "stablehlo.fft"(%a) <{fft_length = array<i64: 8>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{stablehlo.all_gather_v2 is not supported by the fp8 importer; see docs/StableHLOSubset.md for the supported ops}}
  %0 = stablehlo.all_gather_v2 %a : tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{unregistered operation 'stablehlo.all_gather_v2' found in dialect ('stablehlo') that does not allow unknown operations}}
  %0 = "stablehlo.all_gather_v2"(%a) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{chlo.ragged_dot is not supported by the fp8 importer; see docs/StableHLOSubset.md for the supported ops}}
  %0 = chlo.ragged_dot %a : tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{sdy.reshard is not supported by the fp8 importer; see docs/StableHLOSubset.md for the supported ops}}
  %0 = sdy.reshard %a <@m, [{}, {}]> : tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{sdy.collective_permute is not supported by the fp8 importer; see docs/StableHLOSubset.md for the supported ops}}
  %0 = "sdy.collective_permute"(%a) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{attribute #stablehlo.fft_type is not supported by the fp8 importer; see docs/StableHLOSubset.md for the supported ops}}
  %0 = "stablehlo.constant"() {fft = #stablehlo<fft_type RFFT>, value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  return
}

// -----

// expected-error @+1 {{type !stablehlo.token is not supported by the fp8 importer; see docs/StableHLOSubset.md for the supported ops}}
func.func private @f(!stablehlo.token)

// -----

func.func @f(%a: tensor<4x8xf32>, %c: tensor<f32>) {
  // expected-error @+1 {{stablehlo.einsum is not supported by the fp8 importer; see docs/StableHLOSubset.md for the supported ops}}
  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.einsum across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %c: tensor<f32>) {
  // expected-error @+1 {{custom op 'stablehlo.reduce' expected an op whose operands and result are of one type but got stablehlo.compare}}
  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.compare across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%s: tensor<2xui64>) {
  // expected-error @+1 {{custom op 'stablehlo.rng_bit_generator' expected DEFAULT, THREE_FRY or PHILOX but got MERSENNE}}
  %0, %1 = stablehlo.rng_bit_generator %s, algorithm = MERSENNE : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  return
}

// -----

// Types.

func.func @f(%a: tensor<?xf32>) {
  // expected-error @+1 {{'stablehlo.abs' op operand #0 must be statically shaped tensor of integer or floating-point values, but got 'tensor<?xf32>'}}
  %0 = stablehlo.abs %a : tensor<?xf32>
  return
}

// -----

func.func @f(%a: tensor<4xcomplex<f32>>) {
  // expected-error @+1 {{'stablehlo.abs' op operand #0 must be statically shaped tensor of integer or floating-point values, but got 'tensor<4xcomplex<f32>>'}}
  %0 = stablehlo.abs %a : tensor<4xcomplex<f32>>
  return
}

// -----

func.func @f(%a: tensor<4xi32>) {
  // expected-error @+1 {{'stablehlo.tanh' op operand #0 must be statically shaped tensor of floating-point values, but got 'tensor<4xi32>'}}
  %0 = stablehlo.tanh %a : tensor<4xi32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{'stablehlo.xor' op operand #0 must be statically shaped tensor of boolean or integer values, but got 'tensor<4xf32>'}}
  %0 = stablehlo.xor %a, %a : tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>, %b: tensor<8xf32>) {
  // expected-error @+1 {{'stablehlo.add' op expected operands and result of one type but got 'tensor<8xf32>' and 'tensor<4xf32>'}}
  %0 = stablehlo.add %a, %b : (tensor<4xf32>, tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>, %b: tensor<8xf32>) {
  // expected-error @+1 {{custom op 'stablehlo.add' expected a type with 2 operands and 1 result but got '(tensor<4xf32>) -> tensor<4xf32>'}}
  %0 = stablehlo.add %a, %b : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{'chlo.square' op expected operands and result of one type but got 'tensor<4xf32>' and 'tensor<4xf64>'}}
  %0 = chlo.square %a : tensor<4xf32> -> tensor<4xf64>
  return
}

// -----

// Elementwise ops.

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{'stablehlo.bitcast_convert' op expected a result of type 'tensor<4x2xui16>' but got 'tensor<4x4xui16>'}}
  %0 = stablehlo.bitcast_convert %a : (tensor<4xf32>) -> tensor<4x4xui16>
  return
}

// -----

func.func @f(%a: tensor<4x3xui16>) {
  // expected-error @+1 {{'stablehlo.bitcast_convert' op expected an operand of type 'tensor<4x2xui16>' but got 'tensor<4x3xui16>'}}
  %0 = stablehlo.bitcast_convert %a : (tensor<4x3xui16>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{'stablehlo.clamp' op expected bounds of type 'tensor<4xf32>' or 'tensor<f32>' but got 'tensor<2xf32>'}}
  %0 = stablehlo.clamp %b, %a, %a : (tensor<2xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{'stablehlo.compare' op expected compare_type FLOAT or TOTALORDER for 'f32' but got SIGNED}}
  %0 = stablehlo.compare LT, %a, %a, SIGNED : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return
}

// -----

func.func @f(%a: tensor<4xui32>) {
  // expected-error @+1 {{'stablehlo.compare' op expected compare_type UNSIGNED for 'ui32' but got SIGNED}}
  %0 = stablehlo.compare LT, %a, %a, SIGNED : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xi1>
  return
}

// -----

func.func @f(%a: tensor<4xi32>) {
  // expected-error @+1 {{'stablehlo.compare' op expected compare_type SIGNED for 'i32' but got FLOAT}}
  %0 = stablehlo.compare LT, %a, %a, FLOAT : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  return
}

// -----

func.func @f(%a: tensor<4xi32>) {
  // expected-error @+1 {{custom op 'stablehlo.compare' expected EQ, NE, GE, GT, LE or LT but got XX}}
  %0 = stablehlo.compare XX, %a, %a : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  return
}

// -----

func.func @f(%a: tensor<4xi32>) {
  // expected-error @+1 {{'stablehlo.compare' op expected operands and result of one shape but got 'tensor<4xi32>' and 'tensor<8xi1>'}}
  %0 = stablehlo.compare LT, %a, %a : (tensor<4xi32>, tensor<4xi32>) -> tensor<8xi1>
  return
}

// -----

func.func @f(%a: tensor<4xf32>, %b: tensor<4xf64>) {
  // expected-error @+1 {{'stablehlo.compare' op expected rhs of type 'tensor<4xf32>' but got 'tensor<4xf64>'}}
  %0 = stablehlo.compare LT, %a, %b : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xi1>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{'stablehlo.convert' op expected operands and result of one shape but got 'tensor<4xf32>' and 'tensor<8xf16>'}}
  %0 = stablehlo.convert %a : (tensor<4xf32>) -> tensor<8xf16>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{'stablehlo.reduce_precision' op expected exponent_bits of 1 or more but got 0}}
  %0 = stablehlo.reduce_precision %a, format = e0m7 : tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{custom op 'stablehlo.reduce_precision' expected a format such as e8m7 but got bf16}}
  %0 = stablehlo.reduce_precision %a, format = bf16 : tensor<4xf32>
  return
}

// -----

func.func @f(%p: tensor<2xi1>, %a: tensor<4xf32>) {
  // expected-error @+1 {{'stablehlo.select' op expected a predicate of type 'tensor<4xi1>' or 'tensor<i1>' but got 'tensor<2xi1>'}}
  %0 = stablehlo.select %p, %a, %a : tensor<2xi1>, tensor<4xf32>
  return
}

// -----

func.func @f(%p: tensor<4xi1>, %a: tensor<4xf32>, %b: tensor<4xf64>) {
  // expected-error @+1 {{'stablehlo.select' op expected on_false of type 'tensor<4xf32>' but got 'tensor<4xf64>'}}
  %0 = stablehlo.select %p, %a, %b : (tensor<4xi1>, tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

// -----

// Creation.

func.func @f() {
  // expected-error @+1 {{'stablehlo.constant' op expected a result of type 'tensor<2xf32>' but got 'tensor<4xf32>'}}
  %0 = "stablehlo.constant"() <{value = dense<0.0> : tensor<2xf32>}> : () -> tensor<4xf32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{custom op 'stablehlo.constant' expected a dense<...> value but got 1.000000e+00 : f32}}
  %0 = stablehlo.constant 1.0 : f32
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{'stablehlo.iota' op expected iota_dimension in [0, 2) but got [2]}}
  %0 = stablehlo.iota dim = 2 : tensor<4x8xi32>
  return
}

// -----

func.func @f(%s: tensor<3xui64>) {
  // expected-error @+1 {{'stablehlo.rng_bit_generator' op expected a state of size 2 for THREE_FRY but got 3}}
  %0, %1 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<3xui64>) -> (tensor<3xui64>, tensor<4xui32>)
  return
}

// -----

func.func @f(%s: tensor<2xui32>) {
  // expected-error @+1 {{'stablehlo.rng_bit_generator' op expected a state of type tensor<Nxui64> but got 'tensor<2xui32>'}}
  %0, %1 = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<2xui32>) -> (tensor<2xui32>, tensor<4xui32>)
  return
}

// -----

// Shape and data movement.

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{'stablehlo.broadcast_in_dim' op expected 1 broadcast_dimensions but got 0}}
  %0 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{'stablehlo.broadcast_in_dim' op expected broadcast_dimensions in [0, 2) but got [2]}}
  %0 = stablehlo.broadcast_in_dim %a, dims = [2] : (tensor<4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%a: tensor<4x4xf32>) {
  // expected-error @+1 {{'stablehlo.broadcast_in_dim' op expected unique broadcast_dimensions but got [1, 1]}}
  %0 = stablehlo.broadcast_in_dim %a, dims = [1, 1] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{'stablehlo.broadcast_in_dim' op expected result dimension 1 of size 4 (operand dimension 0) but got 8}}
  %0 = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{'stablehlo.broadcast_in_dim' op expected result elements of type 'f32' but got 'f64'}}
  %0 = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<4xf32>) -> tensor<4xf64>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<3x7xf32>) {
  // expected-error @+1 {{'stablehlo.concatenate' op expected inputs like 'tensor<4x8xf32>' but for dimension 0 but got 'tensor<3x7xf32>'}}
  %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<4x8xf32>, tensor<3x7xf32>) -> tensor<7x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'stablehlo.concatenate' op expected dimension in [0, 2) but got [2]}}
  %0 = stablehlo.concatenate %a, dim = 2 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'stablehlo.concatenate' op expected a result of type 'tensor<8x8xf32>' but got 'tensor<4x8xf32>'}}
  %0 = stablehlo.concatenate %a, %a, dim = 0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{'stablehlo.concatenate' op expected one input or more but got none}}
  %0 = stablehlo.concatenate dim = 0 : () -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %i: tensor<i32>) {
  // expected-error @+1 {{'stablehlo.dynamic_slice' op expected 2 start_indices but got 1}}
  %0 = stablehlo.dynamic_slice %a, %i, sizes = [1, 8] : (tensor<4x8xf32>, tensor<i32>) -> tensor<1x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %i: tensor<i32>) {
  // expected-error @+1 {{'stablehlo.dynamic_slice' op expected slice size 0 in [0, 4] but got 5}}
  %0 = stablehlo.dynamic_slice %a, %i, %i, sizes = [5, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<5x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %i: tensor<i32>, %j: tensor<i64>) {
  // expected-error @+1 {{'stablehlo.dynamic_slice' op expected start indices of one type but got 'tensor<i32>' and 'tensor<i64>'}}
  %0 = stablehlo.dynamic_slice %a, %i, %j, sizes = [1, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i64>) -> tensor<1x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %i: tensor<1xi32>) {
  // expected-error @+1 {{'stablehlo.dynamic_slice' op expected 0-d start indices but got 'tensor<1xi32>'}}
  %0 = stablehlo.dynamic_slice %a, %i, %i, sizes = [1, 8] : (tensor<4x8xf32>, tensor<1xi32>, tensor<1xi32>) -> tensor<1x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %i: tensor<i32>) {
  // expected-error @+1 {{'stablehlo.dynamic_slice' op expected a result of type 'tensor<1x8xf32>' but got 'tensor<8xf32>'}}
  %0 = stablehlo.dynamic_slice %a, %i, %i, sizes = [1, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %u: tensor<5x8xf32>, %i: tensor<i32>) {
  // expected-error @+1 {{'stablehlo.dynamic_update_slice' op expected update size 0 in [0, 4] but got 5}}
  %0 = stablehlo.dynamic_update_slice %a, %u, %i, %i : (tensor<4x8xf32>, tensor<5x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %u: tensor<8xf32>, %i: tensor<i32>) {
  // expected-error @+1 {{'stablehlo.dynamic_update_slice' op expected 2 dimensions of the update but got 1}}
  %0 = stablehlo.dynamic_update_slice %a, %u, %i, %i : (tensor<4x8xf32>, tensor<8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+1 {{'stablehlo.gather' op expected 2 offset, collapsed and batching dimensions of the operand but got 1}}
  %0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+1 {{'stablehlo.gather' op expected index_vector_dim in [0, 2] but got 3}}
  %0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 3>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+1 {{'stablehlo.gather' op expected 1 entries of start_index_map but got 2}}
  %0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+1 {{'stablehlo.gather' op expected slice size 0 of a collapsed or batching dimension in [0, 1] but got 2}}
  %0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 2, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+1 {{'stablehlo.gather' op expected slice size 1 in [0, 8] but got 9}}
  %0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 9>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+1 {{'stablehlo.gather' op expected start_index_map in [0, 2) but got [2]}}
  %0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [2], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+1 {{'stablehlo.gather' op expected a result of type 'tensor<3x8xf32>' but got 'tensor<3x7xf32>'}}
  %0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x7xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+1 {{'stablehlo.gather' op expected start_indices dimension 0 of size 4 but got 3}}
  %0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<operand_batching_dims = [0], start_indices_batching_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+1 {{expected one of offset_dims, collapsed_slice_dims, operand_batching_dims, start_indices_batching_dims, start_index_map, index_vector_dim but got bad_dims}}
  %0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], bad_dims = [0]>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+1 {{expected offset_dims once but got it twice}}
  %0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], offset_dims = [0]>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>, %v: tensor<f32>) {
  // expected-error @+1 {{'stablehlo.pad' op expected a result of type 'tensor<10xf32>' but got 'tensor<9xf32>'}}
  %0 = stablehlo.pad %a, %v, low = [1], high = [2], interior = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<9xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>, %v: tensor<f32>) {
  // expected-error @+1 {{'stablehlo.pad' op expected 1 low paddings but got 2}}
  %0 = stablehlo.pad %a, %v, low = [1, 1], high = [2], interior = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<9xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>, %v: tensor<f32>) {
  // expected-error @+1 {{'stablehlo.pad' op expected interior paddings of 0 or more but got [-1]}}
  %0 = stablehlo.pad %a, %v, low = [0], high = [0], interior = [-1] : (tensor<4xf32>, tensor<f32>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>, %v: tensor<f32>) {
  // expected-error @+1 {{'stablehlo.pad' op expected a result size of 0 or more in dimension 0 but got -1}}
  %0 = stablehlo.pad %a, %v, low = [-5], high = [0], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<0xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'stablehlo.reshape' op expected 32 elements in the result but got 31}}
  %0 = stablehlo.reshape %a : (tensor<4x8xf32>) -> tensor<31xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'stablehlo.reverse' op expected unique dimensions but got [1, 1]}}
  %0 = stablehlo.reverse %a, dims = [1, 1] : tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'stablehlo.reverse' op expected dimensions in [0, 2) but got [2]}}
  %0 = stablehlo.reverse %a, dims = [2] : tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %i: tensor<3x1xi32>, %u: tensor<3x9xf32>) {
  // expected-error @+1 {{'stablehlo.scatter' op expected update dimension 1 in [0, 8] but got 9}}
  %0 = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %y : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<3x1xi32>, tensor<3x9xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %i: tensor<3x1xi32>, %u: tensor<2x8xf32>) {
  // expected-error @+1 {{'stablehlo.scatter' op expected update dimension 0 of size 3 but got 2}}
  %0 = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %y : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<3x1xi32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %i: tensor<3x1xi32>, %u: tensor<3x8xf32>) {
  // expected-error @+1 {{'stablehlo.scatter' op expected argument 0 of the update computation of type 'tensor<f32>' but got 'tensor<f64>'}}
  %0 = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x: tensor<f64>, %y: tensor<f64>):
    stablehlo.return %y : tensor<f64>
  }) : (tensor<4x8xf32>, tensor<3x1xi32>, tensor<3x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %i: tensor<3x1xi32>, %u: tensor<3x8xf32>) {
  // expected-error @+1 {{'stablehlo.scatter' op expected 2 window, inserted and batching dimensions of the input but got 1}}
  %0 = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %y : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<3x1xi32>, tensor<3x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %i: tensor<3x1xi32>, %u: tensor<3x8xf32>) {
  // expected-error @+1 {{'stablehlo.scatter' op expected 1 entries of scatter_dims_to_operand_dims but got 2}}
  %0 = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %y : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<3x1xi32>, tensor<3x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %i: tensor<3x1xi32>, %u: tensor<3x8xf64>) {
  // expected-error @+1 {{'stablehlo.scatter' op expected update elements of type 'f32' but got 'f64'}}
  %0 = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %y : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<3x1xi32>, tensor<3x8xf64>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'stablehlo.slice' op expected a range within [0:4] for dimension 0 but got [0:5]}}
  %0 = stablehlo.slice %a [0:5, 0:8] : (tensor<4x8xf32>) -> tensor<5x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'stablehlo.slice' op expected a range within [0:4] for dimension 0 but got [3:1]}}
  %0 = stablehlo.slice %a [3:1, 0:8] : (tensor<4x8xf32>) -> tensor<5x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'stablehlo.slice' op expected positive strides but got [0, 1]}}
  %0 = stablehlo.slice %a [0:4:0, 0:8] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'stablehlo.slice' op expected 2 start_indices but got 1}}
  %0 = stablehlo.slice %a [0:4] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'stablehlo.slice' op expected a result of type 'tensor<2x8xf32>' but got 'tensor<4x8xf32>'}}
  %0 = stablehlo.slice %a [0:4:2, 0:8] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'stablehlo.sort' op expected dimension in [-2, 2) but got 2}}
  %0 = "stablehlo.sort"(%a) <{dimension = 2 : i64}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %p = stablehlo.compare LT, %x, %x : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'stablehlo.sort' op expected 2 arguments of the comparator but got 1}}
  %0 = "stablehlo.sort"(%a) <{dimension = 1 : i64}> ({
  ^bb0(%x: tensor<f32>):
    %p = stablehlo.compare LT, %x, %x : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'stablehlo.sort' op expected value 0 returned by the comparator of type 'tensor<i1>' but got 'tensor<f32>'}}
  %0 = "stablehlo.sort"(%a) <{dimension = 1 : i64}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %p = stablehlo.compare LT, %x, %x : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %x : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'stablehlo.transpose' op expected 2 entries of the permutation but got 1}}
  %0 = stablehlo.transpose %a, dims = [1] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'stablehlo.transpose' op expected unique entries of the permutation but got [1, 1]}}
  %0 = stablehlo.transpose %a, dims = [1, 1] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'stablehlo.transpose' op expected the permutation in [0, 2) but got [1, 2]}}
  %0 = stablehlo.transpose %a, dims = [1, 2] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'stablehlo.transpose' op expected a result of type 'tensor<8x4xf32>' but got 'tensor<4x8xf32>'}}
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

// Contractions.

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>) {
  // expected-error @+1 {{'stablehlo.dot_general' op expected contracting dimensions of one size but got 4 (lhs dimension 0) and 8 (rhs dimension 0)}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>) {
  // expected-error @+1 {{'stablehlo.dot_general' op expected 2 rhs contracting dimensions but got 1}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1, 0] x [0] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>) {
  // expected-error @+1 {{'stablehlo.dot_general' op expected unique lhs batching and contracting dimensions but got [1, 1]}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1, 1] x [0, 0] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>) {
  // expected-error @+1 {{'stablehlo.dot_general' op expected rhs batching and contracting dimensions in [0, 2) but got [2]}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [2] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>) {
  // expected-error @+1 {{'stablehlo.dot_general' op expected a result of type 'tensor<4x16xf32>' but got 'tensor<16x4xf32>'}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<16x4xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>) {
  // expected-error @+1 {{'stablehlo.dot_general' op expected batching dimensions of one size but got 4 (lhs dimension 0) and 8 (rhs dimension 0)}}
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>) {
  // expected-error @+1 {{'stablehlo.dot_general' op expected 2 entries of the precision config but got 1}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], precision = [HIGH] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>) {
  // expected-error @+1 {{custom op 'stablehlo.dot_general' expected DEFAULT, HIGH or HIGHEST but got FAST}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], precision = [FAST, FAST] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>) {
  // expected-error @+1 {{custom op 'stablehlo.dot_general' expected lhs_precision_type, rhs_precision_type and accumulation_type}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], algorithm = <lhs_precision_type = f32> : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  return
}

// -----

func.func @f(%a: tensor<2x8x8x3xf32>, %k: tensor<3x3x3x4xf32>) {
  // expected-error @+1 {{'stablehlo.convolution' op expected a result of type 'tensor<2x4x4x4xf32>' but got 'tensor<2x5x4x4xf32>'}}
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 1], [0, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x5x4x4xf32>
  return
}

// -----

func.func @f(%a: tensor<2x8x8x3xf32>, %k: tensor<3x3x3x4xf32>) {
  // expected-error @+1 {{custom op 'stablehlo.convolution' expected spatial dimension 1 but got 2}}
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 2, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 1], [0, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x4x4x4xf32>
  return
}

// -----

func.func @f(%a: tensor<2x8x8x3xf32>, %k: tensor<3x3x3x4xf32>) {
  // expected-error @+1 {{custom op 'stablehlo.convolution' expected b, f (each once) or a number but got b}}
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, b]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 1], [0, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x4x4x4xf32>
  return
}

// -----

func.func @f(%a: tensor<2x8x8x3xf32>, %k: tensor<3x3x3x4xf32>) {
  // expected-error @+1 {{'stablehlo.convolution' op expected 4 input dimensions but got 3}}
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 1], [0, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x4x4x4xf32>
  return
}

// -----

func.func @f(%a: tensor<2x8x8x3xf32>, %k: tensor<3x3x3x4xf32>) {
  // expected-error @+1 {{'stablehlo.convolution' op expected 2 window strides but got 1}}
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2], pad = [[0, 1], [0, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x4x4x4xf32>
  return
}

// -----

func.func @f(%a: tensor<2x8x8x3xf32>, %k: tensor<3x3x3x4xf32>) {
  // expected-error @+1 {{'stablehlo.convolution' op expected positive window strides but got [2, 0]}}
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x4x4x4xf32>
  return
}

// -----

func.func @f(%a: tensor<2x8x8x3xf32>, %k: tensor<3x3x3x4xf32>) {
  // expected-error @+1 {{custom op 'stablehlo.convolution' expected a pair of paddings but got 3 numbers}}
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[0, 1, 2]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x4x4x4xf32>
  return
}

// -----

func.func @f(%a: tensor<2x8x8x3xf32>, %k: tensor<3x3x3x4xf32>) {
  // expected-error @+1 {{'stablehlo.convolution' op expected positive group counts, one of them 1, but got feature_group_count = 2 and batch_group_count = 2}}
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 1], [0, 1]]} {batch_group_count = 2 : i64, feature_group_count = 2 : i64} : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x4x4x4xf32>
  return
}

// -----

func.func @f(%a: tensor<2x8x8x3xf32>, %k: tensor<3x3x3x4xf32>) {
  // expected-error @+1 {{'stablehlo.convolution' op expected feature_group_count to divide 3 and 4 but got 2}}
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 1], [0, 1]]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x4x4x4xf32>
  return
}

// -----

// Reductions.

func.func @f(%a: tensor<4x8xf32>, %c: tensor<f32>) {
  // expected-error @+1 {{'stablehlo.reduce' op expected a result of type 'tensor<4xf32>' but got 'tensor<8xf32>'}}
  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %c: tensor<f32>) {
  // expected-error @+1 {{'stablehlo.reduce' op expected dimensions in [0, 2) but got [2]}}
  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [2] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %c: tensor<f32>) {
  // expected-error @+1 {{'stablehlo.reduce' op expected unique dimensions but got [1, 1]}}
  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [1, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %c: tensor<1xf32>) {
  // expected-error @+1 {{'stablehlo.reduce' op expected an init value of type 'tensor<f32>' but got 'tensor<1xf32>'}}
  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<1xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %c: tensor<f32>) {
  // expected-error @+1 {{'stablehlo.reduce' op expected argument 1 of the body of type 'tensor<f32>' but got 'tensor<f64>'}}
  %0 = stablehlo.reduce(%a init: %c) across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
   reducer(%x: tensor<f32>, %y: tensor<f64>) {
    stablehlo.return %x : tensor<f32>
  }
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %c: tensor<f32>) {
  // expected-error @+1 {{'stablehlo.reduce' op expected 1 values returned by the body but got 2}}
  %0 = stablehlo.reduce(%a init: %c) across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
   reducer(%x: tensor<f32>, %y: tensor<f32>) {
    stablehlo.return %x, %y : tensor<f32>, tensor<f32>
  }
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %c: tensor<f32>) {
  // expected-error @+1 {{custom op 'stablehlo.reduce' expected one input to apply an op to but got 2}}
  %0 = stablehlo.reduce(%a init: %c), (%a init: %c) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %c: tensor<f32>) {
  // expected-error @+1 {{'stablehlo.reduce' op expected an init value for each input but got 3 operands}}
  %0 = "stablehlo.reduce"(%a, %c, %c) <{dimensions = array<i64: 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %x : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>, tensor<f32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<8xf32>, %c: tensor<f32>) {
  // expected-error @+1 {{'stablehlo.reduce_window' op expected a result of type 'tensor<7xf32>' but got 'tensor<8xf32>'}}
  %0 = "stablehlo.reduce_window"(%a, %c) <{window_dimensions = array<i64: 2>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %x : tensor<f32>
  }) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: tensor<8xf32>, %c: tensor<f32>) {
  // expected-error @+1 {{'stablehlo.reduce_window' op expected 1 window dimensions but got 2}}
  %0 = "stablehlo.reduce_window"(%a, %c) <{window_dimensions = array<i64: 2, 2>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %x : tensor<f32>
  }) : (tensor<8xf32>, tensor<f32>) -> tensor<7xf32>
  return
}

// -----

func.func @f(%a: tensor<8xf32>, %c: tensor<f32>) {
  // expected-error @+1 {{'stablehlo.reduce_window' op expected positive window strides but got [0]}}
  %0 = "stablehlo.reduce_window"(%a, %c) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 0>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %x : tensor<f32>
  }) : (tensor<8xf32>, tensor<f32>) -> tensor<7xf32>
  return
}

// -----

func.func @f(%a: tensor<8xf32>, %c: tensor<f32>) {
  // expected-error @+1 {{'stablehlo.reduce_window' op expected paddings of type 'tensor<1x2xi64>' but got 'tensor<2x2xi64>'}}
  %0 = "stablehlo.reduce_window"(%a, %c) <{window_dimensions = array<i64: 2>, padding = dense<0> : tensor<2x2xi64>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %x : tensor<f32>
  }) : (tensor<8xf32>, tensor<f32>) -> tensor<7xf32>
  return
}

// -----

func.func @f(%a: tensor<8xf32>, %s: tensor<3xf32>, %c: tensor<f32>) {
  // expected-error @+1 {{'stablehlo.select_and_scatter' op expected a source of type 'tensor<4xf32>' but got 'tensor<3xf32>'}}
  %0 = "stablehlo.select_and_scatter"(%a, %s, %c) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %p = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %x : tensor<f32>
  }) : (tensor<8xf32>, tensor<3xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'stablehlo.map' op expected all dimensions in order but got [0]}}
  %0 = "stablehlo.map"(%a) <{dimensions = array<i64: 0>}> ({
  ^bb0(%x: tensor<f32>):
    stablehlo.return %x : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

// Control flow.

func.func @f(%i: tensor<i32>, %p: tensor<i1>) {
  // expected-error @+1 {{'stablehlo.while' op expected value 0 returned by the condition of type 'tensor<i1>' but got 'tensor<i32>'}}
  %0 = stablehlo.while(%x = %i) : tensor<i32>
  cond {
    stablehlo.return %x : tensor<i32>
  } do {
    stablehlo.return %x : tensor<i32>
  }
  return
}

// -----

func.func @f(%i: tensor<i32>, %p: tensor<i1>) {
  // expected-error @+1 {{'stablehlo.while' op expected value 0 returned by the body of type 'tensor<i32>' but got 'tensor<i1>'}}
  %0 = stablehlo.while(%x = %i) : tensor<i32>
  cond {
    stablehlo.return %p : tensor<i1>
  } do {
    stablehlo.return %p : tensor<i1>
  }
  return
}

// -----

func.func @f(%i: tensor<i32>, %p: tensor<i1>) {
  // expected-error @+1 {{'stablehlo.while' op expected 1 arguments of the condition but got 0}}
  %0 = "stablehlo.while"(%i) ({
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%x: tensor<i32>):
    stablehlo.return %x : tensor<i32>
  }) : (tensor<i32>) -> tensor<i32>
  return
}

// -----

func.func @f(%p: tensor<2xi1>, %x: tensor<f32>) {
  // expected-error @+1 {{'stablehlo.if' op expected a predicate of type 'tensor<i1>' but got 'tensor<2xi1>'}}
  %0 = "stablehlo.if"(%p) ({
    stablehlo.return %x : tensor<f32>
  }, {
    stablehlo.return %x : tensor<f32>
  }) : (tensor<2xi1>) -> tensor<f32>
  return
}

// -----

func.func @f(%p: tensor<i1>, %x: tensor<f32>) {
  // expected-error @+1 {{'stablehlo.if' op expected 1 values returned by the false branch but got 0}}
  %0 = "stablehlo.if"(%p) ({
    stablehlo.return %x : tensor<f32>
  }, {
    stablehlo.return
  }) : (tensor<i1>) -> tensor<f32>
  return
}

// -----

func.func @f(%i: tensor<i64>, %x: tensor<f32>) {
  // expected-error @+1 {{'stablehlo.case' op expected an index of type 'tensor<i32>' but got 'tensor<i64>'}}
  %0 = "stablehlo.case"(%i) ({
    stablehlo.return %x : tensor<f32>
  }) : (tensor<i64>) -> tensor<f32>
  return
}

// -----

func.func @f(%i: tensor<i32>, %x: tensor<f32>) {
  // expected-error @+1 {{'stablehlo.case' op expected value 0 returned by branch 0 of type 'tensor<f32>' but got 'tensor<i32>'}}
  %0 = "stablehlo.case"(%i) ({
    stablehlo.return %i : tensor<i32>
  }) : (tensor<i32>) -> tensor<f32>
  return
}

// -----

func.func @f(%i: tensor<i32>, %x: tensor<f32>) {
  // expected-error @+1 {{'stablehlo.case' op expected 0 arguments of branch 0 but got 1}}
  %0 = "stablehlo.case"(%i) ({
  ^bb0(%y: tensor<f32>):
    stablehlo.return %x : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'stablehlo.optimization_barrier' op expected a result of type 'tensor<4x8xf32>' but got 'tensor<8xf32>'}}
  %0 = "stablehlo.optimization_barrier"(%a) : (tensor<4x8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'stablehlo.composite' op expected a function named @missing but got none}}
  %0 = stablehlo.composite "x" %a {decomposition = @missing} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

// expected-note @+1 {{decomposition defined here}}
func.func private @g(tensor<8xf32>) -> tensor<8xf32>
func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'stablehlo.composite' op expected a decomposition of type '(tensor<4x8xf32>) -> tensor<4x8xf32>' but got '(tensor<8xf32>) -> tensor<8xf32>'}}
  %0 = stablehlo.composite "x" %a {decomposition = @g} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

// CHLO and sdy.

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'chlo.top_k' op expected k in [0, 8] but got 9}}
  %0, %1 = chlo.top_k(%a, k = 9) : tensor<4x8xf32> -> (tensor<4x9xf32>, tensor<4x9xi32>)
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'chlo.top_k' op expected indices of type 'tensor<4x2xi32>' but got 'tensor<4x2xi64>'}}
  %0, %1 = chlo.top_k(%a, k = 2) : tensor<4x8xf32> -> (tensor<4x2xf32>, tensor<4x2xi64>)
  return
}

// -----

func.func @f(%a: tensor<f32>) {
  // expected-error @+1 {{'chlo.top_k' op expected an operand of rank 1 or more but got 'tensor<f32>'}}
  %0, %1 = chlo.top_k(%a, k = 0) : tensor<f32> -> (tensor<f32>, tensor<i32>)
  return
}

// -----

// expected-error @+1 {{expected '='}}
sdy.mesh @m = <["a"]>

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{custom op 'sdy.sharding_constraint' expected replicated or unreduced but got shared}}
  %0 = sdy.sharding_constraint %a <@m, [{}, {}], shared={"x"}> : tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'sdy.manual_computation' op expected body argument 0 to be a shard of 'tensor<4x8xf32>' but got 'tensor<5x8xf32>'}}
  %0 = sdy.manual_computation(%a) in_shardings=[<@m, [{}, {}]>] out_shardings=[<@m, [{}, {}]>] manual_axes={} (%x: tensor<5x8xf32>) {
    sdy.return %x : tensor<5x8xf32>
  } : (tensor<4x8xf32>) -> tensor<5x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{'sdy.manual_computation' op expected 1 returned values but got 0}}
  %0 = sdy.manual_computation(%a) in_shardings=[<@m, [{}, {}]>] out_shardings=[<@m, [{}, {}]>] manual_axes={} (%x: tensor<4x8xf32>) {
    sdy.return
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
