// RUN: fp8-opt %s --fp8-elide-copies | FileCheck %s

#id = affine_map<(i) -> (i)>

// Made where it is wanted.
// CHECK: func.func @forwarded(%[[X:[^:]*]]: memref<8xf32>
// CHECK-NEXT: call @one(%[[X]])
// CHECK-NEXT: return
func.func @forwarded(%x: memref<8xf32>) {
  %t = memref.alloc() : memref<8xf32>
  call @one(%t) : (memref<8xf32>) -> ()
  call @copy(%t, %x) : (memref<8xf32>, memref<8xf32>) -> ()
  return
}

// The old contents are read after the new ones are made.
// CHECK: func.func @needed
// CHECK: memref.alloc
// CHECK: call @copy
func.func @needed(%x: memref<8xf32>, %y: memref<8xf32>) {
  %t = memref.alloc() : memref<8xf32>
  call @one(%t) : (memref<8xf32>) -> ()
  call @negate(%x, %y) : (memref<8xf32>, memref<8xf32>) -> ()
  call @copy(%t, %x) : (memref<8xf32>, memref<8xf32>) -> ()
  return
}

// What is made changes after the copy.
// CHECK: func.func @changed
// CHECK: memref.alloc
// CHECK: call @copy
func.func @changed(%x: memref<8xf32>, %y: memref<8xf32>) {
  %t = memref.alloc() : memref<8xf32>
  call @one(%t) : (memref<8xf32>) -> ()
  call @copy(%t, %x) : (memref<8xf32>, memref<8xf32>) -> ()
  call @negate(%y, %t) : (memref<8xf32>, memref<8xf32>) -> ()
  call @copy(%t, %y) : (memref<8xf32>, memref<8xf32>) -> ()
  return
}

// The place changes while what was made is still read.
// CHECK: func.func @overwritten
// CHECK: memref.alloc
// CHECK: call @copy
func.func @overwritten(%x: memref<8xf32>, %y: memref<8xf32>) {
  %t = memref.alloc() : memref<8xf32>
  call @one(%t) : (memref<8xf32>) -> ()
  call @copy(%t, %x) : (memref<8xf32>, memref<8xf32>) -> ()
  call @negate(%y, %x) : (memref<8xf32>, memref<8xf32>) -> ()
  call @negate(%t, %y) : (memref<8xf32>, memref<8xf32>) -> ()
  return
}

// The second turn of the loop would negate what the first one made of %x.
// CHECK: func.func @in_a_loop
// CHECK: memref.alloc
// CHECK: call @copy
func.func @in_a_loop(%x: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = memref.alloc() : memref<8xf32>
  scf.for %i = %c0 to %c4 step %c1 {
    func.call @negate(%x, %t) : (memref<8xf32>, memref<8xf32>) -> ()
  }
  call @copy(%t, %x) : (memref<8xf32>, memref<8xf32>) -> ()
  return
}

// A slot of a stack is a place like any other; its offset is computed earlier.
// CHECK: func.func @slot(%[[STACK:[^:]*]]: memref<4x8xf32>, %[[I:[^:]*]]: index
// CHECK: %[[OFFSET:.*]] = arith.muli %[[I]]
// CHECK: %[[SLOT:.*]] = fp8.subbuffer %[[STACK]][%[[OFFSET]]]
// CHECK: call @one(%[[SLOT]])
// CHECK-NEXT: return
func.func @slot(%stack: memref<4x8xf32>, %i: index) {
  %t = memref.alloc() : memref<8xf32>
  call @one(%t) : (memref<8xf32>) -> ()
  %c8 = arith.constant 8 : index
  %offset = arith.muli %i, %c8 : index
  %slot = fp8.subbuffer %stack[%offset] : memref<4x8xf32> to memref<8xf32>
  call @copy(%t, %slot) : (memref<8xf32>, memref<8xf32>) -> ()
  return
}

// Of two branches only one runs.
// CHECK: func.func @branches(%[[X:[^:]*]]: memref<8xf32>, %[[C:[^:]*]]: i1
// CHECK-NEXT: scf.if %[[C]] {
// CHECK-NEXT:   func.call @negate(%[[X]], %[[X]])
// CHECK-NEXT: } else {
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @branches(%x: memref<8xf32>, %c: i1) {
  %t = memref.alloc() : memref<8xf32>
  scf.if %c {
    func.call @negate(%x, %t) : (memref<8xf32>, memref<8xf32>) -> ()
  } else {
    func.call @copy(%x, %t) : (memref<8xf32>, memref<8xf32>) -> ()
  }
  call @copy(%t, %x) : (memref<8xf32>, memref<8xf32>) -> ()
  return
}

func.func private @one(%t: memref<8xf32>) attributes {fp8.domain = array<i64>, fp8.tile = array<i64>} {
  %one = arith.constant 1.0 : f32
  linalg.fill ins(%one : f32) outs(%t : memref<8xf32>)
  return
}
func.func private @negate(%a: memref<8xf32>, %b: memref<8xf32>) attributes {fp8.domain = array<i64>, fp8.tile = array<i64>} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%a : memref<8xf32>) outs(%b : memref<8xf32>) attrs = {fp8.task_dims = array<i64>} {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  }
  return
}
func.func private @copy(%a: memref<8xf32>, %b: memref<8xf32>) attributes {fp8.domain = array<i64>, fp8.tile = array<i64>, fp8.copy} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%a : memref<8xf32>) outs(%b : memref<8xf32>) attrs = {fp8.task_dims = array<i64>} {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  }
  return
}
