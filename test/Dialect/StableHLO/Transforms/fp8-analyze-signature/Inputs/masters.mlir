module @jit_masters attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<11xbf16> loc("p16['b']"), %arg1: tensor<11x4xbf16> loc("p16['emb']"), %arg2: tensor<4x11xbf16> loc("p16['out']"), %arg3: tensor<11xf32> loc("p['b']"), %arg4: tensor<11x4xf32> loc("p['emb']"), %arg5: tensor<4x11xf32> loc("p['out']"), %arg6: tensor<i32> loc("o[0].count"), %arg7: tensor<11xf32> loc("o[0].mu['b']"), %arg8: tensor<11x4xf32> loc("o[0].mu['emb']"), %arg9: tensor<4x11xf32> loc("o[0].mu['out']"), %arg10: tensor<11xf32> loc("o[0].nu['b']"), %arg11: tensor<11x4xf32> loc("o[0].nu['emb']"), %arg12: tensor<4x11xf32> loc("o[0].nu['out']"), %arg13: tensor<2x4xi32> loc("tok")) -> (tensor<11xbf16> {jax.result_info = "result[0]['b']"}, tensor<11x4xbf16> {jax.result_info = "result[0]['emb']"}, tensor<4x11xbf16> {jax.result_info = "result[0]['out']"}, tensor<11xf32> {jax.result_info = "result[1]['b']"}, tensor<11x4xf32> {jax.result_info = "result[1]['emb']"}, tensor<4x11xf32> {jax.result_info = "result[1]['out']"}, tensor<i32> {jax.result_info = "result[2][0].count"}, tensor<11xf32> {jax.result_info = "result[2][0].mu['b']"}, tensor<11x4xf32> {jax.result_info = "result[2][0].mu['emb']"}, tensor<4x11xf32> {jax.result_info = "result[2][0].mu['out']"}, tensor<11xf32> {jax.result_info = "result[2][0].nu['b']"}, tensor<11x4xf32> {jax.result_info = "result[2][0].nu['emb']"}, tensor<4x11xf32> {jax.result_info = "result[2][0].nu['out']"}, tensor<bf16> {jax.result_info = "result[3]"}) {
    %0 = stablehlo.slice %arg13 [0:2, 0:3] : (tensor<2x4xi32>) -> tensor<2x3xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<2x3xi32>
    %2 = stablehlo.compare LT, %0, %1, SIGNED : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>
    %c_0 = stablehlo.constant dense<11> : tensor<i32>
    %3 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<2x3xi32>
    %4 = stablehlo.add %0, %3 : tensor<2x3xi32>
    %5 = stablehlo.select %2, %4, %0 : tensor<2x3xi1>, tensor<2x3xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<2x3xi32>) -> tensor<2x3x1xi32>
    %7 = "stablehlo.gather"(%arg1, %6) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<11x4xbf16>, tensor<2x3x1xi32>) -> tensor<2x3x4xbf16>
    %8 = stablehlo.tanh %7 : tensor<2x3x4xbf16>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %9 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<2x3x4xbf16>
    %10 = stablehlo.subtract %9, %8 : tensor<2x3x4xbf16>
    %11 = stablehlo.dot_general %8, %arg2, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4xbf16>, tensor<4x11xbf16>) -> tensor<2x3x11xbf16>
    %12 = stablehlo.broadcast_in_dim %arg0, dims = [2] : (tensor<11xbf16>) -> tensor<1x1x11xbf16>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1, 2] : (tensor<1x1x11xbf16>) -> tensor<2x3x11xbf16>
    %14 = stablehlo.add %11, %13 : tensor<2x3x11xbf16>
    %15:3 = call @log_softmax(%14) : (tensor<2x3x11xbf16>) -> (tensor<2x3x11xbf16>, tensor<2x3x11xbf16>, tensor<2x3x1xbf16>)
    %16 = stablehlo.slice %arg13 [0:2, 1:4] : (tensor<2x4xi32>) -> tensor<2x3xi32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [0, 1] : (tensor<2x3xi32>) -> tensor<2x3x1xi32>
    %18:2 = call @take_along_axis(%15#0, %17) : (tensor<2x3x11xbf16>, tensor<2x3x1xi32>) -> (tensor<2x3x1xbf16>, tensor<2x3x1x1xi32>)
    %19 = stablehlo.convert %18#0 : (tensor<2x3x1xbf16>) -> tensor<2x3x1xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %20 = stablehlo.reduce(%19 init: %cst_1) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<f32>
    %cst_2 = stablehlo.constant dense<6.000000e+00> : tensor<f32>
    %21 = stablehlo.divide %20, %cst_2 : tensor<f32>
    %22 = stablehlo.convert %21 : (tensor<f32>) -> tensor<bf16>
    %23 = stablehlo.negate %22 : tensor<bf16>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %24 = stablehlo.negate %cst_3 : tensor<bf16>
    %25 = stablehlo.convert %24 : (tensor<bf16>) -> tensor<f32>
    %cst_4 = stablehlo.constant dense<6.000000e+00> : tensor<f32>
    %26 = stablehlo.divide %25, %cst_4 : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [] : (tensor<f32>) -> tensor<2x3x1xf32>
    %28 = stablehlo.convert %27 : (tensor<2x3x1xf32>) -> tensor<2x3x1xbf16>
    %29 = call @take_along_axis_0(%18#1, %28) : (tensor<2x3x1x1xi32>, tensor<2x3x1xbf16>) -> tensor<2x3x11xbf16>
    %30 = call @log_softmax_1(%15#1, %15#2, %29) : (tensor<2x3x11xbf16>, tensor<2x3x1xbf16>, tensor<2x3x11xbf16>) -> tensor<2x3x11xbf16>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %31 = stablehlo.reduce(%30 init: %cst_5) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3x11xbf16>, tensor<bf16>) -> tensor<11xbf16>
    %32 = stablehlo.reshape %31 : (tensor<11xbf16>) -> tensor<1x1x11xbf16>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %33 = stablehlo.reduce(%32 init: %cst_6) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x11xbf16>, tensor<bf16>) -> tensor<11xbf16>
    %34 = stablehlo.dot_general %30, %8, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x3x11xbf16>, tensor<2x3x4xbf16>) -> tensor<11x4xbf16>
    %35 = stablehlo.transpose %34, dims = [1, 0] : (tensor<11x4xbf16>) -> tensor<4x11xbf16>
    %36 = stablehlo.dot_general %30, %arg2, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x3x11xbf16>, tensor<4x11xbf16>) -> tensor<2x3x4xbf16>
    %37 = stablehlo.multiply %36, %10 : tensor<2x3x4xbf16>
    %38 = stablehlo.multiply %37, %8 : tensor<2x3x4xbf16>
    %39 = stablehlo.add %37, %38 : tensor<2x3x4xbf16>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %40 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<bf16>) -> tensor<11x4xbf16>
    %41 = "stablehlo.scatter"(%40, %6, %39) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg14: tensor<bf16>, %arg15: tensor<bf16>):
      %129 = stablehlo.add %arg14, %arg15 : tensor<bf16>
      stablehlo.return %129 : tensor<bf16>
    }) : (tensor<11x4xbf16>, tensor<2x3x1xi32>, tensor<2x3x4xbf16>) -> tensor<11x4xbf16>
    %42 = stablehlo.convert %33 : (tensor<11xbf16>) -> tensor<11xf32>
    %43 = stablehlo.convert %41 : (tensor<11x4xbf16>) -> tensor<11x4xf32>
    %44 = stablehlo.convert %35 : (tensor<4x11xbf16>) -> tensor<4x11xf32>
    %cst_8 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %45 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %46 = stablehlo.multiply %45, %42 : tensor<11xf32>
    %cst_9 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %47 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %48 = stablehlo.multiply %47, %arg7 : tensor<11xf32>
    %49 = stablehlo.add %46, %48 : tensor<11xf32>
    %cst_10 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %50 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %51 = stablehlo.multiply %50, %43 : tensor<11x4xf32>
    %cst_11 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %52 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %53 = stablehlo.multiply %52, %arg8 : tensor<11x4xf32>
    %54 = stablehlo.add %51, %53 : tensor<11x4xf32>
    %cst_12 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %55 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %56 = stablehlo.multiply %55, %44 : tensor<4x11xf32>
    %cst_13 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %57 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %58 = stablehlo.multiply %57, %arg9 : tensor<4x11xf32>
    %59 = stablehlo.add %56, %58 : tensor<4x11xf32>
    %60 = stablehlo.multiply %42, %42 : tensor<11xf32>
    %cst_14 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %61 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %62 = stablehlo.multiply %61, %60 : tensor<11xf32>
    %cst_15 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %63 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %64 = stablehlo.multiply %63, %arg10 : tensor<11xf32>
    %65 = stablehlo.add %62, %64 : tensor<11xf32>
    %66 = stablehlo.multiply %43, %43 : tensor<11x4xf32>
    %cst_16 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %67 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %68 = stablehlo.multiply %67, %66 : tensor<11x4xf32>
    %cst_17 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %69 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %70 = stablehlo.multiply %69, %arg11 : tensor<11x4xf32>
    %71 = stablehlo.add %68, %70 : tensor<11x4xf32>
    %72 = stablehlo.multiply %44, %44 : tensor<4x11xf32>
    %cst_18 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %73 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %74 = stablehlo.multiply %73, %72 : tensor<4x11xf32>
    %cst_19 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %75 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %76 = stablehlo.multiply %75, %arg12 : tensor<4x11xf32>
    %77 = stablehlo.add %74, %76 : tensor<4x11xf32>
    %c_20 = stablehlo.constant dense<2147483647> : tensor<i32>
    %78 = stablehlo.compare LT, %arg6, %c_20, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_21 = stablehlo.constant dense<1> : tensor<i32>
    %79 = stablehlo.add %arg6, %c_21 : tensor<i32>
    %c_22 = stablehlo.constant dense<2147483647> : tensor<i32>
    %80 = call @_where(%78, %79, %c_22) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %cst_23 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %81 = stablehlo.convert %80 : (tensor<i32>) -> tensor<f32>
    %82 = stablehlo.power %cst_23, %81 : tensor<f32>
    %cst_24 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %83 = stablehlo.subtract %cst_24, %82 : tensor<f32>
    %84 = stablehlo.broadcast_in_dim %83, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %85 = stablehlo.divide %49, %84 : tensor<11xf32>
    %86 = stablehlo.broadcast_in_dim %83, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %87 = stablehlo.divide %54, %86 : tensor<11x4xf32>
    %88 = stablehlo.broadcast_in_dim %83, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %89 = stablehlo.divide %59, %88 : tensor<4x11xf32>
    %cst_25 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %90 = stablehlo.convert %80 : (tensor<i32>) -> tensor<f32>
    %91 = stablehlo.power %cst_25, %90 : tensor<f32>
    %cst_26 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %92 = stablehlo.subtract %cst_26, %91 : tensor<f32>
    %93 = stablehlo.broadcast_in_dim %92, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %94 = stablehlo.divide %65, %93 : tensor<11xf32>
    %95 = stablehlo.broadcast_in_dim %92, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %96 = stablehlo.divide %71, %95 : tensor<11x4xf32>
    %97 = stablehlo.broadcast_in_dim %92, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %98 = stablehlo.divide %77, %97 : tensor<4x11xf32>
    %cst_27 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %99 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %100 = stablehlo.add %94, %99 : tensor<11xf32>
    %101 = stablehlo.sqrt %100 : tensor<11xf32>
    %cst_28 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %102 = stablehlo.broadcast_in_dim %cst_28, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %103 = stablehlo.add %101, %102 : tensor<11xf32>
    %104 = stablehlo.divide %85, %103 : tensor<11xf32>
    %cst_29 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %105 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %106 = stablehlo.add %96, %105 : tensor<11x4xf32>
    %107 = stablehlo.sqrt %106 : tensor<11x4xf32>
    %cst_30 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %108 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %109 = stablehlo.add %107, %108 : tensor<11x4xf32>
    %110 = stablehlo.divide %87, %109 : tensor<11x4xf32>
    %cst_31 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %111 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %112 = stablehlo.add %98, %111 : tensor<4x11xf32>
    %113 = stablehlo.sqrt %112 : tensor<4x11xf32>
    %cst_32 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %114 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %115 = stablehlo.add %113, %114 : tensor<4x11xf32>
    %116 = stablehlo.divide %89, %115 : tensor<4x11xf32>
    %cst_33 = stablehlo.constant dense<-1.000000e-03> : tensor<f32>
    %117 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %118 = stablehlo.multiply %117, %104 : tensor<11xf32>
    %cst_34 = stablehlo.constant dense<-1.000000e-03> : tensor<f32>
    %119 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %120 = stablehlo.multiply %119, %110 : tensor<11x4xf32>
    %cst_35 = stablehlo.constant dense<-1.000000e-03> : tensor<f32>
    %121 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %122 = stablehlo.multiply %121, %116 : tensor<4x11xf32>
    %123 = stablehlo.add %arg3, %118 : tensor<11xf32>
    %124 = stablehlo.add %arg4, %120 : tensor<11x4xf32>
    %125 = stablehlo.add %arg5, %122 : tensor<4x11xf32>
    %126 = stablehlo.convert %123 : (tensor<11xf32>) -> tensor<11xbf16>
    %127 = stablehlo.convert %124 : (tensor<11x4xf32>) -> tensor<11x4xbf16>
    %128 = stablehlo.convert %125 : (tensor<4x11xf32>) -> tensor<4x11xbf16>
    return %126, %127, %128, %123, %124, %125, %80, %49, %54, %59, %65, %71, %77, %23 : tensor<11xbf16>, tensor<11x4xbf16>, tensor<4x11xbf16>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<i32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<bf16>
  }
  func.func private @log_softmax(%arg0: tensor<2x3x11xbf16>) -> (tensor<2x3x11xbf16>, tensor<2x3x11xbf16>, tensor<2x3x1xbf16>) {
    %cst = stablehlo.constant dense<0xFF80> : tensor<bf16>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [2] : (tensor<2x3x11xbf16>, tensor<bf16>) -> tensor<2x3xbf16>
    %cst_0 = stablehlo.constant dense<0xFF80> : tensor<bf16>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<bf16>) -> tensor<2x3xbf16>
    %2 = stablehlo.maximum %1, %0 : tensor<2x3xbf16>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<2x3xbf16>) -> tensor<2x3x1xbf16>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<2x3x1xbf16>) -> tensor<2x3x11xbf16>
    %5 = stablehlo.subtract %arg0, %4 : tensor<2x3x11xbf16>
    %6 = stablehlo.exponential %5 : tensor<2x3x11xbf16>
    %7 = stablehlo.convert %6 : (tensor<2x3x11xbf16>) -> tensor<2x3x11xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.reduce(%7 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<2x3x11xf32>, tensor<f32>) -> tensor<2x3xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
    %10 = stablehlo.convert %9 : (tensor<2x3x1xf32>) -> tensor<2x3x1xbf16>
    %11 = stablehlo.log %10 : tensor<2x3x1xbf16>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1, 2] : (tensor<2x3x1xbf16>) -> tensor<2x3x11xbf16>
    %13 = stablehlo.subtract %5, %12 : tensor<2x3x11xbf16>
    return %13, %6, %10 : tensor<2x3x11xbf16>, tensor<2x3x11xbf16>, tensor<2x3x1xbf16>
  }
  func.func private @take_along_axis(%arg0: tensor<2x3x11xbf16>, %arg1: tensor<2x3x1xi32>) -> (tensor<2x3x1xbf16>, tensor<2x3x1x1xi32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<2x3x1xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<2x3x1xi32>, tensor<2x3x1xi32>) -> tensor<2x3x1xi1>
    %c_0 = stablehlo.constant dense<11> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<2x3x1xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<2x3x1xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<2x3x1xi1>, tensor<2x3x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<2x3x1xi32>) -> tensor<2x3x1x1xi32>
    %c_1 = stablehlo.constant dense<10> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<2x3x1x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<2x3x1x1xi32>, tensor<2x3x1x1xi32>) -> tensor<2x3x1x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [3] : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2, 3] : (tensor<1x1x1x1xi32>) -> tensor<2x3x1x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<2x3x1x1xi32>, tensor<2x3x1x1xi32>) -> tensor<2x3x1x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<2x3x1x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across dimensions = [3] : (tensor<2x3x1x1xi1>, tensor<i1>) -> tensor<2x3x1xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [2], operand_batching_dims = [0, 1], start_indices_batching_dims = [0, 1], start_index_map = [2], index_vector_dim = 3>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<2x3x11xbf16>, tensor<2x3x1x1xi32>) -> tensor<2x3x1xbf16>
    %cst = stablehlo.constant dense<0x7FC0> : tensor<bf16>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<2x3x1xbf16>
    %15 = stablehlo.select %12, %13, %14 : tensor<2x3x1xi1>, tensor<2x3x1xbf16>
    return %15, %5 : tensor<2x3x1xbf16>, tensor<2x3x1x1xi32>
  }
  func.func private @take_along_axis_0(%arg0: tensor<2x3x1x1xi32>, %arg1: tensor<2x3x1xbf16>) -> tensor<2x3x11xbf16> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<2x3x11xbf16>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [2], input_batching_dims = [0, 1], scatter_indices_batching_dims = [0, 1], scatter_dims_to_operand_dims = [2], index_vector_dim = 3>, unique_indices = false}> ({
    ^bb0(%arg2: tensor<bf16>, %arg3: tensor<bf16>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<bf16>
      stablehlo.return %2 : tensor<bf16>
    }) : (tensor<2x3x11xbf16>, tensor<2x3x1x1xi32>, tensor<2x3x1xbf16>) -> tensor<2x3x11xbf16>
    return %1 : tensor<2x3x11xbf16>
  }
  func.func private @log_softmax_1(%arg0: tensor<2x3x11xbf16>, %arg1: tensor<2x3x1xbf16>, %arg2: tensor<2x3x11xbf16>) -> tensor<2x3x11xbf16> {
    %0 = stablehlo.negate %arg2 : tensor<2x3x11xbf16>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x3x11xbf16>, tensor<bf16>) -> tensor<2x3xbf16>
    %2 = stablehlo.reshape %1 : (tensor<2x3xbf16>) -> tensor<2x3x1xbf16>
    %3 = stablehlo.divide %2, %arg1 : tensor<2x3x1xbf16>
    %4 = stablehlo.convert %3 : (tensor<2x3x1xbf16>) -> tensor<2x3x1xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.reduce(%4 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3xf32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x11xf32>
    %7 = stablehlo.convert %6 : (tensor<2x3x11xf32>) -> tensor<2x3x11xbf16>
    %8 = stablehlo.multiply %7, %arg0 : tensor<2x3x11xbf16>
    %9 = stablehlo.add %arg2, %8 : tensor<2x3x11xbf16>
    return %9 : tensor<2x3x11xbf16>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
}
