// TMA keeps the ring of stages full from one run of k to the next: sums that are
// promoted every 128 products, and sums with scales in blocks of 64 (a swizzle of
// 64 bytes), agree with the CPU's and have the bits of cp.async's, in the emulator.
// So do the sums of a wide tile, which only large dots have otherwise.
// RUN: fp8-opt --fp8-plan-memory %s -o %t.4.mlir
// RUN: fp8-opt --fp8-target=nvptx=sm_90a --fp8-plan-blocks %t.4.mlir -o %t.plan.mlir
// RUN: FileCheck %s --check-prefix=PLAN < %t.plan.mlir
// RUN: sed "s/domain = .128, 320. plan = #fp8.gpu_plan<[^>]*>/domain = [128, 320] plan = #fp8.gpu_plan<tile = [128, 256], sum_tile = [128, 256], threads = 256, wgmma = true, stages = 3, tma = true>/" %t.plan.mlir > %t.wide.mlir
// RUN: fp8-opt --fp8-lower-blocks=processors=1 %t.wide.mlir -o %t.blocks.mlir
// RUN: FileCheck %s --check-prefix=WIDE < %t.blocks.mlir
// RUN: fp8-opt %t.blocks.mlir --fp8-gpu-codegen --fp8-to-nvvm -o %t.6.mlir
// RUN: sed "s/, tma = true//" %t.plan.mlir | fp8-opt --fp8-gpu-codegen --fp8-to-nvvm -o %t.copies.mlir
// RUN: fp8-check-gpu-kernels --seeds=3 --compiled=%t.6.mlir --equal=%t.copies.mlir %t.4.mlir | FileCheck %s

// PLAN-COUNT-3: tma = true
// WIDE: gpu.module @wide {{.*}}<blocks = 1, threads = 288,{{.*}} box = [128, 256]
// CHECK-NOT: FAIL
// CHECK: 3 kernels, 0 failed

#lhs = affine_map<(i, j, k) -> (i, k)>
#rhs = affine_map<(i, j, k) -> (j, k)>
#out = affine_map<(i, j, k) -> (i, j)>
#lhs_scale = affine_map<(i, j, k) -> (i, k floordiv 64)>
#rhs_scale = affine_map<(i, j, k) -> (j floordiv 64, k floordiv 64)>

fp8.schedule @main(%x: memref<128x448xf8E4M3FN>, %w: memref<72x448xf8E5M2>, %y: memref<128x72xf32>,
                   %p: memref<64x256xf8E4M3FN>, %q: memref<128x256xf8E4M3FN>, %sp: memref<64x4xf32>, %sq: memref<2x4xf32>,
                   %z: memref<64x128xf32>,
                   %a: memref<128x288xf8E4M3FN>, %b: memref<320x288xf8E4M3FN>, %c: memref<128x320xf32>) {
  fp8.launch @promoted(read %x, read %w, write %y) label = "promoted" number = 0
      : (memref<128x448xf8E4M3FN>, memref<72x448xf8E5M2>, memref<128x72xf32>) -> ()
  fp8.launch @scaled(read %p, read %q, read %sp, read %sq, write %z) label = "scaled" number = 1
      : (memref<64x256xf8E4M3FN>, memref<128x256xf8E4M3FN>, memref<64x4xf32>, memref<2x4xf32>, memref<64x128xf32>) -> ()
  fp8.launch @wide(read %a, read %b, write %c) label = "wide" number = 2
      : (memref<128x288xf8E4M3FN>, memref<320x288xf8E4M3FN>, memref<128x320xf32>) -> ()
  fp8.return
}

fp8.kernel @wide(read %x: memref<128x288xf8E4M3FN>, read %w: memref<320x288xf8E4M3FN>, write %y: memref<128x320xf32>) domain = [128, 320] {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<128x320xf32>)
  linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<128x288xf8E4M3FN>, memref<320x288xf8E4M3FN>) outs(%y : memref<128x320xf32>)
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

fp8.kernel @promoted(read %x: memref<128x448xf8E4M3FN>, read %w: memref<72x448xf8E5M2>, write %y: memref<128x72xf32>) domain = [128, 72] {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<128x72xf32>)
  linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<128x448xf8E4M3FN>, memref<72x448xf8E5M2>) outs(%y : memref<128x72xf32>)
      attrs = {fp8.task_dims = array<i64: 0, 1>, fp8.promote_every = 128 : i64} {
  ^bb0(%a: f8E4M3FN, %b: f8E5M2, %o: f32):
    %0 = arith.extf %a : f8E4M3FN to f32
    %1 = arith.extf %b : f8E5M2 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %o, %2 : f32
    linalg.yield %3 : f32
  }
  fp8.return
}

fp8.kernel @scaled(read %x: memref<64x256xf8E4M3FN>, read %w: memref<128x256xf8E4M3FN>, read %sx: memref<64x4xf32>, read %sw: memref<2x4xf32>,
                   write %y: memref<64x128xf32>) domain = [64, 128] {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<64x128xf32>)
  linalg.generic {indexing_maps = [#lhs, #rhs, #lhs_scale, #rhs_scale, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w, %sx, %sw : memref<64x256xf8E4M3FN>, memref<128x256xf8E4M3FN>, memref<64x4xf32>, memref<2x4xf32>)
      outs(%y : memref<64x128xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
  ^bb0(%a: f8E4M3FN, %b: f8E4M3FN, %sa: f32, %sb: f32, %o: f32):
    %0 = arith.extf %a : f8E4M3FN to f32
    %1 = arith.extf %b : f8E4M3FN to f32
    %2 = arith.mulf %0, %sa : f32
    %3 = arith.mulf %1, %sb : f32
    %4 = arith.mulf %2, %3 : f32
    %5 = arith.addf %o, %4 : f32
    linalg.yield %5 : f32
  }
  fp8.return
}
