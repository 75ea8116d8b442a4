// What a GPU does not support is the step's mistake, not the compiler's.
// RUN: not fp8-run %s --recipe none --emit-package %t --target nvptx:sm_89 --gpu-image bitcode 2>&1 | FileCheck %s

// CHECK: error: {{.*}} has no instruction on a GPU in f64: supported are f32
// CHECK-NOT: internal error

func.func public @main(%w: tensor<8xf64> loc("w"), %x: tensor<8xf64> loc("x")) -> (tensor<8xf64> {jax.result_info = "w"}, tensor<f64> {jax.result_info = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f64>
  %e = stablehlo.exponential %w : tensor<8xf64>
  %y = stablehlo.multiply %e, %x : tensor<8xf64>
  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf64>, tensor<f64>) -> tensor<f64>
  %next = stablehlo.subtract %w, %y : tensor<8xf64>
  return %next, %loss : tensor<8xf64>, tensor<f64>
}
