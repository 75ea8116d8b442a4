// RUN: fp8-opt %s --fp8-lower-schedule | FileCheck %s

// A kernel that was compiled before is launched as it is declared.
// CHECK-NOT: llvm.func @kernel_0_task
// CHECK-LABEL: @fp8_entry
// CHECK-DAG: %[[KERNEL:.*]] = llvm.mlir.addressof @kernel_0 : !llvm.ptr
// CHECK-DAG: %[[TASKS:.*]] = llvm.mlir.constant(4 : i64)
// CHECK: llvm.call @fp8_launch(%{{[^,]+}}, %{{[^,]+}}, %[[KERNEL]], %[[TASKS]],
// CHECK-NOT: llvm.func @kernel_0_task
llvm.func @kernel_0(i64, !llvm.ptr, !llvm.ptr) attributes {fp8.tasks = 4 : i64, fp8.scratch_bytes = 0 : i64}
fp8.schedule @main(%arena: memref<64xi8>, %a: memref<64xi8>) arena_bytes = 64 {
  fp8.launch @kernel_0(read %a, write %arena) number = 0 : (memref<64xi8>, memref<64xi8>) -> ()
  fp8.return
}
