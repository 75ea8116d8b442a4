// RUN: fp8-opt %s --fp8-slice-collectives --split-input-file | FileCheck %s

fp8.kernel @wgrad(write %y: memref<64xf32>) domain = []
fp8.kernel @use(read %x: memref<4x64xf32>, update %y: memref<8xf32>) domain = []

// The loop starts to reduce a slice behind the last op that accesses it.
// CHECK-LABEL: fp8.schedule @last_layer_first
// CHECK: %[[ALL:.*]] = fp8.collectives
// CHECK-NEXT: scf.for
// CHECK: %[[PART:.*]] = fp8.subbuffer %arg0[%[[OFFSET:.*]]]
// CHECK-NEXT: fp8.launch @wgrad(write %[[PART]])
// CHECK: %[[INDEX:.*]] = arith.divui %[[OFFSET]]
// CHECK: %[[SLICE:.*]] = fp8.subbuffer %arg0[%[[OFFSET]]] : memref<4x64xf32> to memref<64xf32>
// CHECK: %[[TWICE:.*]] = arith.muli %[[INDEX]], %{{.*}}
// CHECK: %[[MU:.*]] = fp8.subbuffer %arg1[%[[TWICE]]] : memref<4x2xf32> to memref<2xf32>
// CHECK: fp8.start_all_reduce mean %[[SLICE]] into %[[SLICE]] mu %[[MU]] : memref<2xf32> slice %[[INDEX]] of %[[ALL]] wire = f8E4M3FN label = "gradient w"
// CHECK-NEXT: fp8.launch @wgrad(write %{{.*}}) {other}
// CHECK: }
// CHECK-NEXT: fp8.wait %[[ALL]](%arg0, %arg0, %arg1)
// CHECK-NEXT: fp8.launch @use
fp8.schedule @last_layer_first(%g: memref<4x64xf32>, %mu: memref<4x2xf32>, %y: memref<8xf32>, %z: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %layer = arith.subi %c3, %i : index
    %offset = arith.muli %layer, %c64 : index
    %part = fp8.subbuffer %g[%offset] : memref<4x64xf32> to memref<64xf32>
    fp8.launch @wgrad(write %part) : (memref<64xf32>) -> ()
    fp8.launch @wgrad(write %z) {other} : (memref<64xf32>) -> ()
  }
  %0 = fp8.start_all_reduce mean %g into %g mu %mu : memref<4x2xf32> wire = f8E4M3FN slices = 4 label = "gradient w" : memref<4x64xf32>
  fp8.wait %0 (%g, %g, %mu) : memref<4x64xf32>, memref<4x64xf32>, memref<4x2xf32>
  fp8.launch @use(read %g, update %y) : (memref<4x64xf32>, memref<8xf32>) -> ()
  fp8.return
}

// -----

fp8.kernel @wgrad(write %y: memref<64xf32>) domain = []

// With ZeRO-1 each slice goes to its owner.
// CHECK-LABEL: fp8.schedule @sharded
// CHECK: scf.for
// CHECK: fp8.start_all_reduce mean %{{.*}} into %{{.*}} slice %{{.*}} of %{{.*}} shard = 1 : memref<64xf32>
fp8.schedule @sharded(%w: memref<4x64xf32> {fp8.shard = 1 : i64, fp8.slices = 4 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %g = memref.alloc() : memref<4x64xf32>
  scf.for %i = %c0 to %c4 step %c1 {
    %offset = arith.muli %i, %c64 : index
    %part = fp8.subbuffer %g[%offset] : memref<4x64xf32> to memref<64xf32>
    fp8.launch @wgrad(write %part) : (memref<64xf32>) -> ()
  }
  %0 = fp8.start_all_reduce mean %g into %g shard = 1 slices = 4 : memref<4x64xf32>
  fp8.wait %0 (%g, %g) : memref<4x64xf32>, memref<4x64xf32>
  fp8.return
}

// -----

fp8.kernel @wgrad(write %y: memref<64xf32>) domain = []
fp8.kernel @scale(update %y: memref<4x64xf32>) domain = []

// Something changes the stack behind the loop: an exact sum is one message.
// CHECK-LABEL: fp8.schedule @scaled
// CHECK: fp8.launch @scale
// CHECK-NEXT: %[[H:.*]] = fp8.start_all_reduce mean %arg0 into %arg0 : memref<4x64xf32>
// CHECK-NEXT: fp8.wait %[[H]](%arg0, %arg0)
fp8.schedule @scaled(%g: memref<4x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %offset = arith.muli %i, %c64 : index
    %part = fp8.subbuffer %g[%offset] : memref<4x64xf32> to memref<64xf32>
    fp8.launch @wgrad(write %part) : (memref<64xf32>) -> ()
  }
  fp8.launch @scale(update %g) : (memref<4x64xf32>) -> ()
  %0 = fp8.start_all_reduce mean %g into %g slices = 4 : memref<4x64xf32>
  fp8.wait %0 (%g, %g) : memref<4x64xf32>, memref<4x64xf32>
  fp8.return
}

// On an f8 wire each slice has a scale of its own.
// CHECK-LABEL: fp8.schedule @scaled_f8
// CHECK: fp8.launch @scale
// CHECK: %[[A:.*]] = fp8.subbuffer %arg0[%{{.*}}] : memref<4x64xf32> to memref<64xf32>
// CHECK: %[[HA:.*]] = fp8.start_all_reduce mean %[[A]] into %[[A]] mu %[[MA:.*]] : memref<2xf32> slice %{{.*}} wire = f8E5M2
// CHECK: %[[HB:.*]] = fp8.start_all_reduce
// CHECK: %[[HC:.*]] = fp8.start_all_reduce
// CHECK: %[[HD:.*]] = fp8.start_all_reduce
// CHECK: fp8.wait %[[HA]](%[[A]], %[[A]], %[[MA]])
// CHECK: fp8.wait %[[HB]]
// CHECK: fp8.wait %[[HC]]
// CHECK: fp8.wait %[[HD]]
// CHECK-NOT: fp8.wait
fp8.schedule @scaled_f8(%g: memref<4x64xf32>, %mu: memref<4x2xf32>) {
  fp8.launch @scale(update %g) : (memref<4x64xf32>) -> ()
  %0 = fp8.start_all_reduce mean %g into %g mu %mu : memref<4x2xf32> wire = f8E5M2 slices = 4 : memref<4x64xf32>
  fp8.wait %0 (%g, %g, %mu) : memref<4x64xf32>, memref<4x64xf32>, memref<4x2xf32>
  fp8.return
}

// The same slice in every iteration, and parts of two slices.
// CHECK-LABEL: fp8.schedule @others
// CHECK-NOT: fp8.collectives
fp8.schedule @others(%g: memref<4x64xf32>, %h: memref<4x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %part = fp8.subbuffer %g[%c64] : memref<4x64xf32> to memref<64xf32>
    fp8.launch @wgrad(write %part) : (memref<64xf32>) -> ()
    %offset = arith.muli %i, %c32 : index
    %half = fp8.subbuffer %h[%offset] : memref<4x64xf32> to memref<64xf32>
    fp8.launch @wgrad(write %half) : (memref<64xf32>) -> ()
  }
  %0 = fp8.start_all_reduce mean %g into %g slices = 4 : memref<4x64xf32>
  fp8.wait %0 (%g, %g) : memref<4x64xf32>, memref<4x64xf32>
  %1 = fp8.start_all_reduce mean %h into %h slices = 4 : memref<4x64xf32>
  fp8.wait %1 (%h, %h) : memref<4x64xf32>, memref<4x64xf32>
  fp8.return
}

// -----

fp8.kernel @wgrad(write %y: memref<0xf32>) domain = []

// The offset of an empty slice does not tell its index.
// CHECK-LABEL: fp8.schedule @empty
// CHECK-NOT: arith.divui
// CHECK: fp8.start_all_reduce mean %arg0 into %arg0 : memref<4x0xf32>
fp8.schedule @empty(%g: memref<4x0xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %offset = arith.muli %i, %c0 : index
    %part = fp8.subbuffer %g[%offset] : memref<4x0xf32> to memref<0xf32>
    fp8.launch @wgrad(write %part) : (memref<0xf32>) -> ()
  }
  %0 = fp8.start_all_reduce mean %g into %g slices = 4 : memref<4x0xf32>
  fp8.wait %0 (%g, %g) : memref<4x0xf32>, memref<4x0xf32>
  fp8.return
}
