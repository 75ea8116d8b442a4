module @jit_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<64x64xf32>, %arg1: tensor<64x64xf32>, %arg2: tensor<64x64xf32>, %arg3: tensor<8x16x64xf32>) -> (tensor<64x64xf32> {jax.result_info = "result[0]['k']"}, tensor<64x64xf32> {jax.result_info = "result[0]['o']"}, tensor<64x64xf32> {jax.result_info = "result[0]['q']"}, tensor<f32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.dot_general %arg3, %arg2, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x16x64xf32>, tensor<64x64xf32>) -> tensor<8x16x64xf32>
    %1 = stablehlo.reshape %0 : (tensor<8x16x64xf32>) -> tensor<8x16x2x32xf32>
    %2 = stablehlo.transpose %1, dims = [1, 0, 2, 3] : (tensor<8x16x2x32xf32>) -> tensor<16x8x2x32xf32>
    %3 = stablehlo.tanh %2 : tensor<16x8x2x32xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x8x2x32xf32>
    %5 = stablehlo.subtract %4, %3 : tensor<16x8x2x32xf32>
    %cst_0 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16x8x2x32xf32>
    %7 = stablehlo.multiply %3, %6 : tensor<16x8x2x32xf32>
    %8 = stablehlo.dot_general %arg3, %arg0, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x16x64xf32>, tensor<64x64xf32>) -> tensor<8x16x64xf32>
    %9 = stablehlo.tanh %8 : tensor<8x16x64xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<8x16x64xf32>
    %11 = stablehlo.subtract %10, %9 : tensor<8x16x64xf32>
    %cst_2 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<8x16x64xf32>
    %13 = stablehlo.multiply %9, %12 : tensor<8x16x64xf32>
    %14 = stablehlo.reshape %13 : (tensor<8x16x64xf32>) -> tensor<8x16x2x32xf32>
    %15 = stablehlo.transpose %14, dims = [1, 0, 2, 3] : (tensor<8x16x2x32xf32>) -> tensor<16x8x2x32xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<8x2x32xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<16x8x2x32xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %18 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16x8x2x32xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16x8x2x32xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<16x8x2x32xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %21:8 = stablehlo.while(%iterArg = %7, %iterArg_22 = %15, %iterArg_23 = %c, %iterArg_24 = %16, %iterArg_25 = %17, %iterArg_26 = %18, %iterArg_27 = %19, %iterArg_28 = %20) : tensor<16x8x2x32xf32>, tensor<16x8x2x32xf32>, tensor<i32>, tensor<8x2x32xf32>, tensor<16x8x2x32xf32>, tensor<16x8x2x32xf32>, tensor<16x8x2x32xf32>, tensor<16x8x2x32xf32>
    cond {
      %c_29 = stablehlo.constant dense<16> : tensor<i32>
      %70 = stablehlo.compare LT, %iterArg_23, %c_29, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %70 : tensor<i1>
    } do {
      %70 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_23) : (tensor<16x8x2x32xf32>, tensor<i32>) -> tensor<8x2x32xf32>
      %71 = func.call @dynamic_index_in_dim(%iterArg_22, %iterArg_23) : (tensor<16x8x2x32xf32>, tensor<i32>) -> tensor<8x2x32xf32>
      %72:5 = func.call @closed_call(%iterArg_24, %70, %71) : (tensor<8x2x32xf32>, tensor<8x2x32xf32>, tensor<8x2x32xf32>) -> (tensor<8x2x32xf32>, tensor<8x2x32xf32>, tensor<8x2x32xf32>, tensor<8x2x32xf32>, tensor<8x2x32xf32>)
      %73 = func.call @dynamic_update_index_in_dim(%iterArg_25, %72#1, %iterArg_23) : (tensor<16x8x2x32xf32>, tensor<8x2x32xf32>, tensor<i32>) -> tensor<16x8x2x32xf32>
      %74 = func.call @dynamic_update_index_in_dim(%iterArg_26, %72#2, %iterArg_23) : (tensor<16x8x2x32xf32>, tensor<8x2x32xf32>, tensor<i32>) -> tensor<16x8x2x32xf32>
      %75 = func.call @dynamic_update_index_in_dim(%iterArg_27, %72#3, %iterArg_23) : (tensor<16x8x2x32xf32>, tensor<8x2x32xf32>, tensor<i32>) -> tensor<16x8x2x32xf32>
      %76 = func.call @dynamic_update_index_in_dim(%iterArg_28, %72#4, %iterArg_23) : (tensor<16x8x2x32xf32>, tensor<8x2x32xf32>, tensor<i32>) -> tensor<16x8x2x32xf32>
      %c_29 = stablehlo.constant dense<1> : tensor<i32>
      %77 = stablehlo.add %iterArg_23, %c_29 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_22, %77, %72#0, %73, %74, %75, %76 : tensor<16x8x2x32xf32>, tensor<16x8x2x32xf32>, tensor<i32>, tensor<8x2x32xf32>, tensor<16x8x2x32xf32>, tensor<16x8x2x32xf32>, tensor<16x8x2x32xf32>, tensor<16x8x2x32xf32>
    }
    %22 = stablehlo.transpose %21#4, dims = [1, 0, 2, 3] : (tensor<16x8x2x32xf32>) -> tensor<8x16x2x32xf32>
    %23 = stablehlo.reshape %22 : (tensor<8x16x2x32xf32>) -> tensor<8x16x64xf32>
    %24 = stablehlo.dot_general %23, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x16x64xf32>, tensor<64x64xf32>) -> tensor<8x16x64xf32>
    %25 = stablehlo.subtract %24, %arg3 : tensor<8x16x64xf32>
    %26 = stablehlo.multiply %25, %25 : tensor<8x16x64xf32>
    %cst_8 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<8x16x64xf32>
    %28 = stablehlo.multiply %27, %25 : tensor<8x16x64xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %29 = stablehlo.reduce(%26 init: %cst_9) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<8x16x64xf32>, tensor<f32>) -> tensor<f32>
    %cst_10 = stablehlo.constant dense<8.192000e+03> : tensor<f32>
    %30 = stablehlo.divide %29, %cst_10 : tensor<f32>
    %cst_11 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_12 = stablehlo.constant dense<8.192000e+03> : tensor<f32>
    %31 = stablehlo.divide %cst_11, %cst_12 : tensor<f32>
    %32 = stablehlo.broadcast_in_dim %31, dims = [] : (tensor<f32>) -> tensor<8x16x64xf32>
    %33 = stablehlo.multiply %32, %28 : tensor<8x16x64xf32>
    %34 = stablehlo.dot_general %33, %23, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x16x64xf32>, tensor<8x16x64xf32>) -> tensor<64x64xf32>
    %35 = stablehlo.transpose %34, dims = [1, 0] : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %36 = stablehlo.dot_general %33, %arg1, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x16x64xf32>, tensor<64x64xf32>) -> tensor<8x16x64xf32>
    %37 = stablehlo.reshape %36 : (tensor<8x16x64xf32>) -> tensor<8x16x2x32xf32>
    %38 = stablehlo.transpose %37, dims = [1, 0, 2, 3] : (tensor<8x16x2x32xf32>) -> tensor<16x8x2x32xf32>
    %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %39 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<8x2x32xf32>
    %cst_14 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %40 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<16x8x2x32xf32>
    %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %41 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<16x8x2x32xf32>
    %c_16 = stablehlo.constant dense<0> : tensor<i32>
    %42:10 = stablehlo.while(%iterArg = %38, %iterArg_22 = %7, %iterArg_23 = %21#5, %iterArg_24 = %15, %iterArg_25 = %21#6, %iterArg_26 = %21#7, %iterArg_27 = %c_16, %iterArg_28 = %39, %iterArg_29 = %40, %iterArg_30 = %41) : tensor<16x8x2x32xf32>, tensor<16x8x2x32xf32>, tensor<16x8x2x32xf32>, tensor<16x8x2x32xf32>, tensor<16x8x2x32xf32>, tensor<16x8x2x32xf32>, tensor<i32>, tensor<8x2x32xf32>, tensor<16x8x2x32xf32>, tensor<16x8x2x32xf32>
    cond {
      %c_31 = stablehlo.constant dense<16> : tensor<i32>
      %70 = stablehlo.compare LT, %iterArg_27, %c_31, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %70 : tensor<i1>
    } do {
      %c_31 = stablehlo.constant dense<16> : tensor<i32>
      %70 = stablehlo.subtract %c_31, %iterArg_27 : tensor<i32>
      %c_32 = stablehlo.constant dense<1> : tensor<i32>
      %71 = stablehlo.subtract %70, %c_32 : tensor<i32>
      %72 = func.call @dynamic_index_in_dim(%iterArg, %71) : (tensor<16x8x2x32xf32>, tensor<i32>) -> tensor<8x2x32xf32>
      %73 = func.call @dynamic_index_in_dim(%iterArg_22, %71) : (tensor<16x8x2x32xf32>, tensor<i32>) -> tensor<8x2x32xf32>
      %74 = func.call @dynamic_index_in_dim(%iterArg_23, %71) : (tensor<16x8x2x32xf32>, tensor<i32>) -> tensor<8x2x32xf32>
      %75 = func.call @dynamic_index_in_dim(%iterArg_24, %71) : (tensor<16x8x2x32xf32>, tensor<i32>) -> tensor<8x2x32xf32>
      %76 = func.call @dynamic_index_in_dim(%iterArg_25, %71) : (tensor<16x8x2x32xf32>, tensor<i32>) -> tensor<8x2x32xf32>
      %77 = func.call @dynamic_index_in_dim(%iterArg_26, %71) : (tensor<16x8x2x32xf32>, tensor<i32>) -> tensor<8x2x32xf32>
      %78:3 = func.call @closed_call_0(%iterArg_28, %72, %73, %74, %75, %76, %77) : (tensor<8x2x32xf32>, tensor<8x2x32xf32>, tensor<8x2x32xf32>, tensor<8x2x32xf32>, tensor<8x2x32xf32>, tensor<8x2x32xf32>, tensor<8x2x32xf32>) -> (tensor<8x2x32xf32>, tensor<8x2x32xf32>, tensor<8x2x32xf32>)
      %79 = func.call @dynamic_update_index_in_dim(%iterArg_29, %78#1, %71) : (tensor<16x8x2x32xf32>, tensor<8x2x32xf32>, tensor<i32>) -> tensor<16x8x2x32xf32>
      %80 = func.call @dynamic_update_index_in_dim(%iterArg_30, %78#2, %71) : (tensor<16x8x2x32xf32>, tensor<8x2x32xf32>, tensor<i32>) -> tensor<16x8x2x32xf32>
      %c_33 = stablehlo.constant dense<1> : tensor<i32>
      %81 = stablehlo.add %iterArg_27, %c_33 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_22, %iterArg_23, %iterArg_24, %iterArg_25, %iterArg_26, %81, %78#0, %79, %80 : tensor<16x8x2x32xf32>, tensor<16x8x2x32xf32>, tensor<16x8x2x32xf32>, tensor<16x8x2x32xf32>, tensor<16x8x2x32xf32>, tensor<16x8x2x32xf32>, tensor<i32>, tensor<8x2x32xf32>, tensor<16x8x2x32xf32>, tensor<16x8x2x32xf32>
    }
    %43 = stablehlo.transpose %42#9, dims = [1, 0, 2, 3] : (tensor<16x8x2x32xf32>) -> tensor<8x16x2x32xf32>
    %44 = stablehlo.reshape %43 : (tensor<8x16x2x32xf32>) -> tensor<8x16x64xf32>
    %cst_17 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %45 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<8x16x64xf32>
    %46 = stablehlo.multiply %44, %45 : tensor<8x16x64xf32>
    %47 = stablehlo.multiply %46, %11 : tensor<8x16x64xf32>
    %48 = stablehlo.multiply %47, %9 : tensor<8x16x64xf32>
    %49 = stablehlo.add %47, %48 : tensor<8x16x64xf32>
    %50 = stablehlo.dot_general %49, %arg3, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x16x64xf32>, tensor<8x16x64xf32>) -> tensor<64x64xf32>
    %51 = stablehlo.transpose %50, dims = [1, 0] : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %cst_18 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %52 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<16x8x2x32xf32>
    %53 = stablehlo.multiply %42#8, %52 : tensor<16x8x2x32xf32>
    %54 = stablehlo.multiply %53, %5 : tensor<16x8x2x32xf32>
    %55 = stablehlo.multiply %54, %3 : tensor<16x8x2x32xf32>
    %56 = stablehlo.add %54, %55 : tensor<16x8x2x32xf32>
    %57 = stablehlo.transpose %56, dims = [1, 0, 2, 3] : (tensor<16x8x2x32xf32>) -> tensor<8x16x2x32xf32>
    %58 = stablehlo.reshape %57 : (tensor<8x16x2x32xf32>) -> tensor<8x16x64xf32>
    %59 = stablehlo.dot_general %58, %arg3, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x16x64xf32>, tensor<8x16x64xf32>) -> tensor<64x64xf32>
    %60 = stablehlo.transpose %59, dims = [1, 0] : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %cst_19 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %61 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<64x64xf32>
    %62 = stablehlo.multiply %61, %51 : tensor<64x64xf32>
    %63 = stablehlo.subtract %arg0, %62 : tensor<64x64xf32>
    %cst_20 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %64 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<64x64xf32>
    %65 = stablehlo.multiply %64, %35 : tensor<64x64xf32>
    %66 = stablehlo.subtract %arg1, %65 : tensor<64x64xf32>
    %cst_21 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %67 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<64x64xf32>
    %68 = stablehlo.multiply %67, %60 : tensor<64x64xf32>
    %69 = stablehlo.subtract %arg2, %68 : tensor<64x64xf32>
    return %63, %66, %69, %30 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<f32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<16x8x2x32xf32>, %arg1: tensor<i32>) -> tensor<8x2x32xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 8, 2, 32] : (tensor<16x8x2x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x8x2x32xf32>) -> tensor<8x2x32xf32>
    return %1 : tensor<8x2x32xf32>
  }
  func.func private @closed_call(%arg0: tensor<8x2x32xf32>, %arg1: tensor<8x2x32xf32>, %arg2: tensor<8x2x32xf32>) -> (tensor<8x2x32xf32>, tensor<8x2x32xf32>, tensor<8x2x32xf32>, tensor<8x2x32xf32>, tensor<8x2x32xf32>) {
    %0 = stablehlo.multiply %arg0, %arg1 : tensor<8x2x32xf32>
    %1 = stablehlo.multiply %arg0, %arg2 : tensor<8x2x32xf32>
    %2 = stablehlo.add %0, %1 : tensor<8x2x32xf32>
    %3 = stablehlo.tanh %2 : tensor<8x2x32xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x2x32xf32>
    %5 = stablehlo.subtract %4, %3 : tensor<8x2x32xf32>
    return %3, %3, %arg0, %3, %5 : tensor<8x2x32xf32>, tensor<8x2x32xf32>, tensor<8x2x32xf32>, tensor<8x2x32xf32>, tensor<8x2x32xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<16x8x2x32xf32>, %arg1: tensor<8x2x32xf32>, %arg2: tensor<i32>) -> tensor<16x8x2x32xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<8x2x32xf32>) -> tensor<1x8x2x32xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<16x8x2x32xf32>, tensor<1x8x2x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<16x8x2x32xf32>
    return %1 : tensor<16x8x2x32xf32>
  }
  func.func private @closed_call_0(%arg0: tensor<8x2x32xf32>, %arg1: tensor<8x2x32xf32>, %arg2: tensor<8x2x32xf32>, %arg3: tensor<8x2x32xf32>, %arg4: tensor<8x2x32xf32>, %arg5: tensor<8x2x32xf32>, %arg6: tensor<8x2x32xf32>) -> (tensor<8x2x32xf32>, tensor<8x2x32xf32>, tensor<8x2x32xf32>) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<8x2x32xf32>
    %1 = stablehlo.multiply %0, %arg6 : tensor<8x2x32xf32>
    %2 = stablehlo.multiply %1, %arg5 : tensor<8x2x32xf32>
    %3 = stablehlo.add %1, %2 : tensor<8x2x32xf32>
    %4 = stablehlo.multiply %arg3, %3 : tensor<8x2x32xf32>
    %5 = stablehlo.multiply %3, %arg4 : tensor<8x2x32xf32>
    %6 = stablehlo.multiply %arg3, %3 : tensor<8x2x32xf32>
    %7 = stablehlo.multiply %3, %arg2 : tensor<8x2x32xf32>
    %8 = stablehlo.add %5, %7 : tensor<8x2x32xf32>
    return %8, %6, %4 : tensor<8x2x32xf32>, tensor<8x2x32xf32>, tensor<8x2x32xf32>
  }
}

