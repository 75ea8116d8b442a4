// RUN: fp8-opt %s --fp8-kernels --fp8-target=cpu=x86-64-v3 --fp8-plan-tiles --fp8-lower-kernels | FileCheck %s

// Loop nests read and write booleans as bytes.
// CHECK: func.func private @kernel_
// CHECK: %[[BYTE:.*]] = memref.load %{{.*}} : memref<3xi8>
// CHECK: %[[BIT:.*]] = arith.trunci %[[BYTE]] : i8 to i1
// CHECK: %[[BACK:.*]] = arith.extui %[[BIT]] : i1 to i8
// CHECK: memref.store %[[BACK]], %{{.*}} : memref<8xi8>
func.func @main(%x: tensor<8xi1>, %update: tensor<3xi1>) -> tensor<8xi1> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %new = scf.for %i = %c0 to %c3 step %c1 iter_args(%carried = %x) -> (tensor<8xi1>) {
    %bit = tensor.extract %update[%i] : tensor<3xi1>
    %next = tensor.insert %bit into %carried[%i] : tensor<8xi1>
    scf.yield %next : tensor<8xi1>
  } {fp8.irregular}
  return %new : tensor<8xi1>
}
