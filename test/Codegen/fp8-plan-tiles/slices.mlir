// RUN: fp8-opt %s --fp8-plan-tiles | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#one = affine_map<(i) -> (i)>

// Without slices a tile of 30 rows has 10 rows, which would span two of 6 slices.
// CHECK: fp8.kernel @rows({{.*}}) domain = [30, 4096] plan = #fp8.cpu_plan<tile = [5, 4096]> attributes {fp8.slices = 6 : i64}
fp8.kernel @rows(read %x: memref<30x4096xf32>, write %y: memref<30x4096xf32>) domain = [30, 4096] attributes {fp8.slices = 6 : i64} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<30x4096xf32>) outs(%y : memref<30x4096xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  }
  fp8.return
}

// With one element per slice, each slice has one task.
// CHECK: fp8.kernel @numbers({{.*}}) domain = [6] plan = #fp8.cpu_plan<tile = [1]>
fp8.kernel @numbers(read %x: memref<6xf32>, write %y: memref<6xf32>) domain = [6] attributes {fp8.slices = 6 : i64} {
  linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%x : memref<6xf32>) outs(%y : memref<6xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  }
  fp8.return
}

// A copy, which has tiles of 4 rows without slices, does not span slices either.
// CHECK: fp8.kernel @copied({{.*}}) domain = [60] plan = #fp8.cpu_plan<tile = [3]> copy
fp8.kernel @copied(read %x: memref<60x64xf32>, write %y: memref<60x64xf32>) domain = [60] copy attributes {fp8.slices = 4 : i64} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<60x64xf32>) outs(%y : memref<60x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  fp8.return
}
