// What a machine with AMX-BF16 runs: four products of tiles for four loads, and
// one configuration. Each of the two steps along k prefetches half of the 32
// rows of the result, two lines each.

// RUN: fp8-opt %s --pass-pipeline="builtin.module(func.func(test-fp8-contraction{vector-bits=512 avx512-bf16 avx512-vbmi amx-bf16}))" \
// RUN:   | mlir-opt --convert-scf-to-cf --convert-vector-to-llvm=enable-x86vector --expand-strided-metadata \
// RUN:     --lower-affine --convert-arith-to-llvm --convert-index-to-llvm --finalize-memref-to-llvm \
// RUN:     --convert-func-to-llvm=use-bare-ptr-memref-call-conv --convert-cf-to-llvm --reconcile-unrealized-casts \
// RUN:   | mlir-translate --mlir-to-llvmir | opt -O2 -mcpu=sapphirerapids | llc -O2 -mcpu=sapphirerapids | FileCheck %s

#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: dot:
// CHECK-COUNT-1: ldtilecfg
// CHECK-NOT:     ldtilecfg
// CHECK-NOT:     vdpbf16ps
// CHECK:         tilezero %tmm0
// CHECK:         tilezero %tmm3
// CHECK-COUNT-32: prefetchw
// CHECK-NOT:     prefetchw
// CHECK:         tileloadd {{.*}}, %tmm4
// CHECK:         tileloadd {{.*}}, %tmm5
// CHECK:         tileloadd {{.*}}, %tmm6
// CHECK:         tileloadd {{.*}}, %tmm7
// CHECK:         tdpbf16ps %tmm6, %tmm4, %tmm0
// CHECK:         tdpbf16ps %tmm7, %tmm4, %tmm1
// CHECK:         tdpbf16ps %tmm6, %tmm5, %tmm2
// CHECK:         tdpbf16ps %tmm7, %tmm5, %tmm3
// CHECK:         tilestored %tmm0
// CHECK:         tilestored %tmm3
// CHECK:         tilerelease
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

// Many rows pass between two uses of the same ones. Loads that do not keep them
// in the first-level cache leave the panel of the rhs there.
// CHECK-LABEL: many_rows:
// CHECK:         tileloaddt1 {{.*}}, %tmm4
// CHECK:         tileloaddt1 {{.*}}, %tmm5
// CHECK:         tileloadd {{.*}}, %tmm6
// CHECK:         tileloadd {{.*}}, %tmm7
func.func @many_rows(%a: memref<512x64xbf16>, %b: memref<64x256xbf16>, %c: memref<512x256xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : memref<512x64xbf16>, memref<64x256xbf16>) outs(%c : memref<512x256xf32>) {
  ^bb0(%x: bf16, %y: bf16, %z: f32):
    %0 = arith.extf %x : bf16 to f32
    %1 = arith.extf %y : bf16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %z, %2 : f32
    linalg.yield %3 : f32
  }
  return
}
