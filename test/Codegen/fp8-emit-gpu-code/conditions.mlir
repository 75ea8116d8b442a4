// The kernels that set conditions call what the assembler and the driver know.
// REQUIRES: ptxas
// RUN: rm -rf %t && fp8-opt %s --fp8-plan-graph=nodes=2 --fp8-emit-gpu-code="image=cubin directory=%t" -o /dev/null
// RUN: cat %t/resources.csv | FileCheck %s --check-prefix=CUBIN
// RUN: fp8-opt %s --fp8-plan-graph=nodes=2 --fp8-emit-gpu-code="image=ptx directory=%t" -o /dev/null
// RUN: FileCheck %s < %t/fp8_gpu_test.ptx

// CUBIN-DAG: fp8_gpu_keep,1,1,
// CUBIN-DAG: fp8_gpu_test,1,1,
// CUBIN-DAG: fp8_gpu_count,1,1,

// CHECK: .extern .func cudaGraphSetConditional
// CHECK-NEXT: (
// CHECK-NEXT: .param .b64
// CHECK-NEXT: .param .b32
// CHECK: .visible .entry fp8_gpu_test(
// CHECK: call.uni {{.*}}cudaGraphSetConditional

#launch = #fp8.gpu_launch<blocks = 1, threads = 32, shared = 0, dynamic_shared = 0, scratch = 0>

module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">, gpu.container_module} {
gpu.module @k attributes {fp8.gpu_launch = #launch} {
  llvm.func @k(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}
fp8.schedule @main(%arena: memref<64xi8>, %x: memref<64xi8>, %flag: memref<i8>) arena_bytes = 64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %byte = memref.load %flag[] : memref<i8>
    %go = arith.trunci %byte : i8 to i1
    scf.if %go {
      fp8.launch @k(update %x) number = 0 : (memref<64xi8>) -> ()
    }
  }
  fp8.return
}
}
