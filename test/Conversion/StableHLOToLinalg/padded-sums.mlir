// RUN: fp8-opt %s --convert-stablehlo-to-linalg --canonicalize --split-input-file | FileCheck %s

// Even and odd elements: no zeros are written, and nothing is added to but a zero, which turns -0.0 into 0.0.
// CHECK-DAG: #[[EVEN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1 * 2, d2)>
// CHECK-DAG: #[[ODD:.*]] = affine_map<(d0, d1, d2) -> (d0, d1 * 2 + 1, d2)>
// CHECK-LABEL: func.func @interleaved(
// CHECK-SAME: %[[X:.*]]: tensor<2x4x3xf32>, %[[Y:.*]]: tensor<2x4x3xf32>)
// CHECK: %[[E:.*]] = tensor.empty() : tensor<2x8x3xf32>
// CHECK-NOT: linalg.fill
// CHECK: %[[HALF:.*]] = linalg.generic {indexing_maps = [#{{.*}}, #[[EVEN]]]
// CHECK-SAME: ins(%[[X]] : tensor<2x4x3xf32>) outs(%[[E]] : tensor<2x8x3xf32>)
// CHECK: arith.addf
// CHECK: %[[ALL:.*]] = linalg.generic {indexing_maps = [#{{.*}}, #[[ODD]]]
// CHECK-SAME: ins(%[[Y]] : tensor<2x4x3xf32>) outs(%[[HALF]] : tensor<2x8x3xf32>)
// CHECK: return %[[ALL]]
func.func @interleaved(%x: tensor<2x4x3xf32>, %y: tensor<2x4x3xf32>) -> tensor<2x8x3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [0, 0, 0], high = [0, 1, 0], interior = [0, 1, 0] : (tensor<2x4x3xf32>, tensor<f32>) -> tensor<2x8x3xf32>
  %1 = stablehlo.pad %y, %zero, low = [0, 1, 0], high = [0, 0, 0], interior = [0, 1, 0] : (tensor<2x4x3xf32>, tensor<f32>) -> tensor<2x8x3xf32>
  %2 = stablehlo.add %0, %1 : tensor<2x8x3xf32>
  return %2 : tensor<2x8x3xf32>
}

// -----

// Overlapping parts of integers are three runs, of which the second adds.
// CHECK-LABEL: func.func @overlapping(
// CHECK-NOT: linalg.fill
// CHECK-NOT: arith.addi
// CHECK: outs(%{{.*}} : tensor<9xi32>)
// CHECK-NOT: arith.addi
// CHECK: outs(%{{.*}} : tensor<9xi32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.addi
// CHECK: outs(%{{.*}} : tensor<9xi32>)
// CHECK-NOT: arith.addi
// CHECK: return
func.func @overlapping(%x: tensor<6xi32>, %y: tensor<5xi32>) -> tensor<9xi32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.pad %x, %zero, low = [0], high = [3], interior = [0] : (tensor<6xi32>, tensor<i32>) -> tensor<9xi32>
  %1 = stablehlo.pad %y, %zero, low = [4], high = [0], interior = [0] : (tensor<5xi32>, tensor<i32>) -> tensor<9xi32>
  %2 = stablehlo.add %0, %1 : tensor<9xi32>
  return %2 : tensor<9xi32>
}

// -----

// Elements that are not next to each other along the last dimension would be no vectors.
// CHECK-LABEL: func.func @last_dimension(
// CHECK-COUNT-2: linalg.fill
func.func @last_dimension(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [0], high = [1], interior = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = stablehlo.pad %y, %zero, low = [1], high = [0], interior = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
  %2 = stablehlo.add %0, %1 : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// Padding with other values than zeros stays.
// CHECK-LABEL: func.func @ones(
// CHECK: linalg.fill
func.func @ones(%x: tensor<4xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.pad %x, %one, low = [0], high = [4], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = stablehlo.add %0, %y : tensor<8xf32>
  return %1 : tensor<8xf32>
}
