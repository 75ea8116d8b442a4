// Epilogues that read and write several buffers, behind dots whose operands TMA
// brings: four threads exchange their sums, so that each has eight columns. They
// have the bits of those without TMA, which exchange nothing: in one warpgroup
// and two, with columns that end within a tile, in types of 16 and 32 bits, and
// with reciprocals of numbers on either side of 2^126.
// RUN: fp8-opt --fp8-import --fp8-quantize=recipe=none --fp8-structure --fp8-kernels %s -o %t.4.mlir
// RUN: fp8-opt --fp8-target=nvptx=sm_90a --fp8-plan-blocks %t.4.mlir -o %t.plan.mlir
// RUN: FileCheck %s --check-prefix=PLAN < %t.plan.mlir
// RUN: sed "s/domain = .128, 512. plan = #fp8.gpu_plan<[^>]*>/domain = [128, 512] plan = #fp8.gpu_plan<tile = [128, 256], sum_tile = [128, 512], threads = 256, wgmma = true, stages = 3, tma = true>/" %t.plan.mlir > %t.wide.mlir
// RUN: fp8-opt --fp8-gpu-codegen --fp8-to-nvvm %t.wide.mlir -o %t.6.mlir
// RUN: FileCheck %s --check-prefix=CODE < %t.6.mlir
// RUN: sed "s/, tma = true//" %t.plan.mlir | fp8-opt --fp8-gpu-codegen --fp8-to-nvvm -o %t.copies.mlir
// RUN: fp8-check-gpu-kernels --seeds=3 --compiled=%t.6.mlir --equal=%t.copies.mlir %t.4.mlir | FileCheck %s

// PLAN-COUNT-3: tma = true
// CODE: nvvm.shfl.sync bfly
// CODE: llvm.nvvm.rcp.approx.ftz.f
// CHECK-NOT: FAIL
// CHECK: 3 kernels, 0 failed

func.func @main(%x: tensor<128x320xf8E4M3FN>, %w: tensor<512x320xf8E4M3FN>, %gate: tensor<128x512xbf16>,
                %y: tensor<2x64x160xf8E5M2>, %v: tensor<200x160xf8E4M3FN>, %s: tensor<2x64x200xf32>, %n: tensor<200xf32>,
                %a: tensor<100x96xbf16>, %b: tensor<136x96xbf16>, %c: tensor<100x136xbf16>)
    -> (tensor<128x512xbf16>, tensor<128x512xbf16>, tensor<2x64x200xf32>, tensor<2x64x200xf32>, tensor<100x136xf32>, tensor<100x136xbf16>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<128x320xf8E4M3FN>, tensor<512x320xf8E4M3FN>) -> tensor<128x512xf32>
  %1 = stablehlo.convert %0 : (tensor<128x512xf32>) -> tensor<128x512xbf16>
  %2 = stablehlo.logistic %gate : tensor<128x512xbf16>
  %3 = stablehlo.multiply %gate, %2 : tensor<128x512xbf16>
  %4 = stablehlo.multiply %3, %1 : tensor<128x512xbf16>
  %5 = stablehlo.dot_general %y, %v, contracting_dims = [2] x [1] : (tensor<2x64x160xf8E5M2>, tensor<200x160xf8E4M3FN>) -> tensor<2x64x200xf32>
  %6 = stablehlo.add %5, %s : tensor<2x64x200xf32>
  %7 = stablehlo.broadcast_in_dim %n, dims = [2] : (tensor<200xf32>) -> tensor<2x64x200xf32>
  %8 = stablehlo.multiply %6, %7 : tensor<2x64x200xf32>
  %9 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] : (tensor<100x96xbf16>, tensor<136x96xbf16>) -> tensor<100x136xf32>
  %one = stablehlo.constant dense<1.0> : tensor<100x136xf32>
  %large = stablehlo.constant dense<0x7E800000> : tensor<100x136xf32>
  %10 = stablehlo.convert %c : (tensor<100x136xbf16>) -> tensor<100x136xf32>
  %11 = stablehlo.multiply %10, %large : tensor<100x136xf32>
  %12 = stablehlo.divide %one, %11 : tensor<100x136xf32>
  %13 = stablehlo.multiply %9, %12 : tensor<100x136xf32>
  %14 = stablehlo.convert %13 : (tensor<100x136xf32>) -> tensor<100x136xbf16>
  return %1, %4, %6, %8, %13, %14 : tensor<128x512xbf16>, tensor<128x512xbf16>, tensor<2x64x200xf32>, tensor<2x64x200xf32>, tensor<100x136xf32>, tensor<100x136xbf16>
}
