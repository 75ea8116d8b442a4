module @jit_hand_adam attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x11xf32> {tf.aliasing_output = 0 : i32} loc("v"), %arg1: tensor<4x11xf32> {tf.aliasing_output = 1 : i32} loc("m"), %arg2: tensor<4x11xf32> {tf.aliasing_output = 2 : i32} loc("w"), %arg3: tensor<2x4xf32> loc("x"), %arg4: tensor<2x11xf32> loc("y")) -> (tensor<4x11xf32> {jax.result_info = "result[0]"}, tensor<4x11xf32> {jax.result_info = "result[1]"}, tensor<4x11xf32> {jax.result_info = "result[2]"}, tensor<f32> {jax.result_info = "result[3]"}) {
    %0 = stablehlo.dot_general %arg3, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x4xf32>, tensor<4x11xf32>) -> tensor<2x11xf32>
    %1 = stablehlo.subtract %0, %arg4 : tensor<2x11xf32>
    %2 = stablehlo.multiply %1, %1 : tensor<2x11xf32>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x11xf32>
    %4 = stablehlo.multiply %3, %1 : tensor<2x11xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.reduce(%2 init: %cst_0) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x11xf32>, tensor<f32>) -> tensor<f32>
    %cst_1 = stablehlo.constant dense<2.200000e+01> : tensor<f32>
    %6 = stablehlo.divide %5, %cst_1 : tensor<f32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_3 = stablehlo.constant dense<2.200000e+01> : tensor<f32>
    %7 = stablehlo.divide %cst_2, %cst_3 : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<2x11xf32>
    %9 = stablehlo.multiply %8, %4 : tensor<2x11xf32>
    %10 = stablehlo.dot_general %9, %arg3, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x11xf32>, tensor<2x4xf32>) -> tensor<11x4xf32>
    %11 = stablehlo.transpose %10, dims = [1, 0] : (tensor<11x4xf32>) -> tensor<4x11xf32>
    %cst_4 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %13 = stablehlo.multiply %12, %arg2 : tensor<4x11xf32>
    %14 = stablehlo.add %11, %13 : tensor<4x11xf32>
    %cst_5 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %16 = stablehlo.multiply %15, %arg1 : tensor<4x11xf32>
    %cst_6 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %18 = stablehlo.multiply %17, %14 : tensor<4x11xf32>
    %19 = stablehlo.add %16, %18 : tensor<4x11xf32>
    %cst_7 = stablehlo.constant dense<9.900000e-01> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %21 = stablehlo.multiply %20, %arg0 : tensor<4x11xf32>
    %cst_8 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %22 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %23 = stablehlo.multiply %22, %14 : tensor<4x11xf32>
    %24 = stablehlo.multiply %23, %14 : tensor<4x11xf32>
    %25 = stablehlo.add %21, %24 : tensor<4x11xf32>
    %cst_9 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %26 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %27 = stablehlo.multiply %26, %19 : tensor<4x11xf32>
    %28 = stablehlo.sqrt %25 : tensor<4x11xf32>
    %cst_10 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %29 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %30 = stablehlo.add %28, %29 : tensor<4x11xf32>
    %31 = stablehlo.divide %27, %30 : tensor<4x11xf32>
    %32 = stablehlo.subtract %arg2, %31 : tensor<4x11xf32>
    return %19, %32, %25, %6 : tensor<4x11xf32>, tensor<4x11xf32>, tensor<4x11xf32>, tensor<f32>
  }
}
