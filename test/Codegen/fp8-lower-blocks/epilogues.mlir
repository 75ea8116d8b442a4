// RUN: fp8-opt %s --fp8-lower-blocks --canonicalize --cse | FileCheck %s

#lhs = affine_map<(i, j, k) -> (i, k)>
#rhs = affine_map<(i, j, k) -> (j, k)>
#out = affine_map<(i, j, k) -> (i, j)>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
  // Shared memory has three stages of the operands and no sums. Where these are, in
  // registers, each two adjacent ones meet the elements of the residual; all loads of
  // four pairs come before their stores.
  // CHECK: gpu.func @residual({{.*}}) workgroup({{.*}} : memref<36864xi8, #gpu.address_space<workgroup>> {llvm.align = 1024 : i64})
  // CHECK: scf.for
  // CHECK: nvvm.wgmma.mma_async
  // CHECK: llvm.inline_asm has_side_effects "", "=l,0"
  // CHECK-COUNT-4: vector.load {{.*}} vector<2xf32>
  // CHECK: vector.from_elements {{.*}} vector<2xf32>
  // CHECK-COUNT-4: vector.store {{.*}} vector<2xbf16>
  // CHECK-COUNT-4: vector.load {{.*}} vector<2xf32>
  // CHECK-COUNT-4: vector.store {{.*}} vector<2xbf16>
  // CHECK: gpu.return
  fp8.kernel @residual(read %x: memref<64x512xf8E4M3FN>, read %w: memref<32x512xf8E5M2>, read %r: memref<64x32xf32>, write %y: memref<64x32xbf16>) domain = [64, 32]
      plan = #fp8.gpu_plan<tile = [64, 32], sum_tile = [64, 32], threads = 128, wgmma = true, stages = 3> {
    %zero = arith.constant 0.0 : f32
    %sums = memref.alloc() : memref<64x32xf32>
    linalg.fill ins(%zero : f32) outs(%sums : memref<64x32xf32>)
    linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<64x512xf8E4M3FN>, memref<32x512xf8E5M2>) outs(%sums : memref<64x32xf32>)
        attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E4M3FN, %b: f8E5M2, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.extf %b : f8E5M2 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%sums, %r : memref<64x32xf32>, memref<64x32xf32>) outs(%y : memref<64x32xbf16>)
        attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f32, %b: f32, %o: bf16):
      %0 = arith.addf %a, %b : f32
      %1 = arith.truncf %0 : f32 to bf16
      linalg.yield %1 : bf16
    }
    fp8.return
  }

  // A sum of rows reads the sums of other threads, from shared memory.
  // CHECK: gpu.func @sum({{.*}}) workgroup({{.*}} : memref<45056xi8, #gpu.address_space<workgroup>>
  // CHECK: memref.store {{.*}} #gpu.address_space<workgroup>>
  // CHECK: gpu.shuffle
  fp8.kernel @sum(read %x: memref<64x512xf8E4M3FN>, read %w: memref<32x512xf8E5M2>, write %y: memref<64xf32>) domain = [64]
      plan = #fp8.gpu_plan<tile = [64], sum_tile = [64], threads = 128, wgmma = true, stages = 3> {
    %zero = arith.constant 0.0 : f32
    %sums = memref.alloc() : memref<64x32xf32>
    linalg.fill ins(%zero : f32) outs(%sums : memref<64x32xf32>)
    linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<64x512xf8E4M3FN>, memref<32x512xf8E5M2>) outs(%sums : memref<64x32xf32>)
        attrs = {fp8.task_dims = array<i64: 0>} {
    ^bb0(%a: f8E4M3FN, %b: f8E5M2, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.extf %b : f8E5M2 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    linalg.fill ins(%zero : f32) outs(%y : memref<64xf32>)
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%sums : memref<64x32xf32>) outs(%y : memref<64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
    ^bb0(%a: f32, %o: f32):
      %0 = arith.addf %o, %a : f32
      linalg.yield %0 : f32
    }
    fp8.return
  }
}
