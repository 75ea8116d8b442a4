// A wgmma that the assembler does not let overlap with the next one is an error:
// here a register of its sums is used in between, with no wait.
// REQUIRES: ptxas
// RUN: rm -rf %t && fp8-opt %s --split-input-file --verify-diagnostics --convert-nvvm-to-llvm --fp8-emit-gpu-code="image=cubin directory=%t" -o /dev/null
// RUN: FileCheck %s < %t/resources.csv

module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx86">, gpu.container_module} {
  // expected-error@below {{wgmma.mma_async instructions are serialized}}
  gpu.module @serialized attributes {fp8.gpu_launch = #fp8.gpu_launch<blocks = 1, threads = 128, shared = 0, dynamic_shared = 0, scratch = 0>} {
    llvm.func @serialized(%c: !llvm.ptr<1>, %d: i64, %e: i64, %n: i32) attributes {gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
      %z = llvm.mlir.constant(0.0 : f32) : f32
      %u = llvm.mlir.undef : !llvm.struct<(f32, f32, f32, f32)>
      %u0 = llvm.insertvalue %z, %u[0] : !llvm.struct<(f32, f32, f32, f32)>
      %u1 = llvm.insertvalue %z, %u0[1] : !llvm.struct<(f32, f32, f32, f32)>
      %u2 = llvm.insertvalue %z, %u1[2] : !llvm.struct<(f32, f32, f32, f32)>
      %u3 = llvm.insertvalue %z, %u2[3] : !llvm.struct<(f32, f32, f32, f32)>
      %zero = llvm.mlir.constant(0 : i32) : i32
      %one = llvm.mlir.constant(1 : i32) : i32
      llvm.br ^loop(%zero, %u3 : i32, !llvm.struct<(f32, f32, f32, f32)>)
    ^loop(%i: i32, %acc: !llvm.struct<(f32, f32, f32, f32)>):
      nvvm.wgmma.fence.aligned
      %x = nvvm.wgmma.mma_async %d, %e, %acc, #nvvm.shape<m = 64, n = 8, k = 32>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<e4m3>, #nvvm.wgmma_scale_in<one>, <row>], B [<e5m2>, #nvvm.wgmma_scale_in<one>, <col>] : !llvm.struct<(f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32)>
      %q = llvm.extractvalue %x[0] : !llvm.struct<(f32, f32, f32, f32)>
      %q2 = llvm.fadd %q, %q : f32
      %x2 = llvm.insertvalue %q2, %x[0] : !llvm.struct<(f32, f32, f32, f32)>
      %y = nvvm.wgmma.mma_async %d, %e, %x2, #nvvm.shape<m = 64, n = 8, k = 32>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<e4m3>, #nvvm.wgmma_scale_in<one>, <row>], B [<e5m2>, #nvvm.wgmma_scale_in<one>, <col>] : !llvm.struct<(f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32)>
      nvvm.wgmma.commit.group.sync.aligned
      nvvm.wgmma.wait.group.sync.aligned 0
      %j = llvm.add %i, %one : i32
      %more = llvm.icmp "ult" %j, %n : i32
      llvm.cond_br %more, ^loop(%j, %y : i32, !llvm.struct<(f32, f32, f32, f32)>), ^end
    ^end:
      %v = llvm.extractvalue %y[0] : !llvm.struct<(f32, f32, f32, f32)>
      %w = llvm.extractvalue %y[3] : !llvm.struct<(f32, f32, f32, f32)>
      llvm.store %v, %c : f32, !llvm.ptr<1>
      %p = llvm.getelementptr %c[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
      llvm.store %w, %p : f32, !llvm.ptr<1>
      llvm.return
    }
  }
}

// -----

// CHECK: overlapping,1,128,{{[0-9]+}},0,
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx86">, gpu.container_module} {
  gpu.module @overlapping attributes {fp8.gpu_launch = #fp8.gpu_launch<blocks = 1, threads = 128, shared = 0, dynamic_shared = 0, scratch = 0>} {
    llvm.func @overlapping(%c: !llvm.ptr<1>, %d: i64, %e: i64, %n: i32) attributes {gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
      %z = llvm.mlir.constant(0.0 : f32) : f32
      %u = llvm.mlir.undef : !llvm.struct<(f32, f32, f32, f32)>
      %u0 = llvm.insertvalue %z, %u[0] : !llvm.struct<(f32, f32, f32, f32)>
      %u1 = llvm.insertvalue %z, %u0[1] : !llvm.struct<(f32, f32, f32, f32)>
      %u2 = llvm.insertvalue %z, %u1[2] : !llvm.struct<(f32, f32, f32, f32)>
      %u3 = llvm.insertvalue %z, %u2[3] : !llvm.struct<(f32, f32, f32, f32)>
      %zero = llvm.mlir.constant(0 : i32) : i32
      %one = llvm.mlir.constant(1 : i32) : i32
      llvm.br ^loop(%zero, %u3 : i32, !llvm.struct<(f32, f32, f32, f32)>)
    ^loop(%i: i32, %acc: !llvm.struct<(f32, f32, f32, f32)>):
      nvvm.wgmma.fence.aligned
      %x = nvvm.wgmma.mma_async %d, %e, %acc, #nvvm.shape<m = 64, n = 8, k = 32>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<e4m3>, #nvvm.wgmma_scale_in<one>, <row>], B [<e5m2>, #nvvm.wgmma_scale_in<one>, <col>] : !llvm.struct<(f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32)>
      %y = nvvm.wgmma.mma_async %d, %e, %x, #nvvm.shape<m = 64, n = 8, k = 32>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<e4m3>, #nvvm.wgmma_scale_in<one>, <row>], B [<e5m2>, #nvvm.wgmma_scale_in<one>, <col>] : !llvm.struct<(f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32)>
      nvvm.wgmma.commit.group.sync.aligned
      nvvm.wgmma.wait.group.sync.aligned 0
      %j = llvm.add %i, %one : i32
      %more = llvm.icmp "ult" %j, %n : i32
      llvm.cond_br %more, ^loop(%j, %y : i32, !llvm.struct<(f32, f32, f32, f32)>), ^end
    ^end:
      %v = llvm.extractvalue %y[0] : !llvm.struct<(f32, f32, f32, f32)>
      %w = llvm.extractvalue %y[3] : !llvm.struct<(f32, f32, f32, f32)>
      llvm.store %v, %c : f32, !llvm.ptr<1>
      %p = llvm.getelementptr %c[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
      llvm.store %w, %p : f32, !llvm.ptr<1>
      llvm.return
    }
  }
}
