// RUN: fp8-opt %s --fp8-kernels | FileCheck %s

// An array whose rows are added to itself: the update has a copy of its own.
// CHECK-LABEL: fp8.schedule @main
// CHECK-SAME: %[[X:[^:]*]]: memref<8xf32>, %[[I:[^:]*]]: memref<8xi32>, %[[R:[^:]*]]: memref<8xf32>
// CHECK: fp8.launch @kernel_{{[0-9a-f]+}}(read %[[X]], write %[[R]]) label = "copy{{.*}}"
// CHECK: fp8.launch @kernel_{{[0-9a-f]+}}(read %[[I]], read %[[X]], update %[[R]])
// CHECK: fp8.kernel @kernel_
func.func @main(%x: tensor<8xf32>, %indices: tensor<8xi32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %sum = scf.for %i = %c0 to %c8 step %c1 iter_args(%carried = %x) -> (tensor<8xf32>) {
    %index = tensor.extract %indices[%i] : tensor<8xi32>
    %at = arith.index_cast %index : i32 to index
    %old = tensor.extract %carried[%at] : tensor<8xf32>
    %update = tensor.extract %x[%i] : tensor<8xf32>
    %new = arith.addf %old, %update : f32
    %next = tensor.insert %new into %carried[%at] : tensor<8xf32>
    scf.yield %next : tensor<8xf32>
  } {fp8.irregular}
  return %sum : tensor<8xf32>
}
