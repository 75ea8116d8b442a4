// RUN: fp8-opt %s --cse | FileCheck %s

// The accesses are the effects of a launch: one that only reads has none that
// others could see, and loads around one that updates stay apart.
// CHECK-LABEL: fp8.schedule @step
// CHECK: memref.load
// CHECK-NOT: fp8.launch @reads
// CHECK-NOT: memref.load
// CHECK: fp8.launch @updates
// CHECK: memref.load
fp8.kernel @reads(read memref<i64>) domain = []
fp8.kernel @updates(update memref<i64>) domain = []
fp8.schedule @step(%x: memref<i64>, %out: memref<i64>) {
  %a = memref.load %x[] : memref<i64>
  fp8.launch @reads(read %x) : (memref<i64>) -> ()
  %b = memref.load %x[] : memref<i64>
  fp8.launch @updates(update %x) : (memref<i64>) -> ()
  %c = memref.load %x[] : memref<i64>
  %0 = arith.addi %a, %b : i64
  %1 = arith.addi %0, %c : i64
  memref.store %1, %out[] : memref<i64>
  fp8.return
}
