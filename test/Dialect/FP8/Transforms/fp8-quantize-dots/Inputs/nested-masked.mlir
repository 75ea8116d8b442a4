module @jit_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<32x8xf32>, %arg1: tensor<2x2x32x32xf32>, %arg2: tensor<16x32xf32>, %arg3: tensor<16x8xf32>) -> (tensor<32x8xf32> {jax.result_info = "result[0]['o']"}, tensor<2x2x32x32xf32> {jax.result_info = "result[0]['w']"}, tensor<f32> {jax.result_info = "result[1]"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = call @_where(%c) : (tensor<i32>) -> tensor<32x32xf32>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %1 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<2x2x32x32xi1>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x2x32x32xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x2x16x32xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x2x16x32xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x2x16x32xf32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %6:9 = stablehlo.while(%iterArg = %arg1, %iterArg_12 = %0, %iterArg_13 = %c_4, %iterArg_14 = %arg2, %iterArg_15 = %1, %iterArg_16 = %2, %iterArg_17 = %3, %iterArg_18 = %4, %iterArg_19 = %5) : tensor<2x2x32x32xf32>, tensor<32x32xf32>, tensor<i32>, tensor<16x32xf32>, tensor<2x2x32x32xi1>, tensor<2x2x32x32xf32>, tensor<2x2x16x32xf32>, tensor<2x2x16x32xf32>, tensor<2x2x16x32xf32>
    cond {
      %c_20 = stablehlo.constant dense<2> : tensor<i32>
      %26 = stablehlo.compare LT, %iterArg_13, %c_20, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %26 : tensor<i1>
    } do {
      %26 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_13) : (tensor<2x2x32x32xf32>, tensor<i32>) -> tensor<2x32x32xf32>
      %27:6 = func.call @closed_call(%iterArg_12, %iterArg_14, %26) : (tensor<32x32xf32>, tensor<16x32xf32>, tensor<2x32x32xf32>) -> (tensor<16x32xf32>, tensor<2x32x32xi1>, tensor<2x32x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>)
      %28 = func.call @dynamic_update_index_in_dim_5(%iterArg_15, %27#1, %iterArg_13) : (tensor<2x2x32x32xi1>, tensor<2x32x32xi1>, tensor<i32>) -> tensor<2x2x32x32xi1>
      %29 = func.call @dynamic_update_index_in_dim_6(%iterArg_16, %27#2, %iterArg_13) : (tensor<2x2x32x32xf32>, tensor<2x32x32xf32>, tensor<i32>) -> tensor<2x2x32x32xf32>
      %30 = func.call @dynamic_update_index_in_dim_7(%iterArg_17, %27#3, %iterArg_13) : (tensor<2x2x16x32xf32>, tensor<2x16x32xf32>, tensor<i32>) -> tensor<2x2x16x32xf32>
      %31 = func.call @dynamic_update_index_in_dim_7(%iterArg_18, %27#4, %iterArg_13) : (tensor<2x2x16x32xf32>, tensor<2x16x32xf32>, tensor<i32>) -> tensor<2x2x16x32xf32>
      %32 = func.call @dynamic_update_index_in_dim_7(%iterArg_19, %27#5, %iterArg_13) : (tensor<2x2x16x32xf32>, tensor<2x16x32xf32>, tensor<i32>) -> tensor<2x2x16x32xf32>
      %c_20 = stablehlo.constant dense<1> : tensor<i32>
      %33 = stablehlo.add %iterArg_13, %c_20 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_12, %33, %27#0, %28, %29, %30, %31, %32 : tensor<2x2x32x32xf32>, tensor<32x32xf32>, tensor<i32>, tensor<16x32xf32>, tensor<2x2x32x32xi1>, tensor<2x2x32x32xf32>, tensor<2x2x16x32xf32>, tensor<2x2x16x32xf32>, tensor<2x2x16x32xf32>
    }
    %7 = stablehlo.dot_general %6#3, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
    %8 = stablehlo.subtract %7, %arg3 : tensor<16x8xf32>
    %9 = stablehlo.multiply %8, %8 : tensor<16x8xf32>
    %cst_5 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %11 = stablehlo.multiply %10, %8 : tensor<16x8xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %12 = stablehlo.reduce(%9 init: %cst_6) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x8xf32>, tensor<f32>) -> tensor<f32>
    %cst_7 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %14 = stablehlo.multiply %13, %11 : tensor<16x8xf32>
    %15 = stablehlo.dot_general %14, %6#3, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x8xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
    %16 = stablehlo.transpose %15, dims = [1, 0] : (tensor<8x32xf32>) -> tensor<32x8xf32>
    %17 = stablehlo.dot_general %14, %arg0, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x8xf32>, tensor<32x8xf32>) -> tensor<16x32xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %18 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<2x2x32x32xf32>
    %c_9 = stablehlo.constant dense<0> : tensor<i32>
    %19:8 = stablehlo.while(%iterArg = %6#4, %iterArg_12 = %6#5, %iterArg_13 = %6#6, %iterArg_14 = %6#7, %iterArg_15 = %6#8, %iterArg_16 = %c_9, %iterArg_17 = %17, %iterArg_18 = %18) : tensor<2x2x32x32xi1>, tensor<2x2x32x32xf32>, tensor<2x2x16x32xf32>, tensor<2x2x16x32xf32>, tensor<2x2x16x32xf32>, tensor<i32>, tensor<16x32xf32>, tensor<2x2x32x32xf32>
    cond {
      %c_19 = stablehlo.constant dense<2> : tensor<i32>
      %26 = stablehlo.compare LT, %iterArg_16, %c_19, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %26 : tensor<i1>
    } do {
      %c_19 = stablehlo.constant dense<2> : tensor<i32>
      %26 = stablehlo.subtract %c_19, %iterArg_16 : tensor<i32>
      %c_20 = stablehlo.constant dense<1> : tensor<i32>
      %27 = stablehlo.subtract %26, %c_20 : tensor<i32>
      %28 = func.call @dynamic_index_in_dim_8(%iterArg, %27) : (tensor<2x2x32x32xi1>, tensor<i32>) -> tensor<2x32x32xi1>
      %29 = func.call @dynamic_index_in_dim(%iterArg_12, %27) : (tensor<2x2x32x32xf32>, tensor<i32>) -> tensor<2x32x32xf32>
      %30 = func.call @dynamic_index_in_dim_9(%iterArg_13, %27) : (tensor<2x2x16x32xf32>, tensor<i32>) -> tensor<2x16x32xf32>
      %31 = func.call @dynamic_index_in_dim_9(%iterArg_14, %27) : (tensor<2x2x16x32xf32>, tensor<i32>) -> tensor<2x16x32xf32>
      %32 = func.call @dynamic_index_in_dim_9(%iterArg_15, %27) : (tensor<2x2x16x32xf32>, tensor<i32>) -> tensor<2x16x32xf32>
      %33:2 = func.call @closed_call_10(%iterArg_17, %28, %29, %30, %31, %32) : (tensor<16x32xf32>, tensor<2x32x32xi1>, tensor<2x32x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>) -> (tensor<16x32xf32>, tensor<2x32x32xf32>)
      %34 = func.call @dynamic_update_index_in_dim_6(%iterArg_18, %33#1, %27) : (tensor<2x2x32x32xf32>, tensor<2x32x32xf32>, tensor<i32>) -> tensor<2x2x32x32xf32>
      %c_21 = stablehlo.constant dense<1> : tensor<i32>
      %35 = stablehlo.add %iterArg_16, %c_21 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_12, %iterArg_13, %iterArg_14, %iterArg_15, %35, %33#0, %34 : tensor<2x2x32x32xi1>, tensor<2x2x32x32xf32>, tensor<2x2x16x32xf32>, tensor<2x2x16x32xf32>, tensor<2x2x16x32xf32>, tensor<i32>, tensor<16x32xf32>, tensor<2x2x32x32xf32>
    }
    %cst_10 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<32x8xf32>
    %21 = stablehlo.multiply %20, %16 : tensor<32x8xf32>
    %22 = stablehlo.subtract %arg0, %21 : tensor<32x8xf32>
    %cst_11 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<2x2x32x32xf32>
    %24 = stablehlo.multiply %23, %19#7 : tensor<2x2x32x32xf32>
    %25 = stablehlo.subtract %arg1, %24 : tensor<2x2x32x32xf32>
    return %22, %25, %12 : tensor<32x8xf32>, tensor<2x2x32x32xf32>, tensor<f32>
  }
  func.func private @_where(%arg0: tensor<i32>) -> tensor<32x32xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    return %1 : tensor<32x32xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<2x2x32x32xf32>, %arg1: tensor<i32>) -> tensor<2x32x32xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 2, 32, 32] : (tensor<2x2x32x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x32x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x2x32x32xf32>) -> tensor<2x32x32xf32>
    return %1 : tensor<2x32x32xf32>
  }
  func.func private @closed_call(%arg0: tensor<32x32xf32>, %arg1: tensor<16x32xf32>, %arg2: tensor<2x32x32xf32>) -> (tensor<16x32xf32>, tensor<2x32x32xi1>, tensor<2x32x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>) {
    %c = stablehlo.constant dense<false> : tensor<i1>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<2x32x32xi1>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x32x32xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x16x32xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x16x32xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x16x32xf32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %5:9 = stablehlo.while(%iterArg = %arg2, %iterArg_4 = %arg0, %iterArg_5 = %c_3, %iterArg_6 = %arg1, %iterArg_7 = %0, %iterArg_8 = %1, %iterArg_9 = %2, %iterArg_10 = %3, %iterArg_11 = %4) : tensor<2x32x32xf32>, tensor<32x32xf32>, tensor<i32>, tensor<16x32xf32>, tensor<2x32x32xi1>, tensor<2x32x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>
    cond {
      %c_12 = stablehlo.constant dense<2> : tensor<i32>
      %6 = stablehlo.compare LT, %iterArg_5, %c_12, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    } do {
      %6 = func.call @dynamic_index_in_dim_0(%iterArg, %iterArg_5) : (tensor<2x32x32xf32>, tensor<i32>) -> tensor<32x32xf32>
      %7:6 = func.call @closed_call_1(%iterArg_4, %iterArg_6, %6) : (tensor<32x32xf32>, tensor<16x32xf32>, tensor<32x32xf32>) -> (tensor<16x32xf32>, tensor<32x32xi1>, tensor<32x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>)
      %8 = func.call @dynamic_update_index_in_dim(%iterArg_7, %7#1, %iterArg_5) : (tensor<2x32x32xi1>, tensor<32x32xi1>, tensor<i32>) -> tensor<2x32x32xi1>
      %9 = func.call @dynamic_update_index_in_dim_3(%iterArg_8, %7#2, %iterArg_5) : (tensor<2x32x32xf32>, tensor<32x32xf32>, tensor<i32>) -> tensor<2x32x32xf32>
      %10 = func.call @dynamic_update_index_in_dim_4(%iterArg_9, %7#3, %iterArg_5) : (tensor<2x16x32xf32>, tensor<16x32xf32>, tensor<i32>) -> tensor<2x16x32xf32>
      %11 = func.call @dynamic_update_index_in_dim_4(%iterArg_10, %7#4, %iterArg_5) : (tensor<2x16x32xf32>, tensor<16x32xf32>, tensor<i32>) -> tensor<2x16x32xf32>
      %12 = func.call @dynamic_update_index_in_dim_4(%iterArg_11, %7#5, %iterArg_5) : (tensor<2x16x32xf32>, tensor<16x32xf32>, tensor<i32>) -> tensor<2x16x32xf32>
      %c_12 = stablehlo.constant dense<1> : tensor<i32>
      %13 = stablehlo.add %iterArg_5, %c_12 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_4, %13, %7#0, %8, %9, %10, %11, %12 : tensor<2x32x32xf32>, tensor<32x32xf32>, tensor<i32>, tensor<16x32xf32>, tensor<2x32x32xi1>, tensor<2x32x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>
    }
    return %5#3, %5#4, %5#5, %5#6, %5#7, %5#8 : tensor<16x32xf32>, tensor<2x32x32xi1>, tensor<2x32x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>
  }
  func.func private @dynamic_index_in_dim_0(%arg0: tensor<2x32x32xf32>, %arg1: tensor<i32>) -> tensor<32x32xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 32, 32] : (tensor<2x32x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x32x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x32x32xf32>) -> tensor<32x32xf32>
    return %1 : tensor<32x32xf32>
  }
  func.func private @closed_call_1(%arg0: tensor<32x32xf32>, %arg1: tensor<16x32xf32>, %arg2: tensor<32x32xf32>) -> (tensor<16x32xf32>, tensor<32x32xi1>, tensor<32x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>) {
    %0 = stablehlo.abs %arg2 : tensor<32x32xf32>
    %cst = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %2 = stablehlo.compare GT, %0, %1, FLOAT : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xi1>
    %3 = call @_where_2(%2, %arg2, %arg0) : (tensor<32x32xi1>, tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
    %4 = stablehlo.dot_general %arg1, %3, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
    %5 = stablehlo.tanh %4 : tensor<16x32xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %7 = stablehlo.subtract %6, %5 : tensor<16x32xf32>
    return %5, %2, %3, %arg1, %5, %7 : tensor<16x32xf32>, tensor<32x32xi1>, tensor<32x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>
  }
  func.func private @_where_2(%arg0: tensor<32x32xi1>, %arg1: tensor<32x32xf32>, %arg2: tensor<32x32xf32>) -> tensor<32x32xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<32x32xi1>, tensor<32x32xf32>
    return %0 : tensor<32x32xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<2x32x32xi1>, %arg1: tensor<32x32xi1>, %arg2: tensor<i32>) -> tensor<2x32x32xi1> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<32x32xi1>) -> tensor<1x32x32xi1>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<2x32x32xi1>, tensor<1x32x32xi1>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x32x32xi1>
    return %1 : tensor<2x32x32xi1>
  }
  func.func private @dynamic_update_index_in_dim_3(%arg0: tensor<2x32x32xf32>, %arg1: tensor<32x32xf32>, %arg2: tensor<i32>) -> tensor<2x32x32xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<32x32xf32>) -> tensor<1x32x32xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<2x32x32xf32>, tensor<1x32x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x32x32xf32>
    return %1 : tensor<2x32x32xf32>
  }
  func.func private @dynamic_update_index_in_dim_4(%arg0: tensor<2x16x32xf32>, %arg1: tensor<16x32xf32>, %arg2: tensor<i32>) -> tensor<2x16x32xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<16x32xf32>) -> tensor<1x16x32xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<2x16x32xf32>, tensor<1x16x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x16x32xf32>
    return %1 : tensor<2x16x32xf32>
  }
  func.func private @dynamic_update_index_in_dim_5(%arg0: tensor<2x2x32x32xi1>, %arg1: tensor<2x32x32xi1>, %arg2: tensor<i32>) -> tensor<2x2x32x32xi1> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<2x32x32xi1>) -> tensor<1x2x32x32xi1>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<2x2x32x32xi1>, tensor<1x2x32x32xi1>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x2x32x32xi1>
    return %1 : tensor<2x2x32x32xi1>
  }
  func.func private @dynamic_update_index_in_dim_6(%arg0: tensor<2x2x32x32xf32>, %arg1: tensor<2x32x32xf32>, %arg2: tensor<i32>) -> tensor<2x2x32x32xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<2x32x32xf32>) -> tensor<1x2x32x32xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<2x2x32x32xf32>, tensor<1x2x32x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x2x32x32xf32>
    return %1 : tensor<2x2x32x32xf32>
  }
  func.func private @dynamic_update_index_in_dim_7(%arg0: tensor<2x2x16x32xf32>, %arg1: tensor<2x16x32xf32>, %arg2: tensor<i32>) -> tensor<2x2x16x32xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<2x16x32xf32>) -> tensor<1x2x16x32xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<2x2x16x32xf32>, tensor<1x2x16x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x2x16x32xf32>
    return %1 : tensor<2x2x16x32xf32>
  }
  func.func private @dynamic_index_in_dim_8(%arg0: tensor<2x2x32x32xi1>, %arg1: tensor<i32>) -> tensor<2x32x32xi1> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 2, 32, 32] : (tensor<2x2x32x32xi1>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x32x32xi1>
    %1 = stablehlo.reshape %0 : (tensor<1x2x32x32xi1>) -> tensor<2x32x32xi1>
    return %1 : tensor<2x32x32xi1>
  }
  func.func private @dynamic_index_in_dim_9(%arg0: tensor<2x2x16x32xf32>, %arg1: tensor<i32>) -> tensor<2x16x32xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 2, 16, 32] : (tensor<2x2x16x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x16x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x2x16x32xf32>) -> tensor<2x16x32xf32>
    return %1 : tensor<2x16x32xf32>
  }
  func.func private @closed_call_10(%arg0: tensor<16x32xf32>, %arg1: tensor<2x32x32xi1>, %arg2: tensor<2x32x32xf32>, %arg3: tensor<2x16x32xf32>, %arg4: tensor<2x16x32xf32>, %arg5: tensor<2x16x32xf32>) -> (tensor<16x32xf32>, tensor<2x32x32xf32>) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x32x32xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:8 = stablehlo.while(%iterArg = %arg1, %iterArg_0 = %arg2, %iterArg_1 = %arg3, %iterArg_2 = %arg4, %iterArg_3 = %arg5, %iterArg_4 = %c, %iterArg_5 = %arg0, %iterArg_6 = %0) : tensor<2x32x32xi1>, tensor<2x32x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<i32>, tensor<16x32xf32>, tensor<2x32x32xf32>
    cond {
      %c_7 = stablehlo.constant dense<2> : tensor<i32>
      %2 = stablehlo.compare LT, %iterArg_4, %c_7, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %c_7 = stablehlo.constant dense<2> : tensor<i32>
      %2 = stablehlo.subtract %c_7, %iterArg_4 : tensor<i32>
      %c_8 = stablehlo.constant dense<1> : tensor<i32>
      %3 = stablehlo.subtract %2, %c_8 : tensor<i32>
      %4 = func.call @dynamic_index_in_dim_11(%iterArg, %3) : (tensor<2x32x32xi1>, tensor<i32>) -> tensor<32x32xi1>
      %5 = func.call @dynamic_index_in_dim_0(%iterArg_0, %3) : (tensor<2x32x32xf32>, tensor<i32>) -> tensor<32x32xf32>
      %6 = func.call @dynamic_index_in_dim_12(%iterArg_1, %3) : (tensor<2x16x32xf32>, tensor<i32>) -> tensor<16x32xf32>
      %7 = func.call @dynamic_index_in_dim_12(%iterArg_2, %3) : (tensor<2x16x32xf32>, tensor<i32>) -> tensor<16x32xf32>
      %8 = func.call @dynamic_index_in_dim_12(%iterArg_3, %3) : (tensor<2x16x32xf32>, tensor<i32>) -> tensor<16x32xf32>
      %9:2 = func.call @closed_call_13(%iterArg_5, %4, %5, %6, %7, %8) : (tensor<16x32xf32>, tensor<32x32xi1>, tensor<32x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>) -> (tensor<16x32xf32>, tensor<32x32xf32>)
      %10 = func.call @dynamic_update_index_in_dim_3(%iterArg_6, %9#1, %3) : (tensor<2x32x32xf32>, tensor<32x32xf32>, tensor<i32>) -> tensor<2x32x32xf32>
      %c_9 = stablehlo.constant dense<1> : tensor<i32>
      %11 = stablehlo.add %iterArg_4, %c_9 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_0, %iterArg_1, %iterArg_2, %iterArg_3, %11, %9#0, %10 : tensor<2x32x32xi1>, tensor<2x32x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<i32>, tensor<16x32xf32>, tensor<2x32x32xf32>
    }
    return %1#6, %1#7 : tensor<16x32xf32>, tensor<2x32x32xf32>
  }
  func.func private @dynamic_index_in_dim_11(%arg0: tensor<2x32x32xi1>, %arg1: tensor<i32>) -> tensor<32x32xi1> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 32, 32] : (tensor<2x32x32xi1>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x32x32xi1>
    %1 = stablehlo.reshape %0 : (tensor<1x32x32xi1>) -> tensor<32x32xi1>
    return %1 : tensor<32x32xi1>
  }
  func.func private @dynamic_index_in_dim_12(%arg0: tensor<2x16x32xf32>, %arg1: tensor<i32>) -> tensor<16x32xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 16, 32] : (tensor<2x16x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x16x32xf32>) -> tensor<16x32xf32>
    return %1 : tensor<16x32xf32>
  }
  func.func private @closed_call_13(%arg0: tensor<16x32xf32>, %arg1: tensor<32x32xi1>, %arg2: tensor<32x32xf32>, %arg3: tensor<16x32xf32>, %arg4: tensor<16x32xf32>, %arg5: tensor<16x32xf32>) -> (tensor<16x32xf32>, tensor<32x32xf32>) {
    %0 = stablehlo.multiply %arg0, %arg5 : tensor<16x32xf32>
    %1 = stablehlo.multiply %0, %arg4 : tensor<16x32xf32>
    %2 = stablehlo.add %0, %1 : tensor<16x32xf32>
    %3 = stablehlo.dot_general %2, %arg3, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<32x32xf32>
    %4 = stablehlo.transpose %3, dims = [1, 0] : (tensor<32x32xf32>) -> tensor<32x32xf32>
    %5 = stablehlo.dot_general %2, %arg2, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
    %6 = call @_where_14(%arg1, %4) : (tensor<32x32xi1>, tensor<32x32xf32>) -> tensor<32x32xf32>
    return %5, %6 : tensor<16x32xf32>, tensor<32x32xf32>
  }
  func.func private @_where_14(%arg0: tensor<32x32xi1>, %arg1: tensor<32x32xf32>) -> tensor<32x32xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<32x32xi1>, tensor<32x32xf32>
    return %1 : tensor<32x32xf32>
  }
}

