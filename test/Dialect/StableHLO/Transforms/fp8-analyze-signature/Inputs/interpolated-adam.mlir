module @jit_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x11xf32> loc("w"), %arg1: tensor<4x11xf32> loc("m"), %arg2: tensor<4x11xf32> loc("v"), %arg3: tensor<i32> loc("t"), %arg4: tensor<2x4xf32> loc("x"), %arg5: tensor<2x11xf32> loc("y")) -> (tensor<4x11xf32> {jax.result_info = "result[0]"}, tensor<4x11xf32> {jax.result_info = "result[1]"}, tensor<4x11xf32> {jax.result_info = "result[2]"}, tensor<i32> {jax.result_info = "result[3]"}, tensor<f32> {jax.result_info = "result[4]"}) {
    %0 = stablehlo.dot_general %arg4, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x4xf32>, tensor<4x11xf32>) -> tensor<2x11xf32>
    %1 = stablehlo.subtract %0, %arg5 : tensor<2x11xf32>
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
    %10 = stablehlo.dot_general %9, %arg4, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x11xf32>, tensor<2x4xf32>) -> tensor<11x4xf32>
    %11 = stablehlo.transpose %10, dims = [1, 0] : (tensor<11x4xf32>) -> tensor<4x11xf32>
    %cst_4 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %13 = stablehlo.multiply %12, %arg0 : tensor<4x11xf32>
    %14 = stablehlo.add %11, %13 : tensor<4x11xf32>
    %15 = stablehlo.subtract %14, %arg1 : tensor<4x11xf32>
    %cst_5 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %17 = stablehlo.multiply %15, %16 : tensor<4x11xf32>
    %18 = stablehlo.add %arg1, %17 : tensor<4x11xf32>
    %19 = stablehlo.multiply %14, %14 : tensor<4x11xf32>
    %20 = stablehlo.subtract %arg2, %19 : tensor<4x11xf32>
    %cst_6 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %21 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %22 = stablehlo.multiply %21, %20 : tensor<4x11xf32>
    %23 = stablehlo.subtract %arg2, %22 : tensor<4x11xf32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %24 = stablehlo.add %arg3, %c : tensor<i32>
    %cst_7 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %25 = stablehlo.convert %24 : (tensor<i32>) -> tensor<f32>
    %26 = stablehlo.power %cst_7, %25 : tensor<f32>
    %cst_8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %27 = stablehlo.subtract %cst_8, %26 : tensor<f32>
    %28 = stablehlo.broadcast_in_dim %27, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %29 = stablehlo.divide %18, %28 : tensor<4x11xf32>
    %cst_9 = stablehlo.constant dense<3.000000e-03> : tensor<f32>
    %30 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %31 = stablehlo.multiply %30, %29 : tensor<4x11xf32>
    %cst_10 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %32 = stablehlo.convert %24 : (tensor<i32>) -> tensor<f32>
    %33 = stablehlo.power %cst_10, %32 : tensor<f32>
    %cst_11 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %34 = stablehlo.subtract %cst_11, %33 : tensor<f32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %36 = stablehlo.divide %23, %35 : tensor<4x11xf32>
    %37 = stablehlo.sqrt %36 : tensor<4x11xf32>
    %cst_12 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %38 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %39 = stablehlo.add %37, %38 : tensor<4x11xf32>
    %40 = stablehlo.divide %31, %39 : tensor<4x11xf32>
    %41 = stablehlo.subtract %arg0, %40 : tensor<4x11xf32>
    return %41, %18, %23, %24, %6 : tensor<4x11xf32>, tensor<4x11xf32>, tensor<4x11xf32>, tensor<i32>, tensor<f32>
  }
}

