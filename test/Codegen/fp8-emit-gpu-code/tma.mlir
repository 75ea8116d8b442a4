// Sums begin as zeros. LLVM unrolls the loop over two stages, and must not write
// them between wgmma.fence and wgmma: the assembler would add a fence, or even
// serialize wgmma.
// RUN: rm -rf %t && fp8-opt %s --fp8-lower-blocks --fp8-gpu-codegen --fp8-to-nvvm --fp8-emit-gpu-code="image=ptx directory=%t" -o /dev/null
// RUN: FileCheck %s < %t/two_stages.ptx

// Shared memory whose size the launch sets is no array of no bytes:
// CHECK: .extern .shared .align 1024 .b8 __dynamic_shmem__{{[0-9]+}}[];
// CHECK: .param .align 64 .b8 two_stages_param_3[128]
// CHECK: mov.b32
// CHECK: wgmma.fence.sync.aligned
// CHECK-NOT: mov.b32
// CHECK: wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e5m2
// CHECK: wgmma.fence.sync.aligned
// CHECK-NOT: mov.b32
// CHECK: wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e5m2
// CHECK: cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes

module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
  fp8.kernel @two_stages(read %x: memref<64x256xf8E4M3FN>, read %w: memref<256x256xf8E5M2>, write %y: memref<64x256xf32>) domain = [64, 256]
      plan = #fp8.gpu_plan<tile = [64, 256], sum_tile = [64, 256], threads = 128, wgmma = true, stages = 2, tma = true> {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%y : memref<64x256xf32>)
    linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<64x256xf8E4M3FN>, memref<256x256xf8E5M2>) outs(%y : memref<64x256xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E4M3FN, %b: f8E5M2, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.extf %b : f8E5M2 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }
}
