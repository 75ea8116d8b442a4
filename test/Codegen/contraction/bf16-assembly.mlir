// What a machine with AVX512-BF16 runs: the dots of two registers and a byte
// permute for each half of the decoded elements.

// RUN: fp8-opt %s --pass-pipeline="builtin.module(func.func(test-fp8-contraction{vector-bits=512 avx512-bf16 avx512-vbmi}))" \
// RUN:   | mlir-opt --convert-scf-to-cf --convert-vector-to-llvm=enable-x86vector --expand-strided-metadata \
// RUN:     --lower-affine --convert-arith-to-llvm --convert-index-to-llvm --finalize-memref-to-llvm \
// RUN:     --convert-func-to-llvm=use-bare-ptr-memref-call-conv --convert-cf-to-llvm --reconcile-unrealized-casts \
// RUN:   | mlir-translate --mlir-to-llvmir | opt -O2 -mcpu=znver4 | llc -O2 -mcpu=znver4 | FileCheck %s

#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: dot:
// CHECK:         {{vperm[it]2b}}
// CHECK-NOT:     vfmadd
// CHECK-NOT:     64-byte {{.*}}Spill
// The loop over register tiles: nothing is spilled up to the dots of a tile. (A
// counter is, once for each panel.)
// CHECK:         {{=> +}}This Loop Header: Depth=2
// CHECK-NOT:     {{Spill|Reload}}
// CHECK-COUNT-24: vdpbf16ps {{.*}}%zmm
// CHECK-NOT:     64-byte {{.*}}Spill
func.func @dot(%a: memref<96x64xf8E4M3FN>, %b: memref<64x256xf8E5M2>, %c: memref<96x256xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : memref<96x64xf8E4M3FN>, memref<64x256xf8E5M2>) outs(%c : memref<96x256xf32>) {
  ^bb0(%x: f8E4M3FN, %y: f8E5M2, %z: f32):
    %0 = arith.extf %x : f8E4M3FN to f32
    %1 = arith.extf %y : f8E5M2 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %z, %2 : f32
    linalg.yield %3 : f32
  }
  return
}
