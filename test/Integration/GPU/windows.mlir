// Convolutions on a GPU: windows are copied, as payloads in FP8, and dots of them
// agree with the CPU's, which reads windows in place.

// RUN: fp8-opt %s --stablehlo-convolutions-to-dots --fp8-quantize=recipe=tensorwise --fp8-structure --fp8-kernels=layouts=along-k -o %t.mlir
// RUN: FileCheck %s --check-prefix=COPY < %t.mlir
// RUN: fp8-check-gpu-kernels --seeds=2 %t.mlir | FileCheck %s
// RUN: fp8-check-gpu-kernels --seeds=1 --chip=sm_89 --quiet %t.mlir | FileCheck %s
// RUN: fp8-opt %s --stablehlo-convolutions-to-dots --fp8-structure --fp8-kernels=layouts=along-k | fp8-check-gpu-kernels --seeds=1 --quiet - | FileCheck %s

// COPY: write %{{.*}}: memref<4x8x3x8x3x16xf8E4M3FN>
// CHECK-NOT: FAIL
// CHECK: kernels, 0 failed

func.func public @main(
    %x: tensor<4x8x8x16xf32> {fp8.role = "batch", fp8.path = "x"},
    %w: tensor<3x3x16x32xf32> {fp8.role = "frozen", fp8.path = "w"},
    %down: tensor<3x3x32x32xf32> {fp8.role = "frozen", fp8.path = "down"},
    %head: tensor<32x8xf32> {fp8.role = "frozen", fp8.path = "head"})
    -> (tensor<4x4x4x8xf32> {fp8.kind = "output", fp8.path = "y"}, tensor<4x8x8x32xf32> {fp8.kind = "output", fp8.path = "dx"}) {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<4x8x8x16xf32>, tensor<3x3x16x32xf32>) -> tensor<4x8x8x32xf32>
  %1 = stablehlo.convolution(%0, %down) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [2, 2], pad = [[0, 1], [0, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<4x8x8x32xf32>, tensor<3x3x32x32xf32>) -> tensor<4x4x4x32xf32>
  %2 = stablehlo.dot_general %1, %head, contracting_dims = [3] x [0] : (tensor<4x4x4x32xf32>, tensor<32x8xf32>) -> tensor<4x4x4x8xf32>
  // As the gradient of an image: zeros between its elements, and the kernel reversed.
  %r = stablehlo.reverse %down, dims = [0, 1] : tensor<3x3x32x32xf32>
  %3 = stablehlo.convolution(%1, %r) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f],
    window = {stride = [1, 1], pad = [[2, 1], [2, 1]], lhs_dilate = [2, 2], rhs_dilate = [1, 1], reverse = [false, false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<4x4x4x32xf32>, tensor<3x3x32x32xf32>) -> tensor<4x8x8x32xf32>
  return %2, %3 : tensor<4x4x4x8xf32>, tensor<4x8x8x32xf32>
}
