// Dots whose operands TMA brings agree with the CPU's, in the emulator, whether
// copies land early, late or between, and have the bits of those whose operands
// cp.async brings: one warpgroup and two; f8, bf16 and f16; rows, columns and k
// that end within a tile or a stage; batches; rows of several dimensions; sums of
// runs; and blocks that run several tiles, of which the last are smaller.
// RUN: fp8-opt --fp8-import --fp8-quantize=recipe=none --fp8-structure --fp8-kernels %s -o %t.4.mlir
// RUN: fp8-opt --fp8-target=nvptx=sm_90a --fp8-plan-blocks %t.4.mlir -o %t.plan.mlir
// RUN: FileCheck %s --check-prefix=PLAN < %t.plan.mlir
// RUN: fp8-opt --fp8-lower-blocks=processors=1 %t.plan.mlir -o %t.blocks.mlir
// RUN: FileCheck %s --check-prefix=BLOCKS < %t.blocks.mlir
// RUN: fp8-opt --fp8-gpu-codegen --fp8-to-nvvm %t.blocks.mlir -o %t.6.mlir
// RUN: sed "s/, tma = true//" %t.plan.mlir | fp8-opt --fp8-gpu-codegen --fp8-to-nvvm -o %t.copies.mlir
// RUN: fp8-check-gpu-kernels --seeds=3 --compiled=%t.6.mlir --equal=%t.copies.mlir %t.4.mlir | FileCheck %s

// PLAN-COUNT-6: tma = true
// BLOCKS: gpu.func {{.*}}memref<131x512xf8E4M3FN>{{.*}} #fp8.gpu_launch<blocks = 2,
// CHECK-NOT: FAIL
// CHECK: 6 kernels, 0 failed

func.func @main(%x: tensor<128x320xf8E4M3FN>, %w: tensor<200x320xf8E5M2>,
                %a: tensor<256x128x48xbf16>, %b: tensor<256x24x48xbf16>,
                %h: tensor<3x64x80xf16>, %g: tensor<3x40x80xf16>,
                %c: tensor<2x3x64x32xf8E5M2>, %d: tensor<3x16x32xf8E4M3FN>,
                %p: tensor<4x32x160xf8E4M3FN>, %q: tensor<48x160xf8E4M3FN>,
                %u: tensor<3x64x512xf8E4M3FN>, %v: tensor<131x512xf8E4M3FN>)
    -> (tensor<128x200xf32>, tensor<256x128x24xf32>, tensor<3x64x40xf32>, tensor<3x2x64x16xf32>, tensor<4x32x48xf32>, tensor<3x64x131xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1]
      : (tensor<128x320xf8E4M3FN>, tensor<200x320xf8E5M2>) -> tensor<128x200xf32>
  %1 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2]
      : (tensor<256x128x48xbf16>, tensor<256x24x48xbf16>) -> tensor<256x128x24xf32>
  %2 = stablehlo.dot_general %h, %g, batching_dims = [0] x [0], contracting_dims = [2] x [2]
      : (tensor<3x64x80xf16>, tensor<3x40x80xf16>) -> tensor<3x64x40xf32>
  %3 = stablehlo.dot_general %c, %d, batching_dims = [1] x [0], contracting_dims = [3] x [2]
      : (tensor<2x3x64x32xf8E5M2>, tensor<3x16x32xf8E4M3FN>) -> tensor<3x2x64x16xf32>
  %4 = stablehlo.dot_general %p, %q, contracting_dims = [2] x [1]
      : (tensor<4x32x160xf8E4M3FN>, tensor<48x160xf8E4M3FN>) -> tensor<4x32x48xf32>
  %5 = stablehlo.dot_general %u, %v, contracting_dims = [2] x [1]
      : (tensor<3x64x512xf8E4M3FN>, tensor<131x512xf8E4M3FN>) -> tensor<3x64x131xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<128x200xf32>, tensor<256x128x24xf32>, tensor<3x64x40xf32>, tensor<3x2x64x16xf32>, tensor<4x32x48xf32>, tensor<3x64x131xf32>
}
