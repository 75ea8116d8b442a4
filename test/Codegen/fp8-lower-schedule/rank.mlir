// RUN: fp8-opt %s --fp8-lower-schedule | FileCheck %s

// The step asks for its rank's number when it runs.
// CHECK-LABEL: func.func @fp8_entry
// CHECK: %[[RANK:.*]] = llvm.call @fp8_rank(%arg0) : (!llvm.ptr) -> i64
// CHECK: llvm.store %[[RANK]]
fp8.schedule @main(%arena: memref<0xi8>, %n: memref<i64>) arena_bytes = 0 {
  %0 = fp8.rank
  memref.store %0, %n[] : memref<i64>
  fp8.return
}
