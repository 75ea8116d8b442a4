// Tasks with tile registers have more rows, for packing the columns takes as
// long as multiplying them with a hundred rows. Dots of f32 use vectors.
//
// RUN: fp8-opt %s --fp8-target=cpu=sapphirerapids --fp8-plan-tiles=threads=2 | FileCheck %s

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>
#both = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (m)>

// CHECK: fp8.kernel @f8({{.*}}) domain = [2048, 1376] plan = #fp8.cpu_plan<tile = [512, 704]>
fp8.kernel @f8(read %a: memref<2048x512xf8E4M3FN>, read %b: memref<512x1376xf8E4M3FN>, write %c: memref<2048x1376xf32>) domain = [2048, 1376] {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<2048x1376xf32>)
  linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<2048x512xf8E4M3FN>, memref<512x1376xf8E4M3FN>) outs(%c : memref<2048x1376xf32>)
      attrs = {fp8.task_dims = array<i64: 0, 1>} {
  ^bb0(%x: f8E4M3FN, %y: f8E4M3FN, %s: f32):
    %0 = arith.extf %x : f8E4M3FN to f32
    %1 = arith.extf %y : f8E4M3FN to f32
    %p = arith.mulf %0, %1 : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  fp8.return
}

// CHECK: fp8.kernel @f32({{.*}}) domain = [2048, 1376] plan = #fp8.cpu_plan<tile = [128, 1376]>
fp8.kernel @f32(read %a: memref<2048x512xf32>, read %b: memref<512x1376xf32>, write %c: memref<2048x1376xf32>) domain = [2048, 1376] {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<2048x1376xf32>)
  linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<2048x512xf32>, memref<512x1376xf32>) outs(%c : memref<2048x1376xf32>)
      attrs = {fp8.task_dims = array<i64: 0, 1>} {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  fp8.return
}

// The local sums of a task with 512 rows would not stay in the cache.
// CHECK: fp8.kernel @row_sums({{.*}}) domain = [2048] plan = #fp8.cpu_plan<tile = [128]>
fp8.kernel @row_sums(read %a: memref<2048x512xf8E4M3FN>, read %b: memref<512x2048xf8E4M3FN>, write %r: memref<2048xf32>) domain = [2048] {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<2048x2048xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<2048x2048xf32>)
  linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<2048x512xf8E4M3FN>, memref<512x2048xf8E4M3FN>) outs(%c : memref<2048x2048xf32>)
      attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f8E4M3FN, %y: f8E4M3FN, %s: f32):
    %0 = arith.extf %x : f8E4M3FN to f32
    %1 = arith.extf %y : f8E4M3FN to f32
    %p = arith.mulf %0, %1 : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  linalg.fill ins(%zero : f32) outs(%r : memref<2048xf32>)
  linalg.generic {indexing_maps = [#both, #row], iterator_types = ["parallel", "reduction"]}
      ins(%c : memref<2048x2048xf32>) outs(%r : memref<2048xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %s: f32):
    %t = arith.addf %s, %x : f32
    linalg.yield %t : f32
  }
  fp8.return
}
