// RUN: fp8-opt %s --fp8-elide-copies | FileCheck %s

#id = affine_map<(i) -> (i)>
#id2 = affine_map<(i, j) -> (i, j)>

// Made where it is wanted.
// CHECK: fp8.schedule @forwarded(%[[X:[^:]*]]: memref<8xf32>
// CHECK-NEXT: fp8.launch @one(write %[[X]])
// CHECK-NEXT: fp8.return
fp8.schedule @forwarded(%x: memref<8xf32>) {
  %t = memref.alloc() : memref<8xf32>
  fp8.launch @one(write %t) : (memref<8xf32>) -> ()
  fp8.launch @copy(read %t, write %x) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// The old contents are read after the new ones are made.
// CHECK: fp8.schedule @needed
// CHECK: memref.alloc
// CHECK: fp8.launch @copy
fp8.schedule @needed(%x: memref<8xf32>, %y: memref<8xf32>) {
  %t = memref.alloc() : memref<8xf32>
  fp8.launch @one(write %t) : (memref<8xf32>) -> ()
  fp8.launch @negate(read %x, write %y) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.launch @copy(read %t, write %x) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// What is made changes after the copy.
// CHECK: fp8.schedule @changed
// CHECK: memref.alloc
// CHECK: fp8.launch @copy
fp8.schedule @changed(%x: memref<8xf32>, %y: memref<8xf32>) {
  %t = memref.alloc() : memref<8xf32>
  fp8.launch @one(write %t) : (memref<8xf32>) -> ()
  fp8.launch @copy(read %t, write %x) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.launch @negate(read %y, write %t) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.launch @copy(read %t, write %y) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// The place changes while what was made is still read.
// CHECK: fp8.schedule @overwritten
// CHECK: memref.alloc
// CHECK: fp8.launch @copy
fp8.schedule @overwritten(%x: memref<8xf32>, %y: memref<8xf32>) {
  %t = memref.alloc() : memref<8xf32>
  fp8.launch @one(write %t) : (memref<8xf32>) -> ()
  fp8.launch @copy(read %t, write %x) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.launch @negate(read %y, write %x) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.launch @negate(read %t, write %y) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// The second turn of the loop would negate what the first one made of %x.
// CHECK: fp8.schedule @in_a_loop
// CHECK: memref.alloc
// CHECK: fp8.launch @copy
fp8.schedule @in_a_loop(%x: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = memref.alloc() : memref<8xf32>
  scf.for %i = %c0 to %c4 step %c1 {
    fp8.launch @negate(read %x, write %t) : (memref<8xf32>, memref<8xf32>) -> ()
  }
  fp8.launch @copy(read %t, write %x) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// The loop carries %u, which begins as %t: the second turn would add what the
// first one made to itself, not to %t. (The carried copy in the loop is elided.)
// CHECK: fp8.schedule @begins_as
// CHECK: %[[T:.*]] = memref.alloc
// CHECK: fp8.launch @one(write %[[T]])
// CHECK: %[[U:.*]] = memref.alloc
// CHECK: fp8.launch @copy(read %[[T]], write %[[U]])
// CHECK: scf.for
// CHECK-NEXT: fp8.launch @negate(read %[[T]], write %[[U]])
// CHECK-NEXT: }
fp8.schedule @begins_as(%x: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = memref.alloc() : memref<8xf32>
  fp8.launch @one(write %t) : (memref<8xf32>) -> ()
  %u = memref.alloc() : memref<8xf32>
  fp8.launch @copy(read %t, write %u) : (memref<8xf32>, memref<8xf32>) -> ()
  scf.for %i = %c0 to %c4 step %c1 {
    %next = memref.alloc() : memref<8xf32>
    fp8.launch @negate(read %t, write %next) : (memref<8xf32>, memref<8xf32>) -> ()
    fp8.launch @copy(read %next, write %u) : (memref<8xf32>, memref<8xf32>) -> ()
  }
  fp8.launch @negate(read %u, write %x) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// A slot of a stack is a place like any other; its offset is computed earlier.
// CHECK: fp8.schedule @slot(%[[STACK:[^:]*]]: memref<4x8xf32>, %[[I:[^:]*]]: index
// CHECK: %[[OFFSET:.*]] = arith.muli %[[I]]
// CHECK: %[[SLOT:.*]] = fp8.subbuffer %[[STACK]][%[[OFFSET]]]
// CHECK: fp8.launch @one(write %[[SLOT]])
// CHECK-NEXT: fp8.return
fp8.schedule @slot(%stack: memref<4x8xf32>, %i: index) {
  %t = memref.alloc() : memref<8xf32>
  fp8.launch @one(write %t) : (memref<8xf32>) -> ()
  %c8 = arith.constant 8 : index
  %offset = arith.muli %i, %c8 : index
  %slot = fp8.subbuffer %stack[%offset] : memref<4x8xf32> to memref<8xf32>
  fp8.launch @copy(read %t, write %slot) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// Of two branches only one runs.
// CHECK: fp8.schedule @branches(%[[X:[^:]*]]: memref<8xf32>, %[[C:[^:]*]]: i1
// CHECK-NEXT: scf.if %[[C]] {
// CHECK-NEXT:   fp8.launch @negate(read %[[X]], write %[[X]])
// CHECK-NEXT: } else {
// CHECK-NEXT: }
// CHECK-NEXT: fp8.return
fp8.schedule @branches(%x: memref<8xf32>, %c: i1) {
  %t = memref.alloc() : memref<8xf32>
  scf.if %c {
    fp8.launch @negate(read %x, write %t) : (memref<8xf32>, memref<8xf32>) -> ()
  } else {
    fp8.launch @copy(read %x, write %t) : (memref<8xf32>, memref<8xf32>) -> ()
  }
  fp8.launch @copy(read %t, write %x) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// Owners copy their slices of a stack by a kernel that divides into the slices.
// A buffer with one number per slice is copied whole.
// CHECK: fp8.schedule @slices
// CHECK: fp8.launch @copy2({{.*}}) {fp8.shard = 1 : i64}
// CHECK: fp8.launch @copy({{.*}}) {fp8.shard = 1 : i64}
fp8.schedule @slices(
    %w: memref<8x4xf32> {fp8.shard = 1 : i64, fp8.slices = 4 : i64}, %x: memref<8x4xf32>,
    %m: memref<8xf32> {fp8.shard = 1 : i64, fp8.slices = 4 : i64}, %y: memref<8xf32>) {
  fp8.launch @copy2(read %x, write %w) : (memref<8x4xf32>, memref<8x4xf32>) -> ()
  fp8.launch @copy(read %y, write %m) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// CHECK: fp8.kernel @copy2({{.*}}) domain = [8] copy attributes {fp8.slices = 4 : i64}
fp8.kernel @copy2(read %a: memref<8x4xf32>, write %b: memref<8x4xf32>) domain = [8] copy {
  linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<8x4xf32>) outs(%b : memref<8x4xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  }
  fp8.return
}
fp8.kernel @one(write %t: memref<8xf32>) domain = [] {
  %one = arith.constant 1.0 : f32
  linalg.fill ins(%one : f32) outs(%t : memref<8xf32>)
  fp8.return
}
fp8.kernel @negate(read %a: memref<8xf32>, write %b: memref<8xf32>) domain = [] {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%a : memref<8xf32>) outs(%b : memref<8xf32>) attrs = {fp8.task_dims = array<i64>} {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  }
  fp8.return
}
fp8.kernel @copy(read %a: memref<8xf32>, write %b: memref<8xf32>) domain = [] copy {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%a : memref<8xf32>) outs(%b : memref<8xf32>) attrs = {fp8.task_dims = array<i64>} {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  }
  fp8.return
}
