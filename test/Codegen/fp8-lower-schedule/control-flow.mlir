// RUN: fp8-opt %s --fp8-target=cpu=x86-64-v3 --fp8-lower-kernels --fp8-lower-schedule | FileCheck %s

#id = affine_map<(i) -> (i)>

// Control flow stays, around launches that say how far into a stack they work.
// CHECK: func.func @fp8_entry(%[[STEP:[^:]*]]: !llvm.ptr) {
// CHECK: %[[OFFSETS:.*]] = llvm.alloca
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step
// CHECK:   %[[SLOT:.*]] = llvm.getelementptr %[[OFFSETS]][0]
// CHECK:   llvm.store %{{.*}}, %[[SLOT]] : i64, !llvm.ptr
// CHECK:   llvm.call @fp8_launch(%[[STEP]], %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %[[OFFSETS]], %{{[^,]*}})
// CHECK: %[[FLAG:.*]] = llvm.call @fp8_operand(%[[STEP]], %{{.*}}) : (!llvm.ptr, i64) -> !llvm.ptr
// CHECK: %[[BYTE:.*]] = llvm.load %[[FLAG]] : !llvm.ptr -> i8
// CHECK: %[[BIT:.*]] = arith.trunci %[[BYTE]] : i8 to i1
// CHECK: scf.if %[[BIT]] {
// CHECK:   %[[NULL:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK:   llvm.call @fp8_launch(%[[STEP]], %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %[[NULL]], %{{[^,]*}})
// CHECK: }
fp8.schedule @main(%arena: memref<64xi8>, %stack: memref<4x64xi8>, %y: memref<64xi8>, %flag: memref<i1>)
    arena_bytes = 64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %offset = arith.muli %i, %c64 : index
    %layer = fp8.subbuffer %stack[%offset] : memref<4x64xi8> to memref<64xi8>
    fp8.launch @kernel_0(read %layer, write %y) number = 0 : (memref<64xi8>, memref<64xi8>) -> ()
  }
  %go = memref.load %flag[] : memref<i1>
  scf.if %go {
    fp8.launch @kernel_0(read %y, write %y) number = 1 : (memref<64xi8>, memref<64xi8>) -> ()
  }
  fp8.return
}
fp8.kernel @kernel_0(read %x: memref<64xi8>, write %y: memref<64xi8>) domain = [] plan = #fp8.cpu_plan<tile = []> {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<64xi8>) outs(%y : memref<64xi8>) attrs = {fp8.task_dims = array<i64>} {
  ^bb0(%in: i8, %out: i8):
    linalg.yield %in : i8
  }
  fp8.return
}
