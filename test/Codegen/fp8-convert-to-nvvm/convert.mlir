// RUN: fp8-opt %s --pass-pipeline='builtin.module(gpu.module(fp8-convert-to-nvvm))' | FileCheck %s

// Bare pointers, shared memory in its own address space, the size of a block
// for the assembler.
// CHECK: llvm.mlir.global internal @{{.*}}() {addr_space = 3 : i32{{.*}}} : !llvm.array<512 x i8>
// CHECK: llvm.func @k(%{{.*}}: !llvm.ptr) attributes {gpu.kernel, {{.*}}nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>}
// CHECK: nvvm.read.ptx.sreg.tid.x
// CHECK-NOT: nvvm.maxntid
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr -> vector<4xf32>
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK: nvvm.shfl.sync down
gpu.module @k {
  gpu.func @k(%x: memref<512xf32>) workgroup(%shared: memref<512xi8, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %width = arith.constant 32 : i32
    %i = gpu.thread_id x
    %view = memref.view %shared[%c0][] : memref<512xi8, #gpu.address_space<workgroup>> to memref<128xf32, #gpu.address_space<workgroup>>
    %v = vector.load %x[%i] {alignment = 16 : i64} : memref<512xf32>, vector<4xf32>
    %0 = vector.extract %v[0] : f32 from vector<4xf32>
    memref.store %0, %view[%i] : memref<128xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %1, %valid = gpu.shuffle down %0, %one, %width : f32
    memref.store %1, %x[%i] : memref<512xf32>
    gpu.return
  }
}
