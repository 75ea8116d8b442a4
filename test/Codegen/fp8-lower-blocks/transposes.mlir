// RUN: fp8-opt %s --fp8-lower-blocks --canonicalize --split-input-file | FileCheck %s

// A block leaves the payload in shared memory, in lines of 33 words, transposes
// squares of four words and stores 16 bytes of four columns.

#id = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
  // CHECK: fp8.gpu_launch<blocks = 4, threads = 128, shared = 8448,
  // CHECK: gpu.func @words(%{{.*}}, %[[T:.*]]: memref<256x128xf8E4M3FN> {{.*}}) workgroup(
  // CHECK: memref.subview %{{.*}}[0, 0] [64, 128] [1, 1] : memref<64x132xf8E4M3FN, {{.*}}> to memref<64x128xf8E4M3FN, strided<[132, 1]>
  // CHECK: vector.store %{{.*}} {alignment = 4 : i64} : {{.*}}strided<[132, 1]>{{.*}}, vector<4xf8E4M3FN>
  // CHECK: gpu.barrier
  // CHECK-COUNT-4: vector.load %{{.*}} {alignment = 4 : i64} : {{.*}}, vector<4xf8E4M3FN>
  // CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 4, 1, 5]
  // CHECK-COUNT-12: vector.load %{{.*}} {alignment = 4 : i64} : {{.*}}, vector<4xf8E4M3FN>
  // CHECK-COUNT-4: vector.store %{{.*}}, %[[T]][%{{.*}}] {alignment = 16 : i64} : memref<256x128xf8E4M3FN>, vector<16xf8E4M3FN>
  // CHECK-NOT: vector.store
  fp8.kernel @words(read %x: memref<128x256xf32>, write %t: memref<256x128xf8E4M3FN>) domain = [128, 256]
      plan = #fp8.gpu_plan<tile = [64, 128], sum_tile = [128, 256], threads = 128> {
    %y = memref.alloc() : memref<128x256xf8E4M3FN>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<128x256xf32>) outs(%y : memref<128x256xf8E4M3FN>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f32, %o: f8E4M3FN):
      %q = arith.truncf %a : f32 to f8E4M3FN
      linalg.yield %q : f8E4M3FN
    }
    linalg.generic {indexing_maps = [#id, #turned], iterator_types = ["parallel", "parallel"]}
        ins(%y : memref<128x256xf8E4M3FN>) outs(%t : memref<256x128xf8E4M3FN>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E4M3FN, %o: f8E4M3FN):
      linalg.yield %a : f8E4M3FN
    }
    fp8.return
  }
}

// -----

// Odd extents: byte by byte, and adjacent threads have adjacent rows.

#id = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
  // CHECK: gpu.func @bytes(%{{.*}}, %[[T:.*]]: memref<38x33xf8E4M3FN> {{.*}}) workgroup(
  // CHECK: gpu.barrier
  // CHECK: %[[V:.*]] = memref.load
  // CHECK: memref.store %[[V]], %[[T]][
  fp8.kernel @bytes(read %x: memref<33x38xf32>, write %t: memref<38x33xf8E4M3FN>) domain = [33, 38]
      plan = #fp8.gpu_plan<tile = [33, 38], sum_tile = [33, 38], threads = 128> {
    %y = memref.alloc() : memref<33x38xf8E4M3FN>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<33x38xf32>) outs(%y : memref<33x38xf8E4M3FN>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f32, %o: f8E4M3FN):
      %q = arith.truncf %a : f32 to f8E4M3FN
      linalg.yield %q : f8E4M3FN
    }
    linalg.generic {indexing_maps = [#id, #turned], iterator_types = ["parallel", "parallel"]}
        ins(%y : memref<33x38xf8E4M3FN>) outs(%t : memref<38x33xf8E4M3FN>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E4M3FN, %o: f8E4M3FN):
      linalg.yield %a : f8E4M3FN
    }
    fp8.return
  }
}
