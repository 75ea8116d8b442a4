// RUN: fp8-opt %s --fp8-plan-graph=nodes=10 --fp8-order-graph --fp8-verify-graph --fp8-lower-schedule | FileCheck %s

// The entry names the nodes that each call follows. The table of a run of launches contains these nodes and the offsets of parts.

#launch = #fp8.gpu_launch<blocks = 2, threads = 32, shared = 0, dynamic_shared = 0, scratch = 0>

module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {

// The loss is written by node 7; what comes before the loop with a condition needs no edge.
// CHECK: llvm.mlir.global internal constant @[[LOSS:fp8_entry_after_[0-9]+]](dense<7> : tensor<1xi64>)
// CHECK: llvm.mlir.global internal constant @[[AFTER:fp8_entry_after_[0-9]+]](dense<[0, 1, 2]> : tensor<3xi64>)
// CHECK: llvm.mlir.global internal constant @[[OFFSETS:fp8_entry_offsets_[0-9]+]](dense<[0, 0, 0, 0, 0, 64, 64, 0]> : tensor<8xi64>)
// A row of the table: number of the launch, kernel, tasks, first operand, operands; node, first node before it, number of these.
// CHECK: llvm.mlir.global internal constant @[[ROWS:fp8_entry_launches_[0-9]+]](dense<[0, 0, 2, 0, 2, 0, 0, 0, 1, 0, 2, 2, 2, 1, 0, 1, 0, 0, 2, 4, 2, 2, 1, 0, 1, 0, 2, 6, 2, 3, 1, 2]> : tensor<32xi64>)
// CHECK: llvm.mlir.global internal constant @[[BRANCH:fp8_entry_after_[0-9]+]](dense<[3, 4]> : tensor<2xi64>)
// CHECK: func.func @fp8_entry(%[[STEP:[^:]*]]: !llvm.ptr) {
// CHECK: %[[TABLE:.*]] = llvm.mlir.addressof @[[ROWS]]
// CHECK: %[[PLACES:.*]] = llvm.mlir.addressof @[[OFFSETS]]
// CHECK: %[[ALL:.*]] = llvm.mlir.addressof @[[AFTER]]
// CHECK: scf.for
// CHECK:   %[[FIRST:.*]] = llvm.getelementptr %[[ALL]]
// CHECK:   llvm.call @fp8_order(%[[STEP]], %{{.*}}, %[[FIRST]], %{{.*}}) : (!llvm.ptr, i64, !llvm.ptr, i64) -> ()
// CHECK:   %[[OFFSET:.*]] = llvm.getelementptr %[[PLACES]]
// CHECK:   llvm.call @fp8_launch(%[[STEP]], {{.*}}, %[[OFFSET]], %{{.*}})
// CHECK: llvm.call @fp8_order(%[[STEP]]
// CHECK: llvm.call @fp8_keep(%[[STEP]]
// CHECK: %[[BEFORE:.*]] = llvm.mlir.addressof @[[BRANCH]]
// CHECK: llvm.call @fp8_order(%[[STEP]], %{{.*}}, %[[BEFORE]]
// CHECK: llvm.call @fp8_branch(%[[STEP]]
// CHECK: scf.if
// CHECK:   llvm.call @fp8_order(%[[STEP]]
// CHECK:   llvm.call @fp8_launch(%[[STEP]]
// CHECK: %[[NONE:.*]] = llvm.mlir.constant(-1 : i64)
// CHECK: llvm.call @fp8_order(%[[STEP]], %[[NONE]]
// CHECK: scf.while
// CHECK-NOT: fp8_order
// CHECK: } do {
// CHECK-NOT: fp8_order
// CHECK: scf.yield
// CHECK: llvm.call @fp8_order(%[[STEP]]
// CHECK: llvm.call @fp8_launch(%[[STEP]]
// CHECK: %[[WRITER:.*]] = llvm.mlir.addressof @[[LOSS]]
// CHECK: llvm.call @fp8_order(%[[STEP]], %{{.*}}, %[[WRITER]]
// CHECK: %[[CODE:.*]] = llvm.mlir.constant(-5 : i64)
// CHECK: llvm.call @fp8_fetch(%[[STEP]], %[[CODE]])
gpu.module @k attributes {fp8.gpu_launch = #launch} {
  llvm.func @k(%x: !llvm.ptr, %y: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}
fp8.schedule @main(%arena: memref<64xi8>, %stack: memref<2x64xi8>, %x: memref<64xi8>, %y: memref<64xi8>, %flag: memref<i8>,
                   %loss: memref<f32> {fp8.output}) arena_bytes = 64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c2 step %c1 {
    %offset = arith.muli %i, %c64 : index
    %layer = fp8.subbuffer %stack[%offset] : memref<2x64xi8> to memref<64xi8>
    fp8.launch @k(read %x, write %layer) number = 0 : (memref<64xi8>, memref<64xi8>) -> ()
    fp8.launch @k(read %layer, update %y) number = 1 : (memref<64xi8>, memref<64xi8>) -> ()
  }
  %byte = memref.load %flag[] : memref<i8>
  %go = arith.trunci %byte : i8 to i1
  scf.if %go {
    fp8.launch @k(read %x, write %y) number = 2 : (memref<64xi8>, memref<64xi8>) -> ()
  }
  scf.while : () -> () {
    %again = memref.load %flag[] : memref<i8>
    %runs = arith.trunci %again : i8 to i1
    scf.condition(%runs)
  } do {
    fp8.launch @k(read %y, write %y) number = 3 : (memref<64xi8>, memref<64xi8>) -> ()
    scf.yield
  }
  fp8.launch @k(read %y, write %loss) number = 4 : (memref<64xi8>, memref<f32>) -> ()
  fp8.return
}
}
