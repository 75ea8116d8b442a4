// Dots by wgmma without TMA agree with the CPU's, in the emulator: one warpgroup
// and two, operands along k and turned, each type, converted f8, k that ends
// within a stage, odd widths, which come through registers element by element.
// RUN: fp8-opt --fp8-import --fp8-quantize=recipe=none --fp8-structure --fp8-kernels %s -o %t.mlir
// RUN: fp8-opt --fp8-target=nvptx=sm_90a --fp8-plan-blocks %t.mlir | sed "s/, tma = true//" > %t.plan.mlir
// RUN: FileCheck %s --check-prefix=PLAN < %t.plan.mlir
// RUN: fp8-opt --fp8-gpu-codegen --fp8-to-nvvm %t.plan.mlir -o %t.6.mlir
// RUN: fp8-check-gpu-kernels --seeds=2 --compiled=%t.6.mlir %t.mlir | FileCheck %s

// PLAN-DAG: memref<256x128x72xf8E4M3FN>{{.*}} threads = 256, wgmma = true>
// PLAN-DAG: memref<256x128x48xbf16>{{.*}} threads = 256, wgmma = true>
// PLAN-DAG: memref<200x128xf8E5M2>{{.*}} threads = 128, wgmma = true>
// PLAN-DAG: memref<3x64x80xf16>{{.*}} threads = 128, wgmma = true>
// PLAN-DAG: memref<64x259xf8E5M2>{{.*}} threads = 128, wgmma = true>
// CHECK-NOT: FAIL
// CHECK: 7 kernels, 0 failed

func.func @main(%x: tensor<256x128x72xf8E4M3FN>, %w: tensor<256x72x8xf8E5M2>,
                %a: tensor<256x128x48xbf16>, %b: tensor<256x24x48xbf16>,
                %c: tensor<200x128xf8E5M2>, %d: tensor<200x96xf8E4M3FN>,
                %h: tensor<3x64x80xf16>, %g: tensor<3x40x80xf16>,
                %l: tensor<64x160xf8E4M3FN>, %m: tensor<32x160xbf16>,
                %o: tensor<64x259xf8E5M2>, %p: tensor<120x259xf8E4M3FN>,
                %q: tensor<140x67xbf16>, %r: tensor<140x99xbf16>)
    -> (tensor<256x128x8xf32>, tensor<256x128x24xf32>, tensor<128x96xf32>, tensor<3x64x40xf32>, tensor<64x32xf32>,
        tensor<64x120xf32>, tensor<67x99xf32>) {
  %0 = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1]
      : (tensor<256x128x72xf8E4M3FN>, tensor<256x72x8xf8E5M2>) -> tensor<256x128x8xf32>
  %1 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2]
      : (tensor<256x128x48xbf16>, tensor<256x24x48xbf16>) -> tensor<256x128x24xf32>
  %2 = stablehlo.dot_general %c, %d, contracting_dims = [0] x [0]
      : (tensor<200x128xf8E5M2>, tensor<200x96xf8E4M3FN>) -> tensor<128x96xf32>
  %3 = stablehlo.dot_general %h, %g, batching_dims = [0] x [0], contracting_dims = [2] x [2]
      : (tensor<3x64x80xf16>, tensor<3x40x80xf16>) -> tensor<3x64x40xf32>
  %4 = stablehlo.dot_general %l, %m, contracting_dims = [1] x [1]
      : (tensor<64x160xf8E4M3FN>, tensor<32x160xbf16>) -> tensor<64x32xf32>
  %5 = stablehlo.dot_general %o, %p, contracting_dims = [1] x [1]
      : (tensor<64x259xf8E5M2>, tensor<120x259xf8E4M3FN>) -> tensor<64x120xf32>
  %6 = stablehlo.dot_general %q, %r, contracting_dims = [0] x [0]
      : (tensor<140x67xbf16>, tensor<140x99xbf16>) -> tensor<67x99xf32>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<256x128x8xf32>, tensor<256x128x24xf32>, tensor<128x96xf32>, tensor<3x64x40xf32>, tensor<64x32xf32>, tensor<64x120xf32>, tensor<67x99xf32>
}
