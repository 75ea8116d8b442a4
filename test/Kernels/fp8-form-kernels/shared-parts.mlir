// RUN: fp8-opt %s --fp8-form-kernels --fp8-bufferize-kernels | FileCheck %s

// Two concatenations begin with the same part; each has its own copy of it.

#id = affine_map<(d0) -> (d0)>
#first = affine_map<(d0) -> (d0 mod 16)>
#second = affine_map<(d0) -> (d0 + 8)>

// CHECK-LABEL: fp8.schedule @main
// CHECK: fp8.kernel @kernel_0(read %[[A:.*]]: memref<8xf32>, read %[[C:.*]]: memref<8xf32>, update %[[Y:.*]]: memref<16xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[A]] : memref<8xf32>) outs(%[[Y]] : memref<16xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[C]] : memref<8xf32>) outs(%[[Y]] : memref<16xf32>)
// CHECK: fp8.kernel @kernel_1(read %[[A:.*]]: memref<8xf32>, read %[[B:.*]]: memref<8xf32>, update %[[X:.*]]: memref<16xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[A]] : memref<8xf32>) outs(%[[X]] : memref<16xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[B]] : memref<8xf32>) outs(%[[X]] : memref<16xf32>)
func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
  %empty = tensor.empty() : tensor<16xf32>
  %first = linalg.generic {indexing_maps = [#id, #first], iterator_types = ["parallel"]} ins(%a : tensor<8xf32>) outs(%empty : tensor<16xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<16xf32>
  %x = linalg.generic {indexing_maps = [#id, #second], iterator_types = ["parallel"]} ins(%b : tensor<8xf32>) outs(%first : tensor<16xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<16xf32>
  %y = linalg.generic {indexing_maps = [#id, #second], iterator_types = ["parallel"]} ins(%c : tensor<8xf32>) outs(%first : tensor<16xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<16xf32>
  return %x, %y : tensor<16xf32>, tensor<16xf32>
}
