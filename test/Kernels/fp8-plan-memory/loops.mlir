// RUN: fp8-opt %s --fp8-plan-memory=print-plan 2>&1 | FileCheck %s

// A buffer from before the loop is not reused inside it: the next iteration
// reads it again. Buffers of the body share their place with those of the
// next op, and with what lives after the loop.
// CHECK-DAG: arena [[CARRY:[0-9]+]] + 256 live {{.*}} memref<64xf32>
// CHECK-DAG: arena [[A:[0-9]+]] + 512 live {{.*}} memref<128xf32>
// CHECK-DAG: arena [[B:[0-9]+]] + 1024 live {{.*}} memref<256xf32>
func.func @main(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %carry = memref.alloc() : memref<64xf32>
  call @k(%x, %carry) : (memref<64xf32>, memref<64xf32>) -> ()
  scf.for %i = %c0 to %c4 step %c1 {
    %a = memref.alloc() : memref<128xf32>
    func.call @ka(%carry, %a) : (memref<64xf32>, memref<128xf32>) -> ()
    func.call @kb(%a, %y) : (memref<128xf32>, memref<64xf32>) -> ()
    %b = memref.alloc() : memref<256xf32>
    func.call @kc(%y, %b) : (memref<64xf32>, memref<256xf32>) -> ()
    func.call @kd(%b, %y) : (memref<256xf32>, memref<64xf32>) -> ()
  }
  return
}
// CHECK-DAG: fp8.arena_bytes = 1280 : i64
func.func private @k(memref<64xf32>, memref<64xf32>) attributes {fp8.domain = array<i64>, fp8.tile = array<i64>}
func.func private @ka(memref<64xf32>, memref<128xf32>) attributes {fp8.domain = array<i64>, fp8.tile = array<i64>}
func.func private @kb(memref<128xf32>, memref<64xf32>) attributes {fp8.domain = array<i64>, fp8.tile = array<i64>}
func.func private @kc(memref<64xf32>, memref<256xf32>) attributes {fp8.domain = array<i64>, fp8.tile = array<i64>}
func.func private @kd(memref<256xf32>, memref<64xf32>) attributes {fp8.domain = array<i64>, fp8.tile = array<i64>}
