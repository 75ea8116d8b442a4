// RUN: fp8-opt %s --fp8-plan-memory | FileCheck %s

// Buffers that are never alive together share their place.
// CHECK: func.func @main(%[[ARENA:.*]]: memref<512xi8> {fp8.arena}, %{{.*}}: memref<64xf32>) attributes {fp8.arena_bytes = 512 : i64}
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: memref.view %[[ARENA]][%[[C0]]]
// CHECK-DAG: %[[C256:.*]] = arith.constant 256 : index
// CHECK: memref.view %[[ARENA]][%[[C256]]]
// CHECK: memref.view %[[ARENA]]
// CHECK-NOT: memref.alloc
func.func @main(%x: memref<64xf32>) {
  %a = memref.alloc() : memref<64xf32>
  call @k(%x, %a) : (memref<64xf32>, memref<64xf32>) -> ()
  %b = memref.alloc() : memref<64xf32>
  call @k(%a, %b) : (memref<64xf32>, memref<64xf32>) -> ()
  %c = memref.alloc() : memref<64xf32>
  call @k(%b, %c) : (memref<64xf32>, memref<64xf32>) -> ()
  call @k(%c, %x) : (memref<64xf32>, memref<64xf32>) -> ()
  return
}
func.func private @k(memref<64xf32>, memref<64xf32>) attributes {fp8.domain = array<i64>}
