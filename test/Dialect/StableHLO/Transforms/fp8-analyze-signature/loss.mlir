// RUN: fp8-opt %s --fp8-analyze-signature --split-input-file --verify-diagnostics | FileCheck %s
// RUN: fp8-opt %s --fp8-analyze-signature="loss=result['mse']" --split-input-file | FileCheck %s --check-prefix=SET

// Both scalars differentiate to w and neither contains the other: the name
// decides, and without one it is an error.
// CHECK: {fp8.kind = "metric", fp8.path = "result['mse']"}
// CHECK-SAME: {fp8.kind = "loss", fp8.path = "result['loss']"}
// SET: {fp8.kind = "loss", fp8.path = "result['mse']"}
// SET-SAME: {fp8.kind = "metric", fp8.path = "result['loss']"}
func.func public @main(%w: tensor<4xf32> loc("w"), %x: tensor<8x4xf32> loc("x"), %y: tensor<8xf32> loc("y")) -> (tensor<4xf32> {jax.result_info = "result['w']"}, tensor<f32> {jax.result_info = "result['mse']"}, tensor<f32> {jax.result_info = "result['loss']"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %d = stablehlo.subtract %z, %y : tensor<8xf32>
  %s = stablehlo.multiply %d, %d : tensor<8xf32>
  %mse = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %a = stablehlo.multiply %d, %y : tensor<8xf32>
  %loss = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %d, %x, contracting_dims = [0] x [0] : (tensor<8xf32>, tensor<8x4xf32>) -> tensor<4xf32>
  %0 = stablehlo.subtract %w, %g : tensor<4xf32>
  return %0, %mse, %loss : tensor<4xf32>, tensor<f32>, tensor<f32>
}
