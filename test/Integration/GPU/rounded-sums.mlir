// Sums in another order round to adjacent numbers of bf16, so what follows from
// rounded sums differs by as much, even if it is f32 again. What is rounded apart
// from the sums does not: sums that are not rounded have the bound of f32.
// RUN: fp8-opt --fp8-import --fp8-quantize=recipe=none --fp8-structure --fp8-kernels %s -o %t.mlir
// RUN: fp8-check-gpu-kernels %t.mlir | FileCheck %s
// RUN: not fp8-check-gpu-kernels --tolerance=0 %t.mlir | FileCheck %s --check-prefix=EXACT

// CHECK: ok {{.*}} dot
// CHECK: ok {{.*}} dot
// CHECK: 2 kernels, 0 failed

// EXACT: ok
// EXACT: FAIL {{.*}} argument 3 differs
// EXACT: 2 kernels, 1 failed

func.func @main(%x: tensor<128x320xbf16>, %w: tensor<512x320xbf16>, %y: tensor<128x320xbf16>, %s: tensor<128x512xf32>)
    -> (tensor<128x512xf32>, tensor<128x512xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<128x320xbf16>, tensor<512x320xbf16>) -> tensor<128x512xf32>
  %1 = stablehlo.convert %0 : (tensor<128x512xf32>) -> tensor<128x512xbf16>
  %2 = stablehlo.convert %1 : (tensor<128x512xbf16>) -> tensor<128x512xf32>
  %3 = stablehlo.add %2, %s : tensor<128x512xf32>
  %4 = stablehlo.dot_general %y, %w, contracting_dims = [1] x [1] : (tensor<128x320xbf16>, tensor<512x320xbf16>) -> tensor<128x512xf32>
  %5 = stablehlo.convert %s : (tensor<128x512xf32>) -> tensor<128x512xbf16>
  %6 = stablehlo.convert %5 : (tensor<128x512xbf16>) -> tensor<128x512xf32>
  %7 = stablehlo.add %4, %6 : tensor<128x512xf32>
  return %3, %7 : tensor<128x512xf32>, tensor<128x512xf32>
}
