// RUN: fp8-opt %s --convert-stablehlo-to-linalg --split-input-file | FileCheck %s

// CHECK: #[[IN:.*]] = affine_map<(d0, d1, d2) -> (d1, d2, d0)>
// CHECK: func.func @transpose
// CHECK: linalg.generic {indexing_maps = [#[[IN]], #{{.*}}], iterator_types = ["parallel", "parallel", "parallel"]}
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: linalg.yield %[[A]]
func.func @transpose(%x: tensor<3x4x5xf32>) -> tensor<5x3x4xf32> {
  %0 = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<3x4x5xf32>) -> tensor<5x3x4xf32>
  return %0 : tensor<5x3x4xf32>
}

// -----

// An extent of 1 is read at 0.
// CHECK: #[[IN:.*]] = affine_map<(d0, d1, d2) -> (d1, 0)>
// CHECK: func.func @broadcast
// CHECK: linalg.generic {indexing_maps = [#[[IN]],
func.func @broadcast(%x: tensor<4x1xf32>) -> tensor<2x4x3xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [1, 2] : (tensor<4x1xf32>) -> tensor<2x4x3xf32>
  return %0 : tensor<2x4x3xf32>
}

// -----

// CHECK: func.func @splat
// CHECK: %[[C:.*]] = arith.constant dense<2.000000e+00> : tensor<4x3xf32>
// CHECK: return %[[C]]
func.func @splat() -> tensor<4x3xf32> {
  %c = stablehlo.constant dense<2.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// -----

// CHECK: #[[IN:.*]] = affine_map<(d0, d1) -> (d0 * 2 + 1, d1 + 3)>
// CHECK: func.func @slice
// CHECK: linalg.generic {indexing_maps = [#[[IN]],
func.func @slice(%x: tensor<8x8xf32>) -> tensor<4x5xf32> {
  %0 = stablehlo.slice %x [1:8:2, 3:8] : (tensor<8x8xf32>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}

// -----

// A bare loop would have to run over all 8.
// CHECK: #[[IN:.*]] = affine_map<(d0) -> (d0 mod 8)>
// CHECK: func.func @first_half
// CHECK: linalg.generic {indexing_maps = [#[[IN]],
func.func @first_half(%x: tensor<8xf32>) -> tensor<4xf32> {
  %0 = stablehlo.slice %x [0:4] : (tensor<8xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK: #[[IN:.*]] = affine_map<(d0, d1) -> (d0, -d1 + 3)>
// CHECK: func.func @reverse
// CHECK: linalg.generic {indexing_maps = [#[[IN]],
func.func @reverse(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = stablehlo.reverse %x, dims = [1] : tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[FIRST:.*]] = affine_map<(d0, d1) -> (d0, d1 mod 5)>
// CHECK-DAG: #[[SECOND:.*]] = affine_map<(d0, d1) -> (d0, d1 + 2)>
// CHECK: func.func @concatenate(%[[X:.*]]: tensor<4x2xf32>, %[[Y:.*]]: tensor<4x3xf32>)
// CHECK: %[[E:.*]] = tensor.empty() : tensor<4x5xf32>
// CHECK: %[[A:.*]] = linalg.generic {indexing_maps = [#[[ID]], #[[FIRST]]], {{.*}}} ins(%[[X]] : tensor<4x2xf32>) outs(%[[E]]
// CHECK: %[[B:.*]] = linalg.generic {indexing_maps = [#[[ID]], #[[SECOND]]], {{.*}}} ins(%[[Y]] : tensor<4x3xf32>) outs(%[[A]]
// CHECK: return %[[B]]
func.func @concatenate(%x: tensor<4x2xf32>, %y: tensor<4x3xf32>) -> tensor<4x5xf32> {
  %0 = stablehlo.concatenate %x, %y, dim = 1 : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}

// -----

// CHECK: #[[TO:.*]] = affine_map<(d0) -> (d0 * 3 + 1)>
// CHECK: func.func @pad(%[[X:.*]]: tensor<4xf32>)
// CHECK: %[[F:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<13xf32>)
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[TO]]], {{.*}}} ins(%[[X]] : tensor<4xf32>) outs(%[[F]] : tensor<13xf32>)
func.func @pad(%x: tensor<4xf32>) -> tensor<13xf32> {
  %c = stablehlo.constant dense<7.0> : tensor<f32>
  %0 = stablehlo.pad %x, %c, low = [1], high = [2], interior = [2] : (tensor<4xf32>, tensor<f32>) -> tensor<13xf32>
  return %0 : tensor<13xf32>
}

// -----

// CHECK: func.func @reshape
// CHECK: tensor.collapse_shape {{.*}} {{\[\[}}0, 1], [2, 3]] : tensor<2x3x4x5xf32> into tensor<6x20xf32>
// CHECK: tensor.expand_shape {{.*}} {{\[\[}}0], [1, 2]] output_shape [6, 2, 10] : tensor<6x20xf32> into tensor<6x2x10xf32>
func.func @reshape(%x: tensor<2x3x4x5xf32>) -> tensor<6x2x10xf32> {
  %0 = stablehlo.reshape %x : (tensor<2x3x4x5xf32>) -> tensor<6x2x10xf32>
  return %0 : tensor<6x2x10xf32>
}

// -----

// CHECK: func.func @iota
// CHECK: %[[I:.*]] = linalg.index 1 : index
// CHECK: arith.index_cast %[[I]] : index to i32
func.func @iota() -> tensor<2x3xi32> {
  %0 = stablehlo.iota dim = 1 : tensor<2x3xi32>
  return %0 : tensor<2x3xi32>
}

// -----

// CHECK: func.func @barrier(%[[X:.*]]: tensor<2xi32>)
// CHECK-NEXT: %[[B:.*]] = stablehlo.optimization_barrier %[[X]] : tensor<2xi32>
// CHECK-NEXT: return %[[B]]
func.func @barrier(%x: tensor<2xui32>) -> tensor<2xui32> {
  %0 = stablehlo.optimization_barrier %x : tensor<2xui32>
  return %0 : tensor<2xui32>
}
