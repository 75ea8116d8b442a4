// RUN: fp8-opt %s --fp8-order-graph --fp8-verify-graph --split-input-file | FileCheck %s
// RUN: fp8-opt %s --fp8-order-graph=nodes=4 --split-input-file | FileCheck %s --check-prefix=LARGE

#launch = #fp8.gpu_launch<blocks = 2, threads = 32, shared = 0, dynamic_shared = 0, scratch = 0>
#scratch = #fp8.gpu_launch<blocks = 2, threads = 32, shared = 0, dynamic_shared = 0, scratch = 64>

// Nodes follow who wrote what they read, and who accessed what they write: bytes of the arena, in which buffers overlap,
// and arguments. A node that has to follow two nodes, of which one follows the other, has one edge. The largest schedule
// is given by an option.
// CHECK-LABEL: fp8.schedule @memory
// CHECK-SAME: %{{[^:]*}}: memref<f32> {fp8.after = array<i64: 6>, fp8.node = 8 : i64, fp8.output}
// CHECK-SAME: fp8.graph = {edges = 7 : i64, nodes = 9 : i64, path = 4 : i64}
// LARGE-LABEL: fp8.schedule @memory
// LARGE-NOT: fp8.graph
gpu.module @k attributes {fp8.gpu_launch = #launch} {
  llvm.func @k(%x: !llvm.ptr, %y: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}
gpu.module @s attributes {fp8.gpu_launch = #scratch} {
  llvm.func @s(%x: !llvm.ptr, %y: !llvm.ptr, %scratch: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}
fp8.schedule @memory(%arena: memref<256xi8>, %x: memref<64xi8>, %y: memref<64xi8>, %loss: memref<f32> {fp8.output})
    arena_bytes = 256 attributes {fp8.device_control} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c192 = arith.constant 192 : index
  %a = memref.view %arena[%c0][] : memref<256xi8> to memref<64xi8>
  %b = memref.view %arena[%c64][] : memref<256xi8> to memref<64xi8>
  %overlapping = memref.view %arena[%c32][] : memref<256xi8> to memref<64xi8>
  %c = memref.view %arena[%c128][] : memref<256xi8> to memref<64xi8>
  %d = memref.view %arena[%c192][] : memref<256xi8> to memref<64xi8>
  // CHECK: launch @k(read %{{.*}}) number = 0 {fp8.after = array<i64>, fp8.node = 0 : i64}
  // CHECK: launch @k(read %{{.*}}) number = 1 {fp8.after = array<i64>, fp8.node = 1 : i64}
  fp8.launch @k(read %x, write %a) number = 0 : (memref<64xi8>, memref<64xi8>) -> ()
  fp8.launch @k(read %x, write %b) number = 1 : (memref<64xi8>, memref<64xi8>) -> ()
  // Reads parts of both.
  // CHECK: number = 2 {fp8.after = array<i64: 0, 1>, fp8.node = 2 : i64}
  fp8.launch @k(read %overlapping, write %c) number = 2 : (memref<64xi8>, memref<64xi8>) -> ()
  // Writes what node 2 has read; node 0 comes before that.
  // CHECK: number = 3 {fp8.after = array<i64: 2>, fp8.node = 3 : i64}
  fp8.launch @k(read %y, write %a) number = 3 : (memref<64xi8>, memref<64xi8>) -> ()
  // Writes what node 3 has read, and reads what node 2 has written.
  // CHECK: number = 4 {fp8.after = array<i64: 3>, fp8.node = 4 : i64}
  fp8.launch @k(read %c, write %y) number = 4 : (memref<64xi8>, memref<64xi8>) -> ()
  // Scratch memory is the same for both.
  // CHECK: number = 5 {fp8.after = array<i64: 1>, fp8.node = 5 : i64}
  // CHECK: number = 6 {fp8.after = array<i64: 5>, fp8.node = 6 : i64}
  fp8.launch @s(read %b, write %d) number = 5 : (memref<64xi8>, memref<64xi8>) -> ()
  fp8.launch @s(read %x, write %loss) number = 6 : (memref<64xi8>, memref<f32>) -> ()
  // CHECK: number = 7 {fp8.after = array<i64>, fp8.node = 7 : i64}
  fp8.launch @k(read %x, read %x) number = 7 : (memref<64xi8>, memref<64xi8>) -> ()
  fp8.return
}

// -----

#launch = #fp8.gpu_launch<blocks = 2, threads = 32, shared = 0, dynamic_shared = 0, scratch = 0>

// A loop that is expanded becomes its iterations. Those on different parts of a stack may run at once, if the part is
// known; what begins at a place that follows from the rank is somewhere in its stack.
// CHECK-LABEL: fp8.schedule @parts
// CHECK-NOT: scf.for
// CHECK: arith.constant 64 : index
// CHECK: fp8.launch {{.*}}number = 0 {fp8.after = array<i64>, fp8.node = 0 : i64}
// CHECK: fp8.launch {{.*}}number = 1 {fp8.after = array<i64: 0>, fp8.node = 1 : i64}
// CHECK: fp8.launch {{.*}}number = 0 {fp8.after = array<i64>, fp8.node = 2 : i64}
// CHECK: fp8.launch {{.*}}number = 1 {fp8.after = array<i64: 1, 2>, fp8.node = 3 : i64}
// CHECK: fp8.launch {{.*}}number = 2 {fp8.after = array<i64: 3>, fp8.node = 4 : i64}
gpu.module @k attributes {fp8.gpu_launch = #launch} {
  llvm.func @k(%x: !llvm.ptr, %y: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}
fp8.schedule @parts(%arena: memref<64xi8>, %stack: memref<2x64xi8>, %x: memref<64xi8>, %y: memref<64xi8>)
    arena_bytes = 64 attributes {fp8.device_control} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %rank = fp8.rank
  %number = arith.index_cast %rank : i64 to index
  %begin = arith.muli %number, %c64 : index
  scf.for %i = %c0 to %c2 step %c1 {
    %offset = arith.muli %i, %c64 : index
    %layer = fp8.subbuffer %stack[%offset] : memref<2x64xi8> to memref<64xi8>
    fp8.launch @k(read %x, write %layer) number = 0 : (memref<64xi8>, memref<64xi8>) -> ()
    fp8.launch @k(read %layer, update %y) number = 1 : (memref<64xi8>, memref<64xi8>) -> ()
  }
  %part = fp8.subbuffer %stack[%begin] : memref<2x64xi8> to memref<64xi8>
  fp8.launch @k(read %x, write %part) number = 2 : (memref<64xi8>, memref<64xi8>) -> ()
  fp8.return
}

// -----

#launch = #fp8.gpu_launch<blocks = 2, threads = 32, shared = 0, dynamic_shared = 0, scratch = 0>

// A loop or branch that the GPU decides follows what any op in it has to follow, and a branch follows its condition. Two
// loops have one counter. The bodies have orders of their own. A loop with a condition keeps the order of the schedule.
// CHECK-LABEL: fp8.schedule @control
gpu.module @k attributes {fp8.gpu_launch = #launch} {
  llvm.func @k(%x: !llvm.ptr, %y: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}
fp8.schedule @control(%arena: memref<64xi8>, %x: memref<64xi8>, %y: memref<64xi8>, %z: memref<64xi8>, %flag: memref<i8>)
    arena_bytes = 64 attributes {fp8.device_control} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c40 = arith.constant 40 : index
  // CHECK: fp8.launch {{.*}}number = 0 {fp8.after = array<i64>, fp8.node = 0 : i64}
  fp8.launch @k(read %x, write %y) number = 0 : (memref<64xi8>, memref<64xi8>) -> ()
  // CHECK: memref.load {{.*}}fp8.after = array<i64>, fp8.node = 1 : i64
  // CHECK: scf.if
  // CHECK:   fp8.launch {{.*}}number = 1 {fp8.after = array<i64>, fp8.node = 3 : i64}
  // CHECK:   fp8.launch {{.*}}number = 2 {fp8.after = array<i64: 3>, fp8.node = 4 : i64}
  // CHECK: } {fp8.after = array<i64: 0, 1>, fp8.node = 2 : i64}
  %byte = memref.load %flag[] : memref<i8>
  %go = arith.trunci %byte : i8 to i1
  scf.if %go {
    fp8.launch @k(read %x, write %z) number = 1 : (memref<64xi8>, memref<64xi8>) -> ()
    fp8.launch @k(read %y, write %z) number = 2 : (memref<64xi8>, memref<64xi8>) -> ()
  }
  // CHECK: scf.for
  // The kernel that keeps a condition reads the counters of loops.
  // CHECK: } {fp8.after = array<i64: 1>, fp8.device_loop, fp8.node = 5 : i64}
  // CHECK: scf.for
  // CHECK: } {fp8.after = array<i64: 5>, fp8.device_loop, fp8.node = 7 : i64}
  scf.for %i = %c0 to %c40 step %c1 {
    fp8.launch @k(read %x, read %x) number = 3 : (memref<64xi8>, memref<64xi8>) -> ()
  } {fp8.device_loop}
  scf.for %i = %c0 to %c40 step %c1 {
    fp8.launch @k(read %x, read %x) number = 4 : (memref<64xi8>, memref<64xi8>) -> ()
  } {fp8.device_loop}
  // CHECK: scf.while
  // CHECK-NOT: fp8.node
  // CHECK: fp8.launch {{.*}}number = 5 : (
  // CHECK: fp8.launch {{.*}}number = 6 {fp8.after = array<i64>, fp8.node = 9 : i64}
  scf.while : () -> () {
    %again = memref.load %flag[] : memref<i8>
    %runs = arith.trunci %again : i8 to i1
    scf.condition(%runs)
  } do {
    fp8.launch @k(read %y, write %z) number = 5 : (memref<64xi8>, memref<64xi8>) -> ()
    scf.yield
  }
  fp8.launch @k(read %z, write %y) number = 6 : (memref<64xi8>, memref<64xi8>) -> ()
  fp8.return
}

// -----

// What the host decides runs launch by launch.
// CHECK-LABEL: fp8.schedule @host
// CHECK-NOT: fp8.node
fp8.schedule @host(%arena: memref<64xi8>, %n: memref<i32>) arena_bytes = 64 {
  %one = arith.constant 1 : i32
  memref.store %one, %n[] : memref<i32>
  fp8.return
}
