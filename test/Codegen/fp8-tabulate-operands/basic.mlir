// RUN: fp8-opt %s --fp8-tabulate-operands --split-input-file --verify-diagnostics | FileCheck %s

#launch = #fp8.gpu_launch<blocks = 2, threads = 32, shared = 0, dynamic_shared = 0, scratch = 0>

// The copy reads its addresses from a row of a table; its code is the same. A launch with one set keeps the kernel.
// CHECK: gpu.module @k_of_sets attributes {{.*}}fp8.sets = 2 : i64
// CHECK-NEXT: llvm.func @k_of_sets(%[[TABLE:.*]]: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel}
// CHECK-DAG: %[[SET:.*]] = nvvm.read.ptx.sreg.ctaid.y : i32
// CHECK-DAG: %[[WIDE:.*]] = llvm.zext %[[SET]] : i32 to i64
// CHECK: %[[ROW:.*]] = llvm.getelementptr %[[TABLE]][%[[WIDE]]] {{.*}} !llvm.array<2 x i64>
// CHECK: %[[XAT:.*]] = llvm.getelementptr %[[ROW]][0] {{.*}} i64
// CHECK: %[[XGLOBAL:.*]] = llvm.load %[[XAT]] : !llvm.ptr -> !llvm.ptr<1>
// CHECK: %[[X:.*]] = llvm.addrspacecast %[[XGLOBAL]] : !llvm.ptr<1> to !llvm.ptr
// CHECK: %[[YAT:.*]] = llvm.getelementptr %[[ROW]][1] {{.*}} i64
// CHECK: %[[YGLOBAL:.*]] = llvm.load %[[YAT]] : !llvm.ptr -> !llvm.ptr<1>
// CHECK: %[[Y:.*]] = llvm.addrspacecast %[[YGLOBAL]]
// CHECK: %[[V:.*]] = llvm.load %[[X]] : !llvm.ptr -> i8
// CHECK: llvm.store %[[V]], %[[Y]]
// CHECK: gpu.module @k attributes
// CHECK: llvm.func @k(%{{.*}}: !llvm.ptr {llvm.dereferenceable = 64 : i64}, %{{.*}}: !llvm.ptr)
// CHECK: fp8.launch @k_of_sets(read %arg1, write %arg2)(read %arg3, write %arg4) number = 0 :
// CHECK: fp8.launch @k_of_sets(read %arg1, write %arg3)(read %arg2, write %arg4) number = 1 :
// CHECK: fp8.launch @k(read %arg1, write %arg2) number = 2 :
gpu.module @k attributes {fp8.gpu_launch = #launch} {
  llvm.func @k(%x: !llvm.ptr {llvm.dereferenceable = 64 : i64}, %y: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    %v = llvm.load %x : !llvm.ptr -> i8
    llvm.store %v, %y : i8, !llvm.ptr
    llvm.return
  }
}
fp8.schedule @main(%arena: memref<64xi8>, %a: memref<64xi8>, %b: memref<64xi8>, %c: memref<64xi8>, %d: memref<64xi8>) arena_bytes = 64 {
  fp8.launch @k(read %a, write %b)(read %c, write %d) number = 0 : (memref<64xi8>, memref<64xi8>) -> ()
  fp8.launch @k(read %a, write %c)(read %b, write %d) number = 1 : (memref<64xi8>, memref<64xi8>) -> ()
  fp8.launch @k(read %a, write %b) number = 2 : (memref<64xi8>, memref<64xi8>) -> ()
  fp8.return
}

// -----

#scratch = #fp8.gpu_launch<blocks = 2, threads = 32, shared = 0, dynamic_shared = 0, scratch = 64>
#launch = #fp8.gpu_launch<blocks = 2, threads = 32, shared = 0, dynamic_shared = 0, scratch = 0>

// Blocks have scratch memory by their x index, and the address of a part is not known when the table is made.
// CHECK-NOT: of_sets
gpu.module @scratch attributes {fp8.gpu_launch = #scratch} {
  llvm.func @scratch(%x: !llvm.ptr, %memory: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}
gpu.module @part attributes {fp8.gpu_launch = #launch} {
  llvm.func @part(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}
fp8.schedule @main(%arena: memref<64xi8>, %a: memref<64xi8>, %b: memref<64xi8>, %stack: memref<4x64xi8>) arena_bytes = 64 {
  %c64 = arith.constant 64 : index
  %rank = fp8.rank
  %number = arith.index_cast %rank : i64 to index
  %begin = arith.muli %number, %c64 : index
  %part = fp8.subbuffer %stack[%begin] : memref<4x64xi8> to memref<64xi8>
  fp8.launch @scratch(write %a)(write %b) number = 0 : (memref<64xi8>) -> ()
  fp8.launch @part(write %a)(write %part) number = 1 : (memref<64xi8>) -> ()
  fp8.return
}

// -----

fp8.kernel @k(write %x: memref<64xi8>) domain = []
fp8.schedule @main(%arena: memref<64xi8>, %a: memref<64xi8>, %b: memref<64xi8>) arena_bytes = 64 {
  // expected-error @+1 {{expected a kernel lowered by fp8-to-nvvm}}
  fp8.launch @k(write %a)(write %b) number = 0 : (memref<64xi8>) -> ()
  fp8.return
}
