// RUN: fp8-opt %s --stablehlo-inline-calls --stablehlo-simplify --cse --fp8-analyze-signature="explain=true states=u=result[2]" -o /dev/null | FileCheck %s

// A weight divided by its spectral norm. u, its singular vector, is multiplied
// with the weight and then with the weight again, as a gradient of it would be,
// and the loss depends on the product. x meets the weight, though this is
// divided by what depends on u.

// CHECK: w {{.*}} state parameter
// CHECK-NEXT: o {{.*}} state parameter
// CHECK-NEXT: u {{.*}} state other
// CHECK-NEXT: x {{.*}} batch
// CHECK-NEXT: y {{.*}} batch
// CHECK: result[3] {{.*}} loss gradients flow from it to the parameters

module {
  func.func public @main(%arg0: tensor<8x6xf32> loc("w"), %arg1: tensor<6x4xf32> loc("o"), %arg2: tensor<1x6xf32> loc("u"), %arg3: tensor<16x8xf32> loc("x"), %arg4: tensor<16x4xf32> loc("y")) -> (tensor<8x6xf32> {jax.result_info = "result[0]"}, tensor<6x4xf32> {jax.result_info = "result[1]"}, tensor<1x6xf32> {jax.result_info = "result[2]"}, tensor<f32> {jax.result_info = "result[3]"}) {
    %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<8x6xf32>) -> tensor<6x8xf32>
    %1 = stablehlo.dot_general %arg2, %0, contracting_dims = [1] x [0] : (tensor<1x6xf32>, tensor<6x8xf32>) -> tensor<1x8xf32>
    %2 = stablehlo.multiply %1, %1 : tensor<1x8xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.reduce(%2 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x8xf32>, tensor<f32>) -> tensor<f32>
    %4 = stablehlo.sqrt %3 : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<f32>) -> tensor<1x8xf32>
    %6 = stablehlo.divide %1, %5 : tensor<1x8xf32>
    %7 = stablehlo.dot_general %6, %arg0, contracting_dims = [1] x [0] : (tensor<1x8xf32>, tensor<8x6xf32>) -> tensor<1x6xf32>
    %8 = stablehlo.multiply %7, %7 : tensor<1x6xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %9 = stablehlo.reduce(%8 init: %cst_0) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x6xf32>, tensor<f32>) -> tensor<f32>
    %10 = stablehlo.sqrt %9 : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<f32>) -> tensor<1x6xf32>
    %12 = stablehlo.divide %7, %11 : tensor<1x6xf32>
    %13 = stablehlo.dot_general %6, %arg0, contracting_dims = [1] x [0] : (tensor<1x8xf32>, tensor<8x6xf32>) -> tensor<1x6xf32>
    %14 = stablehlo.transpose %12, dims = [1, 0] : (tensor<1x6xf32>) -> tensor<6x1xf32>
    %15 = stablehlo.dot_general %13, %14, contracting_dims = [1] x [0] : (tensor<1x6xf32>, tensor<6x1xf32>) -> tensor<1x1xf32>
    %16 = stablehlo.reshape %15 : (tensor<1x1xf32>) -> tensor<f32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [] : (tensor<f32>) -> tensor<8x6xf32>
    %18 = stablehlo.divide %arg0, %17 : tensor<8x6xf32>
    %19 = stablehlo.multiply %16, %16 : tensor<f32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %20 = stablehlo.divide %cst_1, %19 : tensor<f32>
    %21 = stablehlo.dot_general %arg3, %18, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8x6xf32>) -> tensor<16x6xf32>
    %22 = stablehlo.dot_general %21, %arg1, contracting_dims = [1] x [0] : (tensor<16x6xf32>, tensor<6x4xf32>) -> tensor<16x4xf32>
    %23 = stablehlo.subtract %22, %arg4 : tensor<16x4xf32>
    %24 = stablehlo.multiply %23, %23 : tensor<16x4xf32>
    %cst_2 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %25 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<16x4xf32>
    %26 = stablehlo.multiply %25, %23 : tensor<16x4xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %27 = stablehlo.reduce(%24 init: %cst_3) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x4xf32>, tensor<f32>) -> tensor<f32>
    %cst_4 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %28 = stablehlo.divide %27, %cst_4 : tensor<f32>
    %cst_5 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_6 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %29 = stablehlo.divide %cst_5, %cst_6 : tensor<f32>
    %30 = stablehlo.broadcast_in_dim %29, dims = [] : (tensor<f32>) -> tensor<16x4xf32>
    %31 = stablehlo.multiply %30, %26 : tensor<16x4xf32>
    %32 = stablehlo.dot_general %31, %21, contracting_dims = [0] x [0] : (tensor<16x4xf32>, tensor<16x6xf32>) -> tensor<4x6xf32>
    %33 = stablehlo.transpose %32, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
    %34 = stablehlo.dot_general %31, %arg1, contracting_dims = [1] x [1] : (tensor<16x4xf32>, tensor<6x4xf32>) -> tensor<16x6xf32>
    %35 = stablehlo.dot_general %34, %arg3, contracting_dims = [0] x [0] : (tensor<16x6xf32>, tensor<16x8xf32>) -> tensor<6x8xf32>
    %36 = stablehlo.transpose %35, dims = [1, 0] : (tensor<6x8xf32>) -> tensor<8x6xf32>
    %37 = stablehlo.broadcast_in_dim %20, dims = [] : (tensor<f32>) -> tensor<8x6xf32>
    %38 = stablehlo.multiply %36, %37 : tensor<8x6xf32>
    %39 = stablehlo.multiply %38, %arg0 : tensor<8x6xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %40 = stablehlo.reduce(%39 init: %cst_7) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x6xf32>, tensor<f32>) -> tensor<f32>
    %41 = stablehlo.negate %40 : tensor<f32>
    %42 = stablehlo.broadcast_in_dim %16, dims = [] : (tensor<f32>) -> tensor<8x6xf32>
    %43 = stablehlo.divide %36, %42 : tensor<8x6xf32>
    %44 = stablehlo.broadcast_in_dim %41, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %45 = stablehlo.dot_general %44, %14, contracting_dims = [1] x [1] : (tensor<1x1xf32>, tensor<6x1xf32>) -> tensor<1x6xf32>
    %46 = stablehlo.dot_general %45, %6, contracting_dims = [0] x [0] : (tensor<1x6xf32>, tensor<1x8xf32>) -> tensor<6x8xf32>
    %47 = stablehlo.transpose %46, dims = [1, 0] : (tensor<6x8xf32>) -> tensor<8x6xf32>
    %48 = stablehlo.add %43, %47 : tensor<8x6xf32>
    %cst_8 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %49 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<8x6xf32>
    %50 = stablehlo.multiply %49, %48 : tensor<8x6xf32>
    %51 = stablehlo.subtract %arg0, %50 : tensor<8x6xf32>
    %cst_9 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %52 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %53 = stablehlo.multiply %52, %33 : tensor<6x4xf32>
    %54 = stablehlo.subtract %arg1, %53 : tensor<6x4xf32>
    return %51, %54, %12, %28 : tensor<8x6xf32>, tensor<6x4xf32>, tensor<1x6xf32>, tensor<f32>
  }
}
