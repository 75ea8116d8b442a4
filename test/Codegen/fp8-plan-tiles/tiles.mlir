// RUN: fp8-opt %s --fp8-plan-tiles | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#lhs = affine_map<(b, m, n, k) -> (b, m, k)>
#rhs = affine_map<(b, m, n, k) -> (b, k, n)>
#out = affine_map<(b, m, n, k) -> (b, m, n)>

// Too little work to divide.
// CHECK: fp8.kernel @small({{.*}}) domain = [16] plan = #fp8.cpu_plan<tile = [16]>
fp8.kernel @small(read %x: memref<16x16xf32>, write %y: memref<16x16xf32>) domain = [16] {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<16x16xf32>) outs(%y : memref<16x16xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  }
  fp8.return
}

// 2^20 elements are 32 tasks of 2^15.
// CHECK: fp8.kernel @large({{.*}}) domain = [1024] plan = #fp8.cpu_plan<tile = [64]>
fp8.kernel @large(read %x: memref<1024x1024xf32>, write %y: memref<1024x1024xf32>) domain = [1024] {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<1024x1024xf32>) outs(%y : memref<1024x1024xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  }
  fp8.return
}

// A dot: one batch at a time, 128 rows, all columns.
// CHECK: fp8.kernel @dot({{.*}}) domain = [8, 512, 256] plan = #fp8.cpu_plan<tile = [1, 128, 256]>
fp8.kernel @dot(read %a: memref<8x512x64xf32>, read %b: memref<8x64x256xf32>, write %c: memref<8x512x256xf32>) domain = [8, 512, 256] {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<8x512x256xf32>)
  linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x512x64xf32>, memref<8x64x256xf32>) outs(%c : memref<8x512x256xf32>)
      attrs = {fp8.task_dims = array<i64: 0, 1, 2>} {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  fp8.return
}

// The loop over 512 rows is part of every task: one index of the other.
// CHECK: fp8.kernel @rows_inside({{.*}}) domain = [8, 256] plan = #fp8.cpu_plan<tile = [1, 256]>
#lhs2 = affine_map<(b, m, n, k) -> (b, m, k)>
#rhs2 = affine_map<(b, m, n, k) -> (k, n)>
fp8.kernel @rows_inside(read %a: memref<8x512x64xf32>, read %b: memref<64x256xf32>, write %c: memref<8x512x256xf32>) domain = [8, 256] {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<8x512x256xf32>)
  linalg.generic {indexing_maps = [#lhs2, #rhs2, #out], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x512x64xf32>, memref<64x256xf32>) outs(%c : memref<8x512x256xf32>)
      attrs = {fp8.task_dims = array<i64: 0, 2>} {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  fp8.return
}

// A copy is 16 tasks; a plan that is there stays; without a body there is none.
// CHECK: fp8.kernel @copy({{.*}}) domain = [64] plan = #fp8.cpu_plan<tile = [4]> copy
fp8.kernel @copy(read %x: memref<64x16xf32>, write %y: memref<64x16xf32>) domain = [64] copy {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<64x16xf32>) outs(%y : memref<64x16xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  fp8.return
}
// CHECK: fp8.kernel @planned({{.*}}) domain = [64] plan = #fp8.cpu_plan<tile = [3]>
fp8.kernel @planned(read %x: memref<64x16xf32>, write %y: memref<64x16xf32>) domain = [64] plan = #fp8.cpu_plan<tile = [3]> {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<64x16xf32>) outs(%y : memref<64x16xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  fp8.return
}
// CHECK: fp8.kernel @elsewhere(read memref<8xf32>) domain = [8]{{$}}
fp8.kernel @elsewhere(read memref<8xf32>) domain = [8]

// 16 elements next to each other at each point, and a row of another dimension outside of it: eight points are eight lines of the cache,
// although the buffers of fewer would fit into it better.
// CHECK: fp8.kernel @columns({{.*}}) domain = [4, 256] plan = #fp8.cpu_plan<tile = [1, 8]>
#all = affine_map<(b, t, d, n) -> (b, t, d, n)>
fp8.kernel @columns(read %x: memref<4x4096x256x16xf32>, write %y: memref<4x4096x256x16xf32>) domain = [4, 256] {
  %z = memref.alloc() : memref<4x4096x256x16xf32>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : memref<4x4096x256x16xf32>) outs(%z : memref<4x4096x256x16xf32>) attrs = {fp8.task_dims = array<i64: 0, 2>} {
  ^bb0(%a: f32, %o: f32):
    %n = math.exp %a : f32
    linalg.yield %n : f32
  }
  linalg.generic {indexing_maps = [affine_map<(b, t, d, n) -> (b, (t + 1) mod 4096, d, n)>, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%z : memref<4x4096x256x16xf32>) outs(%y : memref<4x4096x256x16xf32>) attrs = {fp8.task_dims = array<i64: 0, 2>} {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  }
  fp8.return
}

// Its dot is a small part of this kernel: not a tile of 256 columns, whose buffers fit into no cache.
// CHECK: fp8.kernel @small_dot({{.*}}) domain = [4, 256] plan = #fp8.cpu_plan<tile = [1, 8]>
fp8.kernel @small_dot(read %a: memref<4x4096x8xf32>, read %b: memref<8x256xf32>, write %c: memref<4x4096x256xf32>,
                      write %y: memref<4x4096x256x16xf32>) domain = [4, 256] {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<4x4096x256xf32>)
  linalg.generic {indexing_maps = [#lhs2, #rhs2, #out], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<4x4096x8xf32>, memref<8x256xf32>) outs(%c : memref<4x4096x256xf32>) attrs = {fp8.task_dims = array<i64: 0, 2>} {
  ^bb0(%x: f32, %w: f32, %s: f32):
    %p = arith.mulf %x, %w : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  %z = memref.alloc() : memref<4x4096x256x16xf32>
  linalg.generic {indexing_maps = [affine_map<(b, t, d, n) -> (b, t, d)>, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%c : memref<4x4096x256xf32>) outs(%z : memref<4x4096x256x16xf32>) attrs = {fp8.task_dims = array<i64: 0, 2>} {
  ^bb0(%x: f32, %o: f32):
    %n = math.exp %x : f32
    linalg.yield %n : f32
  }
  linalg.generic {indexing_maps = [affine_map<(b, t, d, n) -> (b, (t + 1) mod 4096, d, n)>, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%z : memref<4x4096x256x16xf32>) outs(%y : memref<4x4096x256x16xf32>) attrs = {fp8.task_dims = array<i64: 0, 2>} {
  ^bb0(%x: f32, %o: f32):
    %n = arith.negf %x : f32
    linalg.yield %n : f32
  }
  fp8.return
}
