// RUN: fp8-opt %s --fp8-batch-launches | FileCheck %s

fp8.kernel @scale(read %a: memref<f32>, write %s: memref<f32>) domain = []
fp8.kernel @make(write %x: memref<65536xf32>) domain = []
fp8.kernel @fold(read %x: memref<65536xf32>, write %y: memref<f32>) domain = []

// A launch moves past a loop and a branch that access other buffers, and not past one that accesses one of its own.
// CHECK-LABEL: fp8.schedule @around
// CHECK: fp8.launch @scale(read %arg0, write %arg1)(read %arg3, write %arg4) :
// CHECK: scf.for
// CHECK:   fp8.launch @scale(read %arg1, write %arg2) :
// CHECK: }
// CHECK: scf.if
// CHECK: }
// CHECK-NEXT: fp8.launch @scale(read %arg2, write %arg5) :
// CHECK-NEXT: fp8.return
fp8.schedule @around(%a: memref<f32>, %b: memref<f32>, %c: memref<f32>, %d: memref<f32>, %e: memref<f32>, %f: memref<f32>,
    %flag: memref<i1>, %x: memref<65536xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  fp8.launch @scale(read %a, write %b) : (memref<f32>, memref<f32>) -> ()
  scf.for %i = %c0 to %c4 step %c1 {
    fp8.launch @scale(read %b, write %c) : (memref<f32>, memref<f32>) -> ()
  }
  %go = memref.load %flag[] : memref<i1>
  scf.if %go {
    fp8.launch @make(write %x) : (memref<65536xf32>) -> ()
  }
  fp8.launch @scale(read %d, write %e) : (memref<f32>, memref<f32>) -> ()
  fp8.launch @scale(read %c, write %f) : (memref<f32>, memref<f32>) -> ()
  fp8.return
}

// Blocks inside are ordered alike. Parts of a stack have another address in each iteration, so they stay single. In a
// loop a buffer from outside lives anyway, and its reader may move down; in a branch it may be the last one.
// CHECK-LABEL: fp8.schedule @inside
// CHECK: scf.for
// CHECK:   %[[PART:.*]] = fp8.subbuffer
// CHECK:   fp8.launch @scale(read %[[PART]], write %arg1) :
// CHECK:   fp8.launch @fold(read %[[X:.*]], write %arg2)(read %[[X]], write %arg3) :
// CHECK: }
// CHECK: scf.if
// CHECK:   fp8.launch @fold(read %[[X]], write %arg2) :
// CHECK:   fp8.launch @make(write %[[W:.*]]) :
// CHECK:   fp8.launch @fold(read %[[W]], write %arg3) :
fp8.schedule @inside(%stack: memref<4xf32>, %b: memref<f32>, %c: memref<f32>, %d: memref<f32>, %flag: memref<i1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %x = memref.alloc() : memref<65536xf32>
  fp8.launch @make(write %x) : (memref<65536xf32>) -> ()
  scf.for %i = %c0 to %c4 step %c1 {
    %part = fp8.subbuffer %stack[%i] : memref<4xf32> to memref<f32>
    fp8.launch @fold(read %x, write %c) : (memref<65536xf32>, memref<f32>) -> ()
    fp8.launch @scale(read %part, write %b) : (memref<f32>, memref<f32>) -> ()
    fp8.launch @fold(read %x, write %d) : (memref<65536xf32>, memref<f32>) -> ()
  }
  %go = memref.load %flag[] : memref<i1>
  scf.if %go {
    fp8.launch @fold(read %x, write %c) : (memref<65536xf32>, memref<f32>) -> ()
    %w = memref.alloc() : memref<65536xf32>
    fp8.launch @make(write %w) : (memref<65536xf32>) -> ()
    fp8.launch @fold(read %w, write %d) : (memref<65536xf32>, memref<f32>) -> ()
  }
  fp8.return
}

// Collectives keep their order and their places among the rest. What comes before one for its operand stays there.
// CHECK-LABEL: fp8.schedule @collectives
// CHECK: fp8.launch @scale(read %arg0, write %arg1)(read %arg4, write %arg5) :
// CHECK-NEXT: %[[A:.*]] = fp8.start_all_reduce max %arg1 into %arg1
// CHECK-NEXT: fp8.wait %[[A]]
// CHECK-NEXT: fp8.launch @scale(read %arg1, write %arg2) :
// CHECK-NEXT: %[[B:.*]] = fp8.start_all_reduce max %arg2 into %arg3
// CHECK-NEXT: fp8.wait %[[B]]
// CHECK-NEXT: fp8.return
fp8.schedule @collectives(%a: memref<f32>, %b: memref<f32>, %c: memref<f32>, %d: memref<f32>, %e: memref<f32>, %f: memref<f32>) {
  fp8.launch @scale(read %a, write %b) : (memref<f32>, memref<f32>) -> ()
  %0 = fp8.start_all_reduce max %b into %b : memref<f32>
  fp8.wait %0 (%b, %b) : memref<f32>, memref<f32>
  fp8.launch @scale(read %b, write %c) : (memref<f32>, memref<f32>) -> ()
  %1 = fp8.start_all_reduce max %c into %d : memref<f32>
  fp8.wait %1 (%c, %d) : memref<f32>, memref<f32>
  fp8.launch @scale(read %e, write %f) : (memref<f32>, memref<f32>) -> ()
  fp8.return
}
