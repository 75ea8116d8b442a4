module @jit_init attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<ui32> loc("seed")) -> (tensor<11xf32> {jax.result_info = "result[0]['b']"}, tensor<11x4xf32> {jax.result_info = "result[0]['emb']"}, tensor<4x11xf32> {jax.result_info = "result[0]['out']"}, tensor<i32> {jax.result_info = "result[1][1][0].count"}, tensor<11xf32> {jax.result_info = "result[1][1][0].mu['b']"}, tensor<11x4xf32> {jax.result_info = "result[1][1][0].mu['emb']"}, tensor<4x11xf32> {jax.result_info = "result[1][1][0].mu['out']"}, tensor<11xf32> {jax.result_info = "result[1][1][0].nu['b']"}, tensor<11x4xf32> {jax.result_info = "result[1][1][0].nu['emb']"}, tensor<4x11xf32> {jax.result_info = "result[1][1][0].nu['out']"}, tensor<i32> {jax.result_info = "result[1][1][2].count"}) {
    %0 = stablehlo.iota dim = 0 : tensor<11xui32>
    %c = stablehlo.constant dense<7919> : tensor<ui32>
    %1 = stablehlo.multiply %arg0, %c : tensor<ui32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<ui32>) -> tensor<11xui32>
    %3 = stablehlo.add %0, %2 : tensor<11xui32>
    %c_0 = stablehlo.constant dense<0> : tensor<ui32>
    %4 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<ui32>) -> tensor<11xui32>
    %5 = stablehlo.add %3, %4 : tensor<11xui32>
    %c_1 = stablehlo.constant dense<2654435761> : tensor<ui32>
    %6 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<ui32>) -> tensor<11xui32>
    %7 = stablehlo.multiply %5, %6 : tensor<11xui32>
    %c_2 = stablehlo.constant dense<16> : tensor<ui32>
    %8 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<ui32>) -> tensor<11xui32>
    %9 = stablehlo.shift_right_logical %7, %8 : tensor<11xui32>
    %10 = stablehlo.xor %7, %9 : tensor<11xui32>
    %11 = stablehlo.convert %10 : (tensor<11xui32>) -> tensor<11xf32>
    %cst = stablehlo.constant dense<4.2949673E+9> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %13 = stablehlo.divide %11, %12 : tensor<11xf32>
    %cst_3 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %15 = stablehlo.subtract %13, %14 : tensor<11xf32>
    %16 = stablehlo.iota dim = 0 : tensor<44xui32>
    %c_4 = stablehlo.constant dense<7919> : tensor<ui32>
    %17 = stablehlo.multiply %arg0, %c_4 : tensor<ui32>
    %18 = stablehlo.broadcast_in_dim %17, dims = [] : (tensor<ui32>) -> tensor<44xui32>
    %19 = stablehlo.add %16, %18 : tensor<44xui32>
    %c_5 = stablehlo.constant dense<1> : tensor<ui32>
    %20 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<ui32>) -> tensor<44xui32>
    %21 = stablehlo.add %19, %20 : tensor<44xui32>
    %c_6 = stablehlo.constant dense<2654435761> : tensor<ui32>
    %22 = stablehlo.broadcast_in_dim %c_6, dims = [] : (tensor<ui32>) -> tensor<44xui32>
    %23 = stablehlo.multiply %21, %22 : tensor<44xui32>
    %c_7 = stablehlo.constant dense<16> : tensor<ui32>
    %24 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<ui32>) -> tensor<44xui32>
    %25 = stablehlo.shift_right_logical %23, %24 : tensor<44xui32>
    %26 = stablehlo.xor %23, %25 : tensor<44xui32>
    %27 = stablehlo.convert %26 : (tensor<44xui32>) -> tensor<44xf32>
    %cst_8 = stablehlo.constant dense<4.2949673E+9> : tensor<f32>
    %28 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<44xf32>
    %29 = stablehlo.divide %27, %28 : tensor<44xf32>
    %cst_9 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %30 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<44xf32>
    %31 = stablehlo.subtract %29, %30 : tensor<44xf32>
    %32 = stablehlo.reshape %31 : (tensor<44xf32>) -> tensor<11x4xf32>
    %33 = stablehlo.iota dim = 0 : tensor<44xui32>
    %c_10 = stablehlo.constant dense<7919> : tensor<ui32>
    %34 = stablehlo.multiply %arg0, %c_10 : tensor<ui32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [] : (tensor<ui32>) -> tensor<44xui32>
    %36 = stablehlo.add %33, %35 : tensor<44xui32>
    %c_11 = stablehlo.constant dense<2> : tensor<ui32>
    %37 = stablehlo.broadcast_in_dim %c_11, dims = [] : (tensor<ui32>) -> tensor<44xui32>
    %38 = stablehlo.add %36, %37 : tensor<44xui32>
    %c_12 = stablehlo.constant dense<2654435761> : tensor<ui32>
    %39 = stablehlo.broadcast_in_dim %c_12, dims = [] : (tensor<ui32>) -> tensor<44xui32>
    %40 = stablehlo.multiply %38, %39 : tensor<44xui32>
    %c_13 = stablehlo.constant dense<16> : tensor<ui32>
    %41 = stablehlo.broadcast_in_dim %c_13, dims = [] : (tensor<ui32>) -> tensor<44xui32>
    %42 = stablehlo.shift_right_logical %40, %41 : tensor<44xui32>
    %43 = stablehlo.xor %40, %42 : tensor<44xui32>
    %44 = stablehlo.convert %43 : (tensor<44xui32>) -> tensor<44xf32>
    %cst_14 = stablehlo.constant dense<4.2949673E+9> : tensor<f32>
    %45 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<44xf32>
    %46 = stablehlo.divide %44, %45 : tensor<44xf32>
    %cst_15 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %47 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<44xf32>
    %48 = stablehlo.subtract %46, %47 : tensor<44xf32>
    %49 = stablehlo.reshape %48 : (tensor<44xf32>) -> tensor<4x11xf32>
    %cst_16 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %50 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %cst_17 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %51 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %cst_18 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %52 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %cst_19 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %53 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %cst_20 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %54 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %cst_21 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %55 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %c_22 = stablehlo.constant dense<0> : tensor<i32>
    %c_23 = stablehlo.constant dense<0> : tensor<i32>
    return %15, %32, %49, %c_22, %50, %51, %52, %53, %54, %55, %c_23 : tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<i32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<i32>
  }
}
