// RUN: fp8-opt %s --fp8-plan-memory | FileCheck %s

// Buffers that are never alive together share their place.
// CHECK: fp8.schedule @main(%[[ARENA:[^:]*]]: memref<512xi8>, %{{.*}}: memref<64xf32>) arena_bytes = 512 {
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: memref.view %[[ARENA]][%[[C0]]]
// CHECK-DAG: %[[C256:.*]] = arith.constant 256 : index
// CHECK: memref.view %[[ARENA]][%[[C256]]]
// CHECK: memref.view %[[ARENA]]
// CHECK-NOT: memref.alloc
fp8.schedule @main(%x: memref<64xf32>) {
  %a = memref.alloc() : memref<64xf32>
  fp8.launch @k(read %x, write %a) : (memref<64xf32>, memref<64xf32>) -> ()
  %b = memref.alloc() : memref<64xf32>
  fp8.launch @k(read %a, write %b) : (memref<64xf32>, memref<64xf32>) -> ()
  %c = memref.alloc() : memref<64xf32>
  fp8.launch @k(read %b, write %c) : (memref<64xf32>, memref<64xf32>) -> ()
  fp8.launch @k(read %c, write %x) : (memref<64xf32>, memref<64xf32>) -> ()
  fp8.return
}
fp8.kernel @k(read memref<64xf32>, write memref<64xf32>) domain = []
