module @jit_loss_first attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<11xf32> {tf.aliasing_output = 2 : i32} loc("p['b']"), %arg1: tensor<11x4xf32> {tf.aliasing_output = 3 : i32} loc("p['emb']"), %arg2: tensor<4x11xf32> {tf.aliasing_output = 4 : i32} loc("p['out']"), %arg3: tensor<i32> {tf.aliasing_output = 1 : i32} loc("o[1][0].count"), %arg4: tensor<11xf32> {tf.aliasing_output = 5 : i32} loc("o[1][0].mu['b']"), %arg5: tensor<11x4xf32> {tf.aliasing_output = 6 : i32} loc("o[1][0].mu['emb']"), %arg6: tensor<4x11xf32> {tf.aliasing_output = 7 : i32} loc("o[1][0].mu['out']"), %arg7: tensor<11xf32> {tf.aliasing_output = 9 : i32} loc("o[1][0].nu['b']"), %arg8: tensor<11x4xf32> {tf.aliasing_output = 10 : i32} loc("o[1][0].nu['emb']"), %arg9: tensor<4x11xf32> {tf.aliasing_output = 11 : i32} loc("o[1][0].nu['out']"), %arg10: tensor<i32> {tf.aliasing_output = 8 : i32} loc("o[1][2].count"), %arg11: tensor<2x4xi32> loc("tok")) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<i32> {jax.result_info = "result[1][1][0].count"}, tensor<11xf32> {jax.result_info = "result[1][1][0].mu['b']"}, tensor<11x4xf32> {jax.result_info = "result[1][1][0].mu['emb']"}, tensor<4x11xf32> {jax.result_info = "result[1][1][0].mu['out']"}, tensor<11xf32> {jax.result_info = "result[1][1][0].nu['b']"}, tensor<11x4xf32> {jax.result_info = "result[1][1][0].nu['emb']"}, tensor<4x11xf32> {jax.result_info = "result[1][1][0].nu['out']"}, tensor<i32> {jax.result_info = "result[1][1][2].count"}, tensor<11xf32> {jax.result_info = "result[2]['b']"}, tensor<11x4xf32> {jax.result_info = "result[2]['emb']"}, tensor<4x11xf32> {jax.result_info = "result[2]['out']"}) {
    %0 = stablehlo.slice %arg11 [0:2, 0:3] : (tensor<2x4xi32>) -> tensor<2x3xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<2x3xi32>
    %2 = stablehlo.compare LT, %0, %1, SIGNED : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>
    %c_0 = stablehlo.constant dense<11> : tensor<i32>
    %3 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<2x3xi32>
    %4 = stablehlo.add %0, %3 : tensor<2x3xi32>
    %5 = stablehlo.select %2, %4, %0 : tensor<2x3xi1>, tensor<2x3xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<2x3xi32>) -> tensor<2x3x1xi32>
    %7 = "stablehlo.gather"(%arg1, %6) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<11x4xf32>, tensor<2x3x1xi32>) -> tensor<2x3x4xf32>
    %8 = stablehlo.tanh %7 : tensor<2x3x4xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x3x4xf32>
    %10 = stablehlo.subtract %9, %8 : tensor<2x3x4xf32>
    %11 = stablehlo.dot_general %8, %arg2, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4xf32>, tensor<4x11xf32>) -> tensor<2x3x11xf32>
    %12 = stablehlo.broadcast_in_dim %arg0, dims = [2] : (tensor<11xf32>) -> tensor<1x1x11xf32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1, 2] : (tensor<1x1x11xf32>) -> tensor<2x3x11xf32>
    %14 = stablehlo.add %11, %13 : tensor<2x3x11xf32>
    %15:3 = call @log_softmax(%14) : (tensor<2x3x11xf32>) -> (tensor<2x3x11xf32>, tensor<2x3x11xf32>, tensor<2x3x1xf32>)
    %16 = stablehlo.slice %arg11 [0:2, 1:4] : (tensor<2x4xi32>) -> tensor<2x3xi32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [0, 1] : (tensor<2x3xi32>) -> tensor<2x3x1xi32>
    %18:2 = call @take_along_axis(%15#0, %17) : (tensor<2x3x11xf32>, tensor<2x3x1xi32>) -> (tensor<2x3x1xf32>, tensor<2x3x1x1xi32>)
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %19 = stablehlo.reduce(%18#0 init: %cst_1) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<f32>
    %cst_2 = stablehlo.constant dense<6.000000e+00> : tensor<f32>
    %20 = stablehlo.divide %19, %cst_2 : tensor<f32>
    %21 = stablehlo.negate %20 : tensor<f32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %22 = stablehlo.negate %cst_3 : tensor<f32>
    %cst_4 = stablehlo.constant dense<6.000000e+00> : tensor<f32>
    %23 = stablehlo.divide %22, %cst_4 : tensor<f32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [] : (tensor<f32>) -> tensor<2x3x1xf32>
    %25 = call @take_along_axis_0(%18#1, %24) : (tensor<2x3x1x1xi32>, tensor<2x3x1xf32>) -> tensor<2x3x11xf32>
    %26 = call @log_softmax_1(%15#1, %15#2, %25) : (tensor<2x3x11xf32>, tensor<2x3x1xf32>, tensor<2x3x11xf32>) -> tensor<2x3x11xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %27 = stablehlo.reduce(%26 init: %cst_5) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3x11xf32>, tensor<f32>) -> tensor<11xf32>
    %28 = stablehlo.reshape %27 : (tensor<11xf32>) -> tensor<1x1x11xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %29 = stablehlo.reduce(%28 init: %cst_6) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x11xf32>, tensor<f32>) -> tensor<11xf32>
    %30 = stablehlo.dot_general %26, %8, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x3x11xf32>, tensor<2x3x4xf32>) -> tensor<11x4xf32>
    %31 = stablehlo.transpose %30, dims = [1, 0] : (tensor<11x4xf32>) -> tensor<4x11xf32>
    %32 = stablehlo.dot_general %26, %arg2, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x3x11xf32>, tensor<4x11xf32>) -> tensor<2x3x4xf32>
    %33 = stablehlo.multiply %32, %10 : tensor<2x3x4xf32>
    %34 = stablehlo.multiply %33, %8 : tensor<2x3x4xf32>
    %35 = stablehlo.add %33, %34 : tensor<2x3x4xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %36 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %37 = "stablehlo.scatter"(%36, %6, %35) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg12: tensor<f32>, %arg13: tensor<f32>):
      %188 = stablehlo.add %arg12, %arg13 : tensor<f32>
      stablehlo.return %188 : tensor<f32>
    }) : (tensor<11x4xf32>, tensor<2x3x1xi32>, tensor<2x3x4xf32>) -> tensor<11x4xf32>
    %38 = chlo.square %29 : tensor<11xf32> -> tensor<11xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %39 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %40 = chlo.square %39 : tensor<11xf32> -> tensor<11xf32>
    %41 = stablehlo.add %38, %40 : tensor<11xf32>
    %42 = chlo.square %37 : tensor<11x4xf32> -> tensor<11x4xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %43 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %44 = chlo.square %43 : tensor<11x4xf32> -> tensor<11x4xf32>
    %45 = stablehlo.add %42, %44 : tensor<11x4xf32>
    %46 = chlo.square %31 : tensor<4x11xf32> -> tensor<4x11xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %47 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %48 = chlo.square %47 : tensor<4x11xf32> -> tensor<4x11xf32>
    %49 = stablehlo.add %46, %48 : tensor<4x11xf32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %50 = stablehlo.reduce(%41 init: %cst_11) applies stablehlo.add across dimensions = [0] : (tensor<11xf32>, tensor<f32>) -> tensor<f32>
    %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %51 = stablehlo.reduce(%45 init: %cst_12) applies stablehlo.add across dimensions = [0, 1] : (tensor<11x4xf32>, tensor<f32>) -> tensor<f32>
    %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %52 = stablehlo.reduce(%49 init: %cst_13) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x11xf32>, tensor<f32>) -> tensor<f32>
    %cst_14 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %53 = stablehlo.add %cst_14, %50 : tensor<f32>
    %54 = stablehlo.add %53, %51 : tensor<f32>
    %55 = stablehlo.add %54, %52 : tensor<f32>
    %56 = stablehlo.sqrt %55 : tensor<f32>
    %cst_15 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %57 = stablehlo.compare LT, %56, %cst_15, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %58 = stablehlo.broadcast_in_dim %56, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %59 = stablehlo.divide %29, %58 : tensor<11xf32>
    %cst_16 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %60 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %61 = stablehlo.multiply %59, %60 : tensor<11xf32>
    %62 = stablehlo.select %57, %29, %61 : tensor<i1>, tensor<11xf32>
    %63 = stablehlo.broadcast_in_dim %56, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %64 = stablehlo.divide %37, %63 : tensor<11x4xf32>
    %cst_17 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %65 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %66 = stablehlo.multiply %64, %65 : tensor<11x4xf32>
    %67 = stablehlo.select %57, %37, %66 : tensor<i1>, tensor<11x4xf32>
    %68 = stablehlo.broadcast_in_dim %56, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %69 = stablehlo.divide %31, %68 : tensor<4x11xf32>
    %cst_18 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %70 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %71 = stablehlo.multiply %69, %70 : tensor<4x11xf32>
    %72 = stablehlo.select %57, %31, %71 : tensor<i1>, tensor<4x11xf32>
    %cst_19 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %73 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %74 = stablehlo.multiply %73, %62 : tensor<11xf32>
    %cst_20 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %75 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %76 = stablehlo.multiply %75, %arg4 : tensor<11xf32>
    %77 = stablehlo.add %74, %76 : tensor<11xf32>
    %cst_21 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %78 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %79 = stablehlo.multiply %78, %67 : tensor<11x4xf32>
    %cst_22 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %80 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %81 = stablehlo.multiply %80, %arg5 : tensor<11x4xf32>
    %82 = stablehlo.add %79, %81 : tensor<11x4xf32>
    %cst_23 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %83 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %84 = stablehlo.multiply %83, %72 : tensor<4x11xf32>
    %cst_24 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %85 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %86 = stablehlo.multiply %85, %arg6 : tensor<4x11xf32>
    %87 = stablehlo.add %84, %86 : tensor<4x11xf32>
    %88 = stablehlo.multiply %62, %62 : tensor<11xf32>
    %cst_25 = stablehlo.constant dense<5.000000e-02> : tensor<f32>
    %89 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %90 = stablehlo.multiply %89, %88 : tensor<11xf32>
    %cst_26 = stablehlo.constant dense<0.949999988> : tensor<f32>
    %91 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %92 = stablehlo.multiply %91, %arg7 : tensor<11xf32>
    %93 = stablehlo.add %90, %92 : tensor<11xf32>
    %94 = stablehlo.multiply %67, %67 : tensor<11x4xf32>
    %cst_27 = stablehlo.constant dense<5.000000e-02> : tensor<f32>
    %95 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %96 = stablehlo.multiply %95, %94 : tensor<11x4xf32>
    %cst_28 = stablehlo.constant dense<0.949999988> : tensor<f32>
    %97 = stablehlo.broadcast_in_dim %cst_28, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %98 = stablehlo.multiply %97, %arg8 : tensor<11x4xf32>
    %99 = stablehlo.add %96, %98 : tensor<11x4xf32>
    %100 = stablehlo.multiply %72, %72 : tensor<4x11xf32>
    %cst_29 = stablehlo.constant dense<5.000000e-02> : tensor<f32>
    %101 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %102 = stablehlo.multiply %101, %100 : tensor<4x11xf32>
    %cst_30 = stablehlo.constant dense<0.949999988> : tensor<f32>
    %103 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %104 = stablehlo.multiply %103, %arg9 : tensor<4x11xf32>
    %105 = stablehlo.add %102, %104 : tensor<4x11xf32>
    %c_31 = stablehlo.constant dense<2147483647> : tensor<i32>
    %106 = stablehlo.compare LT, %arg3, %c_31, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_32 = stablehlo.constant dense<1> : tensor<i32>
    %107 = stablehlo.add %arg3, %c_32 : tensor<i32>
    %c_33 = stablehlo.constant dense<2147483647> : tensor<i32>
    %108 = call @_where(%106, %107, %c_33) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %cst_34 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %109 = stablehlo.convert %108 : (tensor<i32>) -> tensor<f32>
    %110 = stablehlo.power %cst_34, %109 : tensor<f32>
    %cst_35 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %111 = stablehlo.subtract %cst_35, %110 : tensor<f32>
    %112 = stablehlo.broadcast_in_dim %111, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %113 = stablehlo.divide %77, %112 : tensor<11xf32>
    %114 = stablehlo.broadcast_in_dim %111, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %115 = stablehlo.divide %82, %114 : tensor<11x4xf32>
    %116 = stablehlo.broadcast_in_dim %111, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %117 = stablehlo.divide %87, %116 : tensor<4x11xf32>
    %cst_36 = stablehlo.constant dense<0.949999988> : tensor<f32>
    %118 = stablehlo.convert %108 : (tensor<i32>) -> tensor<f32>
    %119 = stablehlo.power %cst_36, %118 : tensor<f32>
    %cst_37 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %120 = stablehlo.subtract %cst_37, %119 : tensor<f32>
    %121 = stablehlo.broadcast_in_dim %120, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %122 = stablehlo.divide %93, %121 : tensor<11xf32>
    %123 = stablehlo.broadcast_in_dim %120, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %124 = stablehlo.divide %99, %123 : tensor<11x4xf32>
    %125 = stablehlo.broadcast_in_dim %120, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %126 = stablehlo.divide %105, %125 : tensor<4x11xf32>
    %cst_38 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %127 = stablehlo.broadcast_in_dim %cst_38, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %128 = stablehlo.add %122, %127 : tensor<11xf32>
    %129 = stablehlo.sqrt %128 : tensor<11xf32>
    %cst_39 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %130 = stablehlo.broadcast_in_dim %cst_39, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %131 = stablehlo.add %129, %130 : tensor<11xf32>
    %132 = stablehlo.divide %113, %131 : tensor<11xf32>
    %cst_40 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %133 = stablehlo.broadcast_in_dim %cst_40, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %134 = stablehlo.add %124, %133 : tensor<11x4xf32>
    %135 = stablehlo.sqrt %134 : tensor<11x4xf32>
    %cst_41 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %136 = stablehlo.broadcast_in_dim %cst_41, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %137 = stablehlo.add %135, %136 : tensor<11x4xf32>
    %138 = stablehlo.divide %115, %137 : tensor<11x4xf32>
    %cst_42 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %139 = stablehlo.broadcast_in_dim %cst_42, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %140 = stablehlo.add %126, %139 : tensor<4x11xf32>
    %141 = stablehlo.sqrt %140 : tensor<4x11xf32>
    %cst_43 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %142 = stablehlo.broadcast_in_dim %cst_43, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %143 = stablehlo.add %141, %142 : tensor<4x11xf32>
    %144 = stablehlo.divide %117, %143 : tensor<4x11xf32>
    %cst_44 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %145 = stablehlo.broadcast_in_dim %cst_44, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %146 = stablehlo.multiply %145, %arg0 : tensor<11xf32>
    %147 = stablehlo.add %132, %146 : tensor<11xf32>
    %cst_45 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %148 = stablehlo.broadcast_in_dim %cst_45, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %149 = stablehlo.multiply %148, %arg1 : tensor<11x4xf32>
    %150 = stablehlo.add %138, %149 : tensor<11x4xf32>
    %cst_46 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %151 = stablehlo.broadcast_in_dim %cst_46, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %152 = stablehlo.multiply %151, %arg2 : tensor<4x11xf32>
    %153 = stablehlo.add %144, %152 : tensor<4x11xf32>
    %c_47 = stablehlo.constant dense<0> : tensor<i32>
    %154 = stablehlo.subtract %arg10, %c_47 : tensor<i32>
    %c_48 = stablehlo.constant dense<0> : tensor<i32>
    %c_49 = stablehlo.constant dense<10> : tensor<i32>
    %155 = call @clip(%154, %c_48, %c_49) : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %156 = stablehlo.convert %155 : (tensor<i32>) -> tensor<f32>
    %cst_50 = stablehlo.constant dense<1.000000e+01> : tensor<f32>
    %157 = stablehlo.divide %156, %cst_50 : tensor<f32>
    %cst_51 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %158 = stablehlo.subtract %cst_51, %157 : tensor<f32>
    %cst_52 = stablehlo.constant dense<-1.000000e-03> : tensor<f32>
    %159 = stablehlo.multiply %cst_52, %158 : tensor<f32>
    %cst_53 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %160 = stablehlo.add %159, %cst_53 : tensor<f32>
    %c_54 = stablehlo.constant dense<10> : tensor<i32>
    %161 = stablehlo.compare LT, %arg10, %c_54, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_55 = stablehlo.constant dense<10> : tensor<i32>
    %162 = stablehlo.subtract %arg10, %c_55 : tensor<i32>
    %163 = stablehlo.convert %162 : (tensor<i32>) -> tensor<f32>
    %cst_56 = stablehlo.constant dense<9.000000e+01> : tensor<f32>
    %164 = stablehlo.minimum %163, %cst_56 : tensor<f32>
    %cst_57 = stablehlo.constant dense<3.14159274> : tensor<f32>
    %165 = stablehlo.multiply %cst_57, %164 : tensor<f32>
    %cst_58 = stablehlo.constant dense<9.000000e+01> : tensor<f32>
    %166 = stablehlo.divide %165, %cst_58 : tensor<f32>
    %167 = stablehlo.cosine %166 : tensor<f32>
    %cst_59 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %168 = stablehlo.add %cst_59, %167 : tensor<f32>
    %cst_60 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %169 = stablehlo.multiply %cst_60, %168 : tensor<f32>
    %cst_61 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %170 = stablehlo.power %169, %cst_61 : tensor<f32>
    %cst_62 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %171 = stablehlo.multiply %cst_62, %170 : tensor<f32>
    %cst_63 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %172 = stablehlo.add %171, %cst_63 : tensor<f32>
    %cst_64 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %173 = stablehlo.multiply %cst_64, %172 : tensor<f32>
    %174 = call @_where_2(%161, %160, %173) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %cst_65 = stablehlo.constant dense<-1.000000e+00> : tensor<f32>
    %175 = stablehlo.multiply %cst_65, %174 : tensor<f32>
    %176 = stablehlo.broadcast_in_dim %175, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %177 = stablehlo.multiply %176, %147 : tensor<11xf32>
    %178 = stablehlo.broadcast_in_dim %175, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %179 = stablehlo.multiply %178, %150 : tensor<11x4xf32>
    %180 = stablehlo.broadcast_in_dim %175, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %181 = stablehlo.multiply %180, %153 : tensor<4x11xf32>
    %c_66 = stablehlo.constant dense<2147483647> : tensor<i32>
    %182 = stablehlo.compare LT, %arg10, %c_66, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_67 = stablehlo.constant dense<1> : tensor<i32>
    %183 = stablehlo.add %arg10, %c_67 : tensor<i32>
    %c_68 = stablehlo.constant dense<2147483647> : tensor<i32>
    %184 = call @_where(%182, %183, %c_68) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %185 = stablehlo.add %arg0, %177 : tensor<11xf32>
    %186 = stablehlo.add %arg1, %179 : tensor<11x4xf32>
    %187 = stablehlo.add %arg2, %181 : tensor<4x11xf32>
    return %21, %108, %77, %82, %87, %93, %99, %105, %184, %185, %186, %187 : tensor<f32>, tensor<i32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<i32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>
  }
  func.func private @log_softmax(%arg0: tensor<2x3x11xf32>) -> (tensor<2x3x11xf32>, tensor<2x3x11xf32>, tensor<2x3x1xf32>) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [2] : (tensor<2x3x11xf32>, tensor<f32>) -> tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<2x3xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<2x3x1xf32>) -> tensor<2x3x11xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<2x3x11xf32>
    %6 = stablehlo.exponential %5 : tensor<2x3x11xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<2x3x11xf32>, tensor<f32>) -> tensor<2x3xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
    %9 = stablehlo.log %8 : tensor<2x3x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2] : (tensor<2x3x1xf32>) -> tensor<2x3x11xf32>
    %11 = stablehlo.subtract %5, %10 : tensor<2x3x11xf32>
    return %11, %6, %8 : tensor<2x3x11xf32>, tensor<2x3x11xf32>, tensor<2x3x1xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<2x3x11xf32>, %arg1: tensor<2x3x1xi32>) -> (tensor<2x3x1xf32>, tensor<2x3x1x1xi32>) {
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
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [2], operand_batching_dims = [0, 1], start_indices_batching_dims = [0, 1], start_index_map = [2], index_vector_dim = 3>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<2x3x11xf32>, tensor<2x3x1x1xi32>) -> tensor<2x3x1xf32>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x3x1xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<2x3x1xi1>, tensor<2x3x1xf32>
    return %15, %5 : tensor<2x3x1xf32>, tensor<2x3x1x1xi32>
  }
  func.func private @take_along_axis_0(%arg0: tensor<2x3x1x1xi32>, %arg1: tensor<2x3x1xf32>) -> tensor<2x3x11xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x3x11xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [2], input_batching_dims = [0, 1], scatter_indices_batching_dims = [0, 1], scatter_dims_to_operand_dims = [2], index_vector_dim = 3>, unique_indices = false}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<2x3x11xf32>, tensor<2x3x1x1xi32>, tensor<2x3x1xf32>) -> tensor<2x3x11xf32>
    return %1 : tensor<2x3x11xf32>
  }
  func.func private @log_softmax_1(%arg0: tensor<2x3x11xf32>, %arg1: tensor<2x3x1xf32>, %arg2: tensor<2x3x11xf32>) -> tensor<2x3x11xf32> {
    %0 = stablehlo.negate %arg2 : tensor<2x3x11xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x3x11xf32>, tensor<f32>) -> tensor<2x3xf32>
    %2 = stablehlo.reshape %1 : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
    %3 = stablehlo.divide %2, %arg1 : tensor<2x3x1xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x11xf32>
    %6 = stablehlo.multiply %5, %arg0 : tensor<2x3x11xf32>
    %7 = stablehlo.add %arg2, %6 : tensor<2x3x11xf32>
    return %7 : tensor<2x3x11xf32>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @clip(%arg0: tensor<i32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %1 = stablehlo.maximum %0, %arg0 : tensor<i32>
    %2 = stablehlo.convert %arg2 : tensor<i32>
    %3 = stablehlo.minimum %2, %1 : tensor<i32>
    return %3 : tensor<i32>
  }
  func.func private @_where_2(%arg0: tensor<i1>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<i1>, tensor<f32>
    return %1 : tensor<f32>
  }
}
