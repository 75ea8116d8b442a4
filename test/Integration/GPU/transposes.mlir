// Mistakes in a kernel that transposes a payload are found in the emulator.
// RUN: rm -rf %t && mkdir %t
// RUN: fp8-opt --fp8-import=kind=function --fp8-quantize=recipe=none --fp8-structure --fp8-kernels=layouts=along-k %s -o %t/4.mlir
// RUN: fp8-opt --fp8-target=nvptx=sm_89 --fp8-gpu-codegen %t/4.mlir -o %t/5.mlir
// RUN: fp8-opt --fp8-to-nvvm %t/5.mlir -o %t/6.mlir
// RUN: fp8-check-gpu-kernels --compiled=%t/6.mlir %t/4.mlir | FileCheck %s --check-prefix=GOOD
// GOOD: 3 kernels, 0 failed

// No barrier between the nest that computes the payload and the transpose.
// RUN: sed "0,/gpu.barrier/{/gpu.barrier/d}" %t/5.mlir | fp8-opt --fp8-to-nvvm -o %t/barrier.mlir
// RUN: not fp8-check-gpu-kernels --compiled=%t/barrier.mlir %t/4.mlir | FileCheck %s --check-prefix=BARRIER
// BARRIER: FAIL {{.*}} {{which nothing has been written to|with no barrier between}}
// BARRIER: 3 kernels, 1 failed

// The rows of a word are in another order.
// RUN: sed "s/\[0, 4, 1, 5\]/[4, 0, 5, 1]/" %t/5.mlir | fp8-opt --fp8-to-nvvm -o %t/order.mlir
// RUN: not fp8-check-gpu-kernels --compiled=%t/order.mlir %t/4.mlir | FileCheck %s --check-prefix=ORDER
// ORDER: FAIL {{.*}} argument 2 differs
// ORDER: 3 kernels, 1 failed

func.func @main(%x: tensor<32x48xf32>, %p: tensor<16x32xf8E4M3FN>, %q: tensor<16x48xf8E4M3FN>) -> (tensor<16x48xf32>, tensor<16x32xf32>) {
  %f = stablehlo.convert %x : (tensor<32x48xf32>) -> tensor<32x48xf8E4M3FN>
  %0 = stablehlo.dot_general %p, %f, contracting_dims = [1] x [0] : (tensor<16x32xf8E4M3FN>, tensor<32x48xf8E4M3FN>) -> tensor<16x48xf32>
  %1 = stablehlo.dot_general %q, %f, contracting_dims = [1] x [1] : (tensor<16x48xf8E4M3FN>, tensor<32x48xf8E4M3FN>) -> tensor<16x32xf32>
  return %0, %1 : tensor<16x48xf32>, tensor<16x32xf32>
}
