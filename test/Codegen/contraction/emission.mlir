// RUN: fp8-opt %s --split-input-file --pass-pipeline="builtin.module(func.func(test-fp8-contraction{vector-bits=512}))" | FileCheck %s
// RUN: fp8-opt %s --split-input-file --pass-pipeline="builtin.module(func.func(test-fp8-contraction{vector-bits=256}))" | FileCheck %s --check-prefix=AVX2
// RUN: fp8-opt %s --split-input-file --pass-pipeline="builtin.module(func.func(test-fp8-contraction{vector-bits=512 avx512-bf16 avx512-vbmi}))" | FileCheck %s --check-prefix=BF16

#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>

// An f8 lhs is decoded into rows, an f8 rhs into a panel of the tile's columns;
// 6 rows of 4 vectors are summed in registers.

// CHECK-LABEL: func.func @nn
// CHECK:         %[[SCRATCH:.+]] = memref.alloc() {alignment = 64 : i64} : memref<{{.*}}xi8>
// CHECK:         memref.reinterpret_cast %arg0 {{.*}} : memref<96x64xf8E4M3FN> to memref<6144xf8E4M3FN>
// CHECK:         memref.view %[[SCRATCH]]
// CHECK:         vector.load {{.*}} : memref<6144xf8E4M3FN>, vector<64xf8E4M3FN>
// CHECK:         arith.extf {{.*}} : vector<64xf8E4M3FN> to vector<64xf32>
// Each register tile prefetches some rows of the next panel, and the lines that
// its sums are stored to.
// CHECK:         memref.prefetch {{.*}}, read, locality<2>, data : memref<16384xf8E4M3FN>
// CHECK-COUNT-24: memref.prefetch {{.*}}, read, locality<3>, data : memref<24576xf32>
// CHECK:         %{{.+}}:24 = scf.for
// CHECK-SAME:      vector<16xf32>
// CHECK-COUNT-2:   vector.load {{.*}} vector<16xf32>
// CHECK:           memref.load
// CHECK:           vector.broadcast
// CHECK-COUNT-2:   vector.fma
// CHECK:           memref.load
// CHECK-NOT:     linalg.generic

// AVX2-LABEL: func.func @nn
// AVX2:         %{{.+}}:12 = scf.for
// AVX2-SAME:      vector<8xf32>

// Pairs of bf16 in the same panels.
// BF16-LABEL: func.func @nn
// BF16:         llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.qi.512"
// BF16:         vector.interleave
// BF16:         %{{.+}}:24 = scf.for
// BF16-COUNT-24:  x86vector.avx512.dot {{.*}} : vector<32xbf16> -> vector<16xf32>
// BF16-NOT:     vector.fma
// BF16-LABEL: func.func @wgrad
func.func @nn(%a: memref<96x64xf8E4M3FN>, %b: memref<64x256xf8E4M3FN>, %c: memref<96x256xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : memref<96x64xf8E4M3FN>, memref<64x256xf8E4M3FN>) outs(%c : memref<96x256xf32>) {
  ^bb0(%x: f8E4M3FN, %y: f8E4M3FN, %z: f32):
    %0 = arith.extf %x : f8E4M3FN to f32
    %1 = arith.extf %y : f8E4M3FN to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %z, %2 : f32
    linalg.yield %3 : f32
  }
  return
}

// -----

#a = affine_map<(d0, d1, d2, d3) -> (d2, d3, d0)>
#b = affine_map<(d0, d1, d2, d3) -> (d2, d3, d1)>
#c = affine_map<(d0, d1, d2, d3) -> (d0, d1)>

// A weight's gradient: batch and token merge into one k. The lhs in f32 with
// few panels is read where it lies; no packing but of the rhs, whose rows are
// not as close together as those of a panel.

// CHECK-LABEL: func.func @wgrad
// CHECK:         memref.view
// CHECK-NOT:     memref.view
// CHECK:         %[[K:.+]] = arith.constant 80 : index
// CHECK-NOT:     arith.extf
// CHECK-NOT:     locality<2>
// CHECK:         vector.fma
func.func @wgrad(%a: memref<2x40x64xf32>, %b: memref<2x40x32xf32, strided<[1600, 40, 1]>>, %c: memref<64x32xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
    ins(%a, %b : memref<2x40x64xf32>, memref<2x40x32xf32, strided<[1600, 40, 1]>>) outs(%c : memref<64x32xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %0, %z : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

#a = affine_map<(d0, d1, d2) -> (d2, d0)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>

// Weights of 16 queries and values of 64 columns lie like panels: nothing is
// packed.

// CHECK-LABEL: func.func @panels
// CHECK-NOT:     memref.view
// CHECK:         vector.fma
// CHECK-LABEL: func.func @nt
func.func @panels(%a: memref<512x16xf32>, %b: memref<512x64xf32>, %c: memref<16x64xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : memref<512x16xf32>, memref<512x64xf32>) outs(%c : memref<16x64xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %0, %z : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d1, d2)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>

// A rhs adjacent along k is transposed in registers: 64 shuffles a square. The
// last of the columns are stored through a mask.

// CHECK-COUNT-16: vector.load {{.*}} vector<16xf8E5M2>
// CHECK-COUNT-64: vector.shuffle
// CHECK:          vector.constant_mask [4] : vector<16xi1>
// CHECK:          vector.maskedstore
func.func @nt(%a: memref<8x32xf32>, %b: memref<20x32xf8E5M2>, %c: memref<8x20xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : memref<8x32xf32>, memref<20x32xf8E5M2>) outs(%c : memref<8x20xf32>) {
  ^bb0(%x: f32, %y: f8E5M2, %z: f32):
    %0 = arith.extf %y : f8E5M2 to f32
    %1 = arith.mulf %x, %0 : f32
    %2 = arith.addf %z, %1 : f32
    linalg.yield %2 : f32
  }
  return
}

// -----

#a = affine_map<(d0, d1) -> (d0, d1)>
#c = affine_map<(d0, d1) -> (d0)>

// Not a contraction: d0 would be a batch and k is summed twice over.

// CHECK-LABEL: func.func @sum_of_squares_minus
// CHECK:         linalg.generic
func.func @sum_of_squares_minus(%a: memref<8x8xf32>, %b: memref<8x8xf32>, %c: memref<8xf32>) {
  linalg.generic {indexing_maps = [#a, #a, #c], iterator_types = ["parallel", "reduction"]}
    ins(%a, %b : memref<8x8xf32>, memref<8x8xf32>) outs(%c : memref<8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.subf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>

// Rows of the rhs that are half a page apart: two panels are packed together,
// and the loops over the panels of a group and their rows follow.

// CHECK-LABEL: func.func @pages
// CHECK-COUNT-2: vector.load {{.*}} : memref<131072xf8E4M3FN>, vector<32xf8E4M3FN>
// CHECK-NOT:     vector.load {{.*}} : memref<131072xf8E4M3FN>
// CHECK:         %{{.+}}:28 = scf.for
// CHECK-NOT:     vector.load {{.*}} : memref<131072xf8E4M3FN>
func.func @pages(%a: memref<96x64xf8E4M3FN>, %b: memref<64x2048xf8E4M3FN>, %c: memref<96x2048xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : memref<96x64xf8E4M3FN>, memref<64x2048xf8E4M3FN>) outs(%c : memref<96x2048xf32>) {
  ^bb0(%x: f8E4M3FN, %y: f8E4M3FN, %z: f32):
    %0 = arith.extf %x : f8E4M3FN to f32
    %1 = arith.extf %y : f8E4M3FN to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %z, %2 : f32
    linalg.yield %3 : f32
  }
  return
}
