// RUN: fp8-opt %s --fp8-plan-blocks | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>
#scalar = affine_map<(i, j) -> ()>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
  // A payload in two orders: the op that computes it also writes it to a buffer
  // of the block, which the transpose reads. Tiles have rows and columns.
  // CHECK: fp8.kernel @both({{.*}}write %[[Y:.*]]: memref<256x512xf8E4M3FN>, write %[[T:.*]]: memref<512x256xf8E4M3FN>) domain = [256, 512] plan = #fp8.gpu_plan<tile = [32, 128], sum_tile = [{{.*}}], threads = 128>
  // CHECK: %[[LOCAL:.*]] = memref.alloc() : memref<256x512xf8E4M3FN>
  // CHECK: linalg.generic {{.*}} outs(%[[Y]], %[[LOCAL]] :
  // CHECK: linalg.yield %[[Q:.*]], %[[Q]] :
  // CHECK: linalg.generic {{.*}} ins(%[[LOCAL]] : {{.*}} outs(%[[T]] :
  fp8.kernel @both(read %x: memref<256x512xf32>, write %y: memref<256x512xf8E4M3FN>, write %t: memref<512x256xf8E4M3FN>) domain = [256, 512] {
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<256x512xf32>) outs(%y : memref<256x512xf8E4M3FN>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f32, %o: f8E4M3FN):
      %q = arith.truncf %a : f32 to f8E4M3FN
      linalg.yield %q : f8E4M3FN
    }
    linalg.generic {indexing_maps = [#id, #turned], iterator_types = ["parallel", "parallel"]}
        ins(%y : memref<256x512xf8E4M3FN>) outs(%t : memref<512x256xf8E4M3FN>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E4M3FN, %o: f8E4M3FN):
      linalg.yield %a : f8E4M3FN
    }
    fp8.return
  }

  // More rows where there are blocks enough for a large card.
  // CHECK: fp8.kernel @large({{.*}}) domain = [4096, 4096] plan = #fp8.gpu_plan<tile = [64, 128], sum_tile = [{{.*}}], threads = 256>
  // CHECK: %[[LOCAL:.*]] = memref.alloc() : memref<4096x4096xf8E4M3FN>
  // CHECK-NOT: memref.alloc
  fp8.kernel @large(read %x: memref<4096x4096xf32>, write %t: memref<4096x4096xf8E4M3FN>) domain = [4096, 4096] {
    %y = memref.alloc() : memref<4096x4096xf8E4M3FN>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<4096x4096xf32>) outs(%y : memref<4096x4096xf8E4M3FN>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f32, %o: f8E4M3FN):
      %q = arith.truncf %a : f32 to f8E4M3FN
      linalg.yield %q : f8E4M3FN
    }
    linalg.generic {indexing_maps = [#id, #turned], iterator_types = ["parallel", "parallel"]}
        ins(%y : memref<4096x4096xf8E4M3FN>) outs(%t : memref<4096x4096xf8E4M3FN>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E4M3FN, %o: f8E4M3FN):
      linalg.yield %a : f8E4M3FN
    }
    fp8.return
  }

  // Whole rows in a block: fewer of them, by more threads.
  // CHECK: fp8.kernel @rows({{.*}}) domain = [1024] plan = #fp8.gpu_plan<tile = [16], sum_tile = [{{.*}}], threads = 512>
  fp8.kernel @rows(read %x: memref<1024x2048xf32>, write %s: memref<1024xf32>, write %t: memref<2048x1024xf8E4M3FN>) domain = [1024] {
    %zero = arith.constant 0.0 : f32
    %y = memref.alloc() : memref<1024x2048xf8E4M3FN>
    linalg.fill ins(%zero : f32) outs(%s : memref<1024xf32>)
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x : memref<1024x2048xf32>) outs(%s : memref<1024xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
    ^bb0(%a: f32, %o: f32):
      %n = arith.addf %o, %a : f32
      linalg.yield %n : f32
    }
    linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
        ins(%x, %s : memref<1024x2048xf32>, memref<1024xf32>) outs(%y : memref<1024x2048xf8E4M3FN>) attrs = {fp8.task_dims = array<i64: 0>} {
    ^bb0(%a: f32, %b: f32, %o: f8E4M3FN):
      %d = arith.divf %a, %b : f32
      %q = arith.truncf %d : f32 to f8E4M3FN
      linalg.yield %q : f8E4M3FN
    }
    linalg.generic {indexing_maps = [#id, #turned], iterator_types = ["parallel", "parallel"]}
        ins(%y : memref<1024x2048xf8E4M3FN>) outs(%t : memref<2048x1024xf8E4M3FN>) attrs = {fp8.task_dims = array<i64: 0>} {
    ^bb0(%a: f8E4M3FN, %o: f8E4M3FN):
      linalg.yield %a : f8E4M3FN
    }
    fp8.return
  }

  // A payload of another kernel is copied first.
  // CHECK: fp8.kernel @copied(read %[[X:.*]]: memref<64x48xf8E5M2>, write
  // CHECK: %[[LOCAL:.*]] = memref.alloc() : memref<64x48xf8E5M2>
  // CHECK: linalg.generic {{.*}} ins(%[[X]] : {{.*}} outs(%[[LOCAL]] :
  // CHECK: linalg.generic {{.*}} ins(%[[LOCAL]] :
  fp8.kernel @copied(read %x: memref<64x48xf8E5M2>, write %t: memref<48x64xf8E5M2>) domain = [64, 48] {
    linalg.generic {indexing_maps = [#id, #turned], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<64x48xf8E5M2>) outs(%t : memref<48x64xf8E5M2>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E5M2, %o: f8E5M2):
      linalg.yield %a : f8E5M2
    }
    fp8.return
  }

  // An op that computes a payload across the lines of its operand is split, and
  // what reads the payload reads it along these lines.
  // CHECK: fp8.kernel @across({{.*}}write %[[Y:.*]]: memref<48x64xf8E5M2>, write %[[Z:.*]]: memref<64x48xf8E5M2>) domain = [64, 48] plan = #fp8.gpu_plan<tile = [32, 48],
  // CHECK: %[[LOCAL:.*]] = memref.alloc() : memref<64x48xf8E5M2>
  // CHECK: linalg.generic {indexing_maps = [#[[ID:.*]], #[[ID]]]{{.*}} outs(%[[LOCAL]] :
  // CHECK: linalg.generic {indexing_maps = [#[[TURNED:.*]], #[[TURNED]]]{{.*}} ins(%[[LOCAL]] : {{.*}} outs(%[[Z]] :
  // CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[TURNED]]]{{.*}} ins(%[[LOCAL]] : {{.*}} outs(%[[Y]] :
  fp8.kernel @across(read %x: memref<64x48xf32>, write %y: memref<48x64xf8E5M2>, write %z: memref<64x48xf8E5M2>) domain = [64, 48] {
    linalg.generic {indexing_maps = [#id, #turned], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<64x48xf32>) outs(%y : memref<48x64xf8E5M2>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f32, %o: f8E5M2):
      %q = arith.truncf %a : f32 to f8E5M2
      linalg.yield %q : f8E5M2
    }
    linalg.generic {indexing_maps = [#id, #turned], iterator_types = ["parallel", "parallel"]}
        ins(%y : memref<48x64xf8E5M2>) outs(%z : memref<64x48xf8E5M2>) attrs = {fp8.task_dims = array<i64: 1, 0>} {
    ^bb0(%a: f8E5M2, %o: f8E5M2):
      linalg.yield %a : f8E5M2
    }
    fp8.return
  }
}
