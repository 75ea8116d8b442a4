// RUN: fp8-opt %s --fp8-host-to-llvm=cpu=x86-64-v3 | FileCheck %s

// What fp8-gpu-schedule leaves of a step besides its kernels is code of the host.

// CHECK: module attributes {fp8.target = #fp8.cpu_target<{{.*}}x86-64-v3
// CHECK: llvm.func @fp8_entry(%[[STEP:.*]]: !llvm.ptr)
// CHECK: llvm.cond_br
// CHECK: llvm.call @fp8_launch(%[[STEP]]
// CHECK-NOT: scf.for
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
  llvm.func @fp8_launch(!llvm.ptr, i64, !llvm.ptr, i64, !llvm.ptr, !llvm.ptr, i64)
  llvm.mlir.global external constant @k_gpu() : i8
  func.func @fp8_entry(%step: !llvm.ptr) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %zero = llvm.mlir.constant(0 : i64) : i64
    %null = llvm.mlir.zero : !llvm.ptr
    %k = llvm.mlir.addressof @k_gpu : !llvm.ptr
    scf.for %i = %c0 to %c2 step %c1 {
      llvm.call @fp8_launch(%step, %zero, %k, %zero, %null, %null, %zero) : (!llvm.ptr, i64, !llvm.ptr, i64, !llvm.ptr, !llvm.ptr, i64) -> ()
    }
    return
  }
}
