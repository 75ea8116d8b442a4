// RUN: fp8-opt %s --fp8-lower-blocks --canonicalize --split-input-file | FileCheck %s

// Four neighbouring elements a thread, in one access of 16 bytes.

#id = affine_map<(i) -> (i)>
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
  // CHECK: gpu.module @negate attributes {fp8.gpu_launch = #fp8.gpu_launch<blocks = 8, threads = 128, shared = 0, dynamic_shared = 0, scratch = 0>} {
  // CHECK: gpu.func @negate(%[[X:.*]]: memref<4096xf32> {llvm.dereferenceable = 16384 : i64}, %[[Y:.*]]: memref<4096xf32> {llvm.dereferenceable = 16384 : i64}) kernel attributes {{{.*}}known_block_size = array<i32: 128, 1, 1>} {
  // CHECK: gpu.thread_id x
  // CHECK: gpu.block_id x
  // CHECK: vector.load %[[X]][%{{.*}}] {alignment = 16 : i64} : memref<4096xf32>, vector<4xf32>
  // CHECK-NEXT: arith.negf
  // CHECK-NEXT: vector.store %{{.*}}, %[[Y]][%{{.*}}] {alignment = 16 : i64} : memref<4096xf32>, vector<4xf32>
  // CHECK-NEXT: gpu.return
  fp8.kernel @negate(read %x: memref<4096xf32>, write %y: memref<4096xf32>) domain = [4096]
      plan = #fp8.gpu_plan<tile = [512], sum_tile = [4096], threads = 128> {
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%x : memref<4096xf32>) outs(%y : memref<4096xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
    ^bb0(%a: f32, %o: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    }
    fp8.return
  }
}

// -----

// The 16 lanes of the CPU's sum are those of 4 threads, brought together in the
// CPU's order: lane i with i + 8 is the thread 2 further on, ...; what a part
// of the kernel wrote, the next reads behind a barrier.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
  // CHECK: fp8.gpu_launch<blocks = 4, threads = 32, shared = 64,
  // CHECK: gpu.func @normalize({{.*}}) workgroup(%{{.*}} : memref<64xi8, #gpu.address_space<workgroup>>
  // CHECK: %[[TWO:.*]] = arith.constant 2 : i32
  // CHECK: vector.load {{.*}} : memref<32x48xf32>, vector<4xf32>
  // CHECK: arith.addf {{.*}} : vector<4xf32>
  // CHECK-COUNT-4: gpu.shuffle down %{{.*}}, %[[TWO]], %{{.*}} : f32
  // CHECK-COUNT-4: gpu.shuffle down %{{.*}}, %{{.*}} : f32
  // CHECK-NOT: gpu.shuffle
  // CHECK: memref.store
  // CHECK: gpu.barrier
  // CHECK: arith.divf
  fp8.kernel @normalize(read %x: memref<32x48xf32>, write %y: memref<32x48xf32>) domain = [32]
      plan = #fp8.gpu_plan<tile = [8], sum_tile = [32], threads = 32> {
    %zero = arith.constant 0.0 : f32
    %sum = memref.alloc() : memref<32xf32>
    linalg.fill ins(%zero : f32) outs(%sum : memref<32xf32>)
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x : memref<32x48xf32>) outs(%sum : memref<32xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
    ^bb0(%a: f32, %o: f32):
      %n = arith.addf %o, %a : f32
      linalg.yield %n : f32
    }
    linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
        ins(%x, %sum : memref<32x48xf32>, memref<32xf32>) outs(%y : memref<32x48xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
    ^bb0(%a: f32, %s: f32, %o: f32):
      %n = arith.divf %a, %s : f32
      linalg.yield %n : f32
    }
    fp8.return
  }
}

// -----

// A scatter: threads share the columns, whose rows each of them adds up in
// order. Without such a loop a single thread runs all.

module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
  // CHECK: gpu.func @scatter
  // CHECK: %[[THREAD:.*]] = gpu.thread_id x
  // CHECK: scf.for %{{.*}} = %c0 to %c8 step %c1
  // CHECK: scf.for %[[COLUMN:.*]] = %[[THREAD]] to %c64 step %c32
  // CHECK: memref.store {{.*}}[%{{.*}}, %[[COLUMN]]]
  fp8.kernel @scatter(read %i: memref<8xindex>, read %x: memref<8x64xf32>, update %y: memref<16x64xf32>) domain = []
      plan = #fp8.gpu_plan<tile = [], sum_tile = [], threads = 32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    scf.for %r = %c0 to %c8 step %c1 {
      %to = memref.load %i[%r] : memref<8xindex>
      scf.for %c = %c0 to %c64 step %c1 {
        %a = memref.load %x[%r, %c] : memref<8x64xf32>
        %b = memref.load %y[%to, %c] : memref<16x64xf32>
        %s = arith.addf %a, %b : f32
        memref.store %s, %y[%to, %c] : memref<16x64xf32>
      } {fp8.irregular}
    } {fp8.irregular, fp8.task_dims = array<i64>}
    fp8.return
  }

  // CHECK: gpu.func @prefix
  // CHECK: %[[FIRST:.*]] = arith.cmpi ult, %{{.*}}
  // CHECK: scf.if %[[FIRST]]
  // CHECK: scf.for
  fp8.kernel @prefix(update %y: memref<64xf32>) domain = []
      plan = #fp8.gpu_plan<tile = [], sum_tile = [], threads = 32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c63 = arith.constant 63 : index
    scf.for %r = %c0 to %c63 step %c1 {
      %next = arith.addi %r, %c1 : index
      %a = memref.load %y[%r] : memref<64xf32>
      %b = memref.load %y[%next] : memref<64xf32>
      %s = arith.addf %a, %b : f32
      memref.store %s, %y[%next] : memref<64xf32>
    } {fp8.irregular, fp8.task_dims = array<i64>}
    fp8.return
  }
}

// -----

// A large scatter: a block owns three rows, which it fills. Its threads note
// which updates land there, and then make these.

module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
  // CHECK: fp8.gpu_launch<blocks = 6, threads = 32, shared = 4,
  // CHECK: gpu.func @rows
  // CHECK: %[[BLOCK:.*]] = gpu.block_id x
  // CHECK: scf.for
  // CHECK: %[[OTHERS:.*]] = arith.muli %{{.*}}, %c6
  // CHECK: %[[ROW:.*]] = arith.addi %[[OTHERS]], %[[BLOCK]]
  // CHECK: %[[EXISTS:.*]] = arith.cmpi ult, %[[ROW]], %c16
  // CHECK: scf.if %[[EXISTS]]
  // CHECK: memref.store %{{.*}}[%[[ROW]], %{{.*}}]
  // CHECK: gpu.barrier
  // CHECK: scf.if
  // CHECK: %[[TO:.*]] = memref.load {{.*}} : memref<8xindex>
  // CHECK: %[[OWNER:.*]] = arith.remui %[[TO]], %c6
  // CHECK: arith.cmpi eq, %[[OWNER]], %[[BLOCK]]
  // CHECK: %[[BALLOT:.*]] = nvvm.vote.sync ballot
  // CHECK: memref.store %[[BALLOT]]
  // CHECK: gpu.barrier
  // CHECK: scf.while
  // CHECK: llvm.intr.cttz
  // CHECK: memref.load {{.*}} : memref<8xindex>
  // CHECK: scf.for
  // CHECK: gpu.barrier
  fp8.kernel @rows(read %i: memref<8xindex>, read %x: memref<8x64xf32>, write %y: memref<16x64xf32>) domain = []
      plan = #fp8.gpu_plan<tile = [], sum_tile = [], threads = 32, rows = 3> {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    linalg.fill ins(%zero : f32) outs(%y : memref<16x64xf32>)
    scf.for %r = %c0 to %c8 step %c1 {
      %to = memref.load %i[%r] : memref<8xindex>
      scf.for %c = %c0 to %c64 step %c1 {
        %a = memref.load %x[%r, %c] : memref<8x64xf32>
        %b = memref.load %y[%to, %c] : memref<16x64xf32>
        %s = arith.addf %a, %b : f32
        memref.store %s, %y[%to, %c] : memref<16x64xf32>
      } {fp8.irregular}
    } {fp8.irregular, fp8.task_dims = array<i64>}
    fp8.return
  }
}

// -----

// Sums over many rows: 16 threads share a column. Each adds 16 rows, four times,
// and the first adds these sums in order, with compensation.

#id = affine_map<(j, i) -> (i, j)>
#column = affine_map<(j, i) -> (j)>
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
  // CHECK: gpu.func @columns
  // CHECK: %[[THREAD:.*]] = gpu.thread_id x
  // CHECK: %[[COLUMN:.*]] = arith.remui %[[THREAD]], %c8
  // CHECK: %[[GROUP:.*]] = arith.divui %[[THREAD]], %c8
  // CHECK: scf.for %[[TURN:.*]] = %c0 to %c64 step %c16
  // CHECK: %[[NUMBER:.*]] = arith.addi %[[TURN]], %[[GROUP]]
  // CHECK: arith.cmpi ult, %[[NUMBER]], %c63
  // CHECK: scf.if
  // The last block of rows is shorter.
  // CHECK: scf.if %{{.*}} -> (f32)
  // CHECK: scf.for %{{.*}} = %c0 to %c16 step
  // CHECK: } else {
  // CHECK: scf.for %{{.*}} = %c0 to %c8 step
  // CHECK: memref.store %{{.*}} : memref<512xf32, #gpu.address_space<workgroup>>
  // CHECK: gpu.barrier
  // CHECK: scf.if
  // CHECK: memref.load %{{.*}} : memref<512xf32, #gpu.address_space<workgroup>>
  // CHECK-COUNT-3: arith.subf
  // CHECK: gpu.barrier
  fp8.kernel @columns(read %x: memref<1000x32xf32>, update %y: memref<32xf32>) domain = [32]
      plan = #fp8.gpu_plan<tile = [8], sum_tile = [32], threads = 128> {
    linalg.generic {indexing_maps = [#id, #column], iterator_types = ["parallel", "reduction"]}
        ins(%x : memref<1000x32xf32>) outs(%y : memref<32xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
    ^bb0(%a: f32, %o: f32):
      %n = arith.addf %o, %a : f32
      linalg.yield %n : f32
    }
    fp8.return
  }
}

// -----

// What does not fit into shared memory lies in global memory, whose address is
// one more parameter; a part of a stack is aligned as its offset says.

#id = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_89", features = "+ptx84">} {
  // CHECK: fp8.schedule @main
  fp8.schedule @main(%arena: memref<64xi8>, %x: memref<4x256x512xf32>, %y: memref<256x512xf32>) arena_bytes = 64 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %size = arith.constant 131072 : index
    scf.for %i = %c0 to %c4 step %c1 {
      %offset = arith.muli %i, %size : index
      %part = fp8.subbuffer %x[%offset] : memref<4x256x512xf32> to memref<256x512xf32>
      // CHECK: fp8.launch @twice(read %{{.*}}, write %{{.*}})
      fp8.launch @twice(read %part, write %y) number = 0 : (memref<256x512xf32>, memref<256x512xf32>) -> ()
    }
    fp8.return
  }
  // CHECK: blocks = 2, threads = 128, shared = 0, dynamic_shared = 0, scratch = 262144>
  // CHECK: gpu.func @twice(%[[X:.*]]: memref<256x512xf32> {{{.*}}}, %[[Y:.*]]: memref<256x512xf32> {{{.*}}}, %{{.*}}: memref<524288xi8> {llvm.dereferenceable = 524288 : i64})
  // CHECK: vector.load %[[X]]{{.*}} {alignment = 16 : i64}
  fp8.kernel @twice(read %x: memref<256x512xf32>, write %y: memref<256x512xf32>) domain = [256]
      plan = #fp8.gpu_plan<tile = [128], sum_tile = [256], threads = 128> {
    %local = memref.alloc() : memref<256x512xf32>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<256x512xf32>) outs(%local : memref<256x512xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
    ^bb0(%a: f32, %o: f32):
      %n = arith.addf %a, %a : f32
      linalg.yield %n : f32
    }
    linalg.generic {indexing_maps = [#turned, #turned], iterator_types = ["parallel", "parallel"]}
        ins(%local : memref<256x512xf32>) outs(%y : memref<256x512xf32>) attrs = {fp8.task_dims = array<i64: 1>} {
    ^bb0(%a: f32, %o: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    }
    fp8.return
  }
}
