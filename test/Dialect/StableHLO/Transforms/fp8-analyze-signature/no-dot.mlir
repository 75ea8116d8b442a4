// RUN: fp8-opt %s --fp8-analyze-signature | FileCheck %s --check-prefix=ALONE
// RUN: fp8-opt %s --fp8-analyze-signature="states=w=result[0]" | FileCheck %s

// The gradient of a weight that nothing multiplies looks like any sum: data flow
// cannot tell that the function trains. The user can.
// ALONE: @main(%{{.*}}: tensor<8xf32> {fp8.path = "w", fp8.role = "frozen"}
// CHECK: @main(%{{.*}}: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"}
// CHECK-SAME: tensor<f32> {{.*}}fp8.kind = "loss"
func.func public @main(%w: tensor<8xf32> loc("w"), %x: tensor<8xf32> loc("x")) -> (tensor<8xf32> {jax.result_info = "result[0]"}, tensor<f32> {jax.result_info = "result[1]"}) {
  %rate = stablehlo.constant dense<2.0e-01> : tensor<8xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.subtract %w, %x : tensor<8xf32>
  %1 = stablehlo.multiply %0, %0 : tensor<8xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %3 = stablehlo.multiply %0, %rate : tensor<8xf32>
  %4 = stablehlo.subtract %w, %3 : tensor<8xf32>
  return %4, %2 : tensor<8xf32>, tensor<f32>
}
