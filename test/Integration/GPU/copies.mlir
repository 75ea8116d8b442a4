// Dots by mma.sync and FMA agree with the CPU's, in the emulator, whether
// copies land early, late or between: operands along k and along their rows,
// which cp.async copies as they lie; f8 that is turned or converted and rows that
// begin nowhere, by way of registers; rows, columns and k that end within a tile or a
// stage; stages of runs with scales of their own; and no two lines that ldmatrix
// reads at once lie in one bank.
// RUN: fp8-opt --fp8-import --fp8-quantize=recipe=none --fp8-structure --fp8-kernels %s -o %t.mlir
// RUN: fp8-opt --fp8-target=nvptx=sm_89 --fp8-plan-blocks %t.mlir | FileCheck %s --check-prefix=PLAN
// RUN: fp8-check-gpu-kernels --chip=sm_89 --seeds=3 %t.mlir | FileCheck %s

// PLAN-DAG: memref<200x192xf8E4M3FN>{{.*}} threads = 128, stages = 3>
// PLAN-DAG: memref<256x128xbf16>{{.*}} threads = 128, stages = 4>
// PLAN-DAG: memref<3x64x80xf16>{{.*}} threads = 128, stages = 3>
// PLAN-DAG: memref<64x50xbf16>{{.*}} threads = 128>
// PLAN-DAG: memref<200x128xf8E5M2>{{.*}} threads = 128>
// PLAN-DAG: memref<40x100xf32>{{.*}} threads = 128, stages = 4>
// CHECK-NOT: FAIL
// CHECK: 8 kernels, 0 failed

func.func @main(%x: tensor<200x192xf8E4M3FN>, %w: tensor<96x192xf8E5M2>,
                %a: tensor<256x128xbf16>, %b: tensor<256x72xbf16>,
                %h: tensor<3x64x80xf16>, %g: tensor<3x40x80xf16>,
                %u: tensor<64x50xbf16>, %v: tensor<24x64xbf16>,
                %c: tensor<200x128xf8E5M2>, %d: tensor<200x96xf8E4M3FN>,
                %p: tensor<40x100xf32>, %q: tensor<24x100xf32>,
                %l: tensor<64x160xf8E4M3FN>, %m: tensor<32x160xbf16>, %n: tensor<160x32xf8E5M2>)
    -> (tensor<200x96xf32>, tensor<128x72xf32>, tensor<3x64x40xf32>, tensor<50x24xf32>, tensor<128x96xf32>, tensor<40x24xf32>,
        tensor<64x32xf32>, tensor<32x32xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1]
      : (tensor<200x192xf8E4M3FN>, tensor<96x192xf8E5M2>) -> tensor<200x96xf32>
  %1 = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0]
      : (tensor<256x128xbf16>, tensor<256x72xbf16>) -> tensor<128x72xf32>
  %2 = stablehlo.dot_general %h, %g, batching_dims = [0] x [0], contracting_dims = [2] x [2]
      : (tensor<3x64x80xf16>, tensor<3x40x80xf16>) -> tensor<3x64x40xf32>
  %3 = stablehlo.dot_general %u, %v, contracting_dims = [0] x [1]
      : (tensor<64x50xbf16>, tensor<24x64xbf16>) -> tensor<50x24xf32>
  %4 = stablehlo.dot_general %c, %d, contracting_dims = [0] x [0]
      : (tensor<200x128xf8E5M2>, tensor<200x96xf8E4M3FN>) -> tensor<128x96xf32>
  %5 = stablehlo.dot_general %p, %q, contracting_dims = [1] x [1]
      : (tensor<40x100xf32>, tensor<24x100xf32>) -> tensor<40x24xf32>
  %6 = stablehlo.dot_general %l, %m, contracting_dims = [1] x [1]
      : (tensor<64x160xf8E4M3FN>, tensor<32x160xbf16>) -> tensor<64x32xf32>
  %7 = stablehlo.dot_general %m, %n, contracting_dims = [1] x [0]
      : (tensor<32x160xbf16>, tensor<160x32xf8E5M2>) -> tensor<32x32xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<200x96xf32>, tensor<128x72xf32>, tensor<3x64x40xf32>, tensor<50x24xf32>, tensor<128x96xf32>, tensor<40x24xf32>,
        tensor<64x32xf32>, tensor<32x32xf32>
}
