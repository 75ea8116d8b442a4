// RUN: fp8-opt %s --fp8-kernels --fp8-target=cpu=x86-64-v4 --fp8-codegen | FileCheck %s

// A dot of integers (or into f64) has no packed panels; it is a reduction like
// any other, and correct.
// CHECK: func.func private @kernel_
// CHECK: arith.muli
// CHECK: arith.addi
func.func @main(%a: tensor<32x8xi32>, %b: tensor<8x16xi32>) -> tensor<32x16xi32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<32x16xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<32x16xi32>) -> tensor<32x16xi32>
  %0 = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<32x8xi32>, tensor<8x16xi32>) outs(%f : tensor<32x16xi32>) {
  ^bb0(%p: i32, %q: i32, %r: i32):
    %1 = arith.muli %p, %q : i32
    %2 = arith.addi %r, %1 : i32
    linalg.yield %2 : i32
  } -> tensor<32x16xi32>
  return %0 : tensor<32x16xi32>
}
