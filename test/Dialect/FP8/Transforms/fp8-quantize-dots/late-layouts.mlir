// RUN: fp8-opt %s --fp8-resolve-recipe="recipe=tensorwise set=wgrad.activation.format=f8E5M2 set=wgrad.copy=recomputed" --fp8-decide --fp8-quantize-dots --fp8-compute-types --fp8-drop-verdicts --cse | FileCheck %s

// Two wgrad dots read one activation, as it is and reshaped. Its payload is made
// before the first of them, behind the reshape of the activation; so is that of
// the payload.

// CHECK-LABEL: @main
// CHECK: %[[H:.*]] = stablehlo.tanh
// CHECK: %[[G:.*]] = fp8.quantize {{.*}} -> !fp8.scaled<4x8x32xf8E5M2
// CHECK: %[[P:.*]] = fp8.quantize %[[H]], {{.*}} {fp8.recomputed} : tensor<4x8x32xf32> -> !fp8.scaled<4x8x32xf8E5M2
// CHECK-NEXT: %[[PAYLOAD:.*]], %[[SCALE:.*]] = fp8.unpack %[[P]]
// CHECK-NEXT: %[[HEADS:.*]] = stablehlo.reshape %[[PAYLOAD]] : (tensor<4x8x32xf8E5M2>) -> tensor<4x8x4x8xf8E5M2>
// CHECK-NEXT: %[[PACKED:.*]] = fp8.pack %[[HEADS]], %[[SCALE]]
// CHECK: fp8.dot_general %{{.*}}, %[[PACKED]], contracting_dims = [0, 1] x [0, 1]
// CHECK: fp8.dot_general %{{.*}}, %[[P]], contracting_dims = [0, 1] x [0, 1]
module @jit_step {
  func.func public @main(%arg0: tensor<32x4xf32> {fp8.kind = "parameter", fp8.path = "p['head']", fp8.role = "state"}, %arg1: tensor<16x32xf32> {fp8.kind = "parameter", fp8.path = "p['w0']", fp8.role = "state"}, %arg2: tensor<32x32xf32> {fp8.kind = "parameter", fp8.path = "p['w1']", fp8.role = "state"}, %arg3: tensor<4x8x32xf32> {fp8.kind = "parameter", fp8.path = "p['w2']", fp8.role = "state"}, %arg4: tensor<4x8x16xf32> {fp8.path = "x", fp8.role = "batch"}, %arg5: tensor<4x8x4xf32> {fp8.path = "y", fp8.role = "batch"}) -> (tensor<32x4xf32> {fp8.path = "result[0]['head']", fp8.state = "p['head']"}, tensor<16x32xf32> {fp8.path = "result[0]['w0']", fp8.state = "p['w0']"}, tensor<32x32xf32> {fp8.path = "result[0]['w1']", fp8.state = "p['w1']"}, tensor<4x8x32xf32> {fp8.path = "result[0]['w2']", fp8.state = "p['w2']"}, tensor<f32> {fp8.kind = "loss", fp8.path = "result[1]"}) {
    %cst = stablehlo.constant dense<1.000000e-01> : tensor<4x8x32xf32>
    %cst_0 = stablehlo.constant dense<1.000000e-01> : tensor<32x32xf32>
    %cst_1 = stablehlo.constant dense<1.000000e-01> : tensor<16x32xf32>
    %cst_2 = stablehlo.constant dense<1.000000e-01> : tensor<32x4xf32>
    %cst_3 = stablehlo.constant dense<7.812500e-03> : tensor<4x8x4xf32>
    %cst_4 = stablehlo.constant dense<2.000000e+00> : tensor<4x8x4xf32>
    %cst_5 = stablehlo.constant dense<1.000000e+00> : tensor<4x8x32xf32>
    %cst_6 = stablehlo.constant dense<1.280000e+02> : tensor<f32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.dot_general %arg4, %arg1, contracting_dims = [2] x [0] : (tensor<4x8x16xf32>, tensor<16x32xf32>) -> tensor<4x8x32xf32>
    %1 = stablehlo.tanh %0 : tensor<4x8x32xf32>
    %2 = stablehlo.subtract %cst_5, %1 : tensor<4x8x32xf32>
    %3 = stablehlo.dot_general %1, %arg2, contracting_dims = [2] x [0] : (tensor<4x8x32xf32>, tensor<32x32xf32>) -> tensor<4x8x32xf32>
    %4 = stablehlo.reshape %1 : (tensor<4x8x32xf32>) -> tensor<4x8x4x8xf32>
    %5 = stablehlo.dot_general %4, %arg3, contracting_dims = [2, 3] x [0, 1] : (tensor<4x8x4x8xf32>, tensor<4x8x32xf32>) -> tensor<4x8x32xf32>
    %6 = stablehlo.tanh %3 : tensor<4x8x32xf32>
    %7 = stablehlo.subtract %cst_5, %6 : tensor<4x8x32xf32>
    %8 = stablehlo.tanh %5 : tensor<4x8x32xf32>
    %9 = stablehlo.subtract %cst_5, %8 : tensor<4x8x32xf32>
    %10 = stablehlo.add %6, %8 : tensor<4x8x32xf32>
    %11 = stablehlo.dot_general %10, %arg0, contracting_dims = [2] x [0] : (tensor<4x8x32xf32>, tensor<32x4xf32>) -> tensor<4x8x4xf32>
    %12 = stablehlo.subtract %11, %arg5 : tensor<4x8x4xf32>
    %13 = stablehlo.multiply %12, %12 : tensor<4x8x4xf32>
    %14 = stablehlo.multiply %12, %cst_4 : tensor<4x8x4xf32>
    %15 = stablehlo.reduce(%13 init: %cst_7) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<4x8x4xf32>, tensor<f32>) -> tensor<f32>
    %16 = stablehlo.divide %15, %cst_6 : tensor<f32>
    %17 = stablehlo.multiply %14, %cst_3 : tensor<4x8x4xf32>
    %18 = stablehlo.dot_general %17, %10, contracting_dims = [0, 1] x [0, 1] : (tensor<4x8x4xf32>, tensor<4x8x32xf32>) -> tensor<4x32xf32>
    %19 = stablehlo.transpose %18, dims = [1, 0] : (tensor<4x32xf32>) -> tensor<32x4xf32>
    %20 = stablehlo.dot_general %17, %arg0, contracting_dims = [2] x [1] : (tensor<4x8x4xf32>, tensor<32x4xf32>) -> tensor<4x8x32xf32>
    %21 = stablehlo.multiply %20, %9 : tensor<4x8x32xf32>
    %22 = stablehlo.multiply %21, %8 : tensor<4x8x32xf32>
    %23 = stablehlo.add %21, %22 : tensor<4x8x32xf32>
    %24 = stablehlo.multiply %20, %7 : tensor<4x8x32xf32>
    %25 = stablehlo.multiply %24, %6 : tensor<4x8x32xf32>
    %26 = stablehlo.add %24, %25 : tensor<4x8x32xf32>
    %27 = stablehlo.dot_general %23, %4, contracting_dims = [0, 1] x [0, 1] : (tensor<4x8x32xf32>, tensor<4x8x4x8xf32>) -> tensor<32x4x8xf32>
    %28 = stablehlo.transpose %27, dims = [1, 2, 0] : (tensor<32x4x8xf32>) -> tensor<4x8x32xf32>
    %29 = stablehlo.dot_general %23, %arg3, contracting_dims = [2] x [2] : (tensor<4x8x32xf32>, tensor<4x8x32xf32>) -> tensor<4x8x4x8xf32>
    %30 = stablehlo.reshape %29 : (tensor<4x8x4x8xf32>) -> tensor<4x8x32xf32>
    %31 = stablehlo.dot_general %26, %1, contracting_dims = [0, 1] x [0, 1] : (tensor<4x8x32xf32>, tensor<4x8x32xf32>) -> tensor<32x32xf32>
    %32 = stablehlo.transpose %31, dims = [1, 0] : (tensor<32x32xf32>) -> tensor<32x32xf32>
    %33 = stablehlo.dot_general %26, %arg2, contracting_dims = [2] x [1] : (tensor<4x8x32xf32>, tensor<32x32xf32>) -> tensor<4x8x32xf32>
    %34 = stablehlo.add %30, %33 : tensor<4x8x32xf32>
    %35 = stablehlo.multiply %34, %2 : tensor<4x8x32xf32>
    %36 = stablehlo.multiply %35, %1 : tensor<4x8x32xf32>
    %37 = stablehlo.add %35, %36 : tensor<4x8x32xf32>
    %38 = stablehlo.dot_general %37, %arg4, contracting_dims = [0, 1] x [0, 1] : (tensor<4x8x32xf32>, tensor<4x8x16xf32>) -> tensor<32x16xf32>
    %39 = stablehlo.transpose %38, dims = [1, 0] : (tensor<32x16xf32>) -> tensor<16x32xf32>
    %40 = stablehlo.multiply %19, %cst_2 : tensor<32x4xf32>
    %41 = stablehlo.subtract %arg0, %40 : tensor<32x4xf32>
    %42 = stablehlo.multiply %39, %cst_1 : tensor<16x32xf32>
    %43 = stablehlo.subtract %arg1, %42 : tensor<16x32xf32>
    %44 = stablehlo.multiply %32, %cst_0 : tensor<32x32xf32>
    %45 = stablehlo.subtract %arg2, %44 : tensor<32x32xf32>
    %46 = stablehlo.multiply %28, %cst : tensor<4x8x32xf32>
    %47 = stablehlo.subtract %arg3, %46 : tensor<4x8x32xf32>
    return %41, %43, %45, %47, %16 : tensor<32x4xf32>, tensor<16x32xf32>, tensor<32x32xf32>, tensor<4x8x32xf32>, tensor<f32>
  }
}
