// RUN: fp8-opt --fp8-report-cost %s -o /dev/null | FileCheck %s

// A step: 3 runs of a dot, one of a kernel that updates, and one where data
// decide.
// CHECK:      "flops": 1184,
// CHECK-NEXT: "dot_flops": 1152,
// CHECK-NEXT: "dot_flops_f32": 0,
// CHECK-NEXT: "bytes": 1160,
// CHECK-NEXT: "exact": false,
// CHECK-NEXT: "launches": [

// 2 x 4 x 6 x 8 of the dot; its operands and its result.
// CHECK:        "launch": 0,
// CHECK-NEXT:   "name": "dot",
// CHECK-NEXT:   "runs": 3,
// CHECK-NEXT:   "flops": 384,
// CHECK-NEXT:   "dot_flops": 384,
// CHECK-NEXT:   "dot_flops_f32": 0,
// CHECK-NEXT:   "bytes": 320

// A multiplication, a root and an addition each of 8; read, read and written.
// CHECK:        "launch": 1,
// CHECK-NEXT:   "name": "",
// CHECK-NEXT:   "runs": 1,
// CHECK-NEXT:   "flops": 24,
// CHECK-NEXT:   "dot_flops": 0,
// CHECK-NEXT:   "dot_flops_f32": 0,
// CHECK-NEXT:   "bytes": 96

// Loops of a kernel count; so does one turn of those that data decide.
// CHECK:        "launch": 2,
// CHECK-NEXT:   "name": "loop",
// CHECK-NEXT:   "runs": null,
// CHECK-NEXT:   "flops": 8,
// CHECK-NEXT:   "dot_flops": 0,
// CHECK-NEXT:   "dot_flops_f32": 0,
// CHECK-NEXT:   "bytes": 104

#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
#x = affine_map<(i) -> (i)>

fp8.schedule @step(%a: memref<4x8xf8E4M3FN>, %b: memref<8x6xf16>, %c: memref<4x6xf32>, %x: memref<8xf32>, %y: memref<8xf32>, %n: memref<i64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0 : i64
  scf.for %i = %c0 to %c3 step %c1 {
    fp8.launch @dot(read %a, read %b, update %c) label = "dot" number = 0 : (memref<4x8xf8E4M3FN>, memref<8x6xf16>, memref<4x6xf32>) -> ()
  }
  fp8.launch @update(read %x, update %y) number = 1 : (memref<8xf32>, memref<8xf32>) -> ()
  %count = memref.load %n[] : memref<i64>
  %is_none = arith.cmpi eq, %count, %zero : i64
  scf.if %is_none {
    fp8.launch @loop(read %x, read %n, update %y) label = "loop" number = 2 : (memref<8xf32>, memref<i64>, memref<8xf32>) -> ()
  }
  fp8.return
}

fp8.kernel @dot(read %a: memref<4x8xf8E4M3FN>, read %b: memref<8x6xf16>, update %c: memref<4x6xf32>) domain = [4, 6] {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<4x8xf8E4M3FN>, memref<8x6xf16>) outs(%c : memref<4x6xf32>) {
  ^bb0(%in: f8E4M3FN, %other: f16, %out: f32):
    %0 = arith.extf %in : f8E4M3FN to f32
    %1 = arith.extf %other : f16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %out, %2 : f32
    linalg.yield %3 : f32
  }
  fp8.return
}

fp8.kernel @update(read %x: memref<8xf32>, update %y: memref<8xf32>) domain = [8] {
  linalg.generic {indexing_maps = [#x, #x], iterator_types = ["parallel"]} ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.absf %in : f32
    %1 = math.sqrt %0 : f32
    %2 = arith.mulf %1, %out : f32
    %3 = arith.maximumf %2, %in : f32
    %4 = arith.addf %3, %in : f32
    linalg.yield %4 : f32
  }
  fp8.return
}

fp8.kernel @loop(read %x: memref<8xf32>, read %n: memref<i64>, update %y: memref<8xf32>) domain = [] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %count = memref.load %n[] : memref<i64>
  %end = arith.index_cast %count : i64 to index
  scf.for %i = %c0 to %end step %c1 {
    scf.for %j = %c0 to %c8 step %c1 {
      %0 = memref.load %x[%j] : memref<8xf32>
      %1 = memref.load %y[%j] : memref<8xf32>
      %2 = arith.addf %0, %1 : f32
      memref.store %2, %y[%j] : memref<8xf32>
    } {fp8.irregular}
  } {fp8.irregular}
  fp8.return
}
