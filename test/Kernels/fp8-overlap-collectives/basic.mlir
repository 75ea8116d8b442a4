// RUN: fp8-opt %s --fp8-overlap-collectives | FileCheck %s

fp8.kernel @make(write %y: memref<8xf32>) domain = []
fp8.kernel @use(read %x: memref<8xf32>, update %y: memref<8xf32>) domain = []

// Begun when the input is there, waited for before the result is read; what
// reads the input may go on.
// CHECK-LABEL: fp8.schedule @between
// CHECK: fp8.launch @make(write %[[G:arg0]])
// CHECK-NEXT: %[[H:.*]] = fp8.start_all_reduce mean %[[G]] into %[[R:arg1]]
// CHECK-NEXT: fp8.launch @make(write %arg2)
// CHECK-NEXT: fp8.launch @use(read %[[G]], update %arg2)
// CHECK-NEXT: fp8.wait %[[H]](%[[G]], %[[R]])
// CHECK-NEXT: fp8.launch @use(read %[[R]], update %arg2)
fp8.schedule @between(%g: memref<8xf32>, %r: memref<8xf32>, %y: memref<8xf32>) {
  fp8.launch @make(write %g) : (memref<8xf32>) -> ()
  fp8.launch @make(write %y) : (memref<8xf32>) -> ()
  %0 = fp8.start_all_reduce mean %g into %r : memref<8xf32>
  fp8.wait %0 (%g, %r) : memref<8xf32>, memref<8xf32>
  fp8.launch @use(read %g, update %y) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.launch @use(read %r, update %y) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// In place nobody may read the input meanwhile.
// CHECK-LABEL: fp8.schedule @in_place
// CHECK: fp8.start_all_reduce
// CHECK-NEXT: fp8.wait
// CHECK-NEXT: fp8.launch @use
fp8.schedule @in_place(%g: memref<8xf32>, %y: memref<8xf32>) {
  %0 = fp8.start_all_reduce mean %g into %g : memref<8xf32>
  fp8.wait %0 (%g, %g) : memref<8xf32>, memref<8xf32>
  fp8.launch @use(read %g, update %y) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// The order of collectives is one for all ranks; several are under way at once.
// CHECK-LABEL: fp8.schedule @order
// CHECK: fp8.launch @make
// CHECK-NEXT: %[[A:.*]] = fp8.start_all_reduce mean %arg0
// CHECK-NEXT: %[[B:.*]] = fp8.start_all_reduce sum %arg1
// CHECK-NEXT: fp8.launch @make(write %arg2)
// CHECK-NEXT: fp8.wait %[[A]]
// CHECK-NEXT: fp8.launch @use(read %arg0
// CHECK-NEXT: fp8.wait %[[B]]
// CHECK-NEXT: fp8.return
fp8.schedule @order(%g: memref<8xf32>, %h: memref<8xf32>, %y: memref<8xf32>) {
  fp8.launch @make(write %g) : (memref<8xf32>) -> ()
  %0 = fp8.start_all_reduce mean %g into %g : memref<8xf32>
  fp8.wait %0 (%g, %g) : memref<8xf32>, memref<8xf32>
  fp8.launch @make(write %y) : (memref<8xf32>) -> ()
  %1 = fp8.start_all_reduce sum %h into %h : memref<8xf32>
  fp8.wait %1 (%h, %h) : memref<8xf32>, memref<8xf32>
  fp8.launch @use(read %g, update %y) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// What a loop touches is touched for as long as it runs.
// CHECK-LABEL: fp8.schedule @loop
// CHECK: scf.for
// CHECK: fp8.launch @use
// CHECK: fp8.start_all_reduce
// CHECK: fp8.wait
// CHECK: scf.for
fp8.schedule @loop(%g: memref<8xf32>, %y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    fp8.launch @use(read %y, update %g) : (memref<8xf32>, memref<8xf32>) -> ()
  }
  %0 = fp8.start_all_reduce mean %g into %g : memref<8xf32>
  fp8.wait %0 (%g, %g) : memref<8xf32>, memref<8xf32>
  scf.for %i = %c0 to %c4 step %c1 {
    fp8.launch @use(read %g, update %y) : (memref<8xf32>, memref<8xf32>) -> ()
  }
  fp8.return
}

// An exchange of parts moves as a reduction does, and keeps its place in their order.
// CHECK-LABEL: fp8.schedule @exchange
// CHECK: fp8.launch @make(write %[[G:arg0]])
// CHECK-NEXT: %[[A:.*]] = fp8.start_exchange permute %[[G]] into %[[R:arg1]]
// CHECK-NEXT: %[[B:.*]] = fp8.start_all_reduce sum %[[G]] into %arg3
// CHECK-NEXT: fp8.launch @use(read %[[G]], update %arg2)
// CHECK-NEXT: fp8.wait %[[A]](%[[G]], %[[R]])
// CHECK-NEXT: fp8.launch @use(read %[[R]], update %arg2)
fp8.schedule @exchange(%g: memref<8xf32>, %r: memref<8xf32>, %y: memref<8xf32>, %s: memref<8xf32>) {
  fp8.launch @make(write %g) : (memref<8xf32>) -> ()
  fp8.launch @use(read %g, update %y) : (memref<8xf32>, memref<8xf32>) -> ()
  %0 = fp8.start_exchange permute %g into %r ranks = dense<[[0, 1]]> : tensor<1x2xi64> : memref<8xf32> -> memref<8xf32>
  fp8.wait %0 (%g, %r) : memref<8xf32>, memref<8xf32>
  %1 = fp8.start_all_reduce sum %g into %s : memref<8xf32>
  fp8.wait %1 (%g, %s) : memref<8xf32>, memref<8xf32>
  fp8.launch @use(read %r, update %y) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// Both places are made right before the start: they go up together.
// CHECK-LABEL: fp8.schedule @places
// CHECK: fp8.launch @make(write %[[G:arg0]])
// CHECK-NEXT: %[[V:.*]] = memref.expand_shape %[[G]]
// CHECK-NEXT: %[[R:.*]] = memref.alloc()
// CHECK-NEXT: %[[A:.*]] = fp8.start_exchange all_to_all %[[V]] into %[[R]]
// CHECK-NEXT: fp8.launch @make(write %arg1)
// CHECK-NEXT: fp8.wait %[[A]](%[[V]], %[[R]])
fp8.schedule @places(%g: memref<8xf32>, %y: memref<8xf32>) {
  fp8.launch @make(write %g) : (memref<8xf32>) -> ()
  fp8.launch @make(write %y) : (memref<8xf32>) -> ()
  %v = memref.expand_shape %g [[0, 1]] output_shape [2, 4] : memref<8xf32> into memref<2x4xf32>
  %r = memref.alloc() : memref<2x4xf32>
  %0 = fp8.start_exchange all_to_all %v into %r ranks = dense<[[0, 1]]> : tensor<1x2xi64> : memref<2x4xf32> -> memref<2x4xf32>
  fp8.wait %0 (%v, %r) : memref<2x4xf32>, memref<2x4xf32>
  fp8.return
}
