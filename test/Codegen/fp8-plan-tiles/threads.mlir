// With more threads, dots are divided into smaller tasks.
//
// RUN: fp8-opt %s --fp8-plan-tiles | FileCheck %s --check-prefix=ONE
// RUN: fp8-opt %s --fp8-plan-tiles=threads=2 | FileCheck %s --check-prefix=ONE
// RUN: fp8-opt %s --fp8-plan-tiles=threads=16 | FileCheck %s --check-prefix=MANY

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>
#row = affine_map<(m, n) -> (m)>
#column = affine_map<(m, n) -> (n)>
#both = affine_map<(m, n) -> (m, n)>

// 16 tasks of 128 rows: one a thread.
// ONE:  fp8.kernel @tall({{.*}}) domain = [2048, 1376] plan = #fp8.cpu_plan<tile = [128, 1376]>
// MANY: fp8.kernel @tall({{.*}}) domain = [2048, 1376] plan = #fp8.cpu_plan<tile = [128, 1376]>
fp8.kernel @tall(read %a: memref<2048x512xf32>, read %b: memref<512x1376xf32>, write %c: memref<2048x1376xf32>) domain = [2048, 1376] {
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

// Few rows: the columns are divided, too.
// ONE:  fp8.kernel @flat({{.*}}) domain = [512, 1376] plan = #fp8.cpu_plan<tile = [128, 704]>
// MANY: fp8.kernel @flat({{.*}}) domain = [512, 1376] plan = #fp8.cpu_plan<tile = [128, 352]>
fp8.kernel @flat(read %a: memref<512x2048xf32>, read %b: memref<2048x1376xf32>, write %c: memref<512x1376xf32>) domain = [512, 1376] {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<512x1376xf32>)
  linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<512x2048xf32>, memref<2048x1376xf32>) outs(%c : memref<512x1376xf32>)
      attrs = {fp8.task_dims = array<i64: 0, 1>} {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  fp8.return
}

// A task sums whole rows, so only the rows are divided.
// ONE:  fp8.kernel @row_sums({{.*}}) domain = [512] plan = #fp8.cpu_plan<tile = [128]>
// MANY: fp8.kernel @row_sums({{.*}}) domain = [512] plan = #fp8.cpu_plan<tile = [32]>
fp8.kernel @row_sums(read %a: memref<512x2048xf32>, read %b: memref<2048x1376xf32>, write %c: memref<512x1376xf32>, write %r: memref<512xf32>) domain = [512] {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<512x1376xf32>)
  linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<512x2048xf32>, memref<2048x1376xf32>) outs(%c : memref<512x1376xf32>)
      attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  linalg.fill ins(%zero : f32) outs(%r : memref<512xf32>)
  linalg.generic {indexing_maps = [#both, #row], iterator_types = ["parallel", "reduction"]}
      ins(%c : memref<512x1376xf32>) outs(%r : memref<512xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %s: f32):
    %t = arith.addf %s, %x : f32
    linalg.yield %t : f32
  }
  fp8.return
}

// A task sums whole columns, so only the columns are divided.
// ONE:  fp8.kernel @column_sums({{.*}}) domain = [512] plan = #fp8.cpu_plan<tile = [128]>
// MANY: fp8.kernel @column_sums({{.*}}) domain = [512] plan = #fp8.cpu_plan<tile = [32]>
fp8.kernel @column_sums(read %a: memref<2048x1376xf32>, read %b: memref<1376x512xf32>, write %c: memref<2048x512xf32>, write %r: memref<512xf32>) domain = [512] {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<2048x512xf32>)
  linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<2048x1376xf32>, memref<1376x512xf32>) outs(%c : memref<2048x512xf32>)
      attrs = {fp8.task_dims = array<i64: 1>} {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  linalg.fill ins(%zero : f32) outs(%r : memref<512xf32>)
  linalg.generic {indexing_maps = [#both, #column], iterator_types = ["reduction", "parallel"]}
      ins(%c : memref<2048x512xf32>) outs(%r : memref<512xf32>) attrs = {fp8.task_dims = array<i64: 1>} {
  ^bb0(%x: f32, %s: f32):
    %t = arith.addf %s, %x : f32
    linalg.yield %t : f32
  }
  fp8.return
}
