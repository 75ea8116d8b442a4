// RUN: fp8-opt %s --fp8-verify-import | FileCheck %s

// CHECK: func.func public @main
func.func public @main(%n: tensor<i32> {fp8.path = "n", fp8.role = "state", fp8.kind = "step"}, %x: tensor<4xf32> {fp8.path = "x", fp8.role = "batch"}) -> (tensor<i32> {fp8.path = "result[0]", fp8.state = "n"}, tensor<4xf32> {fp8.path = "result[1]", fp8.kind = "output"}) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.add %n, %one : tensor<i32>
  %1 = chlo.square %x : tensor<4xf32> -> tensor<4xf32>
  return %0, %1 : tensor<i32>, tensor<4xf32>
}
