// A model of characters: an embedding and a dot, as JAX prints it.
module @jit_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<256x32xf32>, %arg1: tensor<32x256xf32>, %arg2: tensor<4x17xi32>) -> (tensor<256x32xf32> {jax.result_info = "result[0]['embed']"}, tensor<32x256xf32> {jax.result_info = "result[0]['out']"}, tensor<f32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.slice %arg2 [0:4, 0:16] : (tensor<4x17xi32>) -> tensor<4x16xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x16xi32>
    %2 = stablehlo.compare LT, %0, %1, SIGNED : (tensor<4x16xi32>, tensor<4x16xi32>) -> tensor<4x16xi1>
    %c_0 = stablehlo.constant dense<256> : tensor<i32>
    %3 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4x16xi32>
    %4 = stablehlo.add %0, %3 : tensor<4x16xi32>
    %5 = stablehlo.select %2, %4, %0 : tensor<4x16xi1>, tensor<4x16xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<4x16xi32>) -> tensor<4x16x1xi32>
    %7 = "stablehlo.gather"(%arg0, %6) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 32>}> : (tensor<256x32xf32>, tensor<4x16x1xi32>) -> tensor<4x16x32xf32>
    %8 = stablehlo.tanh %7 : tensor<4x16x32xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x16x32xf32>
    %10 = stablehlo.subtract %9, %8 : tensor<4x16x32xf32>
    %11 = stablehlo.dot_general %8, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16x32xf32>, tensor<32x256xf32>) -> tensor<4x16x256xf32>
    %12:3 = call @log_softmax(%11) : (tensor<4x16x256xf32>) -> (tensor<4x16x256xf32>, tensor<4x16x256xf32>, tensor<4x16x1xf32>)
    %13 = stablehlo.slice %arg2 [0:4, 1:17] : (tensor<4x17xi32>) -> tensor<4x16xi32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1] : (tensor<4x16xi32>) -> tensor<4x16x1xi32>
    %15:2 = call @take_along_axis(%12#0, %14) : (tensor<4x16x256xf32>, tensor<4x16x1xi32>) -> (tensor<4x16x1xf32>, tensor<4x16x1x1xi32>)
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %16 = stablehlo.reduce(%15#0 init: %cst_1) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<4x16x1xf32>, tensor<f32>) -> tensor<f32>
    %cst_2 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %17 = stablehlo.divide %16, %cst_2 : tensor<f32>
    %18 = stablehlo.negate %17 : tensor<f32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %19 = stablehlo.negate %cst_3 : tensor<f32>
    %cst_4 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %20 = stablehlo.divide %19, %cst_4 : tensor<f32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %22 = call @take_along_axis_0(%15#1, %21) : (tensor<4x16x1x1xi32>, tensor<4x16x1xf32>) -> tensor<4x16x256xf32>
    %23 = call @log_softmax_1(%12#1, %12#2, %22) : (tensor<4x16x256xf32>, tensor<4x16x1xf32>, tensor<4x16x256xf32>) -> tensor<4x16x256xf32>
    %24 = stablehlo.dot_general %23, %8, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<4x16x256xf32>, tensor<4x16x32xf32>) -> tensor<256x32xf32>
    %25 = stablehlo.transpose %24, dims = [1, 0] : (tensor<256x32xf32>) -> tensor<32x256xf32>
    %26 = stablehlo.dot_general %23, %arg1, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x16x256xf32>, tensor<32x256xf32>) -> tensor<4x16x32xf32>
    %27 = stablehlo.multiply %26, %10 : tensor<4x16x32xf32>
    %28 = stablehlo.multiply %27, %8 : tensor<4x16x32xf32>
    %29 = stablehlo.add %27, %28 : tensor<4x16x32xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %30 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<256x32xf32>
    %31 = "stablehlo.scatter"(%30, %6, %29) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %38 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %38 : tensor<f32>
    }) : (tensor<256x32xf32>, tensor<4x16x1xi32>, tensor<4x16x32xf32>) -> tensor<256x32xf32>
    %cst_6 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %32 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<256x32xf32>
    %33 = stablehlo.multiply %32, %31 : tensor<256x32xf32>
    %34 = stablehlo.subtract %arg0, %33 : tensor<256x32xf32>
    %cst_7 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %35 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<32x256xf32>
    %36 = stablehlo.multiply %35, %25 : tensor<32x256xf32>
    %37 = stablehlo.subtract %arg1, %36 : tensor<32x256xf32>
    return %34, %37, %18 : tensor<256x32xf32>, tensor<32x256xf32>, tensor<f32>
  }
  func.func private @log_softmax(%arg0: tensor<4x16x256xf32>) -> (tensor<4x16x256xf32>, tensor<4x16x256xf32>, tensor<4x16x1xf32>) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [2] : (tensor<4x16x256xf32>, tensor<f32>) -> tensor<4x16xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x16xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<4x16xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x256xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<4x16x256xf32>
    %6 = stablehlo.exponential %5 : tensor<4x16x256xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<4x16x256xf32>, tensor<f32>) -> tensor<4x16xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %9 = stablehlo.log %8 : tensor<4x16x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2] : (tensor<4x16x1xf32>) -> tensor<4x16x256xf32>
    %11 = stablehlo.subtract %5, %10 : tensor<4x16x256xf32>
    return %11, %6, %8 : tensor<4x16x256xf32>, tensor<4x16x256xf32>, tensor<4x16x1xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<4x16x256xf32>, %arg1: tensor<4x16x1xi32>) -> (tensor<4x16x1xf32>, tensor<4x16x1x1xi32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x16x1xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<4x16x1xi32>, tensor<4x16x1xi32>) -> tensor<4x16x1xi1>
    %c_0 = stablehlo.constant dense<256> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4x16x1xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<4x16x1xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<4x16x1xi1>, tensor<4x16x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<4x16x1xi32>) -> tensor<4x16x1x1xi32>
    %c_1 = stablehlo.constant dense<255> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<4x16x1x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<4x16x1x1xi32>, tensor<4x16x1x1xi32>) -> tensor<4x16x1x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [3] : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2, 3] : (tensor<1x1x1x1xi32>) -> tensor<4x16x1x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<4x16x1x1xi32>, tensor<4x16x1x1xi32>) -> tensor<4x16x1x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<4x16x1x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across dimensions = [3] : (tensor<4x16x1x1xi1>, tensor<i1>) -> tensor<4x16x1xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [2], operand_batching_dims = [0, 1], start_indices_batching_dims = [0, 1], start_index_map = [2], index_vector_dim = 3>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<4x16x256xf32>, tensor<4x16x1x1xi32>) -> tensor<4x16x1xf32>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x16x1xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<4x16x1xi1>, tensor<4x16x1xf32>
    return %15, %5 : tensor<4x16x1xf32>, tensor<4x16x1x1xi32>
  }
  func.func private @take_along_axis_0(%arg0: tensor<4x16x1x1xi32>, %arg1: tensor<4x16x1xf32>) -> tensor<4x16x256xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x16x256xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [2], input_batching_dims = [0, 1], scatter_indices_batching_dims = [0, 1], scatter_dims_to_operand_dims = [2], index_vector_dim = 3>, unique_indices = false}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<4x16x256xf32>, tensor<4x16x1x1xi32>, tensor<4x16x1xf32>) -> tensor<4x16x256xf32>
    return %1 : tensor<4x16x256xf32>
  }
  func.func private @log_softmax_1(%arg0: tensor<4x16x256xf32>, %arg1: tensor<4x16x1xf32>, %arg2: tensor<4x16x256xf32>) -> tensor<4x16x256xf32> {
    %0 = stablehlo.negate %arg2 : tensor<4x16x256xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<4x16x256xf32>, tensor<f32>) -> tensor<4x16xf32>
    %2 = stablehlo.reshape %1 : (tensor<4x16xf32>) -> tensor<4x16x1xf32>
    %3 = stablehlo.divide %2, %arg1 : tensor<4x16x1xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<4x16x1xf32>, tensor<f32>) -> tensor<4x16xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<4x16xf32>) -> tensor<4x16x256xf32>
    %6 = stablehlo.multiply %5, %arg0 : tensor<4x16x256xf32>
    %7 = stablehlo.add %arg2, %6 : tensor<4x16x256xf32>
    return %7 : tensor<4x16x256xf32>
  }
}
