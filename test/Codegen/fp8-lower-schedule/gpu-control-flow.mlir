// RUN: fp8-opt %s --fp8-plan-graph=nodes=10 --fp8-lower-schedule | FileCheck %s

#launch = #fp8.gpu_launch<blocks = 2, threads = 32, shared = 0, dynamic_shared = 0, scratch = 0>

module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {

// CHECK: llvm.mlir.global internal constant @[[STRIDES:fp8_entry_strides_[0-9]+]](dense<[64, 0]> : tensor<2xi64>)
// CHECK: func.func @fp8_entry(%[[STEP:[^:]*]]: !llvm.ptr) {

gpu.module @k attributes {fp8.gpu_launch = #launch} {
  llvm.func @k(%x: !llvm.ptr, %y: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}
fp8.schedule @main(%arena: memref<64xi8>, %stack: memref<40x64xi8>, %y: memref<64xi8>, %flag: memref<i8>,
                   %choice: memref<i32>, %n: memref<i32>, %flags: memref<40xi1>) arena_bytes = 64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c40 = arith.constant 40 : index
  %true = arith.constant true

  // The runtime says how many iterations the entry runs.
  // CHECK: %[[COUNT:.*]] = llvm.mlir.addressof @fp8_gpu_count
  // CHECK: %[[TRIPS:.*]] = llvm.call @fp8_loop(%[[STEP]], %[[COUNT]], %{{.*}}) : (!llvm.ptr, !llvm.ptr, i64) -> i64
  // CHECK: %[[INDEX:.*]] = arith.index_cast %[[TRIPS]]
  // CHECK: %[[LENGTH:.*]] = arith.muli %[[INDEX]]
  // CHECK: %[[END:.*]] = arith.addi %{{.*}}, %[[LENGTH]]
  // CHECK: scf.for %{{.*}} = %{{.*}} to %[[END]]
  // CHECK:   arith.extui %{{.*}} : i1 to i64
  // CHECK:   llvm.call @fp8_write_moving(%[[STEP]]
  // CHECK:   llvm.call @fp8_write_moving(%[[STEP]]
  // CHECK:   %[[TABLE:.*]] = llvm.mlir.addressof @[[STRIDES]]
  // CHECK:   llvm.call @fp8_launch_moving(%[[STEP]], {{.*}}, %[[TABLE]], %{{[^,]*}})
  // CHECK: }
  // CHECK: llvm.call @fp8_end(%[[STEP]])
  scf.for %i = %c0 to %c40 step %c1 {
    %offset = arith.muli %i, %c64 : index
    %layer = fp8.subbuffer %stack[%offset] : memref<40x64xi8> to memref<64xi8>
    %number = arith.index_cast %i : index to i32
    %done = fp8.subbuffer %flags[%i] : memref<40xi1> to memref<i1>
    memref.store %true, %done[] : memref<i1>
    memref.store %number, %n[] : memref<i32>
    fp8.launch @k(read %layer, write %y) number = 1 : (memref<64xi8>, memref<64xi8>) -> ()
  }

  // A condition is kept where it is loaded; both sides of a branch ask for it.
  // CHECK: llvm.call @fp8_keep(%[[STEP]]
  // CHECK: %[[THEN:.*]] = llvm.call @fp8_branch(%[[STEP]]
  // CHECK: %[[TAKEN:.*]] = llvm.icmp "ne" %[[THEN]]
  // CHECK: scf.if %[[TAKEN]] {
  // CHECK:   llvm.call @fp8_launch
  // CHECK:   llvm.call @fp8_end(%[[STEP]])
  // CHECK: llvm.call @fp8_branch(%[[STEP]]
  // CHECK: scf.if
  // CHECK:   llvm.call @fp8_launch
  // CHECK:   llvm.call @fp8_end(%[[STEP]])
  %byte = memref.load %flag[] : memref<i8>
  %go = arith.trunci %byte : i8 to i1
  scf.if %go {
    fp8.launch @k(read %y, write %y) number = 2 : (memref<64xi8>, memref<64xi8>) -> ()
  } else {
    fp8.launch @k(read %y, write %y) number = 3 : (memref<64xi8>, memref<64xi8>) -> ()
  }

  // Of a switch every branch asks; those without launches do not.
  // CHECK: llvm.call @fp8_keep(%[[STEP]]
  // CHECK: llvm.call @fp8_branch(%[[STEP]]
  // CHECK: llvm.call @fp8_branch(%[[STEP]]
  // CHECK-NOT: llvm.call @fp8_branch
  %value = memref.load %choice[] : memref<i32>
  %which = arith.index_cast %value : i32 to index
  scf.index_switch %which
  case 0 {
    fp8.launch @k(read %y, write %y) number = 4 : (memref<64xi8>, memref<64xi8>) -> ()
    scf.yield
  }
  case 1 {
    scf.yield
  }
  default {
    fp8.launch @k(read %y, write %y) number = 5 : (memref<64xi8>, memref<64xi8>) -> ()
  }

  // CHECK: scf.while
  // CHECK:   llvm.call @fp8_keep(%[[STEP]]
  // CHECK:   %[[AGAIN:.*]] = llvm.call @fp8_while(%[[STEP]]
  // CHECK:   %[[RUNS:.*]] = llvm.icmp "ne" %[[AGAIN]]
  // CHECK:   scf.condition(%[[RUNS]])
  scf.while : () -> () {
    %again = memref.load %flag[] : memref<i8>
    %runs = arith.trunci %again : i8 to i1
    scf.condition(%runs)
  } do {
    fp8.launch @k(read %y, write %y) number = 6 : (memref<64xi8>, memref<64xi8>) -> ()
    scf.yield
  }
  // CHECK-NOT: fp8_read
  fp8.return
}
}
