// RUN: fp8-opt %s --fp8-lower-blocks --canonicalize --cse | FileCheck %s
// RUN: fp8-opt %s --fp8-lower-blocks --fp8-to-nvvm | FileCheck %s --check-prefix=NVVM

module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
  // The last parameters are the tensor maps: by value, where TMA reads them.
  // NVVM: llvm.func @dot({{.*}}%{{[^:]*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}, %{{[^:]*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant})
  // NVVM-SAME: nvvm.reqntid = array<i32: 160, 1, 1>

  // One more warp; 132 multiprocessors have 6 blocks each, which run 1024 tiles.
  // Three stages of 96 rows of 128 bytes, and two barriers each.
  // CHECK: gpu.func @dot(%{{.*}}: memref<65536x512xf8E4M3FN>{{.*}}, %[[A:[^:]*]]: !llvm.ptr, %[[B:[^:]*]]: !llvm.ptr)
  // CHECK-SAME: workgroup({{.*}} : memref<36912xi8, #gpu.address_space<workgroup>> {llvm.align = 1024 : i64})
  // CHECK-SAME: fp8.gpu_launch = #fp8.gpu_launch<blocks = 792, threads = 160, shared = 36912, dynamic_shared = 0, scratch = 0,
  // CHECK-SAME: maps = [<operand = 0, element = f8E4M3FN, sizes = [512, 65536], strides = [512], box = [128, 64], swizzle = 128>,
  // CHECK-SAME: <operand = 1, element = f8E5M2, sizes = [512, 32], strides = [512], box = [128, 32], swizzle = 128>]>
  // The first thread makes the barriers: 1 arrival fills a stage, 4 warps empty it.
  // CHECK-COUNT-3: nvvm.mbarrier.init %{{.*}}, %c1_i32
  // CHECK-COUNT-3: nvvm.mbarrier.init %{{.*}}, %c4_i32
  // CHECK: nvvm.fence.mbarrier.init
  // CHECK: gpu.barrier
  // The warpgroup multiplies a stage, and releases the one before it.
  // CHECK: scf.while
  // CHECK: nvvm.mbarrier.try_wait
  // CHECK: nvvm.wgmma.fence.aligned
  // CHECK-COUNT-4: nvvm.wgmma.mma_async
  // CHECK: nvvm.wgmma.commit.group.sync.aligned
  // CHECK: nvvm.wgmma.wait.group.sync.aligned 1
  // CHECK: nvvm.mbarrier.arrive %
  // CHECK: nvvm.wgmma.wait.group.sync.aligned 0
  // CHECK: nvvm.mbarrier.arrive %
  // One thread of the last warp asks for boxes of 64 and 32 rows.
  // CHECK: } else {
  // CHECK: nvvm.elect.sync
  // CHECK-COUNT-2: nvvm.prefetch tensormap
  // CHECK: nvvm.mbarrier.try_wait
  // CHECK: nvvm.mbarrier.arrive.expect_tx %[[FULL:[^,]*]], %c12288_i32
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[A]], %[[FULL]], box[%{{[^,]*}}, %{{[^,]*}}]
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[B]], %[[FULL]], box[%{{[^,]*}}, %{{[^,]*}}]
  // CHECK-NOT: nvgpu.device_async_copy
  fp8.kernel @dot(read %x: memref<65536x512xf8E4M3FN>, read %w: memref<32x512xf8E5M2>, write %y: memref<65536x32xf32>) domain = [65536, 32]
      plan = #fp8.gpu_plan<tile = [64, 32], sum_tile = [64, 32], threads = 128, wgmma = true, stages = 3, tma = true> {
    linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<65536x512xf8E4M3FN>, memref<32x512xf8E5M2>) outs(%y : memref<65536x32xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
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
