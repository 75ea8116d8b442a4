// RUN: fp8-opt %s --fp8-deduplicate-kernels | FileCheck %s

// Kernels that differ in their names alone are one, called by its hash; a
// different constant is another kernel.
// CHECK: fp8.launch @[[A:kernel_[0-9a-f]+]](update
// CHECK: fp8.launch @[[A]](update
// CHECK: fp8.launch @[[C:kernel_[0-9a-f]+]](update
// CHECK: fp8.kernel @[[A]](
// CHECK-NOT: @b
// CHECK: fp8.kernel @[[C]](
func.func @main(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %0 = fp8.launch @a(update %x) : (tensor<f32>) -> tensor<f32>
  %1 = fp8.launch @b(update %x) : (tensor<f32>) -> tensor<f32>
  %2 = fp8.launch @c(update %x) : (tensor<f32>) -> tensor<f32>
  return %0, %1, %2 : tensor<f32>, tensor<f32>, tensor<f32>
}
fp8.kernel @a(update %x: tensor<f32>) -> tensor<f32> domain = [] {
  %one = arith.constant 1.0 : f32
  %0 = linalg.generic {indexing_maps = [affine_map<() -> ()>], iterator_types = []} outs(%x : tensor<f32>) {
  ^bb0(%a: f32):
    %n = arith.addf %a, %one : f32
    linalg.yield %n : f32
  } -> tensor<f32>
  fp8.return %0 : tensor<f32>
}
fp8.kernel @b(update %x: tensor<f32>) -> tensor<f32> domain = [] {
  %one = arith.constant 1.0 : f32
  %0 = linalg.generic {indexing_maps = [affine_map<() -> ()>], iterator_types = []} outs(%x : tensor<f32>) {
  ^bb0(%a: f32):
    %n = arith.addf %a, %one : f32
    linalg.yield %n : f32
  } -> tensor<f32>
  fp8.return %0 : tensor<f32>
}
fp8.kernel @c(update %x: tensor<f32>) -> tensor<f32> domain = [] {
  %one = arith.constant 2.0 : f32
  %0 = linalg.generic {indexing_maps = [affine_map<() -> ()>], iterator_types = []} outs(%x : tensor<f32>) {
  ^bb0(%a: f32):
    %n = arith.addf %a, %one : f32
    linalg.yield %n : f32
  } -> tensor<f32>
  fp8.return %0 : tensor<f32>
}
