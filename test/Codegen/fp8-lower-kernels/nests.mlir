// RUN: fp8-opt %s --fp8-target=cpu=x86-64-v3 --fp8-lower-kernels --canonicalize --split-input-file | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Elementwise op and reduction with equal loops share a nest; the value passes
// in a register, the local buffer is never written.
// CHECK: func.func private @shared
// CHECK-SAME: fp8.scratch_bytes
// CHECK: scf.for
// CHECK: scf.for {{.*}} iter_args
// CHECK: %[[X:.*]] = vector.load
// CHECK: %[[N:.*]] = arith.negf %[[X]] : vector<64xf32>
// CHECK-NOT: vector.store
// CHECK: arith.addf %[[N]]
// CHECK: memref.store
fp8.kernel @shared(read %x: memref<32x128xf32>, write %y: memref<32xf32>) domain = [32] plan = #fp8.cpu_plan<tile = [32]> {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<32x128xf32>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : memref<32x128xf32>) outs(%t : memref<32x128xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  }
  linalg.fill ins(%zero : f32) outs(%y : memref<32xf32>)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%t : memref<32x128xf32>) outs(%y : memref<32xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %o: f32):
    %n = arith.addf %a, %o : f32
    linalg.yield %n : f32
  }
  fp8.return
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// The last tile is smaller: its code is separate, sizes are static everywhere.
// Lanes that do not fill a vector are a narrower vector.
// CHECK: func.func private @tail(%[[T:[^:]*]]: index
// CHECK-SAME: fp8.tasks = 4
// CHECK: %[[LAST:.*]] = arith.cmpi eq
// CHECK: scf.if %[[LAST]]
// CHECK: vector.load {{.*}} vector<16xf32>
// CHECK: vector.load {{.*}} vector<4xf32>
// CHECK: } else {
// CHECK: vector.load {{.*}} vector<16xf32>
// CHECK: vector.load {{.*}} vector<4xf32>
fp8.kernel @tail(read %x: memref<13x20xf32>, write %y: memref<13x20xf32>) domain = [13] plan = #fp8.cpu_plan<tile = [4]> {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : memref<13x20xf32>) outs(%y : memref<13x20xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  }
  fp8.return
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// Booleans are bytes in memory.
// CHECK: func.func private @bytes(%{{.*}}: index, %{{.*}}: memref<0xi8>, %{{.*}}: memref<4x16xi8>
// CHECK: %[[B:.*]] = vector.load {{.*}} vector<16xi8>
// CHECK: arith.trunci %[[B]] : vector<16xi8> to vector<16xi1>
fp8.kernel @bytes(read %x: memref<4x16xi1>, write %y: memref<4x16xf32>) domain = [] plan = #fp8.cpu_plan<tile = []> {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : memref<4x16xi1>) outs(%y : memref<4x16xf32>) attrs = {fp8.task_dims = array<i64>} {
  ^bb0(%a: i1, %o: f32):
    %n = arith.uitofp %a : i1 to f32
    linalg.yield %n : f32
  }
  fp8.return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#none = affine_map<(i, j) -> ()>

// Each sum of all elements has its own nest, of 64 lanes as in a kernel of its
// own: other ops of the kernel do not change its order.
// CHECK: func.func private @norms
// CHECK: vector.load {{.*}} vector<64xf32>
// CHECK: vector.load {{.*}} vector<64xf32>
// CHECK-NOT: vector.load
// CHECK: return
fp8.kernel @norms(read %x: memref<4x64xf32>, read %y: memref<4x64xf32>, write %a: memref<f32>, write %b: memref<f32>) domain = [] plan = #fp8.cpu_plan<tile = []> {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%a : memref<f32>)
  linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction", "reduction"]} ins(%x : memref<4x64xf32>) outs(%a : memref<f32>) attrs = {fp8.task_dims = array<i64>} {
  ^bb0(%v: f32, %o: f32):
    %0 = arith.mulf %v, %v : f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.mulf %1, %1 : f32
    %3 = arith.addf %o, %2 : f32
    linalg.yield %3 : f32
  }
  linalg.fill ins(%zero : f32) outs(%b : memref<f32>)
  linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction", "reduction"]} ins(%y : memref<4x64xf32>) outs(%b : memref<f32>) attrs = {fp8.task_dims = array<i64>} {
  ^bb0(%v: f32, %o: f32):
    %0 = arith.mulf %v, %v : f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.mulf %1, %1 : f32
    %3 = arith.addf %o, %2 : f32
    linalg.yield %3 : f32
  }
  fp8.return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// Maxima of columns: the vectors of eight rows, then the next rows. The maxima
// of the rows before are in memory.
// CHECK: func.func private @columns
// CHECK: scf.for
// CHECK: vector.store %{{.*}}, %[[Y:.*]][
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c16{{.*}} step %c8
// CHECK: scf.for
// CHECK: %[[START:.*]] = vector.load %[[Y]][
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c8{{.*}} step %c1{{.*}} iter_args(%{{.*}} = %[[START]])
// CHECK: arith.maximumf
// CHECK: vector.store %{{.*}}, %[[Y]][
// The remainder.
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c4{{.*}} step %c1{{.*}} iter_args
fp8.kernel @columns(read %x: memref<20x128xf32>, write %z: memref<20x128xf32>, write %y: memref<128xf32>) domain = [] plan = #fp8.cpu_plan<tile = []> {
  %least = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : memref<20x128xf32>) outs(%z : memref<20x128xf32>) attrs = {fp8.task_dims = array<i64>} {
  ^bb0(%a: f32, %o: f32):
    %n = math.absf %a : f32
    linalg.yield %n : f32
  }
  linalg.fill ins(%least : f32) outs(%y : memref<128xf32>)
  linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%z : memref<20x128xf32>) outs(%y : memref<128xf32>) attrs = {fp8.task_dims = array<i64>} {
  ^bb0(%a: f32, %o: f32):
    %n = arith.maximumf %a, %o : f32
    linalg.yield %n : f32
  }
  fp8.return
}

// -----

#id = affine_map<(i) -> (i)>
#diagonal = affine_map<(i) -> (i, i)>

// A diagonal is not all of its buffer, which is filled.
// CHECK: func.func private @diagonal
// CHECK: scf.for
// CHECK: memref.store %{{.*}} : memref<8x8xf32>
// CHECK: memref.load %{{.*}} : memref<8x8xf32>
fp8.kernel @diagonal(read %x: memref<8xf32>, write %y: memref<8x8xf32>) domain = [] plan = #fp8.cpu_plan<tile = []> {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<8x8xf32>)
  linalg.generic {indexing_maps = [#id, #diagonal], iterator_types = ["parallel"]} ins(%x : memref<8xf32>) outs(%y : memref<8x8xf32>) attrs = {fp8.task_dims = array<i64>} {
  ^bb0(%a: f32, %o: f32):
    %n = arith.addf %a, %o : f32
    linalg.yield %n : f32
  }
  fp8.return
}

// -----

#id = affine_map<(i) -> (i)>

// What a loop of scalars writes in between is added to.
// CHECK: func.func private @nested
// CHECK: scf.for
// CHECK: memref.store %{{.*}} : memref<8xf32>
// CHECK: memref.load %{{.*}} : memref<4xi32>
// CHECK: memref.store
// CHECK: vector.load %[[Y:.*]][%{{.*}}] : memref<8xf32>, vector<8xf32>
// CHECK: vector.load
// CHECK: vector.store %{{.*}}, %[[Y]]
fp8.kernel @nested(read %i: memref<4xi32>, read %x: memref<8xf32>, write %y: memref<8xf32>) domain = [] plan = #fp8.cpu_plan<tile = []> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  linalg.fill ins(%zero : f32) outs(%y : memref<8xf32>)
  scf.for %k = %c0 to %c4 step %c1 {
    %at = memref.load %i[%k] : memref<4xi32>
    %index = arith.index_cast %at : i32 to index
    memref.store %one, %y[%index] : memref<8xf32>
  } {fp8.task_dims = array<i64>}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) attrs = {fp8.task_dims = array<i64>} {
  ^bb0(%a: f32, %o: f32):
    %n = arith.addf %a, %o : f32
    linalg.yield %n : f32
  }
  fp8.return
}
