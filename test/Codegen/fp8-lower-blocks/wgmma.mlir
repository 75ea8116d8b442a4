// RUN: fp8-opt %s --fp8-lower-blocks --canonicalize --cse | FileCheck %s

#lhs = affine_map<(i, j, k) -> (i, k)>
#lhsT = affine_map<(i, j, k) -> (k, i)>
#rhs = affine_map<(i, j, k) -> (j, k)>
#rhsT = affine_map<(i, j, k) -> (k, j)>
#out = affine_map<(i, j, k) -> (i, j)>
#dot = {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
  // One warpgroup: 64 rows, 32 columns. Three stages of 128 bytes a row in shared
  // memory that begins where the swizzle does. While a stage is multiplied the
  // others are on their way; what has landed is shown to wgmma behind the wait.
  // CHECK: gpu.func @mixed({{.*}}) workgroup({{.*}} : memref<36864xi8, #gpu.address_space<workgroup>> {llvm.align = 1024 : i64})
  // CHECK-NOT: vector.load
  // CHECK-COUNT-2: nvvm.cp.async.commit.group
  // CHECK: scf.for
  // CHECK: nvvm.cp.async.wait.group 1
  // CHECK-NEXT: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
  // CHECK: gpu.barrier
  // CHECK: nvvm.wgmma.fence.aligned
  // CHECK-COUNT-4: nvvm.wgmma.mma_async {{.*}} <m = 64, n = 32, k = 32>, D[<f32>, <one>], A[<e4m3>, <one>, <row>], B[<e5m2>, <one>, <col>]
  // CHECK: nvvm.wgmma.commit.group.sync.aligned
  // CHECK-COUNT-6: nvgpu.device_async_copy {{.*}}, 16 {bypassL1}
  // CHECK: nvvm.cp.async.commit.group
  // CHECK: nvvm.wgmma.wait.group.sync.aligned 0
  fp8.kernel @mixed(read %x: memref<64x512xf8E4M3FN>, read %w: memref<32x512xf8E5M2>, write %y: memref<64x32xf32>) domain = [64, 32]
      plan = #fp8.gpu_plan<tile = [64, 32], sum_tile = [64, 32], threads = 128, wgmma = true, stages = 3> {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%y : memref<64x32xf32>)
    linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<64x512xf8E4M3FN>, memref<32x512xf8E5M2>) outs(%y : memref<64x32xf32>)
        attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E4M3FN, %b: f8E5M2, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.extf %b : f8E5M2 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }

  // Two warpgroups, each with 64 rows. Both operands are turned on their way to
  // shared memory, where words find their places in the swizzle: while a stage is
  // multiplied the next one is stored and the one behind it loaded. k ends within
  // a stage.
  // CHECK: gpu.func @turned({{.*}}) kernel attributes {fp8.gpu_launch = #fp8.gpu_launch<blocks = 1, threads = 256, shared = 0, dynamic_shared = 65536, scratch = 0>
  // CHECK: arith.xori
  // CHECK: scf.for
  // CHECK-COUNT-4: nvvm.wgmma.mma_async {{.*}} <m = 64, n = 128, k = 32>, D[<f32>, <one>], A[<e4m3>, <one>, <row>], B[<e4m3>, <one>, <col>]
  // CHECK: vector.store {{.*}} vector<4xf8E4M3FN>
  // CHECK: vector.load {{.*}} vector<4xf8E4M3FN>
  // CHECK: nvvm.wgmma.wait.group.sync.aligned 0
  fp8.kernel @turned(read %x: memref<304x128xf8E4M3FN>, read %w: memref<304x128xf8E4M3FN>, write %y: memref<128x128xf32>) domain = [128, 128]
      plan = #fp8.gpu_plan<tile = [128, 128], sum_tile = [64, 64], threads = 256, wgmma = true> {
    linalg.generic {indexing_maps = [#lhsT, #rhsT, #out], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<304x128xf8E4M3FN>, memref<304x128xf8E4M3FN>) outs(%y : memref<128x128xf32>)
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

  // wgmma reads elements of 16 bits from lines along the rows, in bands of 64 rows.
  // Steps along k are 16 lines of 128 bytes, and bands 8192 bytes apart.
  // CHECK: gpu.func @rows({{.*}}) kernel attributes {fp8.gpu_launch = #fp8.gpu_launch<blocks = 1, threads = 256, shared = 0, dynamic_shared = 65536, scratch = 0>
  // CHECK-DAG: arith.constant 4611686293338849280 : i64
  // CHECK-DAG: arith.constant 128 : i64
  // CHECK-DAG: arith.constant 384 : i64
  // CHECK: scf.for
  // CHECK-COUNT-4: nvvm.wgmma.mma_async {{.*}} <m = 64, n = 128, k = 16>, D[<f32>, <one>], A[<bf16>, <one>, <col>], B[<bf16>, <one>, <row>]
  // CHECK-COUNT-8: nvgpu.device_async_copy {{.*}}, 8, {{.*}} {bypassL1}
  // CHECK: nvvm.wgmma.wait.group.sync.aligned 0
  fp8.kernel @rows(read %x: memref<152x128xbf16>, read %w: memref<152x128xbf16>, write %y: memref<128x128xf32>) domain = [128, 128]
      plan = #fp8.gpu_plan<tile = [128, 128], sum_tile = [64, 64], threads = 256, wgmma = true> {
    linalg.generic {indexing_maps = [#lhsT, #rhsT, #out], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<152x128xbf16>, memref<152x128xbf16>) outs(%y : memref<128x128xf32>)
        attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: bf16, %b: bf16, %o: f32):
      %0 = arith.extf %a : bf16 to f32
      %1 = arith.extf %b : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }

  // Scales in blocks of 64 along k: partial sums of one stage of 64 bytes, with
  // the swizzle for that.
  // CHECK: gpu.func @scaled
  // CHECK: arith.constant -9223371899415756800 : i64
  // CHECK: scf.for %{{.*}} = %c0 to %c256 step %c64
  // CHECK-COUNT-2: nvvm.wgmma.mma_async
  // CHECK-NOT: nvvm.wgmma.mma_async
  // Two rows of a thread have scales of their own, and all columns share one.
  // CHECK-COUNT-3: memref.load {{.*}} : memref<{{.*}}xf32{{.*}}>
  // CHECK-NOT: memref.load
  // CHECK: arith.mulf
  fp8.kernel @scaled(read %x: memref<64x256xf8E4M3FN>, read %w: memref<64x256xf8E4M3FN>,
                     read %sx: memref<64x4xf32>, read %sw: memref<1x4xf32>, write %y: memref<64x64xf32>) domain = [64, 64]
      plan = #fp8.gpu_plan<tile = [64, 64], sum_tile = [64, 64], threads = 128, wgmma = true> {
    linalg.generic {indexing_maps = [#lhs, #rhs, affine_map<(i, j, k) -> (i, k floordiv 64)>,
                                     affine_map<(i, j, k) -> (j floordiv 64, k floordiv 64)>, #out],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w, %sx, %sw : memref<64x256xf8E4M3FN>, memref<64x256xf8E4M3FN>, memref<64x4xf32>, memref<1x4xf32>)
        outs(%y : memref<64x64xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
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
}
