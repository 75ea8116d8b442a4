module @jit_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<32x8xf32>, %arg1: tensor<4x32x32xf32>, %arg2: tensor<16x32xf32>, %arg3: tensor<16x8xf32>) -> (tensor<32x8xf32> {jax.result_info = "result[0]['o']"}, tensor<4x32x32xf32> {jax.result_info = "result[0]['w']"}, tensor<f32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.iota dim = 0 : tensor<2xi32>
    %1 = stablehlo.iota dim = 0 : tensor<2xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.compare LT, %c, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %c_2 = stablehlo.constant dense<32> : tensor<i32>
    %3 = stablehlo.add %c_1, %c_2 : tensor<i32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %4 = stablehlo.select %2, %3, %c_3 : tensor<i1>, tensor<i32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.compare LT, %c_4, %c_5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_6 = stablehlo.constant dense<0> : tensor<i32>
    %c_7 = stablehlo.constant dense<32> : tensor<i32>
    %6 = stablehlo.add %c_6, %c_7 : tensor<i32>
    %c_8 = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.select %5, %6, %c_8 : tensor<i1>, tensor<i32>
    %c_9 = stablehlo.constant dense<0> : tensor<i32>
    %8 = stablehlo.broadcast_in_dim %c_9, dims = [] : (tensor<i32>) -> tensor<2x2xi32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x2x32x32xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<2x2x16x32xf32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<2x2x16x32xf32>
    %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<2x2x16x32xf32>
    %c_13 = stablehlo.constant dense<0> : tensor<i32>
    %13:12 = stablehlo.while(%iterArg = %0, %iterArg_23 = %arg1, %iterArg_24 = %4, %iterArg_25 = %7, %iterArg_26 = %1, %iterArg_27 = %c_13, %iterArg_28 = %arg2, %iterArg_29 = %8, %iterArg_30 = %9, %iterArg_31 = %10, %iterArg_32 = %11, %iterArg_33 = %12) : tensor<2xi32>, tensor<4x32x32xf32>, tensor<i32>, tensor<i32>, tensor<2xi32>, tensor<i32>, tensor<16x32xf32>, tensor<2x2xi32>, tensor<2x2x32x32xf32>, tensor<2x2x16x32xf32>, tensor<2x2x16x32xf32>, tensor<2x2x16x32xf32>
    cond {
      %c_34 = stablehlo.constant dense<2> : tensor<i32>
      %35 = stablehlo.compare LT, %iterArg_27, %c_34, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %35 : tensor<i1>
    } do {
      %35 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_27) : (tensor<2xi32>, tensor<i32>) -> tensor<i32>
      %36:6 = func.call @closed_call(%iterArg_23, %iterArg_24, %iterArg_25, %iterArg_26, %iterArg_28, %35) : (tensor<4x32x32xf32>, tensor<i32>, tensor<i32>, tensor<2xi32>, tensor<16x32xf32>, tensor<i32>) -> (tensor<16x32xf32>, tensor<2xi32>, tensor<2x32x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>)
      %37 = func.call @dynamic_update_index_in_dim_3(%iterArg_29, %36#1, %iterArg_27) : (tensor<2x2xi32>, tensor<2xi32>, tensor<i32>) -> tensor<2x2xi32>
      %38 = func.call @dynamic_update_index_in_dim_4(%iterArg_30, %36#2, %iterArg_27) : (tensor<2x2x32x32xf32>, tensor<2x32x32xf32>, tensor<i32>) -> tensor<2x2x32x32xf32>
      %39 = func.call @dynamic_update_index_in_dim_5(%iterArg_31, %36#3, %iterArg_27) : (tensor<2x2x16x32xf32>, tensor<2x16x32xf32>, tensor<i32>) -> tensor<2x2x16x32xf32>
      %40 = func.call @dynamic_update_index_in_dim_5(%iterArg_32, %36#4, %iterArg_27) : (tensor<2x2x16x32xf32>, tensor<2x16x32xf32>, tensor<i32>) -> tensor<2x2x16x32xf32>
      %41 = func.call @dynamic_update_index_in_dim_5(%iterArg_33, %36#5, %iterArg_27) : (tensor<2x2x16x32xf32>, tensor<2x16x32xf32>, tensor<i32>) -> tensor<2x2x16x32xf32>
      %c_34 = stablehlo.constant dense<1> : tensor<i32>
      %42 = stablehlo.add %iterArg_27, %c_34 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_23, %iterArg_24, %iterArg_25, %iterArg_26, %42, %36#0, %37, %38, %39, %40, %41 : tensor<2xi32>, tensor<4x32x32xf32>, tensor<i32>, tensor<i32>, tensor<2xi32>, tensor<i32>, tensor<16x32xf32>, tensor<2x2xi32>, tensor<2x2x32x32xf32>, tensor<2x2x16x32xf32>, tensor<2x2x16x32xf32>, tensor<2x2x16x32xf32>
    }
    %14 = stablehlo.dot_general %13#6, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
    %15 = stablehlo.subtract %14, %arg3 : tensor<16x8xf32>
    %16 = stablehlo.multiply %15, %15 : tensor<16x8xf32>
    %cst_14 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %18 = stablehlo.multiply %17, %15 : tensor<16x8xf32>
    %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %19 = stablehlo.reduce(%16 init: %cst_15) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x8xf32>, tensor<f32>) -> tensor<f32>
    %cst_16 = stablehlo.constant dense<1.280000e+02> : tensor<f32>
    %20 = stablehlo.divide %19, %cst_16 : tensor<f32>
    %cst_17 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_18 = stablehlo.constant dense<1.280000e+02> : tensor<f32>
    %21 = stablehlo.divide %cst_17, %cst_18 : tensor<f32>
    %22 = stablehlo.broadcast_in_dim %21, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %23 = stablehlo.multiply %22, %18 : tensor<16x8xf32>
    %24 = stablehlo.dot_general %23, %13#6, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x8xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
    %25 = stablehlo.transpose %24, dims = [1, 0] : (tensor<8x32xf32>) -> tensor<32x8xf32>
    %26 = stablehlo.dot_general %23, %arg0, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x8xf32>, tensor<32x8xf32>) -> tensor<16x32xf32>
    %cst_19 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<4x32x32xf32>
    %c_20 = stablehlo.constant dense<0> : tensor<i32>
    %28:10 = stablehlo.while(%iterArg = %13#7, %iterArg_23 = %13#8, %iterArg_24 = %13#9, %iterArg_25 = %13#10, %iterArg_26 = %13#11, %iterArg_27 = %4, %iterArg_28 = %7, %iterArg_29 = %c_20, %iterArg_30 = %27, %iterArg_31 = %26) : tensor<2x2xi32>, tensor<2x2x32x32xf32>, tensor<2x2x16x32xf32>, tensor<2x2x16x32xf32>, tensor<2x2x16x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<4x32x32xf32>, tensor<16x32xf32>
    cond {
      %c_32 = stablehlo.constant dense<2> : tensor<i32>
      %35 = stablehlo.compare LT, %iterArg_29, %c_32, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %35 : tensor<i1>
    } do {
      %c_32 = stablehlo.constant dense<2> : tensor<i32>
      %35 = stablehlo.subtract %c_32, %iterArg_29 : tensor<i32>
      %c_33 = stablehlo.constant dense<1> : tensor<i32>
      %36 = stablehlo.subtract %35, %c_33 : tensor<i32>
      %37 = func.call @dynamic_index_in_dim_6(%iterArg, %36) : (tensor<2x2xi32>, tensor<i32>) -> tensor<2xi32>
      %38 = func.call @dynamic_index_in_dim_7(%iterArg_23, %36) : (tensor<2x2x32x32xf32>, tensor<i32>) -> tensor<2x32x32xf32>
      %39 = func.call @dynamic_index_in_dim_8(%iterArg_24, %36) : (tensor<2x2x16x32xf32>, tensor<i32>) -> tensor<2x16x32xf32>
      %40 = func.call @dynamic_index_in_dim_8(%iterArg_25, %36) : (tensor<2x2x16x32xf32>, tensor<i32>) -> tensor<2x16x32xf32>
      %41 = func.call @dynamic_index_in_dim_8(%iterArg_26, %36) : (tensor<2x2x16x32xf32>, tensor<i32>) -> tensor<2x16x32xf32>
      %42:2 = func.call @closed_call_9(%iterArg_27, %iterArg_28, %iterArg_30, %iterArg_31, %37, %38, %39, %40, %41) : (tensor<i32>, tensor<i32>, tensor<4x32x32xf32>, tensor<16x32xf32>, tensor<2xi32>, tensor<2x32x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>) -> (tensor<4x32x32xf32>, tensor<16x32xf32>)
      %c_34 = stablehlo.constant dense<1> : tensor<i32>
      %43 = stablehlo.add %iterArg_29, %c_34 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_23, %iterArg_24, %iterArg_25, %iterArg_26, %iterArg_27, %iterArg_28, %43, %42#0, %42#1 : tensor<2x2xi32>, tensor<2x2x32x32xf32>, tensor<2x2x16x32xf32>, tensor<2x2x16x32xf32>, tensor<2x2x16x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<4x32x32xf32>, tensor<16x32xf32>
    }
    %cst_21 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %29 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<32x8xf32>
    %30 = stablehlo.multiply %29, %25 : tensor<32x8xf32>
    %31 = stablehlo.subtract %arg0, %30 : tensor<32x8xf32>
    %cst_22 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %32 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<4x32x32xf32>
    %33 = stablehlo.multiply %32, %28#8 : tensor<4x32x32xf32>
    %34 = stablehlo.subtract %arg1, %33 : tensor<4x32x32xf32>
    return %31, %34, %20 : tensor<32x8xf32>, tensor<4x32x32xf32>, tensor<f32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<2xi32>, %arg1: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.dynamic_slice %arg0, %arg1, sizes = [1] : (tensor<2xi32>, tensor<i32>) -> tensor<1xi32>
    %1 = stablehlo.reshape %0 : (tensor<1xi32>) -> tensor<i32>
    return %1 : tensor<i32>
  }
  func.func private @closed_call(%arg0: tensor<4x32x32xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>, %arg3: tensor<2xi32>, %arg4: tensor<16x32xf32>, %arg5: tensor<i32>) -> (tensor<16x32xf32>, tensor<2xi32>, tensor<2x32x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>) {
    %c = stablehlo.constant dense<2> : tensor<i32>
    %0 = stablehlo.multiply %c, %arg5 : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x32x32xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x16x32xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x16x32xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x16x32xf32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %6:12 = stablehlo.while(%iterArg = %arg3, %iterArg_5 = %arg0, %iterArg_6 = %arg1, %iterArg_7 = %arg2, %iterArg_8 = %0, %iterArg_9 = %c_4, %iterArg_10 = %arg4, %iterArg_11 = %1, %iterArg_12 = %2, %iterArg_13 = %3, %iterArg_14 = %4, %iterArg_15 = %5) : tensor<2xi32>, tensor<4x32x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<16x32xf32>, tensor<2xi32>, tensor<2x32x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>
    cond {
      %c_16 = stablehlo.constant dense<2> : tensor<i32>
      %7 = stablehlo.compare LT, %iterArg_9, %c_16, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %7 : tensor<i1>
    } do {
      %7 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_9) : (tensor<2xi32>, tensor<i32>) -> tensor<i32>
      %8:6 = func.call @closed_call_0(%iterArg_5, %iterArg_6, %iterArg_7, %iterArg_8, %iterArg_10, %7) : (tensor<4x32x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<16x32xf32>, tensor<i32>) -> (tensor<16x32xf32>, tensor<i32>, tensor<32x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>)
      %9 = func.call @dynamic_update_index_in_dim(%iterArg_11, %8#1, %iterArg_9) : (tensor<2xi32>, tensor<i32>, tensor<i32>) -> tensor<2xi32>
      %10 = func.call @dynamic_update_index_in_dim_1(%iterArg_12, %8#2, %iterArg_9) : (tensor<2x32x32xf32>, tensor<32x32xf32>, tensor<i32>) -> tensor<2x32x32xf32>
      %11 = func.call @dynamic_update_index_in_dim_2(%iterArg_13, %8#3, %iterArg_9) : (tensor<2x16x32xf32>, tensor<16x32xf32>, tensor<i32>) -> tensor<2x16x32xf32>
      %12 = func.call @dynamic_update_index_in_dim_2(%iterArg_14, %8#4, %iterArg_9) : (tensor<2x16x32xf32>, tensor<16x32xf32>, tensor<i32>) -> tensor<2x16x32xf32>
      %13 = func.call @dynamic_update_index_in_dim_2(%iterArg_15, %8#5, %iterArg_9) : (tensor<2x16x32xf32>, tensor<16x32xf32>, tensor<i32>) -> tensor<2x16x32xf32>
      %c_16 = stablehlo.constant dense<1> : tensor<i32>
      %14 = stablehlo.add %iterArg_9, %c_16 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_5, %iterArg_6, %iterArg_7, %iterArg_8, %14, %8#0, %9, %10, %11, %12, %13 : tensor<2xi32>, tensor<4x32x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<16x32xf32>, tensor<2xi32>, tensor<2x32x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>
    }
    return %6#6, %6#7, %6#8, %6#9, %6#10, %6#11 : tensor<16x32xf32>, tensor<2xi32>, tensor<2x32x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>
  }
  func.func private @closed_call_0(%arg0: tensor<4x32x32xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>, %arg3: tensor<i32>, %arg4: tensor<16x32xf32>, %arg5: tensor<i32>) -> (tensor<16x32xf32>, tensor<i32>, tensor<32x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>) {
    %0 = stablehlo.add %arg3, %arg5 : tensor<i32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.compare LT, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<4> : tensor<i32>
    %2 = stablehlo.add %0, %c_0 : tensor<i32>
    %3 = stablehlo.select %1, %2, %0 : tensor<i1>, tensor<i32>
    %4 = stablehlo.dynamic_slice %arg0, %3, %arg1, %arg2, sizes = [1, 32, 32] : (tensor<4x32x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x32x32xf32>
    %5 = stablehlo.reshape %4 : (tensor<1x32x32xf32>) -> tensor<32x32xf32>
    %6 = stablehlo.dot_general %arg4, %5, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
    %7 = stablehlo.tanh %6 : tensor<16x32xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %9 = stablehlo.subtract %8, %7 : tensor<16x32xf32>
    return %7, %3, %5, %arg4, %7, %9 : tensor<16x32xf32>, tensor<i32>, tensor<32x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<2xi32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<2xi32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2 : (tensor<2xi32>, tensor<1xi32>, tensor<i32>) -> tensor<2xi32>
    return %1 : tensor<2xi32>
  }
  func.func private @dynamic_update_index_in_dim_1(%arg0: tensor<2x32x32xf32>, %arg1: tensor<32x32xf32>, %arg2: tensor<i32>) -> tensor<2x32x32xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<32x32xf32>) -> tensor<1x32x32xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<2x32x32xf32>, tensor<1x32x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x32x32xf32>
    return %1 : tensor<2x32x32xf32>
  }
  func.func private @dynamic_update_index_in_dim_2(%arg0: tensor<2x16x32xf32>, %arg1: tensor<16x32xf32>, %arg2: tensor<i32>) -> tensor<2x16x32xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<16x32xf32>) -> tensor<1x16x32xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<2x16x32xf32>, tensor<1x16x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x16x32xf32>
    return %1 : tensor<2x16x32xf32>
  }
  func.func private @dynamic_update_index_in_dim_3(%arg0: tensor<2x2xi32>, %arg1: tensor<2xi32>, %arg2: tensor<i32>) -> tensor<2x2xi32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<2xi32>) -> tensor<1x2xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c : (tensor<2x2xi32>, tensor<1x2xi32>, tensor<i32>, tensor<i32>) -> tensor<2x2xi32>
    return %1 : tensor<2x2xi32>
  }
  func.func private @dynamic_update_index_in_dim_4(%arg0: tensor<2x2x32x32xf32>, %arg1: tensor<2x32x32xf32>, %arg2: tensor<i32>) -> tensor<2x2x32x32xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<2x32x32xf32>) -> tensor<1x2x32x32xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<2x2x32x32xf32>, tensor<1x2x32x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x2x32x32xf32>
    return %1 : tensor<2x2x32x32xf32>
  }
  func.func private @dynamic_update_index_in_dim_5(%arg0: tensor<2x2x16x32xf32>, %arg1: tensor<2x16x32xf32>, %arg2: tensor<i32>) -> tensor<2x2x16x32xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<2x16x32xf32>) -> tensor<1x2x16x32xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<2x2x16x32xf32>, tensor<1x2x16x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x2x16x32xf32>
    return %1 : tensor<2x2x16x32xf32>
  }
  func.func private @dynamic_index_in_dim_6(%arg0: tensor<2x2xi32>, %arg1: tensor<i32>) -> tensor<2xi32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 2] : (tensor<2x2xi32>, tensor<i32>, tensor<i32>) -> tensor<1x2xi32>
    %1 = stablehlo.reshape %0 : (tensor<1x2xi32>) -> tensor<2xi32>
    return %1 : tensor<2xi32>
  }
  func.func private @dynamic_index_in_dim_7(%arg0: tensor<2x2x32x32xf32>, %arg1: tensor<i32>) -> tensor<2x32x32xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 2, 32, 32] : (tensor<2x2x32x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x32x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x2x32x32xf32>) -> tensor<2x32x32xf32>
    return %1 : tensor<2x32x32xf32>
  }
  func.func private @dynamic_index_in_dim_8(%arg0: tensor<2x2x16x32xf32>, %arg1: tensor<i32>) -> tensor<2x16x32xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 2, 16, 32] : (tensor<2x2x16x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x16x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x2x16x32xf32>) -> tensor<2x16x32xf32>
    return %1 : tensor<2x16x32xf32>
  }
  func.func private @closed_call_9(%arg0: tensor<i32>, %arg1: tensor<i32>, %arg2: tensor<4x32x32xf32>, %arg3: tensor<16x32xf32>, %arg4: tensor<2xi32>, %arg5: tensor<2x32x32xf32>, %arg6: tensor<2x16x32xf32>, %arg7: tensor<2x16x32xf32>, %arg8: tensor<2x16x32xf32>) -> (tensor<4x32x32xf32>, tensor<16x32xf32>) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x32x32xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:10 = stablehlo.while(%iterArg = %arg4, %iterArg_0 = %arg5, %iterArg_1 = %arg6, %iterArg_2 = %arg7, %iterArg_3 = %arg8, %iterArg_4 = %arg0, %iterArg_5 = %arg1, %iterArg_6 = %c, %iterArg_7 = %0, %iterArg_8 = %arg3) : tensor<2xi32>, tensor<2x32x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<4x32x32xf32>, tensor<16x32xf32>
    cond {
      %c_9 = stablehlo.constant dense<2> : tensor<i32>
      %3 = stablehlo.compare LT, %iterArg_6, %c_9, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %c_9 = stablehlo.constant dense<2> : tensor<i32>
      %3 = stablehlo.subtract %c_9, %iterArg_6 : tensor<i32>
      %c_10 = stablehlo.constant dense<1> : tensor<i32>
      %4 = stablehlo.subtract %3, %c_10 : tensor<i32>
      %5 = func.call @dynamic_index_in_dim(%iterArg, %4) : (tensor<2xi32>, tensor<i32>) -> tensor<i32>
      %6 = func.call @dynamic_index_in_dim_10(%iterArg_0, %4) : (tensor<2x32x32xf32>, tensor<i32>) -> tensor<32x32xf32>
      %7 = func.call @dynamic_index_in_dim_11(%iterArg_1, %4) : (tensor<2x16x32xf32>, tensor<i32>) -> tensor<16x32xf32>
      %8 = func.call @dynamic_index_in_dim_11(%iterArg_2, %4) : (tensor<2x16x32xf32>, tensor<i32>) -> tensor<16x32xf32>
      %9 = func.call @dynamic_index_in_dim_11(%iterArg_3, %4) : (tensor<2x16x32xf32>, tensor<i32>) -> tensor<16x32xf32>
      %10:2 = func.call @closed_call_12(%iterArg_4, %iterArg_5, %iterArg_7, %iterArg_8, %5, %6, %7, %8, %9) : (tensor<i32>, tensor<i32>, tensor<4x32x32xf32>, tensor<16x32xf32>, tensor<i32>, tensor<32x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>) -> (tensor<4x32x32xf32>, tensor<16x32xf32>)
      %c_11 = stablehlo.constant dense<1> : tensor<i32>
      %11 = stablehlo.add %iterArg_6, %c_11 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_0, %iterArg_1, %iterArg_2, %iterArg_3, %iterArg_4, %iterArg_5, %11, %10#0, %10#1 : tensor<2xi32>, tensor<2x32x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<4x32x32xf32>, tensor<16x32xf32>
    }
    %2 = stablehlo.add %arg2, %1#8 : tensor<4x32x32xf32>
    return %2, %1#9 : tensor<4x32x32xf32>, tensor<16x32xf32>
  }
  func.func private @dynamic_index_in_dim_10(%arg0: tensor<2x32x32xf32>, %arg1: tensor<i32>) -> tensor<32x32xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 32, 32] : (tensor<2x32x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x32x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x32x32xf32>) -> tensor<32x32xf32>
    return %1 : tensor<32x32xf32>
  }
  func.func private @dynamic_index_in_dim_11(%arg0: tensor<2x16x32xf32>, %arg1: tensor<i32>) -> tensor<16x32xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 16, 32] : (tensor<2x16x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x16x32xf32>) -> tensor<16x32xf32>
    return %1 : tensor<16x32xf32>
  }
  func.func private @closed_call_12(%arg0: tensor<i32>, %arg1: tensor<i32>, %arg2: tensor<4x32x32xf32>, %arg3: tensor<16x32xf32>, %arg4: tensor<i32>, %arg5: tensor<32x32xf32>, %arg6: tensor<16x32xf32>, %arg7: tensor<16x32xf32>, %arg8: tensor<16x32xf32>) -> (tensor<4x32x32xf32>, tensor<16x32xf32>) {
    %0 = stablehlo.multiply %arg3, %arg8 : tensor<16x32xf32>
    %1 = stablehlo.multiply %0, %arg7 : tensor<16x32xf32>
    %2 = stablehlo.add %0, %1 : tensor<16x32xf32>
    %3 = stablehlo.dot_general %2, %arg6, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<32x32xf32>
    %4 = stablehlo.transpose %3, dims = [1, 0] : (tensor<32x32xf32>) -> tensor<32x32xf32>
    %5 = stablehlo.dot_general %2, %arg5, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
    %6 = stablehlo.broadcast_in_dim %4, dims = [1, 2] : (tensor<32x32xf32>) -> tensor<1x32x32xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x32x32xf32>
    %8 = stablehlo.dynamic_update_slice %7, %6, %arg4, %arg0, %arg1 : (tensor<4x32x32xf32>, tensor<1x32x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x32x32xf32>
    %9 = stablehlo.add %arg2, %8 : tensor<4x32x32xf32>
    return %9, %5 : tensor<4x32x32xf32>, tensor<16x32xf32>
  }
}
