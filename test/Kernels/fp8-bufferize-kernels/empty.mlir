// RUN: fp8-opt %s --fp8-bufferize-kernels | FileCheck %s

// A tensor without contents that is not only updated has a buffer, too.
// CHECK-LABEL: fp8.schedule @returned(%arg0: memref<4xf32> {fp8.output})
// CHECK: %[[EMPTY:.*]] = memref.alloc() : memref<4xf32>
// CHECK: fp8.launch {{.*}}(read %[[EMPTY]], write %arg0)
func.func @returned() -> tensor<4xf32> {
  %0 = tensor.empty() : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// The buffer is where it is read.
// CHECK-LABEL: fp8.schedule @yielded
// CHECK: scf.for
// CHECK: %[[EMPTY:.*]] = memref.alloc() : memref<4xf32>
// CHECK: fp8.launch {{.*}}(read %[[EMPTY]], write %{{.*}})
func.func @yielded(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 4 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> tensor<4xf32> {
    %1 = tensor.empty() : tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: fp8.schedule @viewed
// CHECK: %[[EMPTY:.*]] = memref.alloc() : memref<4x2xf32>
// CHECK: memref.collapse_shape %[[EMPTY]]
func.func @viewed() -> tensor<8xf32> {
  %0 = tensor.empty() : tensor<4x2xf32>
  %1 = tensor.collapse_shape %0 [[0, 1]] : tensor<4x2xf32> into tensor<8xf32>
  return %1 : tensor<8xf32>
}
