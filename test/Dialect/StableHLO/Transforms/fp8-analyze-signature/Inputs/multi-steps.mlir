module @jit_multi_steps attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<11xf32>, %arg1: tensor<11x4xf32>, %arg2: tensor<4x11xf32>, %arg3: tensor<i32>, %arg4: tensor<i32>, %arg5: tensor<i32>, %arg6: tensor<11xf32>, %arg7: tensor<11x4xf32>, %arg8: tensor<4x11xf32>, %arg9: tensor<11xf32>, %arg10: tensor<11x4xf32>, %arg11: tensor<4x11xf32>, %arg12: tensor<11xf32>, %arg13: tensor<11x4xf32>, %arg14: tensor<4x11xf32>, %arg15: tensor<11xf32>, %arg16: tensor<11x4xf32>, %arg17: tensor<4x11xf32>, %arg18: tensor<2x4xi32>) -> (tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<f32>) {
    %0 = stablehlo.slice %arg18 [0:2, 0:3] : (tensor<2x4xi32>) -> tensor<2x3xi32>
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
    %16 = stablehlo.slice %arg18 [0:2, 1:4] : (tensor<2x4xi32>) -> tensor<2x3xi32>
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
    ^bb0(%arg19: tensor<f32>, %arg20: tensor<f32>):
      %57 = stablehlo.add %arg19, %arg20 : tensor<f32>
      stablehlo.return %57 : tensor<f32>
    }) : (tensor<11x4xf32>, tensor<2x3x1xi32>, tensor<2x3x4xf32>) -> tensor<11x4xf32>
    %c_8 = stablehlo.constant dense<0> : tensor<i32>
    %38:15 = "stablehlo.case"(%c_8) ({
      %57 = stablehlo.subtract %29, %arg12 : tensor<11xf32>
      %c_15 = stablehlo.constant dense<1> : tensor<i32>
      %58 = stablehlo.add %arg3, %c_15 : tensor<i32>
      %59 = stablehlo.convert %58 : (tensor<i32>) -> tensor<f32>
      %60 = stablehlo.broadcast_in_dim %59, dims = [] : (tensor<f32>) -> tensor<11xf32>
      %61 = stablehlo.divide %57, %60 : tensor<11xf32>
      %62 = stablehlo.add %arg12, %61 : tensor<11xf32>
      %63 = stablehlo.subtract %37, %arg13 : tensor<11x4xf32>
      %c_16 = stablehlo.constant dense<1> : tensor<i32>
      %64 = stablehlo.add %arg3, %c_16 : tensor<i32>
      %65 = stablehlo.convert %64 : (tensor<i32>) -> tensor<f32>
      %66 = stablehlo.broadcast_in_dim %65, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
      %67 = stablehlo.divide %63, %66 : tensor<11x4xf32>
      %68 = stablehlo.add %arg13, %67 : tensor<11x4xf32>
      %69 = stablehlo.subtract %31, %arg14 : tensor<4x11xf32>
      %c_17 = stablehlo.constant dense<1> : tensor<i32>
      %70 = stablehlo.add %arg3, %c_17 : tensor<i32>
      %71 = stablehlo.convert %70 : (tensor<i32>) -> tensor<f32>
      %72 = stablehlo.broadcast_in_dim %71, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
      %73 = stablehlo.divide %69, %72 : tensor<4x11xf32>
      %74 = stablehlo.add %arg14, %73 : tensor<4x11xf32>
      %cst_18 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
      %75 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<11xf32>
      %76 = stablehlo.multiply %75, %62 : tensor<11xf32>
      %cst_19 = stablehlo.constant dense<0.899999976> : tensor<f32>
      %77 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<11xf32>
      %78 = stablehlo.multiply %77, %arg6 : tensor<11xf32>
      %79 = stablehlo.add %76, %78 : tensor<11xf32>
      %cst_20 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
      %80 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
      %81 = stablehlo.multiply %80, %68 : tensor<11x4xf32>
      %cst_21 = stablehlo.constant dense<0.899999976> : tensor<f32>
      %82 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
      %83 = stablehlo.multiply %82, %arg7 : tensor<11x4xf32>
      %84 = stablehlo.add %81, %83 : tensor<11x4xf32>
      %cst_22 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
      %85 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
      %86 = stablehlo.multiply %85, %74 : tensor<4x11xf32>
      %cst_23 = stablehlo.constant dense<0.899999976> : tensor<f32>
      %87 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
      %88 = stablehlo.multiply %87, %arg8 : tensor<4x11xf32>
      %89 = stablehlo.add %86, %88 : tensor<4x11xf32>
      %90 = stablehlo.multiply %62, %62 : tensor<11xf32>
      %cst_24 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
      %91 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<11xf32>
      %92 = stablehlo.multiply %91, %90 : tensor<11xf32>
      %cst_25 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
      %93 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<11xf32>
      %94 = stablehlo.multiply %93, %arg9 : tensor<11xf32>
      %95 = stablehlo.add %92, %94 : tensor<11xf32>
      %96 = stablehlo.multiply %68, %68 : tensor<11x4xf32>
      %cst_26 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
      %97 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
      %98 = stablehlo.multiply %97, %96 : tensor<11x4xf32>
      %cst_27 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
      %99 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
      %100 = stablehlo.multiply %99, %arg10 : tensor<11x4xf32>
      %101 = stablehlo.add %98, %100 : tensor<11x4xf32>
      %102 = stablehlo.multiply %74, %74 : tensor<4x11xf32>
      %cst_28 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
      %103 = stablehlo.broadcast_in_dim %cst_28, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
      %104 = stablehlo.multiply %103, %102 : tensor<4x11xf32>
      %cst_29 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
      %105 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
      %106 = stablehlo.multiply %105, %arg11 : tensor<4x11xf32>
      %107 = stablehlo.add %104, %106 : tensor<4x11xf32>
      %c_30 = stablehlo.constant dense<2147483647> : tensor<i32>
      %108 = stablehlo.compare LT, %arg5, %c_30, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_31 = stablehlo.constant dense<1> : tensor<i32>
      %109 = stablehlo.add %arg5, %c_31 : tensor<i32>
      %c_32 = stablehlo.constant dense<2147483647> : tensor<i32>
      %110 = func.call @_where(%108, %109, %c_32) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %cst_33 = stablehlo.constant dense<0.899999976> : tensor<f32>
      %111 = stablehlo.convert %110 : (tensor<i32>) -> tensor<f32>
      %112 = stablehlo.power %cst_33, %111 : tensor<f32>
      %cst_34 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %113 = stablehlo.subtract %cst_34, %112 : tensor<f32>
      %114 = stablehlo.broadcast_in_dim %113, dims = [] : (tensor<f32>) -> tensor<11xf32>
      %115 = stablehlo.divide %79, %114 : tensor<11xf32>
      %116 = stablehlo.broadcast_in_dim %113, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
      %117 = stablehlo.divide %84, %116 : tensor<11x4xf32>
      %118 = stablehlo.broadcast_in_dim %113, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
      %119 = stablehlo.divide %89, %118 : tensor<4x11xf32>
      %cst_35 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
      %120 = stablehlo.convert %110 : (tensor<i32>) -> tensor<f32>
      %121 = stablehlo.power %cst_35, %120 : tensor<f32>
      %cst_36 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %122 = stablehlo.subtract %cst_36, %121 : tensor<f32>
      %123 = stablehlo.broadcast_in_dim %122, dims = [] : (tensor<f32>) -> tensor<11xf32>
      %124 = stablehlo.divide %95, %123 : tensor<11xf32>
      %125 = stablehlo.broadcast_in_dim %122, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
      %126 = stablehlo.divide %101, %125 : tensor<11x4xf32>
      %127 = stablehlo.broadcast_in_dim %122, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
      %128 = stablehlo.divide %107, %127 : tensor<4x11xf32>
      %cst_37 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %129 = stablehlo.broadcast_in_dim %cst_37, dims = [] : (tensor<f32>) -> tensor<11xf32>
      %130 = stablehlo.add %124, %129 : tensor<11xf32>
      %131 = stablehlo.sqrt %130 : tensor<11xf32>
      %cst_38 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
      %132 = stablehlo.broadcast_in_dim %cst_38, dims = [] : (tensor<f32>) -> tensor<11xf32>
      %133 = stablehlo.add %131, %132 : tensor<11xf32>
      %134 = stablehlo.divide %115, %133 : tensor<11xf32>
      %cst_39 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %135 = stablehlo.broadcast_in_dim %cst_39, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
      %136 = stablehlo.add %126, %135 : tensor<11x4xf32>
      %137 = stablehlo.sqrt %136 : tensor<11x4xf32>
      %cst_40 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
      %138 = stablehlo.broadcast_in_dim %cst_40, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
      %139 = stablehlo.add %137, %138 : tensor<11x4xf32>
      %140 = stablehlo.divide %117, %139 : tensor<11x4xf32>
      %cst_41 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %141 = stablehlo.broadcast_in_dim %cst_41, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
      %142 = stablehlo.add %128, %141 : tensor<4x11xf32>
      %143 = stablehlo.sqrt %142 : tensor<4x11xf32>
      %cst_42 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
      %144 = stablehlo.broadcast_in_dim %cst_42, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
      %145 = stablehlo.add %143, %144 : tensor<4x11xf32>
      %146 = stablehlo.divide %119, %145 : tensor<4x11xf32>
      %cst_43 = stablehlo.constant dense<-1.000000e-03> : tensor<f32>
      %147 = stablehlo.broadcast_in_dim %cst_43, dims = [] : (tensor<f32>) -> tensor<11xf32>
      %148 = stablehlo.multiply %147, %134 : tensor<11xf32>
      %cst_44 = stablehlo.constant dense<-1.000000e-03> : tensor<f32>
      %149 = stablehlo.broadcast_in_dim %cst_44, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
      %150 = stablehlo.multiply %149, %140 : tensor<11x4xf32>
      %cst_45 = stablehlo.constant dense<-1.000000e-03> : tensor<f32>
      %151 = stablehlo.broadcast_in_dim %cst_45, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
      %152 = stablehlo.multiply %151, %146 : tensor<4x11xf32>
      %c_46 = stablehlo.constant dense<3> : tensor<i32>
      %153 = stablehlo.compare EQ, %arg3, %c_46, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_47 = stablehlo.constant dense<2147483647> : tensor<i32>
      %154 = stablehlo.compare LT, %arg3, %c_47, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_48 = stablehlo.constant dense<1> : tensor<i32>
      %155 = stablehlo.add %arg3, %c_48 : tensor<i32>
      %c_49 = stablehlo.constant dense<2147483647> : tensor<i32>
      %156 = func.call @_where(%154, %155, %c_49) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %c_50 = stablehlo.constant dense<4> : tensor<i32>
      %157 = func.call @remainder(%156, %c_50) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %c_51 = stablehlo.constant dense<2147483647> : tensor<i32>
      %158 = stablehlo.compare LT, %arg4, %c_51, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_52 = stablehlo.constant dense<1> : tensor<i32>
      %159 = stablehlo.add %arg4, %c_52 : tensor<i32>
      %c_53 = stablehlo.constant dense<2147483647> : tensor<i32>
      %160 = func.call @_where(%158, %159, %c_53) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %161 = stablehlo.convert %153 : (tensor<i1>) -> tensor<i32>
      %162 = stablehlo.multiply %161, %160 : tensor<i32>
      %163 = stablehlo.convert %153 : (tensor<i1>) -> tensor<i32>
      %c_54 = stablehlo.constant dense<1> : tensor<i32>
      %164 = stablehlo.subtract %c_54, %163 : tensor<i32>
      %165 = stablehlo.convert %164 : tensor<i32>
      %166 = stablehlo.multiply %165, %arg4 : tensor<i32>
      %167 = stablehlo.add %162, %166 : tensor<i32>
      %168 = func.call @_where(%153, %110, %arg5) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %169 = func.call @_where_2(%153, %79, %arg6) : (tensor<i1>, tensor<11xf32>, tensor<11xf32>) -> tensor<11xf32>
      %170 = func.call @_where_3(%153, %84, %arg7) : (tensor<i1>, tensor<11x4xf32>, tensor<11x4xf32>) -> tensor<11x4xf32>
      %171 = func.call @_where_4(%153, %89, %arg8) : (tensor<i1>, tensor<4x11xf32>, tensor<4x11xf32>) -> tensor<4x11xf32>
      %172 = func.call @_where_2(%153, %95, %arg9) : (tensor<i1>, tensor<11xf32>, tensor<11xf32>) -> tensor<11xf32>
      %173 = func.call @_where_3(%153, %101, %arg10) : (tensor<i1>, tensor<11x4xf32>, tensor<11x4xf32>) -> tensor<11x4xf32>
      %174 = func.call @_where_4(%153, %107, %arg11) : (tensor<i1>, tensor<4x11xf32>, tensor<4x11xf32>) -> tensor<4x11xf32>
      %175 = stablehlo.convert %153 : (tensor<i1>) -> tensor<i32>
      %c_55 = stablehlo.constant dense<1> : tensor<i32>
      %176 = stablehlo.subtract %c_55, %175 : tensor<i32>
      %177 = stablehlo.convert %176 : (tensor<i32>) -> tensor<f32>
      %178 = stablehlo.broadcast_in_dim %177, dims = [] : (tensor<f32>) -> tensor<11xf32>
      %179 = stablehlo.multiply %178, %62 : tensor<11xf32>
      %180 = stablehlo.convert %153 : (tensor<i1>) -> tensor<i32>
      %c_56 = stablehlo.constant dense<1> : tensor<i32>
      %181 = stablehlo.subtract %c_56, %180 : tensor<i32>
      %182 = stablehlo.convert %181 : (tensor<i32>) -> tensor<f32>
      %183 = stablehlo.broadcast_in_dim %182, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
      %184 = stablehlo.multiply %183, %68 : tensor<11x4xf32>
      %185 = stablehlo.convert %153 : (tensor<i1>) -> tensor<i32>
      %c_57 = stablehlo.constant dense<1> : tensor<i32>
      %186 = stablehlo.subtract %c_57, %185 : tensor<i32>
      %187 = stablehlo.convert %186 : (tensor<i32>) -> tensor<f32>
      %188 = stablehlo.broadcast_in_dim %187, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
      %189 = stablehlo.multiply %188, %74 : tensor<4x11xf32>
      %190 = stablehlo.convert %153 : (tensor<i1>) -> tensor<f32>
      %191 = stablehlo.broadcast_in_dim %190, dims = [] : (tensor<f32>) -> tensor<11xf32>
      %192 = stablehlo.multiply %191, %148 : tensor<11xf32>
      %193 = stablehlo.convert %153 : (tensor<i1>) -> tensor<f32>
      %194 = stablehlo.broadcast_in_dim %193, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
      %195 = stablehlo.multiply %194, %150 : tensor<11x4xf32>
      %196 = stablehlo.convert %153 : (tensor<i1>) -> tensor<f32>
      %197 = stablehlo.broadcast_in_dim %196, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
      %198 = stablehlo.multiply %197, %152 : tensor<4x11xf32>
      stablehlo.return %192, %195, %198, %157, %167, %168, %169, %170, %171, %172, %173, %174, %179, %184, %189 : tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>
    }, {
      %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %57 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<11xf32>
      %cst_16 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %58 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
      %cst_17 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %59 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
      stablehlo.return %57, %58, %59, %arg3, %arg4, %arg5, %arg6, %arg7, %arg8, %arg9, %arg10, %arg11, %arg12, %arg13, %arg14 : tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>
    }) : (tensor<i32>) -> (tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>)
    %39 = stablehlo.add %arg0, %38#0 : tensor<11xf32>
    %40 = stablehlo.add %arg1, %38#1 : tensor<11x4xf32>
    %41 = stablehlo.add %arg2, %38#2 : tensor<4x11xf32>
    %cst_9 = stablehlo.constant dense<9.900000e-01> : tensor<f32>
    %42 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %43 = stablehlo.multiply %42, %arg15 : tensor<11xf32>
    %cst_10 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %44 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %45 = stablehlo.multiply %44, %39 : tensor<11xf32>
    %46 = stablehlo.add %43, %45 : tensor<11xf32>
    %cst_11 = stablehlo.constant dense<9.900000e-01> : tensor<f32>
    %47 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %48 = stablehlo.multiply %47, %arg16 : tensor<11x4xf32>
    %cst_12 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %49 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<11x4xf32>
    %50 = stablehlo.multiply %49, %40 : tensor<11x4xf32>
    %51 = stablehlo.add %48, %50 : tensor<11x4xf32>
    %cst_13 = stablehlo.constant dense<9.900000e-01> : tensor<f32>
    %52 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %53 = stablehlo.multiply %52, %arg17 : tensor<4x11xf32>
    %cst_14 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %54 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<4x11xf32>
    %55 = stablehlo.multiply %54, %41 : tensor<4x11xf32>
    %56 = stablehlo.add %53, %55 : tensor<4x11xf32>
    return %39, %40, %41, %38#3, %38#4, %38#5, %38#6, %38#7, %38#8, %38#9, %38#10, %38#11, %38#12, %38#13, %38#14, %46, %51, %56, %21 : tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<11xf32>, tensor<11x4xf32>, tensor<4x11xf32>, tensor<f32>
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
  func.func private @remainder(%arg0: tensor<i32>, %arg1: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.compare EQ, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %2 = call @_where(%1, %c_0, %0) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.remainder %arg0, %2 : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %4 = stablehlo.compare NE, %3, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.compare LT, %3, %c_2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.compare LT, %2, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %7 = stablehlo.compare NE, %5, %6, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
    %8 = stablehlo.and %7, %4 : tensor<i1>
    %9 = stablehlo.add %3, %2 : tensor<i32>
    %10 = stablehlo.select %8, %9, %3 : tensor<i1>, tensor<i32>
    return %10 : tensor<i32>
  }
  func.func private @_where_2(%arg0: tensor<i1>, %arg1: tensor<11xf32>, %arg2: tensor<11xf32>) -> tensor<11xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<11xf32>
    return %0 : tensor<11xf32>
  }
  func.func private @_where_3(%arg0: tensor<i1>, %arg1: tensor<11x4xf32>, %arg2: tensor<11x4xf32>) -> tensor<11x4xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<11x4xf32>
    return %0 : tensor<11x4xf32>
  }
  func.func private @_where_4(%arg0: tensor<i1>, %arg1: tensor<4x11xf32>, %arg2: tensor<4x11xf32>) -> tensor<4x11xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<4x11xf32>
    return %0 : tensor<4x11xf32>
  }
}
