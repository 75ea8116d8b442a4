// RUN: fp8-opt %s --fp8-kernels | FileCheck %s
// RUN: fp8-opt %s --fp8-kernels --fp8-target=cpu=x86-64-v4 --fp8-codegen -o %t

#id = affine_map<(i, j) -> (i, j)>
#lhs = affine_map<(i, j, k) -> (i, k)>
#rhs = affine_map<(i, j, k) -> (k, j)>
#out = affine_map<(i, j, k) -> (i, j)>

// Nothing is divided into tiles of nothing; a dot over no elements is 0.
// CHECK-DAG: fp8.kernel @kernel_{{[0-9a-f]+}}({{.*}}) domain = [8] {
// CHECK-DAG: fp8.kernel @kernel_{{[0-9a-f]+}}({{.*}}) domain = [4, 4] {
func.func @main(%a: tensor<0x8xf32>, %l: tensor<4x0xf32>, %r: tensor<0x4xf32>)
    -> (tensor<0x8xf32>, tensor<4x4xf32>, tensor<0x8xf32>) {
  %e = tensor.empty() : tensor<0x8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<0x8xf32>) outs(%e : tensor<0x8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %n = arith.negf %x : f32
    linalg.yield %n : f32
  } -> tensor<0x8xf32>
  %zero = arith.constant 0.0 : f32
  %d = tensor.empty() : tensor<4x4xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%d : tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%l, %r : tensor<4x0xf32>, tensor<0x4xf32>) outs(%fill : tensor<4x4xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %m = arith.mulf %x, %y : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x4xf32>
  return %0, %1, %a : tensor<0x8xf32>, tensor<4x4xf32>, tensor<0x8xf32>
}
