// RUN: fp8-opt %s --fp8-lower-schedule --split-input-file | FileCheck %s

// A launch with several sets of operands is one call, with the operands of all sets in one table.
// CHECK: llvm.mlir.global internal constant @[[CODES:fp8_entry_operands_[0-9]+]](dense<[-1, 0, -2, 64, -1, -3]> : tensor<6xi64>)
// CHECK: func.func @fp8_entry(%[[STEP:[^:]*]]: !llvm.ptr
// CHECK-DAG: %[[NUMBER:.*]] = llvm.mlir.constant(7 : i64)
// CHECK-DAG: %[[KERNEL:.*]] = llvm.mlir.addressof @copy
// CHECK-DAG: %[[TASKS:.*]] = llvm.mlir.constant(4 : i64)
// CHECK-DAG: %[[TABLE:.*]] = llvm.mlir.addressof @[[CODES]]
// CHECK-DAG: %[[OPERANDS:.*]] = llvm.mlir.constant(2 : i64)
// CHECK-DAG: %[[SETS:.*]] = llvm.mlir.constant(3 : i64)
// CHECK: llvm.call @fp8_launch_sets(%[[STEP]], %[[NUMBER]], %[[KERNEL]], %[[TASKS]], %[[TABLE]], %[[NONE:.*]], %[[OPERANDS]], %[[SETS]])
// CHECK-NOT: llvm.call
// CHECK: return
llvm.func @copy(i64, !llvm.ptr, !llvm.ptr) attributes {fp8.tasks = 4 : i64, fp8.scratch_bytes = 0 : i64}
fp8.schedule @main(%arena: memref<128xi8>, %a: memref<8xf32>, %b: memref<8xf32>, %c: memref<8xf32>) arena_bytes = 128 {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %x = memref.view %arena[%c0][] : memref<128xi8> to memref<8xf32>
  %y = memref.view %arena[%c64][] : memref<128xi8> to memref<8xf32>
  fp8.launch @copy(read %a, write %x)(read %b, write %y)(read %a, write %c) number = 7 : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// -----

// An address that is only known at run time is an offset, as for other launches. Among launches that follow one
// another, the numbers of sets are a table of their own.
// CHECK-DAG: llvm.mlir.global internal constant @[[SETS:fp8_entry_sets_[0-9]+]](dense<[1, 2, 1, 1]> : tensor<4xi64>)
// CHECK-DAG: llvm.mlir.global internal constant @[[ROWS:fp8_entry_launches_[0-9]+]](dense<[1, 0, 4, 0, 2, 2, 0, 4, 2, 2, 3, 0, 4, 6, 2, 4, 0, 4, 8, 2]> : tensor<20xi64>)
// CHECK: func.func @fp8_entry(%[[STEP:[^:]*]]: !llvm.ptr
// CHECK: %[[OFFSETS:.*]] = llvm.alloca
// CHECK: %[[CODES:.*]] = llvm.mlir.addressof @fp8_entry_operands
// CHECK: llvm.call @fp8_launch_sets(%[[STEP]], %{{.*}}, %{{.*}}, %{{.*}}, %[[CODES]], %[[OFFSETS]], %{{.*}}, %{{.*}})
// CHECK: llvm.mlir.addressof @[[ROWS]]
// CHECK: %[[TABLE:.*]] = llvm.mlir.addressof @[[SETS]]
// CHECK: scf.for %[[I:.*]] = %{{.*}} to
// CHECK: %[[AT:.*]] = llvm.getelementptr %[[TABLE]][%[[I]]]
// CHECK: %[[NUMBER:.*]] = llvm.load %[[AT]]
// CHECK: llvm.call @fp8_launch_sets(%[[STEP]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[NUMBER]])
// CHECK-NOT: llvm.call
// CHECK: return
llvm.func @copy(i64, !llvm.ptr, !llvm.ptr) attributes {fp8.tasks = 4 : i64, fp8.scratch_bytes = 0 : i64}
fp8.schedule @main(%arena: memref<64xi8>, %stack: memref<4x8xf32>, %a: memref<8xf32>, %b: memref<8xf32>, %c: memref<8xf32>) arena_bytes = 64 {
  %c8 = arith.constant 8 : index
  %rank = fp8.rank
  %number = arith.index_cast %rank : i64 to index
  %begin = arith.muli %number, %c8 : index
  %part = fp8.subbuffer %stack[%begin] : memref<4x8xf32> to memref<8xf32>
  fp8.launch @copy(read %part, write %b)(read %part, write %c) number = 0 : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.launch @copy(read %a, write %b) number = 1 : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.launch @copy(read %a, write %b)(read %a, write %c) number = 2 : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.launch @copy(read %b, write %a) number = 3 : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.launch @copy(read %a, write %c) number = 4 : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// -----

// A GPU takes sets if the kernel does.
// CHECK: func.func @fp8_entry(%[[STEP:[^:]*]]: !llvm.ptr
// CHECK: llvm.mlir.addressof @takes_gpu
// CHECK: llvm.call @fp8_launch_sets(%[[STEP]]
// CHECK: llvm.mlir.addressof @single_gpu
// CHECK: scf.for
// CHECK:   llvm.call @fp8_launch(%[[STEP]]
#launch = #fp8.gpu_launch<blocks = 2, threads = 32, shared = 0, dynamic_shared = 0, scratch = 0>
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
gpu.module @takes attributes {fp8.gpu_launch = #launch, fp8.sets = 1 : i64} {
  llvm.func @takes(%table: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}
gpu.module @single attributes {fp8.gpu_launch = #launch} {
  llvm.func @single(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}
fp8.schedule @main(%arena: memref<64xi8>, %a: memref<64xi8>, %b: memref<64xi8>) arena_bytes = 64 {
  fp8.launch @takes(write %a)(write %b) number = 0 : (memref<64xi8>) -> ()
  fp8.launch @single(write %a)(write %b) number = 1 : (memref<64xi8>) -> ()
  fp8.return
}
}
