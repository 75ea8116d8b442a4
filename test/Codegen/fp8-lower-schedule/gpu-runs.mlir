// RUN: fp8-opt %s --fp8-plan-graph=nodes=10 --fp8-lower-schedule | FileCheck %s

// In a loop that the GPU counts, launches one after the other are a loop over a table, which the entry runs once. Those
// whose operands move are told one by one. The place of a rank's part is known when the entry runs, and does not move.

#launch = #fp8.gpu_launch<blocks = 2, threads = 32, shared = 0, dynamic_shared = 0, scratch = 0>

module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {

// CHECK: @[[STRIDES:fp8_entry_strides_[0-9]+]](dense<[0, 64]> : tensor<2xi64>)
// CHECK: llvm.mlir.global internal constant @fp8_entry_kernels() {{.*}} : !llvm.array<1 x ptr>
// CHECK-NEXT: llvm.mlir.undef
// CHECK-NEXT: llvm.mlir.addressof @k_gpu
// CHECK: @[[ROWS:fp8_entry_launches_[0-9]+]](dense<[1, 0, 2, 0, 2, 2, 0, 2, 2, 2, 3, 0, 2, 4, 2, 4, 0, 2, 6, 2]> : tensor<20xi64>)
// CHECK: func.func @fp8_entry(%[[STEP:[^:]*]]: !llvm.ptr) {
// CHECK: %[[RANK:.*]] = llvm.call @fp8_rank(%[[STEP]])
// CHECK: llvm.call @fp8_loop(%[[STEP]]
// CHECK: scf.for
// CHECK:   %[[TABLE:.*]] = llvm.mlir.addressof @[[STRIDES]]
// CHECK:   llvm.call @fp8_launch_moving(%[[STEP]], {{.*}}, %[[TABLE]], %{{[^,]*}})
// CHECK:   llvm.mlir.addressof @[[ROWS]]
// CHECK:   scf.for
// CHECK:     llvm.call @fp8_launch(%[[STEP]]
// CHECK:   }
// CHECK: }
// CHECK: llvm.call @fp8_end(%[[STEP]])
gpu.module @k attributes {fp8.gpu_launch = #launch} {
  llvm.func @k(%x: !llvm.ptr, %y: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}
fp8.schedule @main(%arena: memref<64xi8>, %stack: memref<40x64xi8>, %parts: memref<4x64xi8>, %x: memref<64xi8>, %y: memref<64xi8>) arena_bytes = 64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c40 = arith.constant 40 : index
  %c64 = arith.constant 64 : index
  %rank = fp8.rank
  %number = arith.index_cast %rank : i64 to index
  %begin = arith.muli %number, %c64 : index
  %part = fp8.subbuffer %parts[%begin] : memref<4x64xi8> to memref<64xi8>
  scf.for %i = %c0 to %c40 step %c1 {
    %offset = arith.muli %i, %c64 : index
    %layer = fp8.subbuffer %stack[%offset] : memref<40x64xi8> to memref<64xi8>
    fp8.launch @k(read %part, write %layer) number = 0 : (memref<64xi8>, memref<64xi8>) -> ()
    fp8.launch @k(read %x, write %y) number = 1 : (memref<64xi8>, memref<64xi8>) -> ()
    fp8.launch @k(read %y, write %x) number = 2 : (memref<64xi8>, memref<64xi8>) -> ()
    fp8.launch @k(read %x, write %y) number = 3 : (memref<64xi8>, memref<64xi8>) -> ()
    fp8.launch @k(read %y, write %x) number = 4 : (memref<64xi8>, memref<64xi8>) -> ()
  }
  fp8.return
}
}
