// RUN: fp8-opt %s --fp8-lower-schedule --split-input-file | FileCheck %s

// Launches one after the other are a loop over a table. A row has a launch's number, the place of its kernel in the
// table of kernels, its tasks, where its operand codes begin, and how many these are.

// CHECK: llvm.mlir.global internal constant @fp8_entry_kernels() {{.*}} : !llvm.array<2 x ptr>
// CHECK: %[[FIRST:.*]] = llvm.mlir.addressof @copy
// CHECK: llvm.insertvalue %[[FIRST]], %{{.*}}[0]
// CHECK: %[[SECOND:.*]] = llvm.mlir.addressof @set
// CHECK: llvm.insertvalue %[[SECOND]], %{{.*}}[1]
// CHECK-DAG: llvm.mlir.global internal constant @fp8_entry_launches_{{[0-9]+}}(dense<[0, 0, 4, 0, 2, 1, 1, 2, 2, 1, 2, 0, 4, 3, 2, 3, 1, 2, 5, 1]> : tensor<20xi64>)
// CHECK-DAG: llvm.mlir.global internal constant @fp8_entry_operands_{{[0-9]+}}(dense<[-1, 0, 0, 0, 64, -1]> : tensor<6xi64>)
// CHECK-LABEL: func.func @fp8_entry(%{{.*}}: !llvm.ptr
// CHECK: %[[ROWS:.*]] = llvm.mlir.addressof @fp8_entry_launches
// CHECK: %[[FOUR:.*]] = llvm.mlir.constant(4 : i64)
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[FOUR]]
// CHECK:   llvm.getelementptr %[[ROWS]][%[[I]]] {{.*}} !llvm.array<5 x i64>
// CHECK:   llvm.call @fp8_launch(
// CHECK-NOT: fp8_launch
// CHECK: return
llvm.func @copy(i64, !llvm.ptr, !llvm.ptr) attributes {fp8.tasks = 4 : i64, fp8.scratch_bytes = 0 : i64}
llvm.func @set(i64, !llvm.ptr, !llvm.ptr) attributes {fp8.tasks = 2 : i64, fp8.scratch_bytes = 0 : i64}
fp8.schedule @main(%arena: memref<128xi8>, %a: memref<8xf32>) arena_bytes = 128 {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %x = memref.view %arena[%c0][] : memref<128xi8> to memref<8xf32>
  fp8.launch @copy(read %a, write %x) number = 0 : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.launch @set(write %x) number = 1 : (memref<8xf32>) -> ()
  %y = memref.view %arena[%c64][] : memref<128xi8> to memref<8xf32>
  fp8.launch @copy(read %x, write %y) number = 2 : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.launch @set(write %a) number = 3 : (memref<8xf32>) -> ()
  fp8.return
}

// -----

// What has an effect of its own ends a run; a few launches stay calls.
// CHECK-LABEL: func.func @fp8_entry(%{{.*}}: !llvm.ptr
// CHECK-COUNT-2: llvm.call @fp8_launch(
// CHECK: llvm.call @fp8_operand(
// CHECK: scf.if
// CHECK:   llvm.call @fp8_launch(
// CHECK-COUNT-2: llvm.call @fp8_launch(
// CHECK-NOT: fp8_launch
llvm.func @set(i64, !llvm.ptr, !llvm.ptr) attributes {fp8.tasks = 2 : i64, fp8.scratch_bytes = 0 : i64}
fp8.schedule @main(%arena: memref<64xi8>, %a: memref<8xf32>, %flag: memref<i1>) arena_bytes = 64 {
  fp8.launch @set(write %a) number = 0 : (memref<8xf32>) -> ()
  fp8.launch @set(write %a) number = 1 : (memref<8xf32>) -> ()
  %go = memref.load %flag[] : memref<i1>
  scf.if %go {
    fp8.launch @set(write %a) number = 2 : (memref<8xf32>) -> ()
  }
  fp8.launch @set(write %a) number = 3 : (memref<8xf32>) -> ()
  fp8.launch @set(write %a) number = 4 : (memref<8xf32>) -> ()
  fp8.return
}
