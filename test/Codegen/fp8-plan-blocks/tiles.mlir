// RUN: fp8-opt %s --fp8-plan-blocks | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
  // Elementwise: some thousand elements a block, whole rows first. The CPU's
  // tile stays beside it.
  // CHECK: fp8.kernel @elementwise({{.*}}) domain = [64, 512] plan = #fp8.gpu_plan<tile = [4, 512], sum_tile = [{{.*}}], threads = 128>
  fp8.kernel @elementwise(read %x: memref<64x512xf32>, write %y: memref<64x512xf32>) domain = [64, 512] {
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<64x512xf32>) outs(%y : memref<64x512xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f32, %o: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    }
    fp8.return
  }

  // Rows are added up by the blocks that have them.
  // CHECK: fp8.kernel @rows({{.*}}) domain = [64] plan = #fp8.gpu_plan<tile = [4], sum_tile = [64], threads = 128>
  fp8.kernel @rows(read %x: memref<64x512xf32>, update %y: memref<64xf32>) domain = [64] {
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x : memref<64x512xf32>) outs(%y : memref<64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
    ^bb0(%a: f32, %o: f32):
      %n = arith.addf %o, %a : f32
      linalg.yield %n : f32
    }
    fp8.return
  }

  // With many rows, each of a block's groups of 16 threads has one.
  // CHECK: fp8.kernel @many_rows({{.*}}) domain = [4096] plan = #fp8.gpu_plan<tile = [8], sum_tile = [{{.*}}], threads = 128>
  fp8.kernel @many_rows(read %x: memref<4096x512xf32>, update %y: memref<4096xf32>) domain = [4096] {
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x : memref<4096x512xf32>) outs(%y : memref<4096xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
    ^bb0(%a: f32, %o: f32):
      %n = arith.addf %o, %a : f32
      linalg.yield %n : f32
    }
    fp8.return
  }

  // Rows that are no loop of the domain: a block has a warp's points of each, which are adjacent in memory.
  // CHECK: fp8.kernel @lines({{.*}}) domain = [8192] plan = #fp8.gpu_plan<tile = [32], sum_tile = [{{.*}}], threads = 256>
  fp8.kernel @lines(read %x: memref<2x2048x8192xf32>, write %y: memref<4096x8192xf32>) domain = [8192] {
    linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b * 2048 + i, j)>], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x : memref<2x2048x8192xf32>) outs(%y : memref<4096x8192xf32>) attrs = {fp8.task_dims = array<i64: 2>} {
    ^bb0(%a: f32, %o: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    }
    fp8.return
  }

  // Sums over many rows: half of a warp's columns, for which a block has 1024 threads.
  // CHECK: fp8.kernel @columns({{.*}}) domain = [512] plan = #fp8.gpu_plan<tile = [16], sum_tile = [{{.*}}], threads = 1024>
  fp8.kernel @columns(read %x: memref<2048x512xf32>, update %y: memref<512xf32>) domain = [512] {
    linalg.generic {indexing_maps = [affine_map<(j, i) -> (i, j)>, affine_map<(j, i) -> (j)>], iterator_types = ["parallel", "reduction"]}
        ins(%x : memref<2048x512xf32>) outs(%y : memref<512xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
    ^bb0(%a: f32, %o: f32):
      %n = arith.addf %o, %a : f32
      linalg.yield %n : f32
    }
    fp8.return
  }

  // Large scatters: 256 blocks, or as many as own a row each; small ones: one.
  // CHECK: fp8.kernel @scatter({{.*}}) domain = [] plan = #fp8.gpu_plan<tile = [], sum_tile = [], threads = 512, rows = 4>
  fp8.kernel @scatter(read %i: memref<64xindex>, read %x: memref<64x512xf32>, update %y: memref<1000x512xf32>) domain = [] {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c512 = arith.constant 512 : index
    scf.for %r = %c0 to %c64 step %c1 {
      %to = memref.load %i[%r] : memref<64xindex>
      scf.for %c = %c0 to %c512 step %c1 {
        %a = memref.load %x[%r, %c] : memref<64x512xf32>
        %b = memref.load %y[%to, %c] : memref<1000x512xf32>
        %s = arith.addf %a, %b : f32
        memref.store %s, %y[%to, %c] : memref<1000x512xf32>
      } {fp8.irregular}
    } {fp8.irregular, fp8.task_dims = array<i64>}
    fp8.return
  }
  // CHECK: fp8.kernel @small_scatter({{.*}}) domain = [] plan = #fp8.gpu_plan<tile = [], sum_tile = [], threads = 1024>
  fp8.kernel @small_scatter(read %i: memref<8xindex>, read %x: memref<8x512xf32>, update %y: memref<1000x512xf32>) domain = [] {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c512 = arith.constant 512 : index
    scf.for %r = %c0 to %c8 step %c1 {
      %to = memref.load %i[%r] : memref<8xindex>
      scf.for %c = %c0 to %c512 step %c1 {
        %a = memref.load %x[%r, %c] : memref<8x512xf32>
        %b = memref.load %y[%to, %c] : memref<1000x512xf32>
        %s = arith.addf %a, %b : f32
        memref.store %s, %y[%to, %c] : memref<1000x512xf32>
      } {fp8.irregular}
    } {fp8.irregular, fp8.task_dims = array<i64>}
    fp8.return
  }

  // Dots: 64 rows and 128 columns, by one warpgroup.
  // CHECK: fp8.kernel @dot({{.*}}) domain = [256, 512] plan = #fp8.gpu_plan<tile = [64, 128], sum_tile = [128, 128], threads = 128, wgmma = true, tma = true>
  fp8.kernel @dot(read %x: memref<256x128xf8E4M3FN>, read %w: memref<512x128xf8E4M3FN>, write %y: memref<256x512xf32>) domain = [256, 512] {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%y : memref<256x512xf32>)
    linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<256x128xf8E4M3FN>, memref<512x128xf8E4M3FN>) outs(%y : memref<256x512xf32>)
        attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E4M3FN, %b: f8E4M3FN, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.extf %b : f8E4M3FN to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }

  // Two warpgroups and a wide tile where there are blocks enough for a large card.
  // The registers leave no room for a second block, and so a fourth stage.
  // CHECK: fp8.kernel @large({{.*}}) domain = [4096, 2048] plan = #fp8.gpu_plan<tile = [128, 256], sum_tile = [{{.*}}], threads = 256, wgmma = true, stages = 4, tma = true>
  fp8.kernel @large(read %x: memref<4096x1024xf8E4M3FN>, read %w: memref<2048x1024xf8E4M3FN>, write %y: memref<4096x2048xf32>) domain = [4096, 2048] {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%y : memref<4096x2048xf32>)
    linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<4096x1024xf8E4M3FN>, memref<2048x1024xf8E4M3FN>) outs(%y : memref<4096x2048xf32>)
        attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E4M3FN, %b: f8E4M3FN, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.extf %b : f8E4M3FN to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }

  // Fewer rows than those of a warpgroup, and operands that no instruction
  // multiplies: as many stages by cp.async as k has, up to four.
  // CHECK: fp8.kernel @few({{.*}}) domain = [32, 512] plan = #fp8.gpu_plan<tile = [32, 128], sum_tile = [{{.*}}], threads = 128>
  fp8.kernel @few(read %x: memref<32x128xf8E4M3FN>, read %w: memref<512x128xf8E4M3FN>, write %y: memref<32x512xf32>) domain = [32, 512] {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%y : memref<32x512xf32>)
    linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<32x128xf8E4M3FN>, memref<512x128xf8E4M3FN>) outs(%y : memref<32x512xf32>)
        attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E4M3FN, %b: f8E4M3FN, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.extf %b : f8E4M3FN to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }

  // CHECK: fp8.kernel @single({{.*}}) domain = [256, 512] plan = #fp8.gpu_plan<tile = [64, 128], sum_tile = [{{.*}}], threads = 128, stages = 4>
  fp8.kernel @single(read %x: memref<256x128xf32>, read %w: memref<512x128xf32>, write %y: memref<256x512xf32>) domain = [256, 512] {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%y : memref<256x512xf32>)
    linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<256x128xf32>, memref<512x128xf32>) outs(%y : memref<256x512xf32>)
        attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %2 = arith.mulf %a, %b : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }
}
