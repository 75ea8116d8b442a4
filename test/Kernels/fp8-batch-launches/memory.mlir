// RUN: fp8-opt %s --fp8-batch-launches | FileCheck %s
// RUN: fp8-opt %s --fp8-plan-memory | FileCheck %s --check-prefix=BEFORE
// RUN: fp8-opt %s --fp8-batch-launches --fp8-plan-memory | FileCheck %s --check-prefix=AFTER

fp8.kernel @fill(write %x: memref<1024xf32>) domain = []
fp8.kernel @large(write %x: memref<65536xf32>) domain = []
fp8.kernel @sum(read %x: memref<65536xf32>, write %s: memref<1024xf32>) domain = []
fp8.kernel @use(read %x: memref<1024xf32>, update %y: memref<f32>) domain = []
fp8.kernel @update(read %x: memref<65536xf32>, update %w: memref<65536xf32>) domain = []

// Partial sums of 4 KiB would all live until the end. That is more than 1 % of what is live, so they are read as early
// as before.
// CHECK-LABEL: fp8.schedule @growth
// CHECK-COUNT-3: fp8.launch @use(read %{{[^)]*}}) :
// BEFORE-LABEL: fp8.schedule @growth
// BEFORE-SAME: arena_bytes = 266240
// AFTER-LABEL: fp8.schedule @growth
// AFTER-SAME: arena_bytes = 266240
fp8.schedule @growth(%a: memref<f32>, %b: memref<f32>, %c: memref<f32>) {
  %x = memref.alloc() : memref<65536xf32>
  fp8.launch @large(write %x) : (memref<65536xf32>) -> ()
  %p = memref.alloc() : memref<1024xf32>
  fp8.launch @sum(read %x, write %p) : (memref<65536xf32>, memref<1024xf32>) -> ()
  fp8.launch @use(read %p, update %a) : (memref<1024xf32>, memref<f32>) -> ()
  %y = memref.alloc() : memref<65536xf32>
  fp8.launch @large(write %y) : (memref<65536xf32>) -> ()
  %q = memref.alloc() : memref<1024xf32>
  fp8.launch @sum(read %y, write %q) : (memref<65536xf32>, memref<1024xf32>) -> ()
  fp8.launch @use(read %q, update %b) : (memref<1024xf32>, memref<f32>) -> ()
  %z = memref.alloc() : memref<65536xf32>
  fp8.launch @large(write %z) : (memref<65536xf32>) -> ()
  %r = memref.alloc() : memref<1024xf32>
  fp8.launch @sum(read %z, write %r) : (memref<65536xf32>, memref<1024xf32>) -> ()
  fp8.launch @use(read %r, update %c) : (memref<1024xf32>, memref<f32>) -> ()
  fp8.return
}

// An update reads a large gradient, so it does not wait; the second one moves up to the first, and its gradient dies
// earlier. A launch that makes a large buffer does not move up.
// CHECK-LABEL: fp8.schedule @updates
// CHECK: fp8.launch @large(write %[[X:.*]]) :
// CHECK: fp8.launch @large(write %[[Y:.*]]) :
// CHECK: fp8.launch @update(read %[[X]], update %arg0)(read %[[Y]], update %arg1) :
// CHECK: fp8.launch @fill(write %arg2) :
// CHECK-NOT: fp8.launch
fp8.schedule @updates(%v: memref<65536xf32>, %w: memref<65536xf32>, %s: memref<1024xf32>) {
  %x = memref.alloc() : memref<65536xf32>
  %y = memref.alloc() : memref<65536xf32>
  fp8.launch @large(write %x) : (memref<65536xf32>) -> ()
  fp8.launch @large(write %y) : (memref<65536xf32>) -> ()
  fp8.launch @update(read %x, update %v) : (memref<65536xf32>, memref<65536xf32>) -> ()
  fp8.launch @fill(write %s) : (memref<1024xf32>) -> ()
  fp8.launch @update(read %y, update %w) : (memref<65536xf32>, memref<65536xf32>) -> ()
  fp8.return
}
