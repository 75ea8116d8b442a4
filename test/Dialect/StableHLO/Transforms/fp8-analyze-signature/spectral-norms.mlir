// RUN: fp8-opt %s --fp8-analyze-signature=explain=true -o /dev/null | FileCheck %s

// Two weights divided by their spectral norms, which are returned, too. What
// looks like the gradient of a singular vector is its next value: it is no
// parameter, so the loss does not come after its update.

// CHECK: state['p']['a'] {{.*}} state parameter
// CHECK: state['p']['b'] {{.*}} state parameter
// CHECK: state['u']['a'] {{.*}} state other
// CHECK: state['u']['b'] {{.*}} state other
// CHECK: x {{.*}} batch
// CHECK: result[1][0] {{.*}} loss gradients flow from it to the parameters
// CHECK: result[1][1] {{.*}} metric

module @jit_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x6xf32> loc("state['p']['a']"), %arg1: tensor<6x4xf32> loc("state['p']['b']"), %arg2: tensor<6xf32> loc("state['p']['c']"), %arg3: tensor<4xf32> loc("state['p']['d']"), %arg4: tensor<1x6xf32> loc("state['u']['a']"), %arg5: tensor<1x4xf32> loc("state['u']['b']"), %arg6: tensor<16x8xf32> loc("x"), %arg7: tensor<16xi32> loc("y")) -> (tensor<8x6xf32> {jax.result_info = "result[0]['p']['a']"}, tensor<6x4xf32> {jax.result_info = "result[0]['p']['b']"}, tensor<6xf32> {jax.result_info = "result[0]['p']['c']"}, tensor<4xf32> {jax.result_info = "result[0]['p']['d']"}, tensor<1x6xf32> {jax.result_info = "result[0]['u']['a']"}, tensor<1x4xf32> {jax.result_info = "result[0]['u']['b']"}, tensor<f32> {jax.result_info = "result[1][0]"}, tensor<f32> {jax.result_info = "result[1][1]"}, tensor<f32> {jax.result_info = "result[1][2]"}) {
    %cst = stablehlo.constant dense<1.000000e-01> : tensor<4xf32>
    %cst_0 = stablehlo.constant dense<1.000000e-01> : tensor<6xf32>
    %cst_1 = stablehlo.constant dense<1.000000e-01> : tensor<6x4xf32>
    %cst_2 = stablehlo.constant dense<1.000000e-01> : tensor<8x6xf32>
    %cst_3 = stablehlo.constant dense<1.562500e-02> : tensor<16x4xf32>
    %cst_4 = stablehlo.constant dense<2.000000e+00> : tensor<16x4xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<16x6xf32>
    %cst_6 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %cst_7 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_8 = stablehlo.constant dense<9.99999996E-13> : tensor<f32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<8x6xf32>) -> tensor<6x8xf32>
    %1 = stablehlo.dot_general %arg4, %0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x6xf32>, tensor<6x8xf32>) -> tensor<1x8xf32>
    %2 = stablehlo.multiply %1, %1 : tensor<1x8xf32>
    %3 = stablehlo.reduce(%2 init: %cst_9) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x8xf32>, tensor<f32>) -> tensor<f32>
    %4 = stablehlo.add %3, %cst_8 : tensor<f32>
    %5 = stablehlo.sqrt %4 : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<1x8xf32>
    %7 = stablehlo.divide %1, %6 : tensor<1x8xf32>
    %8 = stablehlo.dot_general %7, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x8xf32>, tensor<8x6xf32>) -> tensor<1x6xf32>
    %9 = stablehlo.multiply %8, %8 : tensor<1x6xf32>
    %10 = stablehlo.reduce(%9 init: %cst_9) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x6xf32>, tensor<f32>) -> tensor<f32>
    %11 = stablehlo.add %10, %cst_8 : tensor<f32>
    %12 = stablehlo.sqrt %11 : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<f32>) -> tensor<1x6xf32>
    %14 = stablehlo.divide %8, %13 : tensor<1x6xf32>
    %15 = stablehlo.transpose %14, dims = [1, 0] : (tensor<1x6xf32>) -> tensor<6x1xf32>
    %16 = stablehlo.dot_general %8, %15, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x6xf32>, tensor<6x1xf32>) -> tensor<1x1xf32>
    %17 = stablehlo.reshape %16 : (tensor<1x1xf32>) -> tensor<f32>
    %18 = stablehlo.compare NE, %17, %cst_9, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %19 = stablehlo.select %18, %17, %cst_7 : tensor<i1>, tensor<f32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [] : (tensor<f32>) -> tensor<8x6xf32>
    %21 = stablehlo.divide %arg0, %20 : tensor<8x6xf32>
    %22 = stablehlo.multiply %19, %19 : tensor<f32>
    %23 = stablehlo.divide %cst_7, %22 : tensor<f32>
    %24 = stablehlo.dot_general %arg6, %21, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x8xf32>, tensor<8x6xf32>) -> tensor<16x6xf32>
    %25 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<6xf32>) -> tensor<16x6xf32>
    %26 = stablehlo.add %24, %25 : tensor<16x6xf32>
    %27 = stablehlo.maximum %26, %cst_5 : tensor<16x6xf32>
    %28 = stablehlo.compare GT, %26, %cst_5, FLOAT : (tensor<16x6xf32>, tensor<16x6xf32>) -> tensor<16x6xi1>
    %29 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>
    %30 = stablehlo.dot_general %arg5, %29, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x4xf32>, tensor<4x6xf32>) -> tensor<1x6xf32>
    %31 = stablehlo.multiply %30, %30 : tensor<1x6xf32>
    %32 = stablehlo.reduce(%31 init: %cst_9) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x6xf32>, tensor<f32>) -> tensor<f32>
    %33 = stablehlo.add %32, %cst_8 : tensor<f32>
    %34 = stablehlo.sqrt %33 : tensor<f32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [] : (tensor<f32>) -> tensor<1x6xf32>
    %36 = stablehlo.divide %30, %35 : tensor<1x6xf32>
    %37 = stablehlo.dot_general %36, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x6xf32>, tensor<6x4xf32>) -> tensor<1x4xf32>
    %38 = stablehlo.multiply %37, %37 : tensor<1x4xf32>
    %39 = stablehlo.reduce(%38 init: %cst_9) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x4xf32>, tensor<f32>) -> tensor<f32>
    %40 = stablehlo.add %39, %cst_8 : tensor<f32>
    %41 = stablehlo.sqrt %40 : tensor<f32>
    %42 = stablehlo.broadcast_in_dim %41, dims = [] : (tensor<f32>) -> tensor<1x4xf32>
    %43 = stablehlo.divide %37, %42 : tensor<1x4xf32>
    %44 = stablehlo.transpose %43, dims = [1, 0] : (tensor<1x4xf32>) -> tensor<4x1xf32>
    %45 = stablehlo.dot_general %37, %44, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x4xf32>, tensor<4x1xf32>) -> tensor<1x1xf32>
    %46 = stablehlo.reshape %45 : (tensor<1x1xf32>) -> tensor<f32>
    %47 = stablehlo.compare NE, %46, %cst_9, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %48 = stablehlo.select %47, %46, %cst_7 : tensor<i1>, tensor<f32>
    %49 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %50 = stablehlo.divide %arg1, %49 : tensor<6x4xf32>
    %51 = stablehlo.multiply %48, %48 : tensor<f32>
    %52 = stablehlo.divide %cst_7, %51 : tensor<f32>
    %53 = stablehlo.dot_general %27, %50, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x6xf32>, tensor<6x4xf32>) -> tensor<16x4xf32>
    %54 = stablehlo.broadcast_in_dim %arg3, dims = [1] : (tensor<4xf32>) -> tensor<16x4xf32>
    %55 = stablehlo.add %53, %54 : tensor<16x4xf32>
    %56 = stablehlo.broadcast_in_dim %arg7, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
    %57 = stablehlo.convert %56 : (tensor<16x1xi32>) -> tensor<16x1xf32>
    %58 = stablehlo.broadcast_in_dim %57, dims = [0, 1] : (tensor<16x1xf32>) -> tensor<16x4xf32>
    %59 = stablehlo.subtract %55, %58 : tensor<16x4xf32>
    %60 = stablehlo.multiply %59, %59 : tensor<16x4xf32>
    %61 = stablehlo.multiply %59, %cst_4 : tensor<16x4xf32>
    %62 = stablehlo.reduce(%60 init: %cst_9) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x4xf32>, tensor<f32>) -> tensor<f32>
    %63 = stablehlo.divide %62, %cst_6 : tensor<f32>
    %64 = stablehlo.multiply %61, %cst_3 : tensor<16x4xf32>
    %65 = stablehlo.reduce(%64 init: %cst_9) applies stablehlo.add across dimensions = [0] : (tensor<16x4xf32>, tensor<f32>) -> tensor<4xf32>
    %66 = stablehlo.dot_general %64, %27, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x4xf32>, tensor<16x6xf32>) -> tensor<4x6xf32>
    %67 = stablehlo.transpose %66, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
    %68 = stablehlo.dot_general %64, %50, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x4xf32>, tensor<6x4xf32>) -> tensor<16x6xf32>
    %69 = stablehlo.broadcast_in_dim %52, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %70 = stablehlo.multiply %67, %69 : tensor<6x4xf32>
    %71 = stablehlo.multiply %70, %arg1 : tensor<6x4xf32>
    %72 = stablehlo.reduce(%71 init: %cst_9) applies stablehlo.add across dimensions = [0, 1] : (tensor<6x4xf32>, tensor<f32>) -> tensor<f32>
    %73 = stablehlo.negate %72 : tensor<f32>
    %74 = stablehlo.divide %67, %49 : tensor<6x4xf32>
    %75 = stablehlo.select %47, %73, %cst_9 : tensor<i1>, tensor<f32>
    %76 = stablehlo.broadcast_in_dim %75, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %77 = stablehlo.dot_general %76, %44, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x1xf32>, tensor<4x1xf32>) -> tensor<1x4xf32>
    %78 = stablehlo.dot_general %77, %36, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x4xf32>, tensor<1x6xf32>) -> tensor<4x6xf32>
    %79 = stablehlo.transpose %78, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
    %80 = stablehlo.add %74, %79 : tensor<6x4xf32>
    %81 = stablehlo.select %28, %68, %cst_5 : tensor<16x6xi1>, tensor<16x6xf32>
    %82 = stablehlo.reduce(%81 init: %cst_9) applies stablehlo.add across dimensions = [0] : (tensor<16x6xf32>, tensor<f32>) -> tensor<6xf32>
    %83 = stablehlo.dot_general %81, %arg6, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x6xf32>, tensor<16x8xf32>) -> tensor<6x8xf32>
    %84 = stablehlo.transpose %83, dims = [1, 0] : (tensor<6x8xf32>) -> tensor<8x6xf32>
    %85 = stablehlo.broadcast_in_dim %23, dims = [] : (tensor<f32>) -> tensor<8x6xf32>
    %86 = stablehlo.multiply %84, %85 : tensor<8x6xf32>
    %87 = stablehlo.multiply %86, %arg0 : tensor<8x6xf32>
    %88 = stablehlo.reduce(%87 init: %cst_9) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x6xf32>, tensor<f32>) -> tensor<f32>
    %89 = stablehlo.negate %88 : tensor<f32>
    %90 = stablehlo.divide %84, %20 : tensor<8x6xf32>
    %91 = stablehlo.select %18, %89, %cst_9 : tensor<i1>, tensor<f32>
    %92 = stablehlo.broadcast_in_dim %91, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %93 = stablehlo.dot_general %92, %15, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x1xf32>, tensor<6x1xf32>) -> tensor<1x6xf32>
    %94 = stablehlo.dot_general %93, %7, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x6xf32>, tensor<1x8xf32>) -> tensor<6x8xf32>
    %95 = stablehlo.transpose %94, dims = [1, 0] : (tensor<6x8xf32>) -> tensor<8x6xf32>
    %96 = stablehlo.add %90, %95 : tensor<8x6xf32>
    %97 = stablehlo.multiply %96, %cst_2 : tensor<8x6xf32>
    %98 = stablehlo.subtract %arg0, %97 : tensor<8x6xf32>
    %99 = stablehlo.multiply %80, %cst_1 : tensor<6x4xf32>
    %100 = stablehlo.subtract %arg1, %99 : tensor<6x4xf32>
    %101 = stablehlo.multiply %82, %cst_0 : tensor<6xf32>
    %102 = stablehlo.subtract %arg2, %101 : tensor<6xf32>
    %103 = stablehlo.multiply %65, %cst : tensor<4xf32>
    %104 = stablehlo.subtract %arg3, %103 : tensor<4xf32>
    return %98, %100, %102, %104, %14, %43, %63, %17, %46 : tensor<8x6xf32>, tensor<6x4xf32>, tensor<6xf32>, tensor<4xf32>, tensor<1x6xf32>, tensor<1x4xf32>, tensor<f32>, tensor<f32>, tensor<f32>
  }
}
