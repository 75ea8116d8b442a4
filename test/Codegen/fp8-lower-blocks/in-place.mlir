// Dots of blocks that run keys in order read their operands where TMA and the
// block itself have written them.
// RUN: fp8-opt %s --fp8-plan-blocks=explain 2>&1 | FileCheck %s --check-prefix=PLAN
// RUN: fp8-opt %s --fp8-plan-blocks --fp8-lower-blocks --canonicalize --cse | FileCheck %s

#q = affine_map<(q, k, d) -> (q, d)>
#k = affine_map<(q, k, d) -> (k, d)>
#s = affine_map<(q, k, d) -> (q, k)>
#id = affine_map<(q, k) -> (q, k)>
#row = affine_map<(q, k) -> (q)>
#p = affine_map<(q, d, k) -> (q, k)>
#v = affine_map<(q, d, k) -> (k, d)>
#o = affine_map<(q, d, k) -> (q, d)>
// PLAN: remark: dots do not read their operands in place: it is more than one tile, or has partial sums
// PLAN: fp8.kernel @output({{.*}}) domain = [256, 512] block = 64 plan = #fp8.gpu_plan<tile = [64, 64], sum_tile = [{{.*}}], threads = 128, wgmma = true, tma = true>
// PLAN: fp8.kernel @maxima({{.*}}) domain = [256, 512] block = 64 plan = #fp8.gpu_plan<tile = [64, 64], sum_tile = [{{.*}}], threads = 128, wgmma = true, tma = true>
// The result has more columns than a tile: the dots copy their operands.
// PLAN: fp8.kernel @wide({{.*}}) domain = [256, 512] block = 64 plan = #fp8.gpu_plan<tile = [64, 64], sum_tile = [{{.*}}], threads = 128, wgmma = true{{(, stages = [0-9]+)?}}>
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
  // The queries stay; keys and values come for each step.
  // CHECK-LABEL: gpu.func @output(
  // CHECK-SAME: blocks = 4, threads = 160
  // The warpgroup waits for the queries, in each step for the keys, and for
  // the values behind the exponentials, which have the swizzle of wgmma:
  // CHECK: nvvm.mbarrier.try_wait
  // CHECK: scf.for
  // CHECK: nvvm.mbarrier.try_wait
  // CHECK: nvvm.wgmma.mma_async {{.*}} B[<bf16>, <one>, <col>]
  // CHECK: ex2.approx
  // CHECK: arith.xori {{.*}} : index
  // CHECK: nvvm.fence.proxy
  // CHECK-NEXT: nvvm.barrier
  // CHECK: nvvm.mbarrier.try_wait
  // CHECK: nvvm.wgmma.mma_async {{.*}} B[<bf16>, <one>, <row>]
  // CHECK: nvvm.mbarrier.arrive
  // The producer:
  // CHECK: nvvm.elect.sync
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %arg4
  // CHECK: scf.for
  // CHECK: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c8192_i32
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %arg5
  // CHECK: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c8192_i32
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %arg6
  fp8.kernel @output(read %a: memref<256x64xbf16>, read %b: memref<512x64xbf16>, read %c: memref<512x64xbf16>, write %y: memref<256x64xf32>) domain = [256, 512] block = 64 {
    %zero = arith.constant 0.0 : f32
    %scores = memref.alloc() : memref<256x512xf32>
    linalg.fill ins(%zero : f32) outs(%scores : memref<256x512xf32>)
    linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<256x64xbf16>, memref<512x64xbf16>) outs(%scores : memref<256x512xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: bf16, %w: bf16, %z: f32):
      %0 = arith.extf %x : bf16 to f32
      %1 = arith.extf %w : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %z, %2 : f32
      linalg.yield %3 : f32
    }
    %weights = memref.alloc() : memref<256x512xbf16>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%scores : memref<256x512xf32>) outs(%weights : memref<256x512xbf16>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: f32, %z: bf16):
      %0 = math.exp %x : f32
      %1 = arith.truncf %0 : f32 to bf16
      linalg.yield %1 : bf16
    }
    linalg.fill ins(%zero : f32) outs(%y : memref<256x64xf32>)
    linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%weights, %c : memref<256x512xbf16>, memref<512x64xbf16>) outs(%y : memref<256x64xf32>) attrs = {fp8.task_dims = array<i64: 0, 2>} {
    ^bb0(%x: bf16, %w: bf16, %z: f32):
      %0 = arith.extf %x : bf16 to f32
      %1 = arith.extf %w : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %z, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }

  // The mask is computed where it is read, and each thread has the maxima of
  // its columns: only shuffles behind the last step, and no scores in memory.
  // CHECK-LABEL: gpu.func @maxima(
  // CHECK: nvvm.wgmma.mma_async
  // CHECK-NOT: address_space<workgroup>>, vector
  // CHECK: arith.cmpi sge
  // CHECK: arith.maximumf
  // CHECK: nvvm.mbarrier.arrive
  // CHECK: gpu.shuffle down
  fp8.kernel @maxima(read %a: memref<256x64xbf16>, read %b: memref<512x64xbf16>, write %y: memref<256xf32>) domain = [256, 512] block = 64 {
    %zero = arith.constant 0.0 : f32
    %least = arith.constant 0xFF800000 : f32
    %mask = memref.alloc() : memref<256x512xi1>
    linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]}
        outs(%mask : memref<256x512xi1>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%z: i1):
      %0 = linalg.index 0 : index
      %1 = linalg.index 1 : index
      %2 = arith.cmpi sge, %0, %1 : index
      linalg.yield %2 : i1
    }
    %scores = memref.alloc() : memref<256x512xf32>
    linalg.fill ins(%zero : f32) outs(%scores : memref<256x512xf32>)
    linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<256x64xbf16>, memref<512x64xbf16>) outs(%scores : memref<256x512xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: bf16, %w: bf16, %z: f32):
      %0 = arith.extf %x : bf16 to f32
      %1 = arith.extf %w : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %z, %2 : f32
      linalg.yield %3 : f32
    }
    linalg.fill ins(%least : f32) outs(%y : memref<256xf32>)
    linalg.generic {indexing_maps = [#id, #id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%mask, %scores : memref<256x512xi1>, memref<256x512xf32>) outs(%y : memref<256xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%m: i1, %x: f32, %z: f32):
      %0 = arith.select %m, %x, %zero : f32
      %1 = arith.maximumf %z, %0 : f32
      linalg.yield %1 : f32
    }
    fp8.return
  }

  fp8.kernel @wide(read %a: memref<256x64xbf16>, read %b: memref<512x64xbf16>, read %c: memref<512x256xbf16>, write %y: memref<256x256xf32>) domain = [256, 512] block = 64 {
    %zero = arith.constant 0.0 : f32
    %scores = memref.alloc() : memref<256x512xf32>
    linalg.fill ins(%zero : f32) outs(%scores : memref<256x512xf32>)
    linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<256x64xbf16>, memref<512x64xbf16>) outs(%scores : memref<256x512xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: bf16, %w: bf16, %z: f32):
      %0 = arith.extf %x : bf16 to f32
      %1 = arith.extf %w : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %z, %2 : f32
      linalg.yield %3 : f32
    }
    %weights = memref.alloc() : memref<256x512xbf16>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%scores : memref<256x512xf32>) outs(%weights : memref<256x512xbf16>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: f32, %z: bf16):
      %0 = math.exp %x : f32
      %1 = arith.truncf %0 : f32 to bf16
      linalg.yield %1 : bf16
    }
    linalg.fill ins(%zero : f32) outs(%y : memref<256x256xf32>)
    linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%weights, %c : memref<256x512xbf16>, memref<512x256xbf16>) outs(%y : memref<256x256xf32>) attrs = {fp8.task_dims = array<i64: 0, 2>} {
    ^bb0(%x: bf16, %w: bf16, %z: f32):
      %0 = arith.extf %x : bf16 to f32
      %1 = arith.extf %w : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %z, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }
}
