// RUN: fp8-opt %s --fp8-plan-graph=nodes=10 --split-input-file --verify-diagnostics | FileCheck %s
// RUN: fp8-opt %s --fp8-plan-graph=nodes=10 --split-input-file 2>/dev/null | fp8-opt --split-input-file -o /dev/null

#launch = #fp8.gpu_launch<blocks = 2, threads = 32, shared = 0, dynamic_shared = 0, scratch = 0>

// A loop of more than ten launches is counted on the GPU; the kernel whose
// operand moves in it computes the address. Unused modules are removed.
// CHECK-NOT: gpu.module @moves {
// CHECK: gpu.module @moves_in_1_loop attributes {{.*}}fp8.loops = 1 : i64
// CHECK-NEXT: llvm.func @moves_in_1_loop(%[[X:.*]]: !llvm.ptr, %[[Y:.*]]: !llvm.ptr, %[[COUNTERS:.*]]: !llvm.ptr, %[[XBY:.*]]: i64, %[[YBY:.*]]: i64)
// CHECK: %[[AT:.*]] = llvm.getelementptr %[[COUNTERS]][0]
// CHECK: %[[I:.*]] = llvm.load %[[AT]]
// CHECK: %[[XFAR:.*]] = llvm.mul %[[I]], %[[XBY]]
// CHECK: %[[XAT:.*]] = llvm.getelementptr %[[X]][%[[XFAR]]] {{.*}} i8
// CHECK: %[[YFAR:.*]] = llvm.mul %[[I]], %[[YBY]]
// CHECK: %[[YAT:.*]] = llvm.getelementptr %[[Y]][%[[YFAR]]] {{.*}} i8
// CHECK: %[[V:.*]] = llvm.load %[[XAT]]
// CHECK: llvm.store %[[V]], %[[YAT]]
// CHECK: gpu.module @stays
// CHECK: fp8.schedule @main{{.*}} attributes {fp8.device_control}
// CHECK: scf.for
// CHECK-NOT: fp8.device_loop
// CHECK: scf.for
// CHECK: fp8.launch @moves_in_1_loop
// CHECK: fp8.launch @stays
// CHECK: } {fp8.device_loop}
// CHECK: gpu.module @fp8_gpu_count
// CHECK: llvm.func @cudaGraphSetConditional(i64, i32)
// CHECK: gpu.module @fp8_gpu_put
// CHECK-NOT: gpu.module @fp8

gpu.module @moves attributes {fp8.gpu_launch = #launch} {
  llvm.func @moves(%x: !llvm.ptr {llvm.dereferenceable = 64 : i64}, %y: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    %v = llvm.load %x : !llvm.ptr -> i8
    llvm.store %v, %y : i8, !llvm.ptr
    llvm.return
  }
}
gpu.module @stays attributes {fp8.gpu_launch = #launch} {
  llvm.func @stays(%x: !llvm.ptr, %y: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}
fp8.schedule @main(%arena: memref<64xi8>, %stack: memref<40x64xi8>, %y: memref<64xi8>, %n: memref<i32>) arena_bytes = 64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c64 = arith.constant 64 : index
  %c40 = arith.constant 40 : index
  scf.for %i = %c0 to %c3 step %c1 {
    fp8.launch @stays(read %y, write %y) number = 0 : (memref<64xi8>, memref<64xi8>) -> ()
  }
  scf.for %i = %c0 to %c40 step %c1 {
    %offset = arith.muli %i, %c64 : index
    %layer = fp8.subbuffer %stack[%offset] : memref<40x64xi8> to memref<64xi8>
    %number = arith.index_cast %i : index to i32
    memref.store %number, %n[] : memref<i32>
    fp8.launch @moves(read %layer, write %y) number = 1 : (memref<64xi8>, memref<64xi8>) -> ()
    fp8.launch @stays(read %y, write %y) number = 2 : (memref<64xi8>, memref<64xi8>) -> ()
  }
  fp8.return
}

// -----

#launch = #fp8.gpu_launch<blocks = 2, threads = 32, shared = 0, dynamic_shared = 0, scratch = 0>

// Kernels store the conditions and test them.
// CHECK: fp8.schedule @decides{{.*}} attributes {fp8.device_control}
// CHECK: gpu.module @fp8_gpu_keep
// CHECK: gpu.module @fp8_gpu_test
// CHECK-NOT: gpu.module @fp8
gpu.module @k attributes {fp8.gpu_launch = #launch} {
  llvm.func @k(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}
fp8.schedule @decides(%arena: memref<64xi8>, %x: memref<64xi8>, %flag: memref<i8>) arena_bytes = 64 {
  %byte = memref.load %flag[] : memref<i8>
  %go = arith.trunci %byte : i8 to i1
  scf.if %go {
    fp8.launch @k(update %x) number = 0 : (memref<64xi8>) -> ()
  }
  fp8.return
}

// -----

#launch = #fp8.gpu_launch<blocks = 2, threads = 32, shared = 0, dynamic_shared = 0, scratch = 0>

// The host computes with scalars, so all of this schedule stays on the host.
// CHECK-NOT: fp8.device_control
// CHECK: fp8.schedule @computes
// CHECK-NOT: fp8.device
gpu.module @k attributes {fp8.gpu_launch = #launch} {
  llvm.func @k(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}
fp8.schedule @computes(%arena: memref<64xi8>, %x: memref<64xi8>, %flag: memref<i32>) arena_bytes = 64 {
  // expected-remark@below {{the host reads conditions of this step, and waits for them: expected an integer that a kernel computes, as it is}}
  %n = memref.load %flag[] : memref<i32>
  %c5 = arith.constant 5 : i32
  %go = arith.cmpi slt, %n, %c5 : i32
  scf.if %go {
    fp8.launch @k(update %x) number = 0 : (memref<64xi8>) -> ()
  }
  fp8.return
}

// -----

#launch = #fp8.gpu_launch<blocks = 2, threads = 32, shared = 0, dynamic_shared = 0, scratch = 0>

// A loop with a reduction over ranks is expanded; the loop in it is not. The part
// of a buffer that belongs to the rank is the same in all iterations.
// CHECK: gpu.module @k_in_1_loop
// CHECK: fp8.schedule @reduces{{.*}} attributes {fp8.device_control}
// CHECK: scf.for
// CHECK-NEXT: scf.for
// CHECK: fp8.launch @k_in_1_loop
// CHECK: } {fp8.device_loop}
// CHECK: fp8.start_all_reduce
// CHECK-NOT: fp8.device_loop
// CHECK: fp8.return
gpu.module @k attributes {fp8.gpu_launch = #launch} {
  llvm.func @k(%x: !llvm.ptr, %y: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}
fp8.schedule @reduces(%arena: memref<64xi8>, %stack: memref<40x64xi8>, %parts: memref<4x64xi8>, %y: memref<64xf32>) arena_bytes = 64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c40 = arith.constant 40 : index
  %c64 = arith.constant 64 : index
  %rank = fp8.rank
  %number = arith.index_cast %rank : i64 to index
  %half = arith.divui %number, %c2 : index
  %begin = arith.muli %half, %c64 : index
  %part = fp8.subbuffer %parts[%begin] : memref<4x64xi8> to memref<64xi8>
  scf.for %i = %c0 to %c40 step %c1 {
    scf.for %j = %c0 to %c40 step %c1 {
      %offset = arith.muli %j, %c64 : index
      %layer = fp8.subbuffer %stack[%offset] : memref<40x64xi8> to memref<64xi8>
      fp8.launch @k(read %part, write %layer) number = 0 : (memref<64xi8>, memref<64xi8>) -> ()
    }
    %sum = fp8.start_all_reduce mean %y into %y number = 0 : memref<64xf32>
    fp8.wait %sum (%y, %y) : memref<64xf32>, memref<64xf32>
  }
  fp8.return
}

// -----

// A tensor map has its operand's address, which only the host can change: a loop
// in which it moves is expanded, one in which only another operand moves is not.
// CHECK: gpu.module @k_in_1_loop
// CHECK-NEXT: llvm.func @k_in_1_loop(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>}, %{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK: fp8.schedule @maps{{.*}} attributes {fp8.device_control}
// CHECK: fp8.launch @k(
// CHECK-NOT: fp8.device_loop
// CHECK: fp8.launch @k_in_1_loop(
// CHECK: } {fp8.device_loop}
gpu.module @k attributes {fp8.gpu_launch = #fp8.gpu_launch<blocks = 2, threads = 32, shared = 0, dynamic_shared = 0, scratch = 0,
    maps = [#fp8.tensor_map<operand = 0, element = i8, sizes = [64], strides = [], box = [64], swizzle = 64>]>} {
  llvm.func @k(%x: !llvm.ptr, %y: !llvm.ptr, %map: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>}) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}
fp8.schedule @maps(%arena: memref<64xi8>, %stack: memref<40x64xi8>, %y: memref<64xi8>) arena_bytes = 64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c40 = arith.constant 40 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c40 step %c1 {
    %offset = arith.muli %i, %c64 : index
    %layer = fp8.subbuffer %stack[%offset] : memref<40x64xi8> to memref<64xi8>
    fp8.launch @k(read %layer, write %y) number = 0 : (memref<64xi8>, memref<64xi8>) -> ()
  }
  scf.for %i = %c0 to %c40 step %c1 {
    %offset = arith.muli %i, %c64 : index
    %layer = fp8.subbuffer %stack[%offset] : memref<40x64xi8> to memref<64xi8>
    fp8.launch @k(read %y, write %layer) number = 1 : (memref<64xi8>, memref<64xi8>) -> ()
  }
  fp8.return
}

// -----

#launch = #fp8.gpu_launch<blocks = 2, threads = 32, shared = 0, dynamic_shared = 0, scratch = 0>

// The host calls for reductions, so that it has to know whether to.
// CHECK: fp8.schedule @decidesToReduce
// CHECK-NOT: fp8.device
gpu.module @k attributes {fp8.gpu_launch = #launch} {
  llvm.func @k(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}
fp8.schedule @decidesToReduce(%arena: memref<64xi8>, %x: memref<64xf32>, %flag: memref<i8>) arena_bytes = 64 {
  // expected-remark@below {{the host reads conditions of this step, and waits for them: ranks reduce or exchange where they hold}}
  scf.while : () -> () {
    %byte = memref.load %flag[] : memref<i8>
    %go = arith.trunci %byte : i8 to i1
    scf.condition(%go)
  } do {
    fp8.launch @k(update %x) number = 0 : (memref<64xf32>) -> ()
    %sum = fp8.start_all_reduce mean %x into %x number = 0 : memref<64xf32>
    fp8.wait %sum (%x, %x) : memref<64xf32>, memref<64xf32>
    scf.yield
  }
  fp8.return
}
