// RUN: fp8-opt %s --fp8-deduplicate-kernels | FileCheck %s

// Kernels that differ in their names alone are one; a different constant is
// another kernel.
// CHECK: call @a
// CHECK: call @a
// CHECK: call @c
// CHECK: func.func private @a
// CHECK-NOT: @b
// CHECK: func.func private @c
func.func @main(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %0 = call @a(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @b(%x) : (tensor<f32>) -> tensor<f32>
  %2 = call @c(%x) : (tensor<f32>) -> tensor<f32>
  return %0, %1, %2 : tensor<f32>, tensor<f32>, tensor<f32>
}
func.func private @a(%x: tensor<f32>) -> tensor<f32> attributes {fp8.domain = array<i64>} {
  %one = arith.constant 1.0 : f32
  %0 = linalg.generic {indexing_maps = [affine_map<() -> ()>], iterator_types = []} outs(%x : tensor<f32>) {
  ^bb0(%a: f32):
    %n = arith.addf %a, %one : f32
    linalg.yield %n : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @b(%x: tensor<f32>) -> tensor<f32> attributes {fp8.domain = array<i64>} {
  %one = arith.constant 1.0 : f32
  %0 = linalg.generic {indexing_maps = [affine_map<() -> ()>], iterator_types = []} outs(%x : tensor<f32>) {
  ^bb0(%a: f32):
    %n = arith.addf %a, %one : f32
    linalg.yield %n : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @c(%x: tensor<f32>) -> tensor<f32> attributes {fp8.domain = array<i64>} {
  %one = arith.constant 2.0 : f32
  %0 = linalg.generic {indexing_maps = [affine_map<() -> ()>], iterator_types = []} outs(%x : tensor<f32>) {
  ^bb0(%a: f32):
    %n = arith.addf %a, %one : f32
    linalg.yield %n : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}
