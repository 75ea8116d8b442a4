// RUN: fp8-opt %s --fp8-plan-blocks | FileCheck %s --check-prefix=PLAN
// RUN: fp8-opt %s --fp8-plan-blocks --fp8-lower-blocks --canonicalize --cse | FileCheck %s

#q = affine_map<(b, q, k, d) -> (b, q, d)>
#k = affine_map<(b, q, k, d) -> (b, k, d)>
#s = affine_map<(b, q, k, d) -> (b, q, k)>
#p = affine_map<(b, q, d, k) -> (b, q, k)>
#v = affine_map<(b, q, d, k) -> (b, k, d)>
#o = affine_map<(b, q, d, k) -> (b, q, d)>
#ds = affine_map<(b, k, d, q) -> (b, q, k)>
#qs = affine_map<(b, k, d, q) -> (b, q, d)>
#dk = affine_map<(b, k, d, q) -> (b, k, d)>
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
  // The scores of 64 queries fit into shared memory: the second dot reads them
  // there, and no block has two tiles.
  // PLAN: fp8.kernel @inside({{.*}}) domain = [4, 256] plan = #fp8.gpu_plan<tile = [1, 64], sum_tile = [{{.*}}], threads = 128, wgmma = true>
  // CHECK: gpu.func @inside({{.*}}fp8.gpu_launch = #fp8.gpu_launch<blocks = 16, threads = 128
  // CHECK: nvvm.wgmma.mma_async {{.*}} <m = 64, n = 128, k = 16>
  // CHECK: memref.store %{{.*}} : memref<{{.*}}xf32, #gpu.address_space<workgroup>>
  // CHECK: vector.load %{{.*}} {alignment = 16 : i64} : memref<{{.*}}xf32, #gpu.address_space<workgroup>>
  fp8.kernel @inside(read %a: memref<4x256x64xbf16>, read %b: memref<4x128x64xbf16>, read %c: memref<4x128x64xf32>, write %y: memref<4x256x64xf32>) domain = [4, 256] {
    %zero = arith.constant 0.0 : f32
    %scores = memref.alloc() : memref<4x256x128xf32>
    linalg.fill ins(%zero : f32) outs(%scores : memref<4x256x128xf32>)
    linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<4x256x64xbf16>, memref<4x128x64xbf16>) outs(%scores : memref<4x256x128xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: bf16, %w: bf16, %z: f32):
      %0 = arith.extf %x : bf16 to f32
      %1 = arith.extf %w : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %z, %2 : f32
      linalg.yield %3 : f32
    }
    linalg.fill ins(%zero : f32) outs(%y : memref<4x256x64xf32>)
    linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%scores, %c : memref<4x256x128xf32>, memref<4x128x64xf32>) outs(%y : memref<4x256x64xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: f32, %w: f32, %z: f32):
      %0 = arith.mulf %x, %w : f32
      %1 = arith.addf %z, %0 : f32
      linalg.yield %1 : f32
    }
    fp8.return
  }

  // Those of 16 queries do not: they lie in global memory, as much of it as 256
  // blocks need, each of which has every 256th tile.
  // PLAN: fp8.kernel @outside({{.*}}) domain = [4, 16384] plan = #fp8.gpu_plan<tile = [1, 32], sum_tile = [{{.*}}], threads = 128, wgmma = true>
  // CHECK: gpu.func @outside({{.*}}memref<536870912xi8>{{.*}}fp8.gpu_launch = #fp8.gpu_launch<blocks = 256, threads = 128, {{.*}}scratch = 2097152
  // CHECK: scf.for %{{.*}} = %block_id_x to %c2048 step %c256
  // CHECK-NEXT: gpu.barrier
  fp8.kernel @outside(read %a: memref<4x16384x64xbf16>, read %b: memref<4x16384x64xbf16>, read %c: memref<4x16384x64xf32>, write %y: memref<4x16384x64xf32>) domain = [4, 16384] {
    %zero = arith.constant 0.0 : f32
    %scores = memref.alloc() : memref<4x16384x16384xf32>
    linalg.fill ins(%zero : f32) outs(%scores : memref<4x16384x16384xf32>)
    linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<4x16384x64xbf16>, memref<4x16384x64xbf16>) outs(%scores : memref<4x16384x16384xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: bf16, %w: bf16, %z: f32):
      %0 = arith.extf %x : bf16 to f32
      %1 = arith.extf %w : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %z, %2 : f32
      linalg.yield %3 : f32
    }
    linalg.fill ins(%zero : f32) outs(%y : memref<4x16384x64xf32>)
    linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%scores, %c : memref<4x16384x16384xf32>, memref<4x16384x64xf32>) outs(%y : memref<4x16384x64xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: f32, %w: f32, %z: f32):
      %0 = arith.mulf %x, %w : f32
      %1 = arith.addf %z, %0 : f32
      linalg.yield %1 : f32
    }
    fp8.return
  }

  // Sums over queries: a block runs all queries of a head, tile by tile, and
  // adds to what it has filled. Tiles may be others than the CPU's block.
  // PLAN: fp8.kernel @backward({{.*}}) domain = [4, 256] block = 16 plan = #fp8.gpu_plan<tile = [1, 64], sum_tile = [1, 16], threads = 128, stages = 4>
  // CHECK: gpu.func @backward({{.*}}fp8.gpu_launch = #fp8.gpu_launch<blocks = 4, threads = 128
  // CHECK: gpu.barrier
  // CHECK: scf.for %{{.*}} = %c0 to %c256 step %c64 {
  // CHECK: %[[OLD:.*]] = memref.load %[[Y:.*]][%[[AT:.*]]] : memref<{{[0-9]+}}xf32>
  // CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[OLD]], %{{.*}} : f32
  // CHECK-NEXT: memref.store %[[SUM]], %[[Y]][%[[AT]]]
  // CHECK: gpu.barrier
  fp8.kernel @backward(read %a: memref<4x256x64xf32>, read %b: memref<4x128x64xf32>, write %y: memref<4x128x64xf32>) domain = [4, 256] block = 16 {
    %zero = arith.constant 0.0 : f32
    %scores = memref.alloc() : memref<4x256x128xf32>
    linalg.fill ins(%zero : f32) outs(%scores : memref<4x256x128xf32>)
    linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<4x256x64xf32>, memref<4x128x64xf32>) outs(%scores : memref<4x256x128xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: f32, %w: f32, %z: f32):
      %0 = arith.mulf %x, %w : f32
      %1 = arith.addf %z, %0 : f32
      linalg.yield %1 : f32
    }
    linalg.fill ins(%zero : f32) outs(%y : memref<4x128x64xf32>)
    linalg.generic {indexing_maps = [#ds, #qs, #dk], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%scores, %a : memref<4x256x128xf32>, memref<4x256x64xf32>) outs(%y : memref<4x128x64xf32>) attrs = {fp8.task_dims = array<i64: 0, 3>} {
    ^bb0(%x: f32, %w: f32, %z: f32):
      %0 = arith.mulf %x, %w : f32
      %1 = arith.addf %z, %0 : f32
      linalg.yield %1 : f32
    }
    fp8.return
  }
}
