// RUN: fp8-opt %s --fp8-target=cpu=x86-64-v3 --fp8-plan-tiles --fp8-lower-kernels | FileCheck %s

// A scalar that the kernel only reads is marked, so that LLVM may load it before the loops. (The task and its
// scratch come first.)
// CHECK: func.func private @scale(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}: memref<64xf32>, %{{[^,]*}}: memref<f32> {llvm.noalias}, %{{[^,]*}}: memref<64xf32>)
fp8.kernel @scale(read %x: memref<64xf32>, read %scale: memref<f32>, write %y: memref<64xf32>) domain = [64] {
  linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}
      ins(%x, %scale : memref<64xf32>, memref<f32>) outs(%y : memref<64xf32>)
      attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %s: f32, %o: f32):
    %p = arith.mulf %a, %s : f32
    linalg.yield %p : f32
  }
  fp8.return
}

// A launch may put the result of a step counter in the counter's place.
// CHECK: func.func private @count(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}: memref<i32>, %{{[^,]*}}: memref<f64> {llvm.noalias}, %{{[^,]*}}: memref<i32>, %{{[^,]*}}: memref<8xf64>)
fp8.kernel @count(read %n: memref<i32>, read %x: memref<f64>, write %next: memref<i32>, write %y: memref<8xf64>) domain = [] {
  linalg.generic {
      indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>],
      iterator_types = []}
      ins(%n : memref<i32>) outs(%next : memref<i32>)
      attrs = {fp8.task_dims = array<i64>} {
  ^bb0(%a: i32, %o: i32):
    %one = arith.constant 1 : i32
    %b = arith.addi %a, %one : i32
    linalg.yield %b : i32
  }
  linalg.generic {
      indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}
      ins(%x : memref<f64>) outs(%y : memref<8xf64>)
      attrs = {fp8.task_dims = array<i64>} {
  ^bb0(%a: f64, %o: f64):
    linalg.yield %a : f64
  }
  fp8.return
}
