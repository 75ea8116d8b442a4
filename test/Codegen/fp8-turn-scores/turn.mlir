// RUN: fp8-opt %s --pass-pipeline="builtin.module(fp8.kernel(fp8-turn-scores))" | FileCheck %s

#qd = affine_map<(q, k, d) -> (q, d)>
#kd = affine_map<(q, k, d) -> (k, d)>
#s3 = affine_map<(q, k, d) -> (q, k)>
#p = affine_map<(q, d, k) -> (q, k)>
#v = affine_map<(q, d, k) -> (k, d)>
#o = affine_map<(q, d, k) -> (q, d)>
#s = affine_map<(q, k) -> (q, k)>
#r = affine_map<(q, k) -> (q)>
#c = affine_map<(q, k) -> (k)>

// CHECK-DAG: #[[KEYS:.*]] = affine_map<(d0, d1, d2) -> (d1, d0)>
// CHECK-DAG: #[[OF_DOT:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG: #[[TURNED:.*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: fp8.kernel @attend
// CHECK: %[[S:.*]] = memref.alloc() : memref<64x32xf32>
// CHECK: indexing_maps = [#{{.*}}, #{{.*}}, #[[KEYS]]]
// CHECK-SAME: outs(%[[S]] : memref<64x32xf32>)
// CHECK: indexing_maps = [#[[TURNED]], #[[ROW]]]
// CHECK: %[[W:.*]] = memref.alloc() : memref<64x32xf32>
// CHECK: indexing_maps = [#[[TURNED]], #[[ROW]], #[[TURNED]]]
// CHECK: indexing_maps = [#[[OF_DOT]], #{{.*}}, #{{.*}}]
// CHECK-SAME: ins(%[[W]], %{{.*}} : memref<64x32xf32>, memref<64x8xf32>)
fp8.kernel @attend(read %q: memref<32x8xf32>, read %k: memref<64x8xf32>, read %v: memref<64x8xf32>, write %y: memref<32x8xf32>) domain = [32] {
  %zero = arith.constant 0.0 : f32
  %scores = memref.alloc() : memref<32x64xf32>
  linalg.fill ins(%zero : f32) outs(%scores : memref<32x64xf32>)
  linalg.generic {indexing_maps = [#qd, #kd, #s3], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : memref<32x8xf32>, memref<64x8xf32>) outs(%scores : memref<32x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%e: f32, %f: f32, %z: f32):
    %0 = arith.mulf %e, %f : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  %sum = memref.alloc() : memref<32xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<32xf32>)
  linalg.generic {indexing_maps = [#s, #r], iterator_types = ["parallel", "reduction"]}
      ins(%scores : memref<32x64xf32>) outs(%sum : memref<32xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %z: f32):
    %0 = arith.addf %z, %x : f32
    linalg.yield %0 : f32
  }
  %weights = memref.alloc() : memref<32x64xf32>
  linalg.generic {indexing_maps = [#s, #r, #s], iterator_types = ["parallel", "parallel"]}
      ins(%scores, %sum : memref<32x64xf32>, memref<32xf32>) outs(%weights : memref<32x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %n: f32, %z: f32):
    %i = linalg.index 1 : index
    %0 = arith.divf %x, %n : f32
    linalg.yield %0 : f32
  }
  linalg.fill ins(%zero : f32) outs(%y : memref<32x8xf32>)
  linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%weights, %v : memref<32x64xf32>, memref<64x8xf32>) outs(%y : memref<32x8xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%e: f32, %f: f32, %z: f32):
    %0 = arith.mulf %e, %f : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  fp8.return
}

// A number for each query is a vector, too.
// CHECK-LABEL: fp8.kernel @bias_of_queries
// CHECK: memref.alloc() : memref<64x32xf32>
fp8.kernel @bias_of_queries(read %q: memref<32x8xf32>, read %k: memref<64x8xf32>, read %v: memref<64x8xf32>, read %bias: memref<32xf32>, write %y: memref<32x8xf32>) domain = [32] {
  %zero = arith.constant 0.0 : f32
  %scores = memref.alloc() : memref<32x64xf32>
  linalg.fill ins(%zero : f32) outs(%scores : memref<32x64xf32>)
  linalg.generic {indexing_maps = [#qd, #kd, #s3], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : memref<32x8xf32>, memref<64x8xf32>) outs(%scores : memref<32x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%e: f32, %f: f32, %z: f32):
    %0 = arith.mulf %e, %f : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  %sum = memref.alloc() : memref<32xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<32xf32>)
  linalg.generic {indexing_maps = [#s, #r, #r], iterator_types = ["parallel", "reduction"]}
      ins(%scores, %bias : memref<32x64xf32>, memref<32xf32>) outs(%sum : memref<32xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %b: f32, %z: f32):
    %w = arith.addf %x, %b : f32
    %0 = arith.addf %z, %w : f32
    linalg.yield %0 : f32
  }
  %weights = memref.alloc() : memref<32x64xf32>
  linalg.generic {indexing_maps = [#s, #r, #s], iterator_types = ["parallel", "parallel"]}
      ins(%scores, %sum : memref<32x64xf32>, memref<32xf32>) outs(%weights : memref<32x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %n: f32, %z: f32):
    %i = linalg.index 1 : index
    %0 = arith.divf %x, %n : f32
    linalg.yield %0 : f32
  }
  linalg.fill ins(%zero : f32) outs(%y : memref<32x8xf32>)
  linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%weights, %v : memref<32x64xf32>, memref<64x8xf32>) outs(%y : memref<32x8xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%e: f32, %f: f32, %z: f32):
    %0 = arith.mulf %e, %f : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  fp8.return
}

// A bias in memory has rows of keys: vectors along queries would gather it.
// CHECK-LABEL: fp8.kernel @bias(
// CHECK-NOT: memref<64x32xf32>
fp8.kernel @bias(read %q: memref<32x8xf32>, read %k: memref<64x8xf32>, read %v: memref<64x8xf32>, read %bias: memref<32x64xf32>, write %y: memref<32x8xf32>) domain = [32] {
  %zero = arith.constant 0.0 : f32
  %scores = memref.alloc() : memref<32x64xf32>
  linalg.fill ins(%zero : f32) outs(%scores : memref<32x64xf32>)
  linalg.generic {indexing_maps = [#qd, #kd, #s3], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : memref<32x8xf32>, memref<64x8xf32>) outs(%scores : memref<32x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%e: f32, %f: f32, %z: f32):
    %0 = arith.mulf %e, %f : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  %sum = memref.alloc() : memref<32xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<32xf32>)
  linalg.generic {indexing_maps = [#s, #s, #r], iterator_types = ["parallel", "reduction"]}
      ins(%scores, %bias : memref<32x64xf32>, memref<32x64xf32>) outs(%sum : memref<32xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %b: f32, %z: f32):
    %w = arith.addf %x, %b : f32
    %0 = arith.addf %z, %w : f32
    linalg.yield %0 : f32
  }
  %weights = memref.alloc() : memref<32x64xf32>
  linalg.generic {indexing_maps = [#s, #r, #s], iterator_types = ["parallel", "parallel"]}
      ins(%scores, %sum : memref<32x64xf32>, memref<32xf32>) outs(%weights : memref<32x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %n: f32, %z: f32):
    %i = linalg.index 1 : index
    %0 = arith.divf %x, %n : f32
    linalg.yield %0 : f32
  }
  linalg.fill ins(%zero : f32) outs(%y : memref<32x8xf32>)
  linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%weights, %v : memref<32x64xf32>, memref<64x8xf32>) outs(%y : memref<32x8xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%e: f32, %f: f32, %z: f32):
    %0 = arith.mulf %e, %f : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  fp8.return
}

// CHECK-LABEL: fp8.kernel @bias_of_keys
// CHECK-NOT: memref<64x32xf32>
fp8.kernel @bias_of_keys(read %q: memref<32x8xf32>, read %k: memref<64x8xf32>, read %v: memref<64x8xf32>, read %bias: memref<64xf32>, write %y: memref<32x8xf32>) domain = [32] {
  %zero = arith.constant 0.0 : f32
  %scores = memref.alloc() : memref<32x64xf32>
  linalg.fill ins(%zero : f32) outs(%scores : memref<32x64xf32>)
  linalg.generic {indexing_maps = [#qd, #kd, #s3], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : memref<32x8xf32>, memref<64x8xf32>) outs(%scores : memref<32x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%e: f32, %f: f32, %z: f32):
    %0 = arith.mulf %e, %f : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  %sum = memref.alloc() : memref<32xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<32xf32>)
  linalg.generic {indexing_maps = [#s, #c, #r], iterator_types = ["parallel", "reduction"]}
      ins(%scores, %bias : memref<32x64xf32>, memref<64xf32>) outs(%sum : memref<32xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %b: f32, %z: f32):
    %w = arith.addf %x, %b : f32
    %0 = arith.addf %z, %w : f32
    linalg.yield %0 : f32
  }
  %weights = memref.alloc() : memref<32x64xf32>
  linalg.generic {indexing_maps = [#s, #r, #s], iterator_types = ["parallel", "parallel"]}
      ins(%scores, %sum : memref<32x64xf32>, memref<32xf32>) outs(%weights : memref<32x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %n: f32, %z: f32):
    %i = linalg.index 1 : index
    %0 = arith.divf %x, %n : f32
    linalg.yield %0 : f32
  }
  linalg.fill ins(%zero : f32) outs(%y : memref<32x8xf32>)
  linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%weights, %v : memref<32x64xf32>, memref<64x8xf32>) outs(%y : memref<32x8xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%e: f32, %f: f32, %z: f32):
    %0 = arith.mulf %e, %f : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  fp8.return
}

// 24 queries are no whole vectors.
// CHECK-LABEL: fp8.kernel @few_queries
// CHECK-NOT: memref<64x24xf32>
fp8.kernel @few_queries(read %q: memref<24x8xf32>, read %k: memref<64x8xf32>, read %v: memref<64x8xf32>, write %y: memref<24x8xf32>) domain = [24] {
  %zero = arith.constant 0.0 : f32
  %scores = memref.alloc() : memref<24x64xf32>
  linalg.fill ins(%zero : f32) outs(%scores : memref<24x64xf32>)
  linalg.generic {indexing_maps = [#qd, #kd, #s3], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : memref<24x8xf32>, memref<64x8xf32>) outs(%scores : memref<24x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%e: f32, %f: f32, %z: f32):
    %0 = arith.mulf %e, %f : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  %sum = memref.alloc() : memref<24xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<24xf32>)
  linalg.generic {indexing_maps = [#s, #r], iterator_types = ["parallel", "reduction"]}
      ins(%scores : memref<24x64xf32>) outs(%sum : memref<24xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %z: f32):
    %0 = arith.addf %z, %x : f32
    linalg.yield %0 : f32
  }
  %weights = memref.alloc() : memref<24x64xf32>
  linalg.generic {indexing_maps = [#s, #r, #s], iterator_types = ["parallel", "parallel"]}
      ins(%scores, %sum : memref<24x64xf32>, memref<24xf32>) outs(%weights : memref<24x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %n: f32, %z: f32):
    %i = linalg.index 1 : index
    %0 = arith.divf %x, %n : f32
    linalg.yield %0 : f32
  }
  linalg.fill ins(%zero : f32) outs(%y : memref<24x8xf32>)
  linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%weights, %v : memref<24x64xf32>, memref<64x8xf32>) outs(%y : memref<24x8xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%e: f32, %f: f32, %z: f32):
    %0 = arith.mulf %e, %f : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  fp8.return
}

// A dot of bf16 packs pairs along k.
// CHECK-LABEL: fp8.kernel @pairs
// CHECK-NOT: memref<64x32xf32>
fp8.kernel @pairs(read %q: memref<32x8xbf16>, read %k: memref<64x8xbf16>, read %v: memref<64x8xf32>, write %y: memref<32x8xf32>) domain = [32] {
  %zero = arith.constant 0.0 : f32
  %scores = memref.alloc() : memref<32x64xf32>
  linalg.fill ins(%zero : f32) outs(%scores : memref<32x64xf32>)
  linalg.generic {indexing_maps = [#qd, #kd, #s3], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : memref<32x8xbf16>, memref<64x8xbf16>) outs(%scores : memref<32x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%e: bf16, %f: bf16, %z: f32):
    %a = arith.extf %e : bf16 to f32
    %b = arith.extf %f : bf16 to f32
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  %sum = memref.alloc() : memref<32xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<32xf32>)
  linalg.generic {indexing_maps = [#s, #r], iterator_types = ["parallel", "reduction"]}
      ins(%scores : memref<32x64xf32>) outs(%sum : memref<32xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %z: f32):
    %0 = arith.addf %z, %x : f32
    linalg.yield %0 : f32
  }
  %weights = memref.alloc() : memref<32x64xf32>
  linalg.generic {indexing_maps = [#s, #r, #s], iterator_types = ["parallel", "parallel"]}
      ins(%scores, %sum : memref<32x64xf32>, memref<32xf32>) outs(%weights : memref<32x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %n: f32, %z: f32):
    %i = linalg.index 1 : index
    %0 = arith.divf %x, %n : f32
    linalg.yield %0 : f32
  }
  linalg.fill ins(%zero : f32) outs(%y : memref<32x8xf32>)
  linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%weights, %v : memref<32x64xf32>, memref<64x8xf32>) outs(%y : memref<32x8xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%e: f32, %f: f32, %z: f32):
    %0 = arith.mulf %e, %f : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  fp8.return
}
