// RUN: fp8-opt %s --fp8-gpu-schedule=nodes=10 | FileCheck %s

// One pipeline from kernels in NVVM to the calls that make the graph: a launch
// with two sets has a kernel for them, the GPU counts the long loop, and every
// call names the nodes that it follows.

#launch = #fp8.gpu_launch<blocks = 2, threads = 32, shared = 0, dynamic_shared = 0, scratch = 0>

module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {

// CHECK-DAG: gpu.module @k_of_sets
// CHECK-DAG: gpu.module @k_in_1_loop
// CHECK-LABEL: func.func @fp8_entry(%{{.*}}: !llvm.ptr) {
// CHECK: llvm.call @fp8_order
// CHECK: llvm.call @fp8_launch_sets
// CHECK: llvm.call @fp8_loop
// CHECK: scf.for
// CHECK: llvm.call @fp8_order
// CHECK: llvm.call @fp8_launch_moving
// CHECK: llvm.call @fp8_end
// CHECK: return
gpu.module @k attributes {fp8.gpu_launch = #launch} {
  llvm.func @k(%x: !llvm.ptr, %y: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}
fp8.schedule @main(%arena: memref<64xi8>, %stack: memref<40x64xi8>, %x: memref<64xi8>, %y: memref<64xi8>) arena_bytes = 64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c40 = arith.constant 40 : index
  %c64 = arith.constant 64 : index
  fp8.launch @k(read %arena, write %x)(read %arena, write %y) number = 0 : (memref<64xi8>, memref<64xi8>) -> ()
  scf.for %i = %c0 to %c40 step %c1 {
    %offset = arith.muli %i, %c64 : index
    %layer = fp8.subbuffer %stack[%offset] : memref<40x64xi8> to memref<64xi8>
    fp8.launch @k(read %x, write %layer) number = 1 : (memref<64xi8>, memref<64xi8>) -> ()
  }
  fp8.return
}
}
