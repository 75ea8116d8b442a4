// Every op of the three dialects in the form it is printed in (JAX's own), the
// forms that JAX does not use today at the end. What is printed is what is read;
// the generic form and bytecode carry the same.
// RUN: fp8-opt %s | diff -B -I '^//' - %s
// RUN: fp8-opt %s --mlir-print-op-generic | fp8-opt | diff -B -I '^//' - %s
// RUN: fp8-opt %s --verify-roundtrip -o /dev/null

module {
  func.func @stablehlo_abs(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.abs %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_add(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_and(%arg0: tensor<4xi1>, %arg1: tensor<4xi1>) -> tensor<4xi1> {
    %0 = stablehlo.and %arg0, %arg1 : tensor<4xi1>
    return %0 : tensor<4xi1>
  }
  func.func @stablehlo_atan2(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.atan2 %arg0, %arg1 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_bitcast_convert(%arg0: tensor<4xf32>) -> tensor<4x2xui16> {
    %0 = stablehlo.bitcast_convert %arg0 : (tensor<4xf32>) -> tensor<4x2xui16>
    return %0 : tensor<4x2xui16>
  }
  func.func @stablehlo_broadcast_in_dim(%arg0: tensor<4xf32>) -> tensor<2x4xf32> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func @stablehlo_case(%arg0: tensor<i32>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.case"(%arg0) ({
      stablehlo.return %arg1 : tensor<4xf32>
    }, {
      stablehlo.return %arg2 : tensor<4xf32>
    }) : (tensor<i32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_cbrt(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.cbrt %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_ceil(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.ceil %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_clamp(%arg0: tensor<f32>, %arg1: tensor<4xf32>, %arg2: tensor<f32>) -> tensor<4xf32> {
    %0 = stablehlo.clamp %arg0, %arg1, %arg2 : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_count_leading_zeros(%arg0: tensor<4xi32>) -> tensor<4xi32> {
    %0 = stablehlo.count_leading_zeros %arg0 : tensor<4xi32>
    return %0 : tensor<4xi32>
  }
  func.func @stablehlo_compare(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xi1> {
    %0 = stablehlo.compare LT, %arg0, %arg1, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    return %0 : tensor<4xi1>
  }
  func.func @stablehlo_composite(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.composite "my.double" %arg0 {decomposition = @double, version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @double(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_concatenate(%arg0: tensor<2x4xf32>, %arg1: tensor<3x4xf32>) -> tensor<5x4xf32> {
    %0 = stablehlo.concatenate %arg0, %arg1, dim = 0 : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<5x4xf32>
    return %0 : tensor<5x4xf32>
  }
  func.func @stablehlo_constant() -> tensor<2xf32> {
    %cst = stablehlo.constant dense<[0.000000e+00, 1.000000e+00]> : tensor<2xf32>
    return %cst : tensor<2xf32>
  }
  func.func @stablehlo_convert(%arg0: tensor<4xbf16>) -> tensor<4xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<4xbf16>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_convolution(%arg0: tensor<2x8x8x3xf32>, %arg1: tensor<3x3x3x4xf32>) -> tensor<2x4x4x4xf32> {
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 1], [0, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x4x4x4xf32>
    return %0 : tensor<2x4x4x4xf32>
  }
  func.func @stablehlo_cosine(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.cosine %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_custom_call(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.custom_call @Sharding(%arg0) {mhlo.sharding = "{replicated}"} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_divide(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.divide %arg0, %arg1 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_dot_general(%arg0: tensor<8x4x16xf32>, %arg1: tensor<8x16x32xf32>) -> tensor<8x4x32xf32> {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x4x16xf32>, tensor<8x16x32xf32>) -> tensor<8x4x32xf32>
    return %0 : tensor<8x4x32xf32>
  }
  func.func @stablehlo_dynamic_slice(%arg0: tensor<4x8xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<1x8xf32> {
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %arg2, sizes = [1, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
    return %0 : tensor<1x8xf32>
  }
  func.func @stablehlo_dynamic_update_slice(%arg0: tensor<4x8xf32>, %arg1: tensor<1x8xf32>, %arg2: tensor<i32>, %arg3: tensor<i32>) -> tensor<4x8xf32> {
    %0 = stablehlo.dynamic_update_slice %arg0, %arg1, %arg2, %arg3 : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
  func.func @stablehlo_exponential(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.exponential %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_exponential_minus_one(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.exponential_minus_one %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_floor(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.floor %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_gather(%arg0: tensor<64x32xf32>, %arg1: tensor<2x16x1xi32>) -> tensor<2x16x32xf32> {
    %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 32>}> : (tensor<64x32xf32>, tensor<2x16x1xi32>) -> tensor<2x16x32xf32>
    return %0 : tensor<2x16x32xf32>
  }
  func.func @stablehlo_if(%arg0: tensor<i1>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.if"(%arg0) ({
      stablehlo.return %arg1 : tensor<4xf32>
    }, {
      stablehlo.return %arg2 : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_iota() -> tensor<4x2xi32> {
    %0 = stablehlo.iota dim = 0 : tensor<4x2xi32>
    return %0 : tensor<4x2xi32>
  }
  func.func @stablehlo_is_finite(%arg0: tensor<4xf32>) -> tensor<4xi1> {
    %0 = stablehlo.is_finite %arg0 : (tensor<4xf32>) -> tensor<4xi1>
    return %0 : tensor<4xi1>
  }
  func.func @stablehlo_log_plus_one(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.log_plus_one %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_log(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.log %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_logistic(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.logistic %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_map(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.map"(%arg0, %arg1) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %1 = stablehlo.multiply %arg2, %arg3 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_maximum(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.maximum %arg0, %arg1 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_minimum(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.minimum %arg0, %arg1 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_multiply(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.multiply %arg0, %arg1 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_negate(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.negate %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_not(%arg0: tensor<4xi1>) -> tensor<4xi1> {
    %0 = stablehlo.not %arg0 : tensor<4xi1>
    return %0 : tensor<4xi1>
  }
  func.func @stablehlo_optimization_barrier(%arg0: tensor<4xf32>, %arg1: tensor<8xf32>) -> (tensor<4xf32>, tensor<8xf32>) {
    %0:2 = stablehlo.optimization_barrier %arg0, %arg1 : tensor<4xf32>, tensor<8xf32>
    return %0#0, %0#1 : tensor<4xf32>, tensor<8xf32>
  }
  func.func @stablehlo_or(%arg0: tensor<4xi1>, %arg1: tensor<4xi1>) -> tensor<4xi1> {
    %0 = stablehlo.or %arg0, %arg1 : tensor<4xi1>
    return %0 : tensor<4xi1>
  }
  func.func @stablehlo_pad(%arg0: tensor<4xf32>, %arg1: tensor<f32>) -> tensor<10xf32> {
    %0 = stablehlo.pad %arg0, %arg1, low = [1], high = [2], interior = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<10xf32>
    return %0 : tensor<10xf32>
  }
  func.func @stablehlo_popcnt(%arg0: tensor<4xi32>) -> tensor<4xi32> {
    %0 = stablehlo.popcnt %arg0 : tensor<4xi32>
    return %0 : tensor<4xi32>
  }
  func.func @stablehlo_power(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.power %arg0, %arg1 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_reduce(%arg0: tensor<4x8xf32>, %arg1: tensor<f32>) -> tensor<4xf32> {
    %0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_reduce_precision(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.reduce_precision %arg0, format = e8m7 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_reduce_window(%arg0: tensor<32xf32>, %arg1: tensor<f32>) -> tensor<32xf32> {
    %0 = "stablehlo.reduce_window"(%arg0, %arg1) <{base_dilations = array<i64: 1>, padding = dense<[[31, 0]]> : tensor<1x2xi64>, window_dilations = array<i64: 1>, window_dimensions = array<i64: 32>, window_strides = array<i64: 1>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %1 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<32xf32>, tensor<f32>) -> tensor<32xf32>
    return %0 : tensor<32xf32>
  }
  func.func @stablehlo_remainder(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.remainder %arg0, %arg1 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_reshape(%arg0: tensor<2x6xf32>) -> tensor<3x4xf32> {
    %0 = stablehlo.reshape %arg0 : (tensor<2x6xf32>) -> tensor<3x4xf32>
    return %0 : tensor<3x4xf32>
  }
  func.func @stablehlo_return(%arg0: tensor<i1>, %arg1: tensor<f32>) -> tensor<f32> {
    %0 = "stablehlo.if"(%arg0) ({
      stablehlo.return %arg1 : tensor<f32>
    }, {
      stablehlo.return %arg1 : tensor<f32>
    }) : (tensor<i1>) -> tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @stablehlo_reverse(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = stablehlo.reverse %arg0, dims = [1] : tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
  func.func @stablehlo_rng_bit_generator(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>) {
    %output_state, %output = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
    return %output_state, %output : tensor<2xui64>, tensor<4xui32>
  }
  func.func @stablehlo_round_nearest_even(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_round_nearest_afz(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.round_nearest_afz %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_rsqrt(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.rsqrt %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_scatter(%arg0: tensor<64x32xf32>, %arg1: tensor<16x1xi32>, %arg2: tensor<16x32xf32>) -> tensor<64x32xf32> {
    %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %1 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<64x32xf32>, tensor<16x1xi32>, tensor<16x32xf32>) -> tensor<64x32xf32>
    return %0 : tensor<64x32xf32>
  }
  func.func @stablehlo_select_and_scatter(%arg0: tensor<8xf32>, %arg1: tensor<4xf32>, %arg2: tensor<f32>) -> tensor<8xf32> {
    %0 = "stablehlo.select_and_scatter"(%arg0, %arg1, %arg2) <{padding = dense<0> : tensor<1x2xi64>, window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %1 = stablehlo.compare GE, %arg3, %arg4, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }, {
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %1 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<8xf32>, tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
  func.func @stablehlo_select(%arg0: tensor<4xi1>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<4xi1>, tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_shift_left(%arg0: tensor<4xi32>, %arg1: tensor<4xi32>) -> tensor<4xi32> {
    %0 = stablehlo.shift_left %arg0, %arg1 : tensor<4xi32>
    return %0 : tensor<4xi32>
  }
  func.func @stablehlo_shift_right_arithmetic(%arg0: tensor<4xi32>, %arg1: tensor<4xi32>) -> tensor<4xi32> {
    %0 = stablehlo.shift_right_arithmetic %arg0, %arg1 : tensor<4xi32>
    return %0 : tensor<4xi32>
  }
  func.func @stablehlo_shift_right_logical(%arg0: tensor<4xi32>, %arg1: tensor<4xi32>) -> tensor<4xi32> {
    %0 = stablehlo.shift_right_logical %arg0, %arg1 : tensor<4xi32>
    return %0 : tensor<4xi32>
  }
  func.func @stablehlo_sign(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.sign %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_sine(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.sine %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_slice(%arg0: tensor<4x8xf32>) -> tensor<2x4xf32> {
    %0 = stablehlo.slice %arg0 [1:3, 0:8:2] : (tensor<4x8xf32>) -> tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func @stablehlo_sort(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = "stablehlo.sort"(%arg0) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %1 = stablehlo.compare LT, %arg1, %arg2, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
  func.func @stablehlo_sqrt(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.sqrt %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_subtract(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.subtract %arg0, %arg1 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_tan(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.tan %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_tanh(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @stablehlo_transpose(%arg0: tensor<2x3x4xf32>) -> tensor<2x4x3xf32> {
    %0 = stablehlo.transpose %arg0, dims = [0, 2, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
    return %0 : tensor<2x4x3xf32>
  }
  func.func @stablehlo_while(%arg0: tensor<i32>, %arg1: tensor<f32>) -> tensor<f32> {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<i32>, tensor<f32>
    cond {
      %1 = stablehlo.compare GT, %iterArg, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.subtract %iterArg, %c : tensor<i32>
      %2 = stablehlo.add %iterArg_0, %iterArg_0 : tensor<f32>
      stablehlo.return %1, %2 : tensor<i32>, tensor<f32>
    }
    return %0#1 : tensor<f32>
  }
  func.func @stablehlo_xor(%arg0: tensor<4xi1>, %arg1: tensor<4xi1>) -> tensor<4xi1> {
    %0 = stablehlo.xor %arg0, %arg1 : tensor<4xi1>
    return %0 : tensor<4xi1>
  }
  func.func @chlo_acos(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = chlo.acos %arg0 : tensor<4xf32> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @chlo_acosh(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = chlo.acosh %arg0 : tensor<4xf32> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @chlo_asin(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = chlo.asin %arg0 : tensor<4xf32> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @chlo_asinh(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = chlo.asinh %arg0 : tensor<4xf32> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @chlo_atan(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = chlo.atan %arg0 : tensor<4xf32> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @chlo_atanh(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = chlo.atanh %arg0 : tensor<4xf32> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @chlo_bessel_i1e(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = chlo.bessel_i1e %arg0 : tensor<4xf32> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @chlo_cosh(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = chlo.cosh %arg0 : tensor<4xf32> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @chlo_digamma(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = chlo.digamma %arg0 : tensor<4xf32> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @chlo_erf_inv(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = chlo.erf_inv %arg0 : tensor<4xf32> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @chlo_erf(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = chlo.erf %arg0 : tensor<4xf32> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @chlo_erfc(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = chlo.erfc %arg0 : tensor<4xf32> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @chlo_is_inf(%arg0: tensor<4xf32>) -> tensor<4xi1> {
    %0 = chlo.is_inf %arg0 : tensor<4xf32> -> tensor<4xi1>
    return %0 : tensor<4xi1>
  }
  func.func @chlo_is_neg_inf(%arg0: tensor<4xf32>) -> tensor<4xi1> {
    %0 = chlo.is_neg_inf %arg0 : tensor<4xf32> -> tensor<4xi1>
    return %0 : tensor<4xi1>
  }
  func.func @chlo_is_pos_inf(%arg0: tensor<4xf32>) -> tensor<4xi1> {
    %0 = chlo.is_pos_inf %arg0 : tensor<4xf32> -> tensor<4xi1>
    return %0 : tensor<4xi1>
  }
  func.func @chlo_lgamma(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = chlo.lgamma %arg0 : tensor<4xf32> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @chlo_next_after(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = chlo.next_after %arg0, %arg1 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @chlo_polygamma(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = chlo.polygamma %arg0, %arg1 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @chlo_sinh(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = chlo.sinh %arg0 : tensor<4xf32> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @chlo_square(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = chlo.square %arg0 : tensor<4xf32> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @chlo_tan(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = chlo.tan %arg0 : tensor<4xf32> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @chlo_top_k(%arg0: tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>) {
    %values, %indices = chlo.top_k(%arg0, k = 2) : tensor<4x8xf32> -> (tensor<4x2xf32>, tensor<4x2xi32>)
    return %values, %indices : tensor<4x2xf32>, tensor<4x2xi32>
  }
  func.func @chlo_zeta(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = chlo.zeta %arg0, %arg1 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  sdy.mesh @mesh_sdy_manual_computation = <["data"=2]>
  func.func @sdy_manual_computation(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh_sdy_manual_computation, [{"data"} ]>] out_shardings=[<@mesh_sdy_manual_computation, [{"data"} ]>] manual_axes={"data"} (%arg1: tensor<4xf32>) {
      %1 = stablehlo.add %arg1, %arg1 : tensor<4xf32>
      sdy.return %1 : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
  sdy.mesh @mesh_sdy_mesh = <["data"=2, "model"=4]>
  sdy.mesh @mesh_sdy_return = <["data"=1]>
  func.func @sdy_return(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh_sdy_return, [{} ]>] out_shardings=[<@mesh_sdy_return, [{} ]>] manual_axes={} (%arg1: tensor<8xf32>) {
      sdy.return %arg1 : tensor<8xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
  sdy.mesh @mesh_sdy_sharding_constraint = <["data"=2]>
  func.func @sdy_sharding_constraint(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = sdy.sharding_constraint %arg0 <@mesh_sdy_sharding_constraint, [{"data"}, {} ]> : tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
  func.func @extra(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<f32>, %arg3: tensor<i1>, %arg4: tensor<i32>) {
    %0 = stablehlo.compare LT, %arg0, %arg1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %1 = stablehlo.compare EQ, %arg0, %arg1, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %2 = stablehlo.select %arg3, %arg0, %arg1 : tensor<i1>, tensor<4xf32>
    %3 = stablehlo.select %arg3, %arg0, %arg1 : tensor<i1>, tensor<4xf32>
    %4 = stablehlo.convert %arg0 : tensor<4xf32>
    %5 = stablehlo.slice %arg2 [] : (tensor<f32>) -> tensor<f32>
    %6 = stablehlo.dynamic_slice %arg2,  sizes = [] : (tensor<f32>) -> tensor<f32>
    %cst = stablehlo.constant {note = 1 : i32} dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>
    %cst_0 = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %c = stablehlo.constant dense<[[true, false]]> : tensor<1x2xi1>
    %7 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [] x [] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
    %8 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [] x [], precision = [HIGH, HIGHEST], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 3, allow_imprecise_accumulation = true> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %9 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [] x [] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
    %10:2 = stablehlo.reduce(%arg0 init: %arg2), (%arg1 init: %arg2) across dimensions = [0] {note = "x"} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
     reducer(%arg5: tensor<f32>, %arg7: tensor<f32>) (%arg6: tensor<f32>, %arg8: tensor<f32>)  {
      %17 = stablehlo.add %arg5, %arg7 : tensor<f32>
      stablehlo.return %17, %arg8 : tensor<f32>, tensor<f32>
    }
    %11 = stablehlo.reduce(%arg0 init: %arg2) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
     reducer(%arg5: tensor<f32>, %arg6: tensor<f32>)  {
      %17 = stablehlo.multiply %arg6, %arg5 : tensor<f32>
      stablehlo.return %17 : tensor<f32>
    }
    %12 = stablehlo.while(%iterArg = %arg4) : tensor<i32> attributes {note = 1 : i32}
    cond {
      stablehlo.return %arg3 : tensor<i1>
    } do {
      stablehlo.return %iterArg : tensor<i32>
    }
    stablehlo.while()
    cond {
      stablehlo.return %arg3 : tensor<i1>
    } do {
      stablehlo.return 
    }
    %13 = stablehlo.custom_call @"any name"(%arg0) {api_version = 4 : i32, backend_config = {a = 1 : i32}, called_computations = [@extra], has_side_effect = true, operand_layouts = [dense<0> : tensor<1xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<0> : tensor<1xindex>]} : (tensor<4xf32>) -> tensor<4xf32>
    %14 = stablehlo.exponential %arg0 {result_accuracy = #stablehlo.result_accuracy<atol = 1.000000e-05, ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<4xf32>
    %15 = "stablehlo.reduce_window"(%arg0, %arg2) <{window_dimensions = array<i64: 2>}> ({
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
      stablehlo.return %arg5 : tensor<f32>
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<3xf32>
    %16 = stablehlo.reverse %arg0, dims = [] : tensor<4xf32>
    return
  }
  func.func @types(%arg0: tensor<4xf8E4M3FN>, %arg1: tensor<4xf8E5M2>, %arg2: tensor<0xui4>, %arg3: tensor<2xf64>, %arg4: tensor<bf16>) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [0] x [0] : (tensor<4xf8E4M3FN>, tensor<4xf8E5M2>) -> tensor<f32>
    %1 = stablehlo.add %arg2, %arg2 : tensor<0xui4>
    return
  }
  func.func @collectives(%arg0: tensor<4xf32>) {
    %0 = "stablehlo.collective_broadcast"(%arg0) <{replica_groups = dense<[[0, 1, 2], [3, 4, -1]]> : tensor<2x3xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    %1:2 = "stablehlo.all_gather"(%arg0, %arg0) <{all_gather_dim = 0 : i64, replica_groups = dense<> : tensor<0x0xi64>}> : (tensor<4xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>)
    %2 = stablehlo.replica_id : tensor<ui32>
    %3 = stablehlo.partition_id : tensor<ui32>
    return
  }
  sdy.mesh @big = <["a"=2, "b"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @empty_mesh = <[]>
  func.func @shardings(%arg0: tensor<4x8xf32>) attributes {note = [#sdy.sharding_per_value<[<@big, [{}]>]>, #stablehlo.channel_handle<handle = 1, type = 2>]} {
    %0 = sdy.sharding_constraint %arg0 <@big, [{"a":(1)2, ?}p1, {}], replicated={"b"}, unreduced={"b"}> : tensor<4x8xf32>
    %1 = sdy.sharding_constraint %0 <mesh<["x"=2]>, [{?}, {"x"}]> : tensor<4x8xf32>
    return
  }
}
