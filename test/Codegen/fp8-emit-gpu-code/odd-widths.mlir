// Dots of sizes that no example has. Operands in f8 whose width is odd come
// through registers, byte by byte: a stage is small enough for those that a
// thread has.
// REQUIRES: ptxas
// RUN: rm -rf %t && mkdir -p %t
// RUN: for chip in sm_89 sm_90a; do \
// RUN:   fp8-opt %s --fp8-target=nvptx=$chip --fp8-gpu-codegen --fp8-to-nvvm --fp8-emit-gpu-code="image=cubin directory=%t/$chip" -o /dev/null && \
// RUN:   cat %t/$chip/resources.csv || exit 1; \
// RUN: done | FileCheck %s

// kernel, blocks, threads, registers, spilled
// CHECK: odd_k,{{[0-9]+}},128,{{[0-9]+}},0,
// CHECK: odd_rows,{{[0-9]+}},128,{{[0-9]+}},0,
// CHECK: odd_k,{{[0-9]+}},128,{{[0-9]+}},0,
// CHECK: odd_rows,{{[0-9]+}},128,{{[0-9]+}},0,
// The descriptors of all stages of a wide tile, which LLVM unrolls, stay in no
// registers while the epilogue needs them:
// CHECK: wide,132,288,{{[0-9]+}},0,

#ik = affine_map<(i, j, k) -> (i, k)>
#jk = affine_map<(i, j, k) -> (j, k)>
#ki = affine_map<(i, j, k) -> (k, i)>
#kj = affine_map<(i, j, k) -> (k, j)>
#ij = affine_map<(i, j, k) -> (i, j)>
#id = affine_map<(i, j) -> (i, j)>
module {
  fp8.kernel @odd_k(read %x: memref<200x515xf8E5M2>, read %w: memref<192x515xf8E4M3FN>, write %y: memref<200x192xf32>) domain = [200, 192] {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%y : memref<200x192xf32>)
    linalg.generic {indexing_maps = [#ik, #jk, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<200x515xf8E5M2>, memref<192x515xf8E4M3FN>) outs(%y : memref<200x192xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E5M2, %b: f8E4M3FN, %o: f32):
      %0 = arith.extf %a : f8E5M2 to f32
      %1 = arith.extf %b : f8E4M3FN to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }
  fp8.kernel @odd_rows(read %x: memref<300x192xf8E4M3FN>, read %w: memref<300x515xf8E5M2>, write %y: memref<192x515xf32>) domain = [192, 515] {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%y : memref<192x515xf32>)
    linalg.generic {indexing_maps = [#ki, #kj, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<300x192xf8E4M3FN>, memref<300x515xf8E5M2>) outs(%y : memref<192x515xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E4M3FN, %b: f8E5M2, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.extf %b : f8E5M2 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }
  fp8.kernel @wide(read %x: memref<256x384xbf16>, read %w: memref<256x32000xbf16>, read %z: memref<384x32000xf32>, write %y: memref<384x32000xf32>) domain = [384, 32000] {
    %zero = arith.constant 0.0 : f32
    %sums = memref.alloc() {alignment = 64 : i64} : memref<384x32000xf32>
    linalg.fill ins(%zero : f32) outs(%sums : memref<384x32000xf32>)
    linalg.generic {indexing_maps = [#ki, #kj, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<256x384xbf16>, memref<256x32000xbf16>) outs(%sums : memref<384x32000xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: bf16, %b: bf16, %o: f32):
      %0 = arith.extf %a : bf16 to f32
      %1 = arith.extf %b : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%z, %sums : memref<384x32000xf32>, memref<384x32000xf32>) outs(%y : memref<384x32000xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %0 = arith.addf %a, %b : f32
      linalg.yield %0 : f32
    }
    fp8.return
  }
}
