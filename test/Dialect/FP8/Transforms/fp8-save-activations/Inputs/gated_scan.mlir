module @jit_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x256x128xf32>, %arg1: tensor<3x128x256xf32>, %arg2: tensor<3x128x256xf32>, %arg3: tensor<2x64x128xf32>) -> (tensor<3x256x128xf32> {jax.result_info = "result[0]['down']"}, tensor<3x128x256xf32> {jax.result_info = "result[0]['gate']"}, tensor<3x128x256xf32> {jax.result_info = "result[0]['up']"}, tensor<f32> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x2x64x128xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x2x64x256xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<3x2x64x256xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<3x2x64x256xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<3x2x64x256xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<3x2x64x256xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<3x2x64x256xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %7:12 = stablehlo.while(%iterArg = %arg0, %iterArg_18 = %arg1, %iterArg_19 = %arg2, %iterArg_20 = %c, %iterArg_21 = %arg3, %iterArg_22 = %0, %iterArg_23 = %1, %iterArg_24 = %2, %iterArg_25 = %3, %iterArg_26 = %4, %iterArg_27 = %5, %iterArg_28 = %6) : tensor<3x256x128xf32>, tensor<3x128x256xf32>, tensor<3x128x256xf32>, tensor<i32>, tensor<2x64x128xf32>, tensor<3x2x64x128xf32>, tensor<3x2x64x256xf32>, tensor<3x2x64x256xf32>, tensor<3x2x64x256xf32>, tensor<3x2x64x256xf32>, tensor<3x2x64x256xf32>, tensor<3x2x64x256xf32>
    cond {
      %c_29 = stablehlo.constant dense<3> : tensor<i32>
      %29 = stablehlo.compare LT, %iterArg_20, %c_29, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %29 : tensor<i1>
    } do {
      %29 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_20) : (tensor<3x256x128xf32>, tensor<i32>) -> tensor<256x128xf32>
      %30 = func.call @dynamic_index_in_dim_0(%iterArg_18, %iterArg_20) : (tensor<3x128x256xf32>, tensor<i32>) -> tensor<128x256xf32>
      %31 = func.call @dynamic_index_in_dim_0(%iterArg_19, %iterArg_20) : (tensor<3x128x256xf32>, tensor<i32>) -> tensor<128x256xf32>
      %32:8 = func.call @closed_call(%iterArg_21, %29, %30, %31) : (tensor<2x64x128xf32>, tensor<256x128xf32>, tensor<128x256xf32>, tensor<128x256xf32>) -> (tensor<2x64x128xf32>, tensor<2x64x128xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>)
      %33 = func.call @dynamic_update_index_in_dim(%iterArg_22, %32#1, %iterArg_20) : (tensor<3x2x64x128xf32>, tensor<2x64x128xf32>, tensor<i32>) -> tensor<3x2x64x128xf32>
      %34 = func.call @dynamic_update_index_in_dim_1(%iterArg_23, %32#2, %iterArg_20) : (tensor<3x2x64x256xf32>, tensor<2x64x256xf32>, tensor<i32>) -> tensor<3x2x64x256xf32>
      %35 = func.call @dynamic_update_index_in_dim_1(%iterArg_24, %32#3, %iterArg_20) : (tensor<3x2x64x256xf32>, tensor<2x64x256xf32>, tensor<i32>) -> tensor<3x2x64x256xf32>
      %36 = func.call @dynamic_update_index_in_dim_1(%iterArg_25, %32#4, %iterArg_20) : (tensor<3x2x64x256xf32>, tensor<2x64x256xf32>, tensor<i32>) -> tensor<3x2x64x256xf32>
      %37 = func.call @dynamic_update_index_in_dim_1(%iterArg_26, %32#5, %iterArg_20) : (tensor<3x2x64x256xf32>, tensor<2x64x256xf32>, tensor<i32>) -> tensor<3x2x64x256xf32>
      %38 = func.call @dynamic_update_index_in_dim_1(%iterArg_27, %32#6, %iterArg_20) : (tensor<3x2x64x256xf32>, tensor<2x64x256xf32>, tensor<i32>) -> tensor<3x2x64x256xf32>
      %39 = func.call @dynamic_update_index_in_dim_1(%iterArg_28, %32#7, %iterArg_20) : (tensor<3x2x64x256xf32>, tensor<2x64x256xf32>, tensor<i32>) -> tensor<3x2x64x256xf32>
      %c_29 = stablehlo.constant dense<1> : tensor<i32>
      %40 = stablehlo.add %iterArg_20, %c_29 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_18, %iterArg_19, %40, %32#0, %33, %34, %35, %36, %37, %38, %39 : tensor<3x256x128xf32>, tensor<3x128x256xf32>, tensor<3x128x256xf32>, tensor<i32>, tensor<2x64x128xf32>, tensor<3x2x64x128xf32>, tensor<3x2x64x256xf32>, tensor<3x2x64x256xf32>, tensor<3x2x64x256xf32>, tensor<3x2x64x256xf32>, tensor<3x2x64x256xf32>, tensor<3x2x64x256xf32>
    }
    %8 = stablehlo.multiply %7#4, %7#4 : tensor<2x64x128xf32>
    %cst_6 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<2x64x128xf32>
    %10 = stablehlo.multiply %9, %7#4 : tensor<2x64x128xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.reduce(%8 init: %cst_7) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x64x128xf32>, tensor<f32>) -> tensor<f32>
    %cst_8 = stablehlo.constant dense<1.638400e+04> : tensor<f32>
    %12 = stablehlo.divide %11, %cst_8 : tensor<f32>
    %cst_9 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_10 = stablehlo.constant dense<1.638400e+04> : tensor<f32>
    %13 = stablehlo.divide %cst_9, %cst_10 : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> tensor<2x64x128xf32>
    %15 = stablehlo.multiply %14, %10 : tensor<2x64x128xf32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<3x256x128xf32>
    %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<3x128x256xf32>
    %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %18 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<3x128x256xf32>
    %c_14 = stablehlo.constant dense<0> : tensor<i32>
    %19:15 = stablehlo.while(%iterArg = %arg1, %iterArg_18 = %7#5, %iterArg_19 = %arg2, %iterArg_20 = %7#6, %iterArg_21 = %7#7, %iterArg_22 = %7#8, %iterArg_23 = %7#9, %iterArg_24 = %7#10, %iterArg_25 = %arg0, %iterArg_26 = %7#11, %iterArg_27 = %c_14, %iterArg_28 = %15, %iterArg_29 = %16, %iterArg_30 = %17, %iterArg_31 = %18) : tensor<3x128x256xf32>, tensor<3x2x64x128xf32>, tensor<3x128x256xf32>, tensor<3x2x64x256xf32>, tensor<3x2x64x256xf32>, tensor<3x2x64x256xf32>, tensor<3x2x64x256xf32>, tensor<3x2x64x256xf32>, tensor<3x256x128xf32>, tensor<3x2x64x256xf32>, tensor<i32>, tensor<2x64x128xf32>, tensor<3x256x128xf32>, tensor<3x128x256xf32>, tensor<3x128x256xf32>
    cond {
      %c_32 = stablehlo.constant dense<3> : tensor<i32>
      %29 = stablehlo.compare LT, %iterArg_27, %c_32, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %29 : tensor<i1>
    } do {
      %c_32 = stablehlo.constant dense<3> : tensor<i32>
      %29 = stablehlo.subtract %c_32, %iterArg_27 : tensor<i32>
      %c_33 = stablehlo.constant dense<1> : tensor<i32>
      %30 = stablehlo.subtract %29, %c_33 : tensor<i32>
      %31 = func.call @dynamic_index_in_dim_0(%iterArg, %30) : (tensor<3x128x256xf32>, tensor<i32>) -> tensor<128x256xf32>
      %32 = func.call @dynamic_index_in_dim_2(%iterArg_18, %30) : (tensor<3x2x64x128xf32>, tensor<i32>) -> tensor<2x64x128xf32>
      %33 = func.call @dynamic_index_in_dim_0(%iterArg_19, %30) : (tensor<3x128x256xf32>, tensor<i32>) -> tensor<128x256xf32>
      %34 = func.call @dynamic_index_in_dim_3(%iterArg_20, %30) : (tensor<3x2x64x256xf32>, tensor<i32>) -> tensor<2x64x256xf32>
      %35 = func.call @dynamic_index_in_dim_3(%iterArg_21, %30) : (tensor<3x2x64x256xf32>, tensor<i32>) -> tensor<2x64x256xf32>
      %36 = func.call @dynamic_index_in_dim_3(%iterArg_22, %30) : (tensor<3x2x64x256xf32>, tensor<i32>) -> tensor<2x64x256xf32>
      %37 = func.call @dynamic_index_in_dim_3(%iterArg_23, %30) : (tensor<3x2x64x256xf32>, tensor<i32>) -> tensor<2x64x256xf32>
      %38 = func.call @dynamic_index_in_dim_3(%iterArg_24, %30) : (tensor<3x2x64x256xf32>, tensor<i32>) -> tensor<2x64x256xf32>
      %39 = func.call @dynamic_index_in_dim(%iterArg_25, %30) : (tensor<3x256x128xf32>, tensor<i32>) -> tensor<256x128xf32>
      %40 = func.call @dynamic_index_in_dim_3(%iterArg_26, %30) : (tensor<3x2x64x256xf32>, tensor<i32>) -> tensor<2x64x256xf32>
      %41:4 = func.call @closed_call_4(%iterArg_28, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40) : (tensor<2x64x128xf32>, tensor<128x256xf32>, tensor<2x64x128xf32>, tensor<128x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>, tensor<256x128xf32>, tensor<2x64x256xf32>) -> (tensor<2x64x128xf32>, tensor<256x128xf32>, tensor<128x256xf32>, tensor<128x256xf32>)
      %42 = func.call @dynamic_update_index_in_dim_6(%iterArg_29, %41#1, %30) : (tensor<3x256x128xf32>, tensor<256x128xf32>, tensor<i32>) -> tensor<3x256x128xf32>
      %43 = func.call @dynamic_update_index_in_dim_7(%iterArg_30, %41#2, %30) : (tensor<3x128x256xf32>, tensor<128x256xf32>, tensor<i32>) -> tensor<3x128x256xf32>
      %44 = func.call @dynamic_update_index_in_dim_7(%iterArg_31, %41#3, %30) : (tensor<3x128x256xf32>, tensor<128x256xf32>, tensor<i32>) -> tensor<3x128x256xf32>
      %c_34 = stablehlo.constant dense<1> : tensor<i32>
      %45 = stablehlo.add %iterArg_27, %c_34 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_18, %iterArg_19, %iterArg_20, %iterArg_21, %iterArg_22, %iterArg_23, %iterArg_24, %iterArg_25, %iterArg_26, %45, %41#0, %42, %43, %44 : tensor<3x128x256xf32>, tensor<3x2x64x128xf32>, tensor<3x128x256xf32>, tensor<3x2x64x256xf32>, tensor<3x2x64x256xf32>, tensor<3x2x64x256xf32>, tensor<3x2x64x256xf32>, tensor<3x2x64x256xf32>, tensor<3x256x128xf32>, tensor<3x2x64x256xf32>, tensor<i32>, tensor<2x64x128xf32>, tensor<3x256x128xf32>, tensor<3x128x256xf32>, tensor<3x128x256xf32>
    }
    %cst_15 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<3x256x128xf32>
    %21 = stablehlo.multiply %20, %19#12 : tensor<3x256x128xf32>
    %22 = stablehlo.subtract %arg0, %21 : tensor<3x256x128xf32>
    %cst_16 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<3x128x256xf32>
    %24 = stablehlo.multiply %23, %19#13 : tensor<3x128x256xf32>
    %25 = stablehlo.subtract %arg1, %24 : tensor<3x128x256xf32>
    %cst_17 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %26 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<3x128x256xf32>
    %27 = stablehlo.multiply %26, %19#14 : tensor<3x128x256xf32>
    %28 = stablehlo.subtract %arg2, %27 : tensor<3x128x256xf32>
    return %22, %25, %28, %12 : tensor<3x256x128xf32>, tensor<3x128x256xf32>, tensor<3x128x256xf32>, tensor<f32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<3x256x128xf32>, %arg1: tensor<i32>) -> tensor<256x128xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 256, 128] : (tensor<3x256x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x256x128xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x256x128xf32>) -> tensor<256x128xf32>
    return %1 : tensor<256x128xf32>
  }
  func.func private @dynamic_index_in_dim_0(%arg0: tensor<3x128x256xf32>, %arg1: tensor<i32>) -> tensor<128x256xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 128, 256] : (tensor<3x128x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x128x256xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x128x256xf32>) -> tensor<128x256xf32>
    return %1 : tensor<128x256xf32>
  }
  func.func private @closed_call(%arg0: tensor<2x64x128xf32>, %arg1: tensor<256x128xf32>, %arg2: tensor<128x256xf32>, %arg3: tensor<128x256xf32>) -> (tensor<2x64x128xf32>, tensor<2x64x128xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg2, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x64x128xf32>, tensor<128x256xf32>) -> tensor<2x64x256xf32>
    %1 = stablehlo.dot_general %arg0, %arg3, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x64x128xf32>, tensor<128x256xf32>) -> tensor<2x64x256xf32>
    %2:3 = call @silu(%0) : (tensor<2x64x256xf32>) -> (tensor<2x64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>)
    %3 = stablehlo.multiply %2#0, %1 : tensor<2x64x256xf32>
    %4 = stablehlo.dot_general %3, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x64x256xf32>, tensor<256x128xf32>) -> tensor<2x64x128xf32>
    %5 = stablehlo.add %arg0, %4 : tensor<2x64x128xf32>
    return %5, %arg0, %2#1, %2#2, %0, %1, %2#0, %3 : tensor<2x64x128xf32>, tensor<2x64x128xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>
  }
  func.func private @silu(%arg0: tensor<2x64x256xf32>) -> (tensor<2x64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>) {
    %0 = stablehlo.negate %arg0 : tensor<2x64x256xf32>
    %1 = stablehlo.exponential %0 : tensor<2x64x256xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x64x256xf32>
    %3 = stablehlo.add %2, %1 : tensor<2x64x256xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x64x256xf32>
    %5 = stablehlo.divide %4, %3 : tensor<2x64x256xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x64x256xf32>
    %7 = stablehlo.subtract %6, %5 : tensor<2x64x256xf32>
    %8 = stablehlo.multiply %5, %7 : tensor<2x64x256xf32>
    %9 = stablehlo.multiply %arg0, %5 : tensor<2x64x256xf32>
    return %9, %8, %5 : tensor<2x64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<3x2x64x128xf32>, %arg1: tensor<2x64x128xf32>, %arg2: tensor<i32>) -> tensor<3x2x64x128xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<2x64x128xf32>) -> tensor<1x2x64x128xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<3x2x64x128xf32>, tensor<1x2x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x2x64x128xf32>
    return %1 : tensor<3x2x64x128xf32>
  }
  func.func private @dynamic_update_index_in_dim_1(%arg0: tensor<3x2x64x256xf32>, %arg1: tensor<2x64x256xf32>, %arg2: tensor<i32>) -> tensor<3x2x64x256xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<2x64x256xf32>) -> tensor<1x2x64x256xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<3x2x64x256xf32>, tensor<1x2x64x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x2x64x256xf32>
    return %1 : tensor<3x2x64x256xf32>
  }
  func.func private @dynamic_index_in_dim_2(%arg0: tensor<3x2x64x128xf32>, %arg1: tensor<i32>) -> tensor<2x64x128xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 2, 64, 128] : (tensor<3x2x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x64x128xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x2x64x128xf32>) -> tensor<2x64x128xf32>
    return %1 : tensor<2x64x128xf32>
  }
  func.func private @dynamic_index_in_dim_3(%arg0: tensor<3x2x64x256xf32>, %arg1: tensor<i32>) -> tensor<2x64x256xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 2, 64, 256] : (tensor<3x2x64x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x64x256xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x2x64x256xf32>) -> tensor<2x64x256xf32>
    return %1 : tensor<2x64x256xf32>
  }
  func.func private @closed_call_4(%arg0: tensor<2x64x128xf32>, %arg1: tensor<128x256xf32>, %arg2: tensor<2x64x128xf32>, %arg3: tensor<128x256xf32>, %arg4: tensor<2x64x256xf32>, %arg5: tensor<2x64x256xf32>, %arg6: tensor<2x64x256xf32>, %arg7: tensor<2x64x256xf32>, %arg8: tensor<2x64x256xf32>, %arg9: tensor<256x128xf32>, %arg10: tensor<2x64x256xf32>) -> (tensor<2x64x128xf32>, tensor<256x128xf32>, tensor<128x256xf32>, tensor<128x256xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg10, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x64x128xf32>, tensor<2x64x256xf32>) -> tensor<128x256xf32>
    %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<128x256xf32>) -> tensor<256x128xf32>
    %2 = stablehlo.dot_general %arg0, %arg9, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x64x128xf32>, tensor<256x128xf32>) -> tensor<2x64x256xf32>
    %3 = stablehlo.multiply %arg8, %2 : tensor<2x64x256xf32>
    %4 = stablehlo.multiply %2, %arg7 : tensor<2x64x256xf32>
    %5 = call @silu_5(%arg4, %arg5, %arg6, %4) : (tensor<2x64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>) -> tensor<2x64x256xf32>
    %6 = stablehlo.dot_general %3, %arg2, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x64x256xf32>, tensor<2x64x128xf32>) -> tensor<256x128xf32>
    %7 = stablehlo.transpose %6, dims = [1, 0] : (tensor<256x128xf32>) -> tensor<128x256xf32>
    %8 = stablehlo.dot_general %3, %arg3, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x64x256xf32>, tensor<128x256xf32>) -> tensor<2x64x128xf32>
    %9 = stablehlo.add %arg0, %8 : tensor<2x64x128xf32>
    %10 = stablehlo.dot_general %5, %arg2, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x64x256xf32>, tensor<2x64x128xf32>) -> tensor<256x128xf32>
    %11 = stablehlo.transpose %10, dims = [1, 0] : (tensor<256x128xf32>) -> tensor<128x256xf32>
    %12 = stablehlo.dot_general %5, %arg1, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x64x256xf32>, tensor<128x256xf32>) -> tensor<2x64x128xf32>
    %13 = stablehlo.add %9, %12 : tensor<2x64x128xf32>
    return %13, %1, %11, %7 : tensor<2x64x128xf32>, tensor<256x128xf32>, tensor<128x256xf32>, tensor<128x256xf32>
  }
  func.func private @silu_5(%arg0: tensor<2x64x256xf32>, %arg1: tensor<2x64x256xf32>, %arg2: tensor<2x64x256xf32>, %arg3: tensor<2x64x256xf32>) -> tensor<2x64x256xf32> {
    %0 = stablehlo.multiply %arg2, %arg3 : tensor<2x64x256xf32>
    %1 = stablehlo.multiply %arg3, %arg1 : tensor<2x64x256xf32>
    %2 = stablehlo.multiply %0, %arg0 : tensor<2x64x256xf32>
    %3 = stablehlo.add %1, %2 : tensor<2x64x256xf32>
    return %3 : tensor<2x64x256xf32>
  }
  func.func private @dynamic_update_index_in_dim_6(%arg0: tensor<3x256x128xf32>, %arg1: tensor<256x128xf32>, %arg2: tensor<i32>) -> tensor<3x256x128xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<256x128xf32>) -> tensor<1x256x128xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<3x256x128xf32>, tensor<1x256x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x256x128xf32>
    return %1 : tensor<3x256x128xf32>
  }
  func.func private @dynamic_update_index_in_dim_7(%arg0: tensor<3x128x256xf32>, %arg1: tensor<128x256xf32>, %arg2: tensor<i32>) -> tensor<3x128x256xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<128x256xf32>) -> tensor<1x128x256xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<3x128x256xf32>, tensor<1x128x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x128x256xf32>
    return %1 : tensor<3x128x256xf32>
  }
}

