// RUN: fp8-opt %s --fp8-plan-memory=print-plan 2>&1 | FileCheck %s

// A buffer from before the loop is not reused inside it: the next iteration
// reads it again. Buffers of the body share their place with those of the
// next op, and with what lives after the loop.
// CHECK-DAG: arena [[CARRY:[0-9]+]] + 256 live {{.*}} memref<64xf32>
// CHECK-DAG: arena [[A:[0-9]+]] + 512 live {{.*}} memref<128xf32>
// CHECK-DAG: arena [[B:[0-9]+]] + 1024 live {{.*}} memref<256xf32>
fp8.schedule @main(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %carry = memref.alloc() : memref<64xf32>
  fp8.launch @k(read %x, write %carry) : (memref<64xf32>, memref<64xf32>) -> ()
  scf.for %i = %c0 to %c4 step %c1 {
    %a = memref.alloc() : memref<128xf32>
    fp8.launch @ka(read %carry, write %a) : (memref<64xf32>, memref<128xf32>) -> ()
    fp8.launch @kb(read %a, write %y) : (memref<128xf32>, memref<64xf32>) -> ()
    %b = memref.alloc() : memref<256xf32>
    fp8.launch @kc(read %y, write %b) : (memref<64xf32>, memref<256xf32>) -> ()
    fp8.launch @kd(read %b, write %y) : (memref<256xf32>, memref<64xf32>) -> ()
  }
  fp8.return
}
// CHECK-DAG: arena_bytes = 1280
fp8.kernel @k(read memref<64xf32>, write memref<64xf32>) domain = []
fp8.kernel @ka(read memref<64xf32>, write memref<128xf32>) domain = []
fp8.kernel @kb(read memref<128xf32>, write memref<64xf32>) domain = []
fp8.kernel @kc(read memref<64xf32>, write memref<256xf32>) domain = []
fp8.kernel @kd(read memref<256xf32>, write memref<64xf32>) domain = []
