// RUN: fp8-opt %s --convert-stablehlo-to-linalg --split-input-file | FileCheck %s

// Parallel loops come first.
// CHECK-DAG: #[[IN:.*]] = affine_map<(d0, d1, d2) -> (d0, d2, d1)>
// CHECK-DAG: #[[OUT:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK: func.func @sum
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[F:.*]] = linalg.fill ins(%[[ZERO]] : f32)
// CHECK: linalg.generic {indexing_maps = [#[[IN]], #[[OUT]]], iterator_types = ["parallel", "parallel", "reduction"]} {{.*}} outs(%[[F]] : tensor<4x6xf32>)
// CHECK: ^bb0(%[[X:.*]]: f32, %[[ACC:.*]]: f32):
// CHECK: arith.addf %[[ACC]], %[[X]] : f32
func.func @sum(%x: tensor<4x5x6xf32>) -> tensor<4x6xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1] : (tensor<4x5x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

// A narrow sum accumulates in f32.
// CHECK: func.func @wide
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<f32>)
// CHECK: arith.extf
// CHECK: arith.addf {{.*}} : f32
// CHECK: linalg.generic
// CHECK: arith.truncf {{.*}} : f32 to bf16
func.func @wide(%x: tensor<4xbf16>) -> tensor<bf16> {
  %c = stablehlo.constant dense<0.0> : tensor<bf16>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [0] : (tensor<4xbf16>, tensor<bf16>) -> tensor<bf16>
  return %0 : tensor<bf16>
}

// -----

// A start value that is not constant is broadcast.
// CHECK: func.func @start(%{{.*}}: tensor<4x5xf32>, %[[I:.*]]: tensor<f32>)
// CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%[[I]] : tensor<f32>)
// CHECK: linalg.generic {{.*}}"reduction"]} {{.*}} outs(%[[B]] : tensor<5xf32>)
// CHECK: arith.maximumf
func.func @start(%x: tensor<4x5xf32>, %i: tensor<f32>) -> tensor<5xf32> {
  %0 = stablehlo.reduce(%x init: %i) applies stablehlo.maximum across dimensions = [0] : (tensor<4x5xf32>, tensor<f32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

// A reduction over no dimensions gives its input: its start value is the neutral
// element.
// CHECK: func.func @no_dimensions(%[[X:.*]]: tensor<4x5xf32>, %{{.*}}: tensor<f32>)
// CHECK-NEXT: return %[[X]]
func.func @no_dimensions(%x: tensor<4x5xf32>, %i: tensor<f32>) -> tensor<4x5xf32> {
  %0 = stablehlo.reduce(%x init: %i) applies stablehlo.maximum across dimensions = [] : (tensor<4x5xf32>, tensor<f32>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}

// -----

// CHECK: func.func @argmax
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8xf32>, tensor<8xi32>) outs(%{{.*}}, %{{.*}} : tensor<f32>, tensor<i32>)
// CHECK: arith.cmpf ogt
// CHECK: linalg.yield %{{.*}}, %{{.*}} : f32, i32
func.func @argmax(%x: tensor<8xf32>, %y: tensor<8xi32>) -> (tensor<f32>, tensor<i32>) {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %d = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.reduce(%x init: %c), (%y init: %d) across dimensions = [0] : (tensor<8xf32>, tensor<8xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
    %1 = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.select %1, %a, %b : tensor<i1>, tensor<f32>
    %3 = stablehlo.select %1, %i, %j : tensor<i1>, tensor<i32>
    stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
  }
  return %0#0, %0#1 : tensor<f32>, tensor<i32>
}
