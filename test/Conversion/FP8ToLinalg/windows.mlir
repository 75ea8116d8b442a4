// RUN: fp8-opt %s --convert-fp8-to-linalg | FileCheck %s

// Windows are copied from where they are in the image; zeros are added before.
// CHECK-DAG: #[[PADDED:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 * 2 + d2, d3 + d4 * 3, d5)>
// CHECK-DAG: #[[REVERSED:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1 + (-d2 + 2) * 2, d3)>

// CHECK-LABEL: func @padded(
// CHECK: %[[ZERO:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
// CHECK: %[[PAD:.*]] = stablehlo.pad %arg0, %[[ZERO]], low = [0, 1, 0, 0], high = [0, 0, -1, 0], interior = [0, 0, 1, 0] : (tensor<2x8x8x4xbf16>, tensor<bf16>) -> tensor<2x9x14x4xbf16>
// CHECK: linalg.generic {indexing_maps = [#[[PADDED]], #{{.*}}], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%[[PAD]] : tensor<2x9x14x4xbf16>)
// CHECK-NEXT: ^bb0(%[[IN:.*]]: bf16, %{{.*}}: bf16):
// CHECK-NEXT: linalg.yield %[[IN]]
func.func @padded(%x: tensor<2x8x8x4xbf16>) -> tensor<2x4x3x11x2x4xbf16> {
  %0 = fp8.windows %x dims = [1, 2] sizes = [3, 2] strides = [2, 1] dilations = [1, 3]
      low = [1, 0] high = [0, -1] interior = [0, 1] reversed = [false, false]
      : tensor<2x8x8x4xbf16> -> tensor<2x4x3x11x2x4xbf16>
  return %0 : tensor<2x4x3x11x2x4xbf16>
}

// CHECK-LABEL: func @reversed(
// CHECK-NOT: stablehlo.pad
// CHECK: linalg.generic {indexing_maps = [#[[REVERSED]],
// CHECK-SAME: ins(%arg0
func.func @reversed(%x: tensor<2x8x4xf32>) -> tensor<2x4x3x4xf32> {
  %0 = fp8.windows %x dims = [1] sizes = [3] strides = [1] dilations = [2]
      low = [0] high = [0] interior = [0] reversed = [true] : tensor<2x8x4xf32> -> tensor<2x4x3x4xf32>
  return %0 : tensor<2x4x3x4xf32>
}
