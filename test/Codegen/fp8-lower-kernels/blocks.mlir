// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-target=cpu=x86-64-v3 --fp8-lower-kernels | FileCheck %s

#lhs = affine_map<(b, m, n, k) -> (b, k, m)>
#rhs = affine_map<(b, m, n, k) -> (b, k, n)>
#out = affine_map<(b, m, n, k) -> (b, m, n)>

// The last loop is not divided: each task runs all ten iterations, in blocks of four.
// The sum is zero before the first block, and each block adds to it; the last
// one has two iterations.
// CHECK-LABEL: func.func private @sum
// CHECK-SAME: fp8.tasks = 3 : i64
// CHECK: memref.store
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c8{{.*}} step %c4
// CHECK: %[[FIRST:.*]] = arith.constant false
// CHECK: scf.if %[[FIRST]]
// CHECK: vector.load
// CHECK: arith.addf
// CHECK: vector.store
// CHECK: scf.if
fp8.kernel @sum(read %a: memref<3x10x16xf32>, read %b: memref<3x10x16xf32>, write %c: memref<3x16x16xf32>) domain = [3, 10] block = 4 plan = #fp8.cpu_plan<tile = [1, 4]> {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<3x16x16xf32>)
  linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<3x10x16xf32>, memref<3x10x16xf32>) outs(%c : memref<3x16x16xf32>) attrs = {fp8.task_dims = array<i64: 0, 3>} {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  }
  fp8.return
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// One op cuts the local along the first loop, and another writes all of it.
fp8.kernel @local(read %x: memref<8x16xf32>, write %y: memref<8x16xf32>) domain = [8] plan = #fp8.cpu_plan<tile = [1]> {
  %t = memref.alloc() : memref<8x16xf32>
  // expected-error @+1 {{expected to run over loop 0 of the domain, along which its result is cut}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x16xf32>) outs(%t : memref<8x16xf32>) attrs = {fp8.task_dims = array<i64: -1>} {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x16xf32>) outs(%t : memref<8x16xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %o: f32):
    %n = arith.addf %a, %o : f32
    linalg.yield %n : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%t : memref<8x16xf32>) outs(%y : memref<8x16xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  fp8.return
}
