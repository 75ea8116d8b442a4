// Where the assembler spills, or serializes wgmma, it is told that one block will
// do, then to leave loops as they are; what spills least is taken. (The assembler is a script.)
// RUN: rm -rf %t && env FP8_PTXAS=%S/Inputs/ptxas fp8-opt %s --fp8-emit-gpu-code="image=cubin directory=%t" -o /dev/null
// RUN: FileCheck %s --check-prefix=TABLE < %t/resources.csv
// RUN: FileCheck %s < %t/loop.cubin

// A percent sign in TMPDIR is a character like others, and no temporary file stays.
// RUN: rm -rf %t.%%dir && mkdir %t.%%dir && env TMPDIR=%t.%%dir FP8_PTXAS=%S/Inputs/ptxas fp8-opt %s --fp8-emit-gpu-code="image=cubin directory=%t" -o /dev/null
// RUN: ls -A %t.%%dir | count 0

// TABLE: loop,1,128,105,0,
// TABLE: never,1,128,105,4,
// TABLE: wgmma,1,128,105,0,
// CHECK: .reqntid 128
// CHECK-NEXT: .pragma "nounroll";
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_89", features = "+ptx84">, gpu.container_module} {
  gpu.module @loop attributes {fp8.gpu_launch = #fp8.gpu_launch<blocks = 1, threads = 128, shared = 0, dynamic_shared = 0, scratch = 0>} {
    llvm.func @loop(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
      llvm.return
    }
  }
  gpu.module @never attributes {fp8.gpu_launch = #fp8.gpu_launch<blocks = 1, threads = 128, shared = 0, dynamic_shared = 0, scratch = 0>} {
    llvm.func @never(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
      llvm.return
    }
  }
  gpu.module @wgmma attributes {fp8.gpu_launch = #fp8.gpu_launch<blocks = 1, threads = 128, shared = 0, dynamic_shared = 0, scratch = 0>} {
    llvm.func @wgmma(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
      llvm.return
    }
  }
}
