// What ranks send, and what of it launches hide.
//
// RUN: fp8-opt --fp8-report-cost="card=h200 ranks=8 network=100:1" %s -o /dev/null | FileCheck %s
// RUN: fp8-opt --fp8-report-cost="card=h200 ranks=8 network=100:1 json" %s -o /dev/null | FileCheck %s --check-prefix=JSON
// RUN: fp8-opt --fp8-report-cost="card=h200 ranks=2 network=nvlink4" %s -o /dev/null | FileCheck %s --check-prefix=NVLINK
// RUN: not fp8-opt --fp8-report-cost="card=h200 ranks=8 network=string" %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: not fp8-opt --fp8-report-cost="card=h200 network=string" %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: fp8-opt --report-cost="card=h100 recipe=fp8_lm ranks=4 zero=1" %fp8_src_root/examples/llama/step.mlir -o /dev/null | FileCheck %s --check-prefix=STEP

// The two launches take 2 * (2 + 27.96) us at 4.8 TB/s. A rank sends 7/8 of 64 MiB
// twice, in 2 us and 1174.4 us; the loop's codes, in four turns, 4 * (1 + 4 / 128)
// * 16 Mi * 7/8 * 2, 304.8 us each, which nothing hides; a shard goes one way.
// CHECK:      8 ranks on 100:1: a step of 3.014 ms; a rank sends 297.3 MB in 2.984 ms, of which it waits for 2.954 ms
// CHECK-NEXT: wire collectives MB ms
// CHECK-NEXT: f8E4M3FN 4 121.1 1.219
// CHECK-NEXT: as it is 2 176.2 1.765

// JSON:      "communication": {
// JSON-NEXT: "network": "100:1",
// JSON-NEXT: "ranks": 8,
// JSON-NEXT: "bytes": 297271296,
// JSON:      "exposed_seconds": 0.002953{{[0-9]*}},
// JSON:      "name": "gradient",
// JSON-NEXT: "wire": "none",
// JSON-NEXT: "runs": 1,
// JSON-NEXT: "bytes": 117440512,
// JSON:      "name": "codes",
// JSON-NEXT: "wire": "f8E4M3FN",
// JSON-NEXT: "runs": 4,
// JSON-NEXT: "bytes": 30277632,

// NVLINK: 2 ranks on nvlink4: a step of
// ERROR: expected a network of nvlink4, nvlink5, infiniband-ndr, infiniband-hdr, ethernet-100g, or GB/s:microseconds but got 'string'
// STEP: 4 ranks on infiniband-ndr: a step of {{.*}} MB (1.5{{[0-9]}} bytes a parameter) in
// STEP: f8E4M3FN
// STEP: as it is

fp8.schedule @step(%x: memref<4096x4096xf32>, %y: memref<4096x4096xf32>, %z: memref<4096x4096xf32>, %mu: memref<2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  fp8.launch @square(read %x, write %y) label = "square a" number = 0 : (memref<4096x4096xf32>, memref<4096x4096xf32>) -> ()
  %0 = fp8.start_all_reduce mean %y into %y label = "gradient" number = 1 : memref<4096x4096xf32>
  fp8.launch @square(read %x, write %z) label = "square b" number = 2 : (memref<4096x4096xf32>, memref<4096x4096xf32>) -> ()
  fp8.wait %0 (%y, %y) : memref<4096x4096xf32>, memref<4096x4096xf32>
  scf.for %i = %c0 to %c4 step %c1 {
    %1 = fp8.start_all_reduce sum %z into %z mu %mu : memref<2xf32> wire = f8E4M3FN block = 128 label = "codes" number = 3 : memref<4096x4096xf32>
    fp8.wait %1 (%z, %z, %mu) : memref<4096x4096xf32>, memref<4096x4096xf32>, memref<2xf32>
  }
  %2 = fp8.start_all_reduce mean %x into %x shard = 1 label = "dealt" number = 4 : memref<4096x4096xf32>
  fp8.wait %2 (%x, %x) : memref<4096x4096xf32>, memref<4096x4096xf32>
  fp8.return
}

fp8.kernel @square(read %x: memref<4096x4096xf32>, write %y: memref<4096x4096xf32>) domain = [4096, 4096] {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<4096x4096xf32>) outs(%y : memref<4096x4096xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    linalg.yield %0 : f32
  }
  fp8.return
}
