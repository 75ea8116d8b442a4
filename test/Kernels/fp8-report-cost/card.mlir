// RUN: fp8-opt --fp8-report-cost="card=h200 json" %s -o /dev/null | FileCheck %s
// RUN: fp8-opt --fp8-report-cost="card=rtx4090" %s -o /dev/null | FileCheck %s --check-prefix=TABLE
// RUN: fp8-opt --fp8-report-cost="card=cpu limits=%S/Inputs/limits.json" %s -o /dev/null | FileCheck %s --check-prefix=CPU
// RUN: not fp8-opt --fp8-report-cost="card=h300" %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=CARD
// RUN: not fp8-opt --fp8-report-cost="card=cpu" %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=LIMITS
// RUN: not fp8-opt --fp8-report-cost="card=cpu limits=%s" %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=JSON
// RUN: not fp8-opt --fp8-report-cost="card=h200 limits=%s" %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=NOLIMITS
// RUN: not fp8-opt --fp8-report-cost="ranks=4" %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=RANKS
// RUN: not fp8-opt --fp8-report-cost="card=h100 ranks=0" %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=NORANKS
// RUN: fp8-opt --report-cost="card=h100 recipe=tensorwise" %fp8_src_root/test/Docs/Inputs/stages.mlir -o /dev/null | FileCheck %s --check-prefix=STEP
// RUN: fp8-opt --report-cost="card=h100 recipe=tensorwise json" %fp8_src_root/test/Docs/Inputs/stages.mlir -o /dev/null | FileCheck %s --check-prefix=GPU
// RUN: fp8-opt --fp8-import --fp8-quantize=recipe=tensorwise --fp8-structure --fp8-kernels --fp8-report-cost="card=h100 json" \
// RUN:   %fp8_src_root/test/Docs/Inputs/stages.mlir -o /dev/null | FileCheck %s --check-prefix=TENSORS

// The dot has 2 * 4096^3 FLOP: 69.4 us at 1979 TFLOP/s, and 2 us for its
// launch. The other kernel moves 2 * 64 MiB: 28.0 us at 4.8 TB/s.
// CHECK:      "card": "h200",
// CHECK-NEXT: "seconds": 0.000101{{[0-9]*}},
// CHECK:      "f8 dots": 7.14{{[0-9]*}}e-05,
// CHECK:      "memory": 2.99{{[0-9]*}}e-05,
// CHECK:      "bound": "f8 dots"
// CHECK:      "bound": "memory"

// 416.5 us at 330 TFLOP/s; 133.2 us at 1.008 TB/s.
// TABLE:      rtx4090: a step of 0.554 ms at its limits: 137.5 GFLOP, of these 137.4 of dots, 234.9 MB
// TABLE-NEXT: kernel launches ms a step time bound by
// TABLE-NEXT: dot 1 0.4185 75.6 % f8 dots
// TABLE-NEXT: square 1 0.1352 24.4 % memory
// TABLE-NEXT: in all 2 0.5536 100.0 % f8 dots

// 0.6 * 200 GFLOP/s of f8; 10 GB/s.
// CPU: dot 1 1145.3296 98.8 % f8 dots
// CPU: square 1 13.4268 1.2 % memory

// CARD: expected a card of h100, h200, rtx4090, rtx5090, cpu but got 'h300'
// LIMITS: expected limits=FILE, the cost.json of fp8-run --profile, but got ''
// JSON: error: expected JSON in '{{.*}}card.mlir' but got: {{.*}}Invalid JSON value
// NOLIMITS: error: expected card=cpu with limits={{.*}} but got card=h200
// RANKS: expected ranks > 0, and a card for ranks and limits, but got card='' and ranks=4
// NORANKS: expected ranks > 0, and a card for ranks and limits, but got card='h100' and ranks=0
// STEP: h100: a step of {{.*}} ms at its limits
// STEP: launch

// For a GPU one payload of 1024 elements is written in two orders.
// GPU: "bytes": 273448,
// TENSORS: "bytes": 272424,

fp8.schedule @step(%a: memref<4096x4096xf8E4M3FN>, %c: memref<4096x4096xf32>, %d: memref<4096x4096xf32>) {
  fp8.launch @dot(read %a, read %a, write %c) label = "dot a" number = 0 : (memref<4096x4096xf8E4M3FN>, memref<4096x4096xf8E4M3FN>, memref<4096x4096xf32>) -> ()
  fp8.launch @square(read %c, write %d) label = "square b" number = 1 : (memref<4096x4096xf32>, memref<4096x4096xf32>) -> ()
  fp8.return
}

fp8.kernel @dot(read %a: memref<4096x4096xf8E4M3FN>, read %b: memref<4096x4096xf8E4M3FN>, write %c: memref<4096x4096xf32>) domain = [4096, 4096] {
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<4096x4096xf8E4M3FN>, memref<4096x4096xf8E4M3FN>) outs(%c : memref<4096x4096xf32>) {
  ^bb0(%in: f8E4M3FN, %other: f8E4M3FN, %out: f32):
    %0 = arith.extf %in : f8E4M3FN to f32
    %1 = arith.extf %other : f8E4M3FN to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %out, %2 : f32
    linalg.yield %3 : f32
  }
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
