// Every elementwise function of jax.lax; as JAX 0.10 prints it, and printed back the same.
// RUN: fp8-opt %s | diff -B -I '^//' - %s
// RUN: fp8-opt %s --mlir-print-op-generic | fp8-opt | diff -B -I '^//' - %s
// RUN: fp8-opt %s --inline --canonicalize --cse --symbol-dce -o /dev/null

module @jit_misc attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x8xf32>, %arg1: tensor<4x8xf32>, %arg2: tensor<4x8xi32>, %arg3: tensor<4x8xui32>) -> (tensor<4x8xf32> {jax.result_info = "result[0]"}, tensor<4x8xf32> {jax.result_info = "result[1]"}, tensor<4x8xf32> {jax.result_info = "result[2]"}, tensor<4x8xf32> {jax.result_info = "result[3]"}, tensor<4x8xf32> {jax.result_info = "result[4]"}, tensor<4x8xf32> {jax.result_info = "result[5]"}, tensor<4x8xf32> {jax.result_info = "result[6]"}, tensor<4x8xf32> {jax.result_info = "result[7]"}, tensor<4x8xf32> {jax.result_info = "result[8]"}, tensor<4x8xf32> {jax.result_info = "result[9]"}, tensor<4x8xf32> {jax.result_info = "result[10]"}, tensor<4x8xf32> {jax.result_info = "result[11]"}, tensor<4x8xf32> {jax.result_info = "result[12]"}, tensor<4x8xf32> {jax.result_info = "result[13]"}, tensor<4x8xf32> {jax.result_info = "result[14]"}, tensor<4x8xf32> {jax.result_info = "result[15]"}, tensor<4x8xf32> {jax.result_info = "result[16]"}, tensor<4x8xf32> {jax.result_info = "result[17]"}, tensor<4x8xf32> {jax.result_info = "result[18]"}, tensor<4x8xf32> {jax.result_info = "result[19]"}, tensor<4x8xf32> {jax.result_info = "result[20]"}, tensor<4x8xf32> {jax.result_info = "result[21]"}, tensor<4x8xf32> {jax.result_info = "result[22]"}, tensor<4x8xf32> {jax.result_info = "result[23]"}, tensor<4x8xf32> {jax.result_info = "result[24]"}, tensor<4x8xf32> {jax.result_info = "result[25]"}, tensor<4x8xf32> {jax.result_info = "result[26]"}, tensor<4x8xf32> {jax.result_info = "result[27]"}, tensor<4x8xf32> {jax.result_info = "result[28]"}, tensor<4x8xf32> {jax.result_info = "result[29]"}, tensor<4x8xf32> {jax.result_info = "result[30]"}, tensor<4x8xi1> {jax.result_info = "result[31]"}, tensor<4x8xi1> {jax.result_info = "result[32]"}, tensor<4x8xf32> {jax.result_info = "result[33]"}, tensor<4x8xf32> {jax.result_info = "result[34]"}, tensor<4x8xf32> {jax.result_info = "result[35]"}, tensor<32xf32> {jax.result_info = "result[36]"}, tensor<4x8xf32> {jax.result_info = "result[37]"}, tensor<i32> {jax.result_info = "result[38]"}, tensor<4x8xi32> {jax.result_info = "result[39]"}, tensor<4x2xf32> {jax.result_info = "result[40][0]"}, tensor<4x2xi32> {jax.result_info = "result[40][1]"}, tensor<4x8xf32> {jax.result_info = "result[41]"}, tensor<7x9xf32> {jax.result_info = "result[42]"}, tensor<4x8xf32> {jax.result_info = "result[43]"}, tensor<4x8xf32> {jax.result_info = "result[44]"}, tensor<4x8xui32> {jax.result_info = "result[45]"}, tensor<4x8x2xui16> {jax.result_info = "result[46]"}, tensor<4x8xf32> {jax.result_info = "result[47]"}, tensor<32xf32> {jax.result_info = "result[48]"}, tensor<f32> {jax.result_info = "result[49]"}, tensor<i1> {jax.result_info = "result[50]"}, tensor<f32> {jax.result_info = "result[51]"}, tensor<4x8xf32> {jax.result_info = "result[52]"}, tensor<4x8xf32> {jax.result_info = "result[53]"}, tensor<4x8xf32> {jax.result_info = "result[54]"}, tensor<4x8xf32> {jax.result_info = "result[55]"}, tensor<4x8xf32> {jax.result_info = "result[56]"}, tensor<4x8xf32> {jax.result_info = "result[57]"}, tensor<4x8xf32> {jax.result_info = "result[58]"}, tensor<4x8xf32> {jax.result_info = "result[59]"}, tensor<4x8xi1> {jax.result_info = "result[60]"}, tensor<4x8xf32> {jax.result_info = "result[61]"}, tensor<4x8xi32> {jax.result_info = "result[62]"}, tensor<4x8xi32> {jax.result_info = "result[63]"}, tensor<4x8xi32> {jax.result_info = "result[64]"}, tensor<4x8xi32> {jax.result_info = "result[65]"}, tensor<4x8xi32> {jax.result_info = "result[66]"}, tensor<4x8xi32> {jax.result_info = "result[67]"}, tensor<4x8xi32> {jax.result_info = "result[68]"}, tensor<4x8xi32> {jax.result_info = "result[69]"}, tensor<4x8xi32> {jax.result_info = "result[70]"}, tensor<4x8xui32> {jax.result_info = "result[71]"}, tensor<4x8xui32> {jax.result_info = "result[72]"}, tensor<4x8xi32> {jax.result_info = "result[73]"}, tensor<4x8xi32> {jax.result_info = "result[74]"}, tensor<4x8xi32> {jax.result_info = "result[75]"}, tensor<4x8xi1> {jax.result_info = "result[76]"}, tensor<4x8xi1> {jax.result_info = "result[77]"}, tensor<4x8xf32> {jax.result_info = "result[78]"}, tensor<4x8xi1> {jax.result_info = "result[79]"}, tensor<4x8xi32> {jax.result_info = "result[80]"}, tensor<4x8xf8E4M3FN> {jax.result_info = "result[81]"}, tensor<4xi32> {jax.result_info = "result[82]"}) {
    %0 = stablehlo.abs %arg0 : tensor<4x8xf32>
    %1 = stablehlo.cbrt %arg0 : tensor<4x8xf32>
    %2 = stablehlo.ceil %arg0 : tensor<4x8xf32>
    %3 = stablehlo.cosine %arg0 : tensor<4x8xf32>
    %4 = stablehlo.exponential %arg0 : tensor<4x8xf32>
    %5 = stablehlo.exponential_minus_one %arg0 : tensor<4x8xf32>
    %6 = stablehlo.floor %arg0 : tensor<4x8xf32>
    %7 = stablehlo.log %arg0 : tensor<4x8xf32>
    %8 = stablehlo.log_plus_one %arg0 : tensor<4x8xf32>
    %9 = stablehlo.negate %arg0 : tensor<4x8xf32>
    %10 = stablehlo.exponential %9 : tensor<4x8xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %12 = stablehlo.add %11, %10 : tensor<4x8xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %14 = stablehlo.divide %13, %12 : tensor<4x8xf32>
    %15 = stablehlo.negate %arg0 : tensor<4x8xf32>
    %16 = stablehlo.sign %arg0 : tensor<4x8xf32>
    %17 = stablehlo.sine %arg0 : tensor<4x8xf32>
    %18 = stablehlo.sqrt %arg0 : tensor<4x8xf32>
    %19 = stablehlo.tan %arg0 : tensor<4x8xf32>
    %20 = stablehlo.tanh %arg0 : tensor<4x8xf32>
    %21 = stablehlo.rsqrt %arg0 : tensor<4x8xf32>
    %22 = call @round(%arg0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %23 = chlo.erf %arg0 : tensor<4x8xf32> -> tensor<4x8xf32>
    %24 = chlo.erf_inv %arg0 : tensor<4x8xf32> -> tensor<4x8xf32>
    %25 = chlo.erfc %arg0 : tensor<4x8xf32> -> tensor<4x8xf32>
    %26 = chlo.lgamma %arg0 : tensor<4x8xf32> -> tensor<4x8xf32>
    %27 = chlo.digamma %arg0 : tensor<4x8xf32> -> tensor<4x8xf32>
    %28 = chlo.asin %arg0 : tensor<4x8xf32> -> tensor<4x8xf32>
    %29 = chlo.acos %arg0 : tensor<4x8xf32> -> tensor<4x8xf32>
    %30 = chlo.atan %arg0 : tensor<4x8xf32> -> tensor<4x8xf32>
    %31 = chlo.sinh %arg0 : tensor<4x8xf32> -> tensor<4x8xf32>
    %32 = chlo.cosh %arg0 : tensor<4x8xf32> -> tensor<4x8xf32>
    %33 = chlo.asinh %arg0 : tensor<4x8xf32> -> tensor<4x8xf32>
    %34 = chlo.acosh %arg0 : tensor<4x8xf32> -> tensor<4x8xf32>
    %35 = chlo.atanh %arg0 : tensor<4x8xf32> -> tensor<4x8xf32>
    %36 = stablehlo.is_finite %arg0 : (tensor<4x8xf32>) -> tensor<4x8xi1>
    %37 = call @isinf(%arg0) : (tensor<4x8xf32>) -> tensor<4x8xi1>
    %38 = chlo.bessel_i1e %arg0 : tensor<4x8xf32> -> tensor<4x8xf32>
    %39 = chlo.square %arg0 : tensor<4x8xf32> -> tensor<4x8xf32>
    %40 = stablehlo.round_nearest_afz %arg0 : tensor<4x8xf32>
    %41 = call @cumsum(%arg0) : (tensor<4x8xf32>) -> tensor<32xf32>
    %42 = call @sort(%arg0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %43 = stablehlo.reshape %arg0 : (tensor<4x8xf32>) -> tensor<32xf32>
    %44 = call @argmax(%43) : (tensor<32xf32>) -> tensor<i32>
    %45 = call @argsort(%arg0) : (tensor<4x8xf32>) -> tensor<4x8xi32>
    %values, %indices = chlo.top_k(%arg0, k = 2) : tensor<4x8xf32> -> (tensor<4x2xf32>, tensor<4x2xi32>)
    %46 = stablehlo.reduce_precision %arg0, format = e8m7 : tensor<4x8xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %47 = call @_pad(%arg0, %c) : (tensor<4x8xf32>, tensor<i32>) -> tensor<7x9xf32>
    %48 = stablehlo.reverse %arg0, dims = [0] : tensor<4x8xf32>
    %49 = call @_flip(%arg0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %50 = stablehlo.bitcast_convert %arg0 : (tensor<4x8xf32>) -> tensor<4x8xui32>
    %51 = stablehlo.bitcast_convert %arg0 : (tensor<4x8xf32>) -> tensor<4x8x2xui16>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %c_2 = stablehlo.constant dense<1> : tensor<i32>
    %52 = call @clip(%arg0, %c_1, %c_2) : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
    %53 = call @cumprod(%arg0) : (tensor<4x8xf32>) -> tensor<32xf32>
    %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %54 = stablehlo.reduce(%arg0 init: %cst_3) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %55 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %56 = stablehlo.compare GT, %arg0, %55, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %c_5 = stablehlo.constant dense<true> : tensor<i1>
    %57 = stablehlo.reduce(%56 init: %c_5) applies stablehlo.and across dimensions = [0, 1] : (tensor<4x8xi1>, tensor<i1>) -> tensor<i1>
    %58 = call @median(%arg0) : (tensor<4x8xf32>) -> tensor<f32>
    %59 = stablehlo.multiply %arg0, %arg0 : tensor<4x8xf32>
    %60 = stablehlo.multiply %59, %arg0 : tensor<4x8xf32>
    %61 = stablehlo.power %arg0, %arg1 : tensor<4x8xf32>
    %62 = stablehlo.atan2 %arg0, %arg1 : tensor<4x8xf32>
    %63 = call @remainder(%arg0, %arg1) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %64 = chlo.next_after %arg0, %arg1 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    %65 = stablehlo.maximum %arg0, %arg1 : tensor<4x8xf32>
    %66 = chlo.polygamma %arg0, %arg1 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    %67 = chlo.zeta %arg0, %arg1 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    %68 = stablehlo.compare EQ, %arg0, %arg1, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %69 = stablehlo.compare NE, %arg0, %arg0, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %70 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %71 = stablehlo.or %69, %70 : tensor<4x8xi1>
    %cst_6 = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %72 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %73 = stablehlo.compare EQ, %arg1, %72, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %74 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %75 = stablehlo.compare EQ, %arg0, %74, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %76 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %77 = stablehlo.compare EQ, %arg1, %76, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %78 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %79 = stablehlo.compare LT, %arg1, %78, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %80 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %81 = stablehlo.compare LT, %arg0, %80, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %82 = stablehlo.and %75, %77 : tensor<4x8xi1>
    %83 = stablehlo.or %79, %81 : tensor<4x8xi1>
    %84 = stablehlo.or %83, %82 : tensor<4x8xi1>
    %85 = stablehlo.or %84, %71 : tensor<4x8xi1>
    %cst_11 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %86 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %87 = stablehlo.compare GE, %arg1, %86, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %88 = stablehlo.compare GT, %arg1, %arg0, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %89 = stablehlo.and %87, %88 : tensor<4x8xi1>
    %90 = stablehlo.log %arg1 : tensor<4x8xf32>
    %91 = stablehlo.multiply %arg0, %90 : tensor<4x8xf32>
    %92 = stablehlo.subtract %91, %arg1 : tensor<4x8xf32>
    %93 = chlo.lgamma %arg0 : tensor<4x8xf32> -> tensor<4x8xf32>
    %94 = stablehlo.subtract %92, %93 : tensor<4x8xf32>
    %cst_12 = stablehlo.constant dense<3.40282347E+38> : tensor<f32>
    %95 = stablehlo.log %cst_12 : tensor<f32>
    %96 = stablehlo.negate %95 : tensor<f32>
    %97 = stablehlo.broadcast_in_dim %96, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %98 = stablehlo.compare LT, %94, %97, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %99 = stablehlo.exponential %94 : tensor<4x8xf32>
    %100 = stablehlo.or %77, %85 : tensor<4x8xi1>
    %101 = stablehlo.or %100, %98 : tensor<4x8xi1>
    %102 = stablehlo.or %101, %73 : tensor<4x8xi1>
    %103 = stablehlo.not %102 : tensor<4x8xi1>
    %104 = stablehlo.and %103, %89 : tensor<4x8xi1>
    %cst_13 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %105 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %106 = stablehlo.subtract %105, %arg0 : tensor<4x8xf32>
    %107 = stablehlo.add %arg1, %106 : tensor<4x8xf32>
    %cst_14 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %108 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %109 = stablehlo.add %107, %108 : tensor<4x8xf32>
    %cst_15 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %110 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %cst_16 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %111 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %112 = stablehlo.add %arg1, %111 : tensor<4x8xf32>
    %113 = stablehlo.multiply %109, %arg1 : tensor<4x8xf32>
    %114 = stablehlo.divide %112, %113 : tensor<4x8xf32>
    %cst_17 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %115 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %cst_18 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %116 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %cst_19 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %117 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %cst_20 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %118 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %119 = stablehlo.negate %arg1 : tensor<4x8xf32>
    %120 = stablehlo.multiply %114, %119 : tensor<4x8xf32>
    %121 = stablehlo.subtract %118, %120 : tensor<4x8xf32>
    %122 = stablehlo.divide %121, %113 : tensor<4x8xf32>
    %cst_21 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %123:15 = stablehlo.while(%iterArg = %104, %iterArg_47 = %114, %iterArg_48 = %115, %iterArg_49 = %106, %iterArg_50 = %109, %iterArg_51 = %cst_21, %iterArg_52 = %112, %iterArg_53 = %113, %iterArg_54 = %110, %iterArg_55 = %arg1, %iterArg_56 = %116, %iterArg_57 = %117, %iterArg_58 = %118, %iterArg_59 = %119, %iterArg_60 = %122) : tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
    cond {
      %cst_61 = stablehlo.constant dense<2.000000e+03> : tensor<f32>
      %183 = stablehlo.compare LT, %iterArg_51, %cst_61, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %c_62 = stablehlo.constant dense<false> : tensor<i1>
      %184 = stablehlo.reduce(%iterArg init: %c_62) applies stablehlo.or across dimensions = [0, 1] : (tensor<4x8xi1>, tensor<i1>) -> tensor<i1>
      %185 = stablehlo.and %183, %184 : tensor<i1>
      stablehlo.return %185 : tensor<i1>
    } do {
      %cst_61 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %183 = stablehlo.add %iterArg_51, %cst_61 : tensor<f32>
      %cst_62 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %184 = stablehlo.broadcast_in_dim %cst_62, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %185 = stablehlo.add %iterArg_49, %184 : tensor<4x8xf32>
      %cst_63 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %186 = stablehlo.broadcast_in_dim %cst_63, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %187 = stablehlo.add %iterArg_50, %186 : tensor<4x8xf32>
      %188 = stablehlo.broadcast_in_dim %183, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %189 = stablehlo.multiply %185, %188 : tensor<4x8xf32>
      %190 = stablehlo.multiply %iterArg_52, %187 : tensor<4x8xf32>
      %191 = stablehlo.multiply %iterArg_54, %189 : tensor<4x8xf32>
      %192 = stablehlo.subtract %190, %191 : tensor<4x8xf32>
      %193 = stablehlo.multiply %iterArg_53, %187 : tensor<4x8xf32>
      %194 = stablehlo.multiply %iterArg_55, %189 : tensor<4x8xf32>
      %195 = stablehlo.subtract %193, %194 : tensor<4x8xf32>
      %cst_64 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %196 = stablehlo.broadcast_in_dim %cst_64, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %197 = stablehlo.compare NE, %195, %196, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
      %198 = stablehlo.divide %192, %195 : tensor<4x8xf32>
      %199 = stablehlo.subtract %iterArg_47, %198 : tensor<4x8xf32>
      %200 = stablehlo.divide %199, %198 : tensor<4x8xf32>
      %201 = stablehlo.abs %200 : tensor<4x8xf32>
      %cst_65 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %202 = stablehlo.broadcast_in_dim %cst_65, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %203 = stablehlo.select %197, %201, %202 : tensor<4x8xi1>, tensor<4x8xf32>
      %204 = stablehlo.select %197, %198, %iterArg_47 : tensor<4x8xi1>, tensor<4x8xf32>
      %205 = stablehlo.multiply %iterArg_58, %187 : tensor<4x8xf32>
      %206 = stablehlo.subtract %205, %iterArg_52 : tensor<4x8xf32>
      %207 = stablehlo.multiply %iterArg_56, %189 : tensor<4x8xf32>
      %208 = stablehlo.subtract %206, %207 : tensor<4x8xf32>
      %209 = stablehlo.broadcast_in_dim %183, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %210 = stablehlo.multiply %iterArg_54, %209 : tensor<4x8xf32>
      %211 = stablehlo.add %208, %210 : tensor<4x8xf32>
      %212 = stablehlo.multiply %iterArg_59, %187 : tensor<4x8xf32>
      %213 = stablehlo.subtract %212, %iterArg_53 : tensor<4x8xf32>
      %214 = stablehlo.multiply %iterArg_57, %189 : tensor<4x8xf32>
      %215 = stablehlo.subtract %213, %214 : tensor<4x8xf32>
      %216 = stablehlo.broadcast_in_dim %183, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %217 = stablehlo.multiply %iterArg_55, %216 : tensor<4x8xf32>
      %218 = stablehlo.add %215, %217 : tensor<4x8xf32>
      %219 = stablehlo.multiply %204, %218 : tensor<4x8xf32>
      %220 = stablehlo.subtract %211, %219 : tensor<4x8xf32>
      %221 = stablehlo.divide %220, %195 : tensor<4x8xf32>
      %222 = stablehlo.select %197, %221, %iterArg_60 : tensor<4x8xi1>, tensor<4x8xf32>
      %223 = stablehlo.subtract %222, %iterArg_60 : tensor<4x8xf32>
      %224 = stablehlo.abs %223 : tensor<4x8xf32>
      %cst_66 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %225 = stablehlo.broadcast_in_dim %cst_66, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %226 = stablehlo.select %197, %224, %225 : tensor<4x8xi1>, tensor<4x8xf32>
      %227 = stablehlo.abs %192 : tensor<4x8xf32>
      %cst_67 = stablehlo.constant dense<1.1920929E-7> : tensor<f32>
      %cst_68 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %228 = stablehlo.broadcast_in_dim %cst_68, dims = [] : (tensor<f32>) -> tensor<f32>
      %229 = stablehlo.divide %228, %cst_67 : tensor<f32>
      %230 = stablehlo.broadcast_in_dim %229, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %231 = stablehlo.compare GT, %227, %230, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
      %cst_69 = stablehlo.constant dense<1.1920929E-7> : tensor<f32>
      %232 = stablehlo.broadcast_in_dim %cst_69, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %233 = stablehlo.multiply %iterArg_52, %232 : tensor<4x8xf32>
      %234 = stablehlo.select %231, %233, %iterArg_52 : tensor<4x8xi1>, tensor<4x8xf32>
      %cst_70 = stablehlo.constant dense<1.1920929E-7> : tensor<f32>
      %235 = stablehlo.broadcast_in_dim %cst_70, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %236 = stablehlo.multiply %192, %235 : tensor<4x8xf32>
      %237 = stablehlo.select %231, %236, %192 : tensor<4x8xi1>, tensor<4x8xf32>
      %cst_71 = stablehlo.constant dense<1.1920929E-7> : tensor<f32>
      %238 = stablehlo.broadcast_in_dim %cst_71, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %239 = stablehlo.multiply %iterArg_53, %238 : tensor<4x8xf32>
      %240 = stablehlo.select %231, %239, %iterArg_53 : tensor<4x8xi1>, tensor<4x8xf32>
      %cst_72 = stablehlo.constant dense<1.1920929E-7> : tensor<f32>
      %241 = stablehlo.broadcast_in_dim %cst_72, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %242 = stablehlo.multiply %195, %241 : tensor<4x8xf32>
      %243 = stablehlo.select %231, %242, %195 : tensor<4x8xi1>, tensor<4x8xf32>
      %cst_73 = stablehlo.constant dense<1.1920929E-7> : tensor<f32>
      %244 = stablehlo.broadcast_in_dim %cst_73, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %245 = stablehlo.multiply %iterArg_58, %244 : tensor<4x8xf32>
      %246 = stablehlo.select %231, %245, %iterArg_58 : tensor<4x8xi1>, tensor<4x8xf32>
      %cst_74 = stablehlo.constant dense<1.1920929E-7> : tensor<f32>
      %247 = stablehlo.broadcast_in_dim %cst_74, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %248 = stablehlo.multiply %iterArg_59, %247 : tensor<4x8xf32>
      %249 = stablehlo.select %231, %248, %iterArg_59 : tensor<4x8xi1>, tensor<4x8xf32>
      %cst_75 = stablehlo.constant dense<1.1920929E-7> : tensor<f32>
      %250 = stablehlo.broadcast_in_dim %cst_75, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %251 = stablehlo.multiply %211, %250 : tensor<4x8xf32>
      %252 = stablehlo.select %231, %251, %211 : tensor<4x8xi1>, tensor<4x8xf32>
      %cst_76 = stablehlo.constant dense<1.1920929E-7> : tensor<f32>
      %253 = stablehlo.broadcast_in_dim %cst_76, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %254 = stablehlo.multiply %218, %253 : tensor<4x8xf32>
      %255 = stablehlo.select %231, %254, %218 : tensor<4x8xi1>, tensor<4x8xf32>
      %cst_77 = stablehlo.constant dense<1.1920929E-7> : tensor<f32>
      %256 = stablehlo.broadcast_in_dim %cst_77, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %257 = stablehlo.compare GT, %203, %256, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
      %258 = stablehlo.and %iterArg, %257 : tensor<4x8xi1>
      %259 = stablehlo.select %iterArg, %204, %iterArg_47 : tensor<4x8xi1>, tensor<4x8xf32>
      %260 = stablehlo.select %iterArg, %203, %iterArg_48 : tensor<4x8xi1>, tensor<4x8xf32>
      %261 = stablehlo.select %iterArg, %185, %iterArg_49 : tensor<4x8xi1>, tensor<4x8xf32>
      %262 = stablehlo.select %iterArg, %187, %iterArg_50 : tensor<4x8xi1>, tensor<4x8xf32>
      %263 = stablehlo.select %iterArg, %237, %iterArg_52 : tensor<4x8xi1>, tensor<4x8xf32>
      %264 = stablehlo.select %iterArg, %243, %iterArg_53 : tensor<4x8xi1>, tensor<4x8xf32>
      %265 = stablehlo.select %iterArg, %234, %iterArg_54 : tensor<4x8xi1>, tensor<4x8xf32>
      %266 = stablehlo.select %iterArg, %240, %iterArg_55 : tensor<4x8xi1>, tensor<4x8xf32>
      %267 = stablehlo.select %iterArg, %246, %iterArg_56 : tensor<4x8xi1>, tensor<4x8xf32>
      %268 = stablehlo.select %iterArg, %249, %iterArg_57 : tensor<4x8xi1>, tensor<4x8xf32>
      %269 = stablehlo.select %iterArg, %252, %iterArg_58 : tensor<4x8xi1>, tensor<4x8xf32>
      %270 = stablehlo.select %iterArg, %255, %iterArg_59 : tensor<4x8xi1>, tensor<4x8xf32>
      %271 = stablehlo.select %iterArg, %222, %iterArg_60 : tensor<4x8xi1>, tensor<4x8xf32>
      stablehlo.return %258, %259, %260, %261, %262, %183, %263, %264, %265, %266, %267, %268, %269, %270, %271 : tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
    }
    %124 = stablehlo.multiply %123#1, %99 : tensor<4x8xf32>
    %cst_22 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %125 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %126 = stablehlo.subtract %125, %124 : tensor<4x8xf32>
    %127 = stablehlo.not %89 : tensor<4x8xi1>
    %128 = stablehlo.and %103, %127 : tensor<4x8xi1>
    %cst_23 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %129 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %cst_24 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %130 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %cst_25 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %131 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %cst_26 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %132 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %133:7 = stablehlo.while(%iterArg = %128, %iterArg_47 = %arg0, %iterArg_48 = %129, %iterArg_49 = %130, %iterArg_50 = %arg1, %iterArg_51 = %131, %iterArg_52 = %132) : tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
    cond {
      %c_53 = stablehlo.constant dense<false> : tensor<i1>
      %183 = stablehlo.reduce(%iterArg init: %c_53) applies stablehlo.or across dimensions = [0, 1] : (tensor<4x8xi1>, tensor<i1>) -> tensor<i1>
      stablehlo.return %183 : tensor<i1>
    } do {
      %cst_53 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %183 = stablehlo.broadcast_in_dim %cst_53, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %184 = stablehlo.add %iterArg_47, %183 : tensor<4x8xf32>
      %185 = stablehlo.divide %iterArg_50, %184 : tensor<4x8xf32>
      %186 = stablehlo.multiply %iterArg_51, %185 : tensor<4x8xf32>
      %187 = stablehlo.multiply %iterArg_48, %iterArg_50 : tensor<4x8xf32>
      %188 = stablehlo.multiply %184, %184 : tensor<4x8xf32>
      %189 = stablehlo.divide %187, %188 : tensor<4x8xf32>
      %190 = stablehlo.subtract %186, %189 : tensor<4x8xf32>
      %191 = stablehlo.add %iterArg_52, %190 : tensor<4x8xf32>
      %192 = stablehlo.divide %iterArg_50, %184 : tensor<4x8xf32>
      %193 = stablehlo.multiply %iterArg_48, %192 : tensor<4x8xf32>
      %194 = stablehlo.add %iterArg_49, %193 : tensor<4x8xf32>
      %195 = stablehlo.divide %193, %194 : tensor<4x8xf32>
      %cst_54 = stablehlo.constant dense<1.1920929E-7> : tensor<f32>
      %196 = stablehlo.broadcast_in_dim %cst_54, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %197 = stablehlo.compare GT, %195, %196, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
      %198 = stablehlo.and %iterArg, %197 : tensor<4x8xi1>
      %199 = stablehlo.select %iterArg, %184, %iterArg_47 : tensor<4x8xi1>, tensor<4x8xf32>
      %200 = stablehlo.select %iterArg, %193, %iterArg_48 : tensor<4x8xi1>, tensor<4x8xf32>
      %201 = stablehlo.select %iterArg, %194, %iterArg_49 : tensor<4x8xi1>, tensor<4x8xf32>
      %202 = stablehlo.select %iterArg, %iterArg_50, %iterArg_50 : tensor<4x8xi1>, tensor<4x8xf32>
      %203 = stablehlo.select %iterArg, %190, %iterArg_51 : tensor<4x8xi1>, tensor<4x8xf32>
      %204 = stablehlo.select %iterArg, %191, %iterArg_52 : tensor<4x8xi1>, tensor<4x8xf32>
      stablehlo.return %198, %199, %200, %201, %202, %203, %204 : tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
    }
    %134 = stablehlo.multiply %133#3, %99 : tensor<4x8xf32>
    %135 = stablehlo.divide %134, %arg0 : tensor<4x8xf32>
    %136 = stablehlo.select %89, %126, %135 : tensor<4x8xi1>, tensor<4x8xf32>
    %cst_27 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %137 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %138 = stablehlo.select %77, %137, %136 : tensor<4x8xi1>, tensor<4x8xf32>
    %cst_28 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %139 = stablehlo.broadcast_in_dim %cst_28, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %140 = stablehlo.select %73, %139, %138 : tensor<4x8xi1>, tensor<4x8xf32>
    %cst_29 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %141 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %142 = stablehlo.select %85, %141, %140 : tensor<4x8xi1>, tensor<4x8xf32>
    %c_30 = stablehlo.constant dense<3> : tensor<i32>
    %143 = stablehlo.broadcast_in_dim %c_30, dims = [] : (tensor<i32>) -> tensor<4x8xi32>
    %144 = stablehlo.and %arg2, %143 : tensor<4x8xi32>
    %c_31 = stablehlo.constant dense<3> : tensor<i32>
    %145 = stablehlo.broadcast_in_dim %c_31, dims = [] : (tensor<i32>) -> tensor<4x8xi32>
    %146 = stablehlo.or %arg2, %145 : tensor<4x8xi32>
    %c_32 = stablehlo.constant dense<3> : tensor<i32>
    %147 = stablehlo.broadcast_in_dim %c_32, dims = [] : (tensor<i32>) -> tensor<4x8xi32>
    %148 = stablehlo.xor %arg2, %147 : tensor<4x8xi32>
    %149 = stablehlo.not %arg2 : tensor<4x8xi32>
    %c_33 = stablehlo.constant dense<2> : tensor<i32>
    %150 = stablehlo.broadcast_in_dim %c_33, dims = [] : (tensor<i32>) -> tensor<4x8xi32>
    %151 = stablehlo.shift_left %arg2, %150 : tensor<4x8xi32>
    %c_34 = stablehlo.constant dense<2> : tensor<i32>
    %152 = stablehlo.broadcast_in_dim %c_34, dims = [] : (tensor<i32>) -> tensor<4x8xi32>
    %153 = stablehlo.shift_right_arithmetic %arg2, %152 : tensor<4x8xi32>
    %154 = stablehlo.shift_right_logical %arg2, %arg2 : tensor<4x8xi32>
    %155 = stablehlo.popcnt %arg2 : tensor<4x8xi32>
    %156 = stablehlo.count_leading_zeros %arg2 : tensor<4x8xi32>
    %c_35 = stablehlo.constant dense<3> : tensor<i32>
    %157 = call @floor_divide(%arg3, %c_35) : (tensor<4x8xui32>, tensor<i32>) -> tensor<4x8xui32>
    %c_36 = stablehlo.constant dense<5> : tensor<i32>
    %158 = call @remainder_2(%arg3, %c_36) : (tensor<4x8xui32>, tensor<i32>) -> tensor<4x8xui32>
    %c_37 = stablehlo.constant dense<3> : tensor<i32>
    %159 = call @floor_divide_4(%arg2, %c_37) : (tensor<4x8xi32>, tensor<i32>) -> tensor<4x8xi32>
    %c_38 = stablehlo.constant dense<5> : tensor<i32>
    %160 = call @remainder_6(%arg2, %c_38) : (tensor<4x8xi32>, tensor<i32>) -> tensor<4x8xi32>
    %161 = stablehlo.multiply %arg2, %arg2 : tensor<4x8xi32>
    %c_39 = stablehlo.constant dense<3> : tensor<ui32>
    %162 = stablehlo.broadcast_in_dim %c_39, dims = [] : (tensor<ui32>) -> tensor<4x8xui32>
    %163 = stablehlo.compare GT, %arg3, %162, UNSIGNED : (tensor<4x8xui32>, tensor<4x8xui32>) -> tensor<4x8xi1>
    %c_40 = stablehlo.constant dense<3> : tensor<i32>
    %164 = stablehlo.broadcast_in_dim %c_40, dims = [] : (tensor<i32>) -> tensor<4x8xi32>
    %165 = stablehlo.compare GT, %arg2, %164, SIGNED : (tensor<4x8xi32>, tensor<4x8xi32>) -> tensor<4x8xi1>
    %166 = stablehlo.convert %arg3 : (tensor<4x8xui32>) -> tensor<4x8xf32>
    %c_41 = stablehlo.constant dense<0> : tensor<i32>
    %167 = stablehlo.broadcast_in_dim %c_41, dims = [] : (tensor<i32>) -> tensor<4x8xi32>
    %168 = stablehlo.compare NE, %arg2, %167, SIGNED : (tensor<4x8xi32>, tensor<4x8xi32>) -> tensor<4x8xi1>
    %169 = stablehlo.convert %168 : tensor<4x8xi1>
    %170 = stablehlo.convert %arg0 : (tensor<4x8xf32>) -> tensor<4x8xi32>
    %171 = stablehlo.convert %arg0 : (tensor<4x8xf32>) -> tensor<4x8xf8E4M3FN>
    %172 = stablehlo.reshape %arg2 : (tensor<4x8xi32>) -> tensor<32xi32>
    %c_42 = stablehlo.constant dense<0> : tensor<i32>
    %173 = stablehlo.broadcast_in_dim %c_42, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %c_43 = stablehlo.constant dense<0> : tensor<i32>
    %174 = call @clip_8(%172, %c_43) : (tensor<32xi32>, tensor<i32>) -> tensor<32xi32>
    %c_44 = stablehlo.constant dense<0> : tensor<i32>
    %175 = stablehlo.broadcast_in_dim %c_44, dims = [] : (tensor<i32>) -> tensor<32xi32>
    %176 = stablehlo.compare LT, %174, %175, SIGNED : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %c_45 = stablehlo.constant dense<4> : tensor<i32>
    %177 = stablehlo.broadcast_in_dim %c_45, dims = [] : (tensor<i32>) -> tensor<32xi32>
    %178 = stablehlo.add %174, %177 : tensor<32xi32>
    %179 = stablehlo.select %176, %178, %174 : tensor<32xi1>, tensor<32xi32>
    %180 = stablehlo.broadcast_in_dim %179, dims = [0] : (tensor<32xi32>) -> tensor<32x1xi32>
    %c_46 = stablehlo.constant dense<1> : tensor<i32>
    %181 = stablehlo.broadcast_in_dim %c_46, dims = [] : (tensor<i32>) -> tensor<32xi32>
    %182 = "stablehlo.scatter"(%173, %180, %181) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg4: tensor<i32>, %arg5: tensor<i32>):
      %183 = stablehlo.add %arg4, %arg5 : tensor<i32>
      stablehlo.return %183 : tensor<i32>
    }) : (tensor<4xi32>, tensor<32x1xi32>, tensor<32xi32>) -> tensor<4xi32>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %44, %45, %values, %indices, %46, %47, %48, %49, %50, %51, %52, %53, %54, %57, %58, %60, %61, %62, %63, %64, %65, %66, %67, %68, %142, %144, %146, %148, %149, %151, %153, %154, %155, %156, %157, %158, %159, %160, %161, %163, %165, %166, %169, %170, %171, %182 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xi1>, tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<32xf32>, tensor<4x8xf32>, tensor<i32>, tensor<4x8xi32>, tensor<4x2xf32>, tensor<4x2xi32>, tensor<4x8xf32>, tensor<7x9xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xui32>, tensor<4x8x2xui16>, tensor<4x8xf32>, tensor<32xf32>, tensor<f32>, tensor<i1>, tensor<f32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xi32>, tensor<4x8xi32>, tensor<4x8xi32>, tensor<4x8xi32>, tensor<4x8xi32>, tensor<4x8xi32>, tensor<4x8xi32>, tensor<4x8xi32>, tensor<4x8xi32>, tensor<4x8xui32>, tensor<4x8xui32>, tensor<4x8xi32>, tensor<4x8xi32>, tensor<4x8xi32>, tensor<4x8xi1>, tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xi1>, tensor<4x8xi32>, tensor<4x8xf8E4M3FN>, tensor<4xi32>
  }
  func.func private @round(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
  func.func private @isinf(%arg0: tensor<4x8xf32>) -> tensor<4x8xi1> {
    %0 = stablehlo.abs %arg0 : tensor<4x8xf32>
    %cst = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %2 = stablehlo.compare EQ, %0, %1, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    return %2 : tensor<4x8xi1>
  }
  func.func private @cumsum(%arg0: tensor<4x8xf32>) -> tensor<32xf32> {
    %0 = stablehlo.reshape %arg0 : (tensor<4x8xf32>) -> tensor<32xf32>
    %1 = call @cumsum_0(%0) : (tensor<32xf32>) -> tensor<32xf32>
    return %1 : tensor<32xf32>
  }
  func.func private @cumsum_0(%arg0: tensor<32xf32>) -> tensor<32xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1>, padding = dense<[[31, 0]]> : tensor<1x2xi64>, window_dilations = array<i64: 1>, window_dimensions = array<i64: 32>, window_strides = array<i64: 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<32xf32>, tensor<f32>) -> tensor<32xf32>
    return %1 : tensor<32xf32>
  }
  func.func private @sort(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = "stablehlo.sort"(%arg0) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %1 = stablehlo.compare EQ, %arg1, %cst, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %2 = stablehlo.select %1, %cst_0, %arg1 : tensor<i1>, tensor<f32>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_1 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %4 = stablehlo.select %3, %cst_1, %2 : tensor<i1>, tensor<f32>
      %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %5 = stablehlo.compare EQ, %arg2, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %6 = stablehlo.select %5, %cst_3, %arg2 : tensor<i1>, tensor<f32>
      %7 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %8 = stablehlo.select %7, %cst_4, %6 : tensor<i1>, tensor<f32>
      %9 = stablehlo.compare LT, %4, %8, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %9 : tensor<i1>
    }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
  func.func private @argmax(%arg0: tensor<32xf32>) -> tensor<i32> {
    %0 = stablehlo.iota dim = 0 : tensor<32xi32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [0] : (tensor<32xf32>, tensor<32xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
     reducer(%arg1: tensor<f32>, %arg3: tensor<f32>) (%arg2: tensor<i32>, %arg4: tensor<i32>)  {
      %2 = stablehlo.compare GT, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<f32>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i32>
      stablehlo.return %9, %10 : tensor<f32>, tensor<i32>
    }
    return %1#1 : tensor<i32>
  }
  func.func private @argsort(%arg0: tensor<4x8xf32>) -> tensor<4x8xi32> {
    %0 = stablehlo.iota dim = 1 : tensor<4x8xi32>
    %1:2 = "stablehlo.sort"(%arg0, %0) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>, %arg3: tensor<i32>, %arg4: tensor<i32>):
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %2 = stablehlo.compare EQ, %arg1, %cst, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %3 = stablehlo.select %2, %cst_0, %arg1 : tensor<i1>, tensor<f32>
      %4 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_1 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %5 = stablehlo.select %4, %cst_1, %3 : tensor<i1>, tensor<f32>
      %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %6 = stablehlo.compare EQ, %arg2, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %7 = stablehlo.select %6, %cst_3, %arg2 : tensor<i1>, tensor<f32>
      %8 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %9 = stablehlo.select %8, %cst_4, %7 : tensor<i1>, tensor<f32>
      %10 = stablehlo.compare LT, %5, %9, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %10 : tensor<i1>
    }) : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xi32>)
    return %1#1 : tensor<4x8xi32>
  }
  func.func private @_pad(%arg0: tensor<4x8xf32>, %arg1: tensor<i32>) -> tensor<7x9xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.pad %arg0, %0, low = [1, 0], high = [2, 1], interior = [0, 0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<7x9xf32>
    return %1 : tensor<7x9xf32>
  }
  func.func private @_flip(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = stablehlo.reverse %arg0, dims = [0] : tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
  func.func private @clip(%arg0: tensor<4x8xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<4x8xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<4x8xf32>
    %3 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<4x8xf32>
    return %5 : tensor<4x8xf32>
  }
  func.func private @cumprod(%arg0: tensor<4x8xf32>) -> tensor<32xf32> {
    %0 = stablehlo.reshape %arg0 : (tensor<4x8xf32>) -> tensor<32xf32>
    %1 = call @cumprod_1(%0) : (tensor<32xf32>) -> tensor<32xf32>
    return %1 : tensor<32xf32>
  }
  func.func private @cumprod_1(%arg0: tensor<32xf32>) -> tensor<32xf32> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = "stablehlo.reduce_window"(%arg0, %cst) <{base_dilations = array<i64: 1>, padding = dense<[[31, 0]]> : tensor<1x2xi64>, window_dilations = array<i64: 1>, window_dimensions = array<i64: 32>, window_strides = array<i64: 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %1 = stablehlo.multiply %arg1, %arg2 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<32xf32>, tensor<f32>) -> tensor<32xf32>
    return %0 : tensor<32xf32>
  }
  func.func private @median(%arg0: tensor<4x8xf32>) -> tensor<f32> {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %0 = call @quantile(%arg0, %cst) : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
  func.func private @quantile(%arg0: tensor<4x8xf32>, %arg1: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.reshape %arg0 : (tensor<4x8xf32>) -> tensor<32xf32>
    %1 = stablehlo.compare NE, %0, %0, FLOAT : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xi1>
    %c = stablehlo.constant dense<false> : tensor<i1>
    %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.or across dimensions = [0] : (tensor<32xi1>, tensor<i1>) -> tensor<i1>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i1>) -> tensor<1xi1>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %4 = call @_where(%3, %cst, %0) : (tensor<1xi1>, tensor<f32>, tensor<32xf32>) -> tensor<32xf32>
    %5 = "stablehlo.sort"(%4) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %22 = stablehlo.compare EQ, %arg2, %cst_9, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %23 = stablehlo.select %22, %cst_10, %arg2 : tensor<i1>, tensor<f32>
      %24 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_11 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %25 = stablehlo.select %24, %cst_11, %23 : tensor<i1>, tensor<f32>
      %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %26 = stablehlo.compare EQ, %arg3, %cst_12, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %27 = stablehlo.select %26, %cst_13, %arg3 : tensor<i1>, tensor<f32>
      %28 = stablehlo.compare NE, %arg3, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_14 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %29 = stablehlo.select %28, %cst_14, %27 : tensor<i1>, tensor<f32>
      %30 = stablehlo.compare LT, %25, %29, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %30 : tensor<i1>
    }) : (tensor<32xf32>) -> tensor<32xf32>
    %cst_0 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %6 = stablehlo.subtract %cst_0, %cst_1 : tensor<f32>
    %7 = stablehlo.multiply %arg1, %6 : tensor<f32>
    %8 = stablehlo.floor %7 : tensor<f32>
    %9 = stablehlo.ceil %7 : tensor<f32>
    %cst_2 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %10 = stablehlo.subtract %cst_2, %cst_3 : tensor<f32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.clamp %cst_4, %8, %10 : tensor<f32>
    %cst_5 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %cst_6 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %12 = stablehlo.subtract %cst_5, %cst_6 : tensor<f32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %13 = stablehlo.clamp %cst_7, %9, %12 : tensor<f32>
    %14 = stablehlo.convert %11 : (tensor<f32>) -> tensor<i32>
    %15 = stablehlo.convert %13 : (tensor<f32>) -> tensor<i32>
    %16 = stablehlo.broadcast_in_dim %14, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %17 = "stablehlo.gather"(%5, %16) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0]>, indices_are_sorted = false, slice_sizes = array<i64: 1>}> : (tensor<32xf32>, tensor<1xi32>) -> tensor<f32>
    %18 = stablehlo.broadcast_in_dim %15, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %19 = "stablehlo.gather"(%5, %18) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0]>, indices_are_sorted = false, slice_sizes = array<i64: 1>}> : (tensor<32xf32>, tensor<1xi32>) -> tensor<f32>
    %20 = stablehlo.add %17, %19 : tensor<f32>
    %cst_8 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %21 = stablehlo.multiply %20, %cst_8 : tensor<f32>
    return %21 : tensor<f32>
  }
  func.func private @_where(%arg0: tensor<1xi1>, %arg1: tensor<f32>, %arg2: tensor<32xf32>) -> tensor<32xf32> {
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<1xi1>) -> tensor<32xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %3 = stablehlo.select %1, %2, %arg2 : tensor<32xi1>, tensor<32xf32>
    return %3 : tensor<32xf32>
  }
  func.func private @remainder(%arg0: tensor<4x8xf32>, %arg1: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = stablehlo.remainder %arg0, %arg1 : tensor<4x8xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %2 = stablehlo.compare NE, %0, %1, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %4 = stablehlo.compare LT, %0, %3, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %6 = stablehlo.compare LT, %arg1, %5, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %7 = stablehlo.compare NE, %4, %6, UNSIGNED : (tensor<4x8xi1>, tensor<4x8xi1>) -> tensor<4x8xi1>
    %8 = stablehlo.and %7, %2 : tensor<4x8xi1>
    %9 = stablehlo.add %0, %arg1 : tensor<4x8xf32>
    %10 = stablehlo.select %8, %9, %0 : tensor<4x8xi1>, tensor<4x8xf32>
    return %10 : tensor<4x8xf32>
  }
  func.func private @floor_divide(%arg0: tensor<4x8xui32>, %arg1: tensor<i32>) -> tensor<4x8xui32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<ui32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<ui32>) -> tensor<4x8xui32>
    %2 = stablehlo.divide %arg0, %1 : tensor<4x8xui32>
    return %2 : tensor<4x8xui32>
  }
  func.func private @remainder_2(%arg0: tensor<4x8xui32>, %arg1: tensor<i32>) -> tensor<4x8xui32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<ui32>
    %c = stablehlo.constant dense<0> : tensor<ui32>
    %1 = stablehlo.compare EQ, %0, %c, UNSIGNED : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<1> : tensor<ui32>
    %2 = call @_where_3(%1, %c_0, %0) : (tensor<i1>, tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<ui32>) -> tensor<4x8xui32>
    %4 = stablehlo.remainder %arg0, %3 : tensor<4x8xui32>
    %c_1 = stablehlo.constant dense<0> : tensor<ui32>
    %5 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<ui32>) -> tensor<4x8xui32>
    %6 = stablehlo.compare NE, %4, %5, UNSIGNED : (tensor<4x8xui32>, tensor<4x8xui32>) -> tensor<4x8xi1>
    %c_2 = stablehlo.constant dense<0> : tensor<ui32>
    %7 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<ui32>) -> tensor<4x8xui32>
    %8 = stablehlo.compare LT, %4, %7, UNSIGNED : (tensor<4x8xui32>, tensor<4x8xui32>) -> tensor<4x8xi1>
    %c_3 = stablehlo.constant dense<0> : tensor<ui32>
    %9 = stablehlo.compare LT, %2, %c_3, UNSIGNED : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<4x8xi1>
    %11 = stablehlo.compare NE, %8, %10, UNSIGNED : (tensor<4x8xi1>, tensor<4x8xi1>) -> tensor<4x8xi1>
    %12 = stablehlo.and %11, %6 : tensor<4x8xi1>
    %13 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<ui32>) -> tensor<4x8xui32>
    %14 = stablehlo.add %4, %13 : tensor<4x8xui32>
    %15 = stablehlo.select %12, %14, %4 : tensor<4x8xi1>, tensor<4x8xui32>
    return %15 : tensor<4x8xui32>
  }
  func.func private @_where_3(%arg0: tensor<i1>, %arg1: tensor<ui32>, %arg2: tensor<ui32>) -> tensor<ui32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<ui32>
    return %0 : tensor<ui32>
  }
  func.func private @floor_divide_4(%arg0: tensor<4x8xi32>, %arg1: tensor<i32>) -> tensor<4x8xi32> {
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<4x8xi32>
    %2 = stablehlo.divide %arg0, %1 : tensor<4x8xi32>
    %3 = stablehlo.sign %arg0 : tensor<4x8xi32>
    %4 = stablehlo.sign %0 : tensor<i32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<i32>) -> tensor<4x8xi32>
    %6 = stablehlo.compare NE, %3, %5, SIGNED : (tensor<4x8xi32>, tensor<4x8xi32>) -> tensor<4x8xi1>
    %7 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<4x8xi32>
    %8 = stablehlo.remainder %arg0, %7 : tensor<4x8xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %9 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x8xi32>
    %10 = stablehlo.compare NE, %8, %9, SIGNED : (tensor<4x8xi32>, tensor<4x8xi32>) -> tensor<4x8xi1>
    %11 = stablehlo.and %6, %10 : tensor<4x8xi1>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %12 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4x8xi32>
    %13 = stablehlo.subtract %2, %12 : tensor<4x8xi32>
    %14 = call @_where_5(%11, %13, %2) : (tensor<4x8xi1>, tensor<4x8xi32>, tensor<4x8xi32>) -> tensor<4x8xi32>
    return %14 : tensor<4x8xi32>
  }
  func.func private @_where_5(%arg0: tensor<4x8xi1>, %arg1: tensor<4x8xi32>, %arg2: tensor<4x8xi32>) -> tensor<4x8xi32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<4x8xi1>, tensor<4x8xi32>
    return %0 : tensor<4x8xi32>
  }
  func.func private @remainder_6(%arg0: tensor<4x8xi32>, %arg1: tensor<i32>) -> tensor<4x8xi32> {
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.compare EQ, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %2 = call @_where_7(%1, %c_0, %0) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<4x8xi32>
    %4 = stablehlo.remainder %arg0, %3 : tensor<4x8xi32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<4x8xi32>
    %6 = stablehlo.compare NE, %4, %5, SIGNED : (tensor<4x8xi32>, tensor<4x8xi32>) -> tensor<4x8xi1>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<4x8xi32>
    %8 = stablehlo.compare LT, %4, %7, SIGNED : (tensor<4x8xi32>, tensor<4x8xi32>) -> tensor<4x8xi1>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %9 = stablehlo.compare LT, %2, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<4x8xi1>
    %11 = stablehlo.compare NE, %8, %10, UNSIGNED : (tensor<4x8xi1>, tensor<4x8xi1>) -> tensor<4x8xi1>
    %12 = stablehlo.and %11, %6 : tensor<4x8xi1>
    %13 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<4x8xi32>
    %14 = stablehlo.add %4, %13 : tensor<4x8xi32>
    %15 = stablehlo.select %12, %14, %4 : tensor<4x8xi1>, tensor<4x8xi32>
    return %15 : tensor<4x8xi32>
  }
  func.func private @_where_7(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @clip_8(%arg0: tensor<32xi32>, %arg1: tensor<i32>) -> tensor<32xi32> {
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<32xi32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<32xi32>
    return %2 : tensor<32xi32>
  }
}
