module @jit_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<128x64xf32>, %arg1: tensor<4x8x128xf32>, %arg2: tensor<4x8x64xf32>) -> (tensor<128x64xf32> {jax.result_info = "result[0]"}, tensor<f32> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<128x64xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %2:6 = stablehlo.while(%iterArg = %arg1, %iterArg_4 = %arg2, %iterArg_5 = %arg0, %iterArg_6 = %c, %iterArg_7 = %0, %iterArg_8 = %1) : tensor<4x8x128xf32>, tensor<4x8x64xf32>, tensor<128x64xf32>, tensor<i32>, tensor<128x64xf32>, tensor<4xf32>
    cond {
      %c_9 = stablehlo.constant dense<4> : tensor<i32>
      %8 = stablehlo.compare LT, %iterArg_6, %c_9, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %8 : tensor<i1>
    } do {
      %8 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_6) : (tensor<4x8x128xf32>, tensor<i32>) -> tensor<8x128xf32>
      %9 = func.call @dynamic_index_in_dim_0(%iterArg_4, %iterArg_6) : (tensor<4x8x64xf32>, tensor<i32>) -> tensor<8x64xf32>
      %10:2 = func.call @closed_call(%iterArg_5, %iterArg_7, %8, %9) : (tensor<128x64xf32>, tensor<128x64xf32>, tensor<8x128xf32>, tensor<8x64xf32>) -> (tensor<128x64xf32>, tensor<f32>)
      %11 = func.call @dynamic_update_index_in_dim(%iterArg_8, %10#1, %iterArg_6) : (tensor<4xf32>, tensor<f32>, tensor<i32>) -> tensor<4xf32>
      %c_9 = stablehlo.constant dense<1> : tensor<i32>
      %12 = stablehlo.add %iterArg_6, %c_9 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_4, %iterArg_5, %12, %10#0, %11 : tensor<4x8x128xf32>, tensor<4x8x64xf32>, tensor<128x64xf32>, tensor<i32>, tensor<128x64xf32>, tensor<4xf32>
    }
    %cst_1 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<128x64xf32>
    %4 = stablehlo.multiply %3, %2#4 : tensor<128x64xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<128x64xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %6 = stablehlo.reduce(%2#5 init: %cst_2) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %cst_3 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %7 = stablehlo.divide %6, %cst_3 : tensor<f32>
    return %5, %7 : tensor<128x64xf32>, tensor<f32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<4x8x128xf32>, %arg1: tensor<i32>) -> tensor<8x128xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 8, 128] : (tensor<4x8x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x128xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x8x128xf32>) -> tensor<8x128xf32>
    return %1 : tensor<8x128xf32>
  }
  func.func private @dynamic_index_in_dim_0(%arg0: tensor<4x8x64xf32>, %arg1: tensor<i32>) -> tensor<8x64xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 8, 64] : (tensor<4x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x64xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x8x64xf32>) -> tensor<8x64xf32>
    return %1 : tensor<8x64xf32>
  }
  func.func private @closed_call(%arg0: tensor<128x64xf32>, %arg1: tensor<128x64xf32>, %arg2: tensor<8x128xf32>, %arg3: tensor<8x64xf32>) -> (tensor<128x64xf32>, tensor<f32>) {
    %0 = stablehlo.dot_general %arg2, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x128xf32>, tensor<128x64xf32>) -> tensor<8x64xf32>
    %1 = stablehlo.subtract %0, %arg3 : tensor<8x64xf32>
    %2 = stablehlo.multiply %1, %1 : tensor<8x64xf32>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x64xf32>
    %4 = stablehlo.multiply %3, %1 : tensor<8x64xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.reduce(%2 init: %cst_0) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x64xf32>, tensor<f32>) -> tensor<f32>
    %cst_1 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %6 = stablehlo.multiply %cst_1, %5 : tensor<f32>
    %cst_2 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %7 = stablehlo.multiply %cst_2, %cst_3 : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<8x64xf32>
    %9 = stablehlo.multiply %8, %4 : tensor<8x64xf32>
    %10 = stablehlo.dot_general %9, %arg2, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x64xf32>, tensor<8x128xf32>) -> tensor<64x128xf32>
    %11 = stablehlo.transpose %10, dims = [1, 0] : (tensor<64x128xf32>) -> tensor<128x64xf32>
    %12 = stablehlo.add %arg1, %11 : tensor<128x64xf32>
    return %12, %6 : tensor<128x64xf32>, tensor<f32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<4xf32>, %arg1: tensor<f32>, %arg2: tensor<i32>) -> tensor<4xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2 : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}

