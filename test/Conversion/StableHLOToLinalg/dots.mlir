// RUN: fp8-opt %s --convert-stablehlo-to-linalg --split-input-file | FileCheck %s

// Loops are batch, m, n, k; operands are read as they lie.
// CHECK-DAG: #[[L:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d0, d1)>
// CHECK-DAG: #[[R:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d3, d0)>
// CHECK-DAG: #[[O:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK: func.func @batch
// CHECK: linalg.fill {{.*}} -> tensor<4x5x7xf32>
// CHECK: linalg.generic {indexing_maps = [#[[L]], #[[R]], #[[O]]], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
// CHECK: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[ACC:.*]]: f32):
// CHECK: %[[P:.*]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK: arith.addf %[[ACC]], %[[P]] : f32
func.func @batch(%x: tensor<6x4x5xf32>, %y: tensor<7x6x4xf32>) -> tensor<4x5x7xf32> {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [1] x [2], contracting_dims = [0] x [1]
    : (tensor<6x4x5xf32>, tensor<7x6x4xf32>) -> tensor<4x5x7xf32>
  return %0 : tensor<4x5x7xf32>
}

// -----

// CHECK: func.func @bf16
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<4x5xf32>)
// CHECK: arith.extf
// CHECK: arith.extf
// CHECK: arith.mulf {{.*}} : f32
// CHECK: linalg.generic
// CHECK: arith.truncf {{.*}} : f32 to bf16
func.func @bf16(%x: tensor<4x6xbf16>, %y: tensor<6x5xbf16>) -> tensor<4x5xbf16> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x6xbf16>, tensor<6x5xbf16>) -> tensor<4x5xbf16>
  return %0 : tensor<4x5xbf16>
}

// -----

// CHECK: func.func @int8
// CHECK: arith.extsi {{.*}} : i8 to i32
// CHECK: arith.extui {{.*}} : i8 to i32
// CHECK: arith.muli
// CHECK: arith.addi
func.func @int8(%x: tensor<4x6xi8>, %y: tensor<6x5xui8>) -> tensor<4x5xi32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x6xi8>, tensor<6x5xui8>) -> tensor<4x5xi32>
  return %0 : tensor<4x5xi32>
}

// -----

// Without contraction nothing is summed.
// CHECK: func.func @outer
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]}
// CHECK: arith.mulf
// CHECK-NOT: arith.addf
func.func @outer(%x: tensor<4xf32>, %y: tensor<5xf32>) -> tensor<4x5xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [] x [] : (tensor<4xf32>, tensor<5xf32>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}
