// Blocks of an attention whose domain divides keys run only the steps in which
// some query sees some key under the causal mask.
// RUN: fp8-opt %s --fp8-plan-blocks --fp8-lower-blocks --canonicalize --cse | FileCheck %s

#q = affine_map<(i, j, d) -> (i, d)>
#k = affine_map<(i, j, d) -> (j, d)>
#s = affine_map<(i, j, d) -> (i, j)>
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>
#pt = affine_map<(j, d, i) -> (i, j)>
#dot = affine_map<(j, d, i) -> (i, d)>
#dv = affine_map<(j, d, i) -> (j, d)>
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {

  // Queries in order: a tile of 60 keys begins with the block of the first query
  // that sees one of them. A thread's sums are stored behind the last one.
  // CHECK-LABEL: gpu.func @by_keys(
  // CHECK: %[[SUMS:.*]] = memref.alloca() : memref<32xf32>
  // CHECK: %[[TILE:.*]] = arith.remui %block_id_x, %c10
  // CHECK: %[[KEY:.*]] = arith.muli %[[TILE]], %c60
  // CHECK: %[[SEEN:.*]] = arith.maxsi %[[KEY]], %c0
  // CHECK: %[[NUMBER:.*]] = arith.divui %[[SEEN]], %c60
  // CHECK: %[[FIRST:.*]] = arith.muli %[[NUMBER]], %c60
  // CHECK: scf.for %{{.*}} = %[[FIRST]] to %c600 step %c60
  // CHECK-COUNT-32: memref.load %[[SUMS]]
  // CHECK-COUNT-32: memref.store %{{.*}}, %[[SUMS]]
  // CHECK: gpu.barrier
  // CHECK-NEXT: }
  // CHECK-COUNT-32: memref.load %[[SUMS]]
  fp8.kernel @by_keys(read %a: memref<600x64xf32>, read %b: memref<600x64xf32>, read %c: memref<600x64xf32>, read %m: memref<600xf32>, write %y: memref<600x64xf32>) domain = [600, 600] block = 128 {
    %zero = arith.constant 0.0 : f32
    %low = arith.constant -1.0e30 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %scores = memref.alloc() : memref<600x600xf32>
    linalg.fill ins(%zero : f32) outs(%scores : memref<600x600xf32>)
    linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<600x64xf32>, memref<600x64xf32>) outs(%scores : memref<600x600xf32>) attrs = {fp8.task_dims = array<i64: 1, 0>} {
    ^bb0(%x: f32, %w: f32, %z: f32):
      %0 = arith.mulf %x, %w : f32
      %1 = arith.addf %z, %0 : f32
      linalg.yield %1 : f32
    }
    %weights = memref.alloc() : memref<600x600xf32>
    linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
        ins(%scores, %m : memref<600x600xf32>, memref<600xf32>) outs(%weights : memref<600x600xf32>) attrs = {fp8.task_dims = array<i64: 1, 0>} {
    ^bb0(%x: f32, %r: f32, %z: f32):
      %query = linalg.index 0 : index
      %key = linalg.index 1 : index
      %sees = arith.cmpi sge, %query, %key : index
      %0 = arith.select %sees, %x, %low : f32
      %1 = arith.subf %0, %r : f32
      %2 = math.exp %1 : f32
      linalg.yield %2 : f32
    }
    linalg.fill ins(%zero : f32) outs(%y : memref<600x64xf32>)
    linalg.generic {indexing_maps = [#pt, #dot, #dv], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%weights, %c : memref<600x600xf32>, memref<600x64xf32>) outs(%y : memref<600x64xf32>) attrs = {fp8.task_dims = array<i64: 0, 2>} {
    ^bb0(%x: f32, %w: f32, %z: f32):
      %0 = arith.mulf %x, %w : f32
      %1 = arith.addf %z, %0 : f32
      linalg.yield %1 : f32
    }
    fp8.return
  }

  // An operand with a value for each key, too: the exponential subtracts the
  // values of rows.
  // CHECK-LABEL: gpu.func @both(
  // CHECK: %[[SEEN:.*]] = arith.maxsi %{{.*}}, %c0
  // CHECK: %[[NUMBER:.*]] = arith.divui %[[SEEN]], %c60
  // CHECK: %[[FIRST:.*]] = arith.muli %[[NUMBER]], %c60
  // CHECK: scf.for %{{.*}} = %[[FIRST]] to %c600 step %c60
  fp8.kernel @both(read %a: memref<600x64xf32>, read %b: memref<600x64xf32>, read %c: memref<600x64xf32>, read %m: memref<600xf32>, read %n: memref<600xf32>, write %y: memref<600x64xf32>) domain = [600, 600] block = 128 {
    %zero = arith.constant 0.0 : f32
    %low = arith.constant -1.0e30 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %scores = memref.alloc() : memref<600x600xf32>
    linalg.fill ins(%zero : f32) outs(%scores : memref<600x600xf32>)
    linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<600x64xf32>, memref<600x64xf32>) outs(%scores : memref<600x600xf32>) attrs = {fp8.task_dims = array<i64: 1, 0>} {
    ^bb0(%x: f32, %w: f32, %z: f32):
      %0 = arith.mulf %x, %w : f32
      %1 = arith.addf %z, %0 : f32
      linalg.yield %1 : f32
    }
    %weights = memref.alloc() : memref<600x600xf32>
    linalg.generic {indexing_maps = [#ij, #i, #j, #ij], iterator_types = ["parallel", "parallel"]}
        ins(%scores, %m, %n : memref<600x600xf32>, memref<600xf32>, memref<600xf32>) outs(%weights : memref<600x600xf32>) attrs = {fp8.task_dims = array<i64: 1, 0>} {
    ^bb0(%x: f32, %r: f32, %u: f32, %z: f32):
      %query = linalg.index 0 : index
      %key = linalg.index 1 : index
      %sees = arith.cmpi sge, %query, %key : index
      %0 = arith.select %sees, %x, %low : f32
      %1 = arith.subf %0, %r : f32
      %2 = math.exp %1 : f32
      linalg.yield %2 : f32
    }
    linalg.fill ins(%zero : f32) outs(%y : memref<600x64xf32>)
    linalg.generic {indexing_maps = [#pt, #dot, #dv], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%weights, %c : memref<600x600xf32>, memref<600x64xf32>) outs(%y : memref<600x64xf32>) attrs = {fp8.task_dims = array<i64: 0, 2>} {
    ^bb0(%x: f32, %w: f32, %z: f32):
      %0 = arith.mulf %x, %w : f32
      %1 = arith.addf %z, %0 : f32
      linalg.yield %1 : f32
    }
    fp8.return
  }

  // Padding may hide all keys of a row that the causal mask shows. The threads
  // look at the maxima of all rows, and the block begins with the first query if
  // one has no visible key.
  // CHECK-LABEL: gpu.func @padded(
  // CHECK-SAME: %[[ROWS:[^ ]*]]: memref<600xf32>
  // CHECK: %[[ALL:.*]] = scf.for %[[I:.*]] = %thread_id_x to %c600 step %c128 iter_args(%[[SO_FAR:.*]] = %true)
  // CHECK:   %[[ROW:.*]] = memref.load %[[ROWS]][%[[I]]]
  // CHECK:   %[[SEES:.*]] = arith.cmpf ogt, %[[ROW]], %{{.*}} : f32
  // CHECK:   %[[AND:.*]] = arith.andi %[[SO_FAR]], %[[SEES]]
  // CHECK:   scf.yield %[[AND]]
  // CHECK: %[[OWN:.*]] = arith.extui %[[ALL]] : i1 to i32
  // CHECK: %[[BLOCK:.*]] = nvvm.barrier #nvvm.reduction<and> %[[OWN]] -> i32
  // CHECK: %[[EVERY:.*]] = arith.cmpi ne, %[[BLOCK]], %c0_i32
  // CHECK: %[[SEEN:.*]] = arith.maxsi %{{.*}}, %c0
  // CHECK: %[[NUMBER:.*]] = arith.divui %[[SEEN]], %c60
  // CHECK: %[[BAND:.*]] = arith.muli %[[NUMBER]], %c60
  // CHECK: %[[FIRST:.*]] = arith.select %[[EVERY]], %[[BAND]], %c0
  // CHECK: scf.for %{{.*}} = %[[FIRST]] to %c600 step %c60
  fp8.kernel @padded(read %a: memref<600x64xf32>, read %b: memref<600x64xf32>, read %c: memref<600x64xf32>, read %m: memref<600xf32>, read %n: memref<600xi1>, write %y: memref<600x64xf32>) domain = [600, 600] block = 128 {
    %zero = arith.constant 0.0 : f32
    %low = arith.constant -1.0e30 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %scores = memref.alloc() : memref<600x600xf32>
    linalg.fill ins(%zero : f32) outs(%scores : memref<600x600xf32>)
    linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<600x64xf32>, memref<600x64xf32>) outs(%scores : memref<600x600xf32>) attrs = {fp8.task_dims = array<i64: 1, 0>} {
    ^bb0(%x: f32, %w: f32, %z: f32):
      %0 = arith.mulf %x, %w : f32
      %1 = arith.addf %z, %0 : f32
      linalg.yield %1 : f32
    }
    %weights = memref.alloc() : memref<600x600xf32>
    linalg.generic {indexing_maps = [#ij, #i, #j, #ij], iterator_types = ["parallel", "parallel"]}
        ins(%scores, %m, %n : memref<600x600xf32>, memref<600xf32>, memref<600xi1>) outs(%weights : memref<600x600xf32>) attrs = {fp8.task_dims = array<i64: 1, 0>} {
    ^bb0(%x: f32, %r: f32, %u: i1, %z: f32):
      %query = linalg.index 0 : index
      %key = linalg.index 1 : index
      %late = arith.cmpi sge, %query, %key : index
      %sees = arith.andi %late, %u : i1
      %0 = arith.select %sees, %x, %low : f32
      %1 = arith.subf %0, %r : f32
      %2 = math.exp %1 : f32
      linalg.yield %2 : f32
    }
    linalg.fill ins(%zero : f32) outs(%y : memref<600x64xf32>)
    linalg.generic {indexing_maps = [#pt, #dot, #dv], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%weights, %c : memref<600x600xf32>, memref<600x64xf32>) outs(%y : memref<600x64xf32>) attrs = {fp8.task_dims = array<i64: 0, 2>} {
    ^bb0(%x: f32, %w: f32, %z: f32):
      %0 = arith.mulf %x, %w : f32
      %1 = arith.addf %z, %0 : f32
      linalg.yield %1 : f32
    }
    fp8.return
  }

  // Keys in order: a tile of 60 queries ends with the last key that one of them
  // sees, and so does the maximum of its rows.
  // CHECK-LABEL: gpu.func @by_queries(
  // CHECK: %[[TILE:.*]] = arith.remui %block_id_x, %c10
  // CHECK: %[[QUERY:.*]] = arith.muli %[[TILE]], %c60
  // CHECK: %[[SEEN:.*]] = arith.addi %[[QUERY]], %c60
  // CHECK: %[[END:.*]] = arith.minsi %[[SEEN]], %c600
  // CHECK: scf.for %{{.*}} = %c0 to %[[END]] step %c60
  fp8.kernel @by_queries(read %a: memref<600x64xf32>, read %b: memref<600x64xf32>, write %y: memref<600xf32>) domain = [600, 600] block = 128 {
    %zero = arith.constant 0.0 : f32
    %low = arith.constant -1.0e30 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %scores = memref.alloc() : memref<600x600xf32>
    linalg.fill ins(%zero : f32) outs(%scores : memref<600x600xf32>)
    linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<600x64xf32>, memref<600x64xf32>) outs(%scores : memref<600x600xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: f32, %w: f32, %z: f32):
      %0 = arith.mulf %x, %w : f32
      %1 = arith.addf %z, %0 : f32
      linalg.yield %1 : f32
    }
    linalg.fill ins(%lowest : f32) outs(%y : memref<600xf32>)
    linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
        ins(%scores : memref<600x600xf32>) outs(%y : memref<600xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: f32, %z: f32):
      %query = linalg.index 0 : index
      %key = linalg.index 1 : index
      %sees = arith.cmpi sge, %query, %key : index
      %0 = arith.select %sees, %x, %low : f32
      %1 = arith.maximumf %z, %0 : f32
      linalg.yield %1 : f32
    }
    fp8.return
  }
}
