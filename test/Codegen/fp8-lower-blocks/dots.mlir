// RUN: fp8-opt %s --fp8-lower-blocks --canonicalize --cse | FileCheck %s

#lhs = affine_map<(i, j, k) -> (i, k)>
#lhsT = affine_map<(i, j, k) -> (k, i)>
#rhs = affine_map<(i, j, k) -> (j, k)>
#out = affine_map<(i, j, k) -> (i, j)>
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_89", features = "+ptx84">} {
  // Both operands along k: cp.async, 16 bytes an access, a group each of the
  // first two stages, then the stage that is two ahead of the products. One
  // barrier a stage.
  // CHECK: gpu.func @mixed({{.*}}) workgroup(%{{.*}} : memref<18432xi8, #gpu.address_space<workgroup>>
  // CHECK-NOT: vector.load
  // CHECK: gpu.barrier
  // CHECK: nvgpu.device_async_copy %{{.*}}, %{{.*}}, 16 {bypassL1} : memref<8192xf8E4M3FN> to memref<{{.*}}xf8E4M3FN, #gpu.address_space<workgroup>>
  // CHECK-COUNT-2: nvgpu.device_async_copy {{.*}} : memref<16384xf8E5M2>
  // CHECK: nvvm.cp.async.commit.group
  // CHECK-COUNT-3: nvgpu.device_async_copy
  // CHECK: nvvm.cp.async.commit.group
  // CHECK: scf.for
  // CHECK: nvvm.cp.async.wait.group 1
  // CHECK-NEXT: gpu.barrier
  // CHECK: %[[NEXT:.*]] = arith.addi %{{.*}}, %c128
  // CHECK: %[[THERE:.*]] = arith.cmpi ult, %[[NEXT]], %c256
  // CHECK: scf.if %[[THERE]] {
  // CHECK-COUNT-3: nvgpu.device_async_copy
  // CHECK-NOT: gpu.barrier
  // CHECK: nvvm.cp.async.commit.group
  // CHECK: nvgpu.ldmatrix %{{.*}} {numTiles = 4 : i32, transpose = false} : memref<{{.*}}xi16, #gpu.address_space<workgroup>> -> vector<4x2xi16>
  // CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e5m2.f32"
  fp8.kernel @mixed(read %x: memref<32x256xf8E4M3FN>, read %w: memref<64x256xf8E5M2>, write %y: memref<32x64xf32>) domain = [32, 64]
      plan = #fp8.gpu_plan<tile = [32, 64], sum_tile = [32, 64], threads = 128, stages = 3> {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%y : memref<32x64xf32>)
    linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<32x256xf8E4M3FN>, memref<64x256xf8E5M2>) outs(%y : memref<32x64xf32>)
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

  // 16 bits along the rows are copied as they lie, and turned by ldmatrix.
  // CHECK: gpu.func @rows
  // CHECK: nvgpu.device_async_copy %{{.*}}, %{{.*}}, 8 {bypassL1} : memref<8192xbf16>
  // CHECK: nvgpu.ldmatrix %{{.*}} {numTiles = 4 : i32, transpose = true} : memref<{{.*}}xi16, #gpu.address_space<workgroup>> -> vector<4x2xi16>
  // CHECK: nvgpu.ldmatrix %{{.*}} {numTiles = 4 : i32, transpose = false}
  // CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"
  fp8.kernel @rows(read %x: memref<256x32xbf16>, read %w: memref<64x256xbf16>, write %y: memref<32x64xf32>) domain = [32, 64]
      plan = #fp8.gpu_plan<tile = [32, 64], sum_tile = [32, 64], threads = 128> {
    linalg.generic {indexing_maps = [#lhsT, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<256x32xbf16>, memref<64x256xbf16>) outs(%y : memref<32x64xf32>)
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

  // f8 along the rows is turned on its way: 4 rows of 4 each. What is converted
  // comes by way of registers, too, and lies along the rows.
  // CHECK: gpu.func @turned
  // CHECK-NOT: nvgpu.device_async_copy {{.*}} : memref<8192xf8E4M3FN>
  // CHECK: vector.load %{{.*}} {alignment = 4 : i64} : memref<{{.*}}xf8E4M3FN>, vector<4xf8E4M3FN>
  // CHECK: nvvm.cp.async.wait.group 0
  // CHECK: nvgpu.device_async_copy {{.*}} : memref<16384xbf16>
  // CHECK: vector.load %{{.*}} {alignment = 16 : i64} : memref<{{.*}}xf8E4M3FN>, vector<16xf8E4M3FN>
  // CHECK-COUNT-2: vector.store %{{.*}} {alignment = 16 : i64} : memref<{{.*}}xbf16, #gpu.address_space<workgroup>>, vector<8xbf16>
  fp8.kernel @turned(read %x: memref<256x32xf8E4M3FN>, read %w: memref<64x256xf8E4M3FN>, read %v: memref<64x256xbf16>, write %y: memref<32x64xf32>, write %z: memref<32x64xf32>) domain = [32, 64]
      plan = #fp8.gpu_plan<tile = [32, 64], sum_tile = [32, 64], threads = 128> {
    linalg.generic {indexing_maps = [#lhsT, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<256x32xf8E4M3FN>, memref<64x256xf8E4M3FN>) outs(%y : memref<32x64xf32>)
        attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E4M3FN, %b: f8E4M3FN, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.extf %b : f8E4M3FN to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    linalg.generic {indexing_maps = [#lhsT, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %v : memref<256x32xf8E4M3FN>, memref<64x256xbf16>) outs(%z : memref<32x64xf32>)
        attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E4M3FN, %b: bf16, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.extf %b : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }

  // Scales that change along k multiply partial sums of 64 products.
  // CHECK: gpu.func @scaled
  // CHECK: scf.for %{{.*}} = %c0 to %c256 step %c64
  // CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32"
  // CHECK: %[[SCALE:.*]] = arith.mulf
  // CHECK: %[[PART:.*]] = arith.mulf %{{.*}}, %[[SCALE]] : f32
  // CHECK: arith.addf %{{.*}}, %[[PART]] : f32
  fp8.kernel @scaled(read %x: memref<32x256xf8E4M3FN>, read %w: memref<64x256xf8E4M3FN>,
                     read %sx: memref<32x4xf32>, read %sw: memref<1x4xf32>, write %y: memref<32x64xf32>) domain = [32, 64]
      plan = #fp8.gpu_plan<tile = [32, 64], sum_tile = [32, 64], threads = 128> {
    linalg.generic {indexing_maps = [#lhs, #rhs, affine_map<(i, j, k) -> (i, k floordiv 64)>,
                                     affine_map<(i, j, k) -> (j floordiv 64, k floordiv 64)>, #out],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w, %sx, %sw : memref<32x256xf8E4M3FN>, memref<64x256xf8E4M3FN>, memref<32x4xf32>, memref<1x4xf32>)
        outs(%y : memref<32x64xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E4M3FN, %b: f8E4M3FN, %s: f32, %t: f32, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.extf %b : f8E4M3FN to f32
      %2 = arith.mulf %0, %s : f32
      %3 = arith.mulf %1, %t : f32
      %4 = arith.mulf %2, %3 : f32
      %5 = arith.addf %o, %4 : f32
      linalg.yield %5 : f32
    }
    fp8.return
  }

  // f32 is multiplied as f32.
  // CHECK: gpu.func @single
  // CHECK-NOT: mma
  // CHECK: math.fma
  fp8.kernel @single(read %x: memref<32x64xf32>, read %w: memref<64x64xf32>, write %y: memref<32x64xf32>) domain = [32, 64]
      plan = #fp8.gpu_plan<tile = [32, 64], sum_tile = [32, 64], threads = 128> {
    linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<32x64xf32>, memref<64x64xf32>) outs(%y : memref<32x64xf32>)
        attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %2 = arith.mulf %a, %b : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }
}
