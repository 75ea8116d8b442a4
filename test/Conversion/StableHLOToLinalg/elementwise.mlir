// RUN: fp8-opt %s --convert-stablehlo-to-linalg --split-input-file | FileCheck %s

// CHECK: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK: func.func @add(%[[X:.*]]: tensor<2x3xf32>, %[[Y:.*]]: tensor<2x3xf32>)
// CHECK: %[[E:.*]] = tensor.empty() : tensor<2x3xf32>
// CHECK: %[[R:.*]] = linalg.generic {indexing_maps = [#[[ID]], #[[ID]], #[[ID]]], iterator_types = ["parallel", "parallel"]}
// CHECK-SAME: ins(%[[X]], %[[Y]] : tensor<2x3xf32>, tensor<2x3xf32>) outs(%[[E]] : tensor<2x3xf32>)
// CHECK: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %{{.*}}: f32):
// CHECK: %[[S:.*]] = arith.addf %[[A]], %[[B]] : f32
// CHECK: linalg.yield %[[S]]
// CHECK: return %[[R]]
func.func @add(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.add %x, %y : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// Rank 0 is a generic without loops.
// CHECK: func.func @scalar
// CHECK: linalg.generic {indexing_maps = [{{.*}}], iterator_types = []}
// CHECK: math.exp
func.func @scalar(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.exponential %x : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Unsigned integers become signless at the boundary, and stay unsigned in what
// is done with them.
// CHECK: func.func @unsigned(%{{.*}}: tensor<4xi32>, %{{.*}}: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi1>, tensor<4xf32>)
// CHECK: arith.maxui
// CHECK: arith.cmpi ult
// CHECK: arith.uitofp
func.func @unsigned(%x: tensor<4xui32>, %y: tensor<4xui32>) -> (tensor<4xui32>, tensor<4xi1>, tensor<4xf32>) {
  %0 = stablehlo.maximum %x, %y : tensor<4xui32>
  %1 = stablehlo.compare LT, %x, %y, UNSIGNED : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xi1>
  %2 = stablehlo.convert %x : (tensor<4xui32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xui32>, tensor<4xi1>, tensor<4xf32>
}

// -----

// Changing only the sign changes nothing.
// CHECK: func.func @resign(%[[X:.*]]: tensor<4xi32>) -> tensor<4xi32>
// CHECK-NEXT: return %[[X]]
func.func @resign(%x: tensor<4xui32>) -> tensor<4xi32> {
  %0 = stablehlo.bitcast_convert %x : (tensor<4xui32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// -----

// CHECK: func.func @nan
// CHECK: arith.maximumf
// CHECK: arith.minimumf
// CHECK: arith.cmpf une
// CHECK: arith.cmpf oeq
func.func @nan(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi1>, tensor<4xi1>) {
  %0 = stablehlo.maximum %x, %y : tensor<4xf32>
  %1 = stablehlo.minimum %x, %y : tensor<4xf32>
  %2 = stablehlo.compare NE, %x, %y, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %3 = stablehlo.compare EQ, %x, %y, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xi1>, tensor<4xi1>
}

// -----

// A scalar predicate or bound is read through a map without results.
// CHECK-DAG: #[[ID:.*]] = affine_map<(d0) -> (d0)>
// CHECK-DAG: #[[NONE:.*]] = affine_map<(d0) -> ()>
// CHECK: func.func @select
// CHECK: linalg.generic {indexing_maps = [#[[NONE]], #[[ID]], #[[ID]], #[[ID]]]
// CHECK: arith.select
// CHECK: linalg.generic {indexing_maps = [#[[NONE]], #[[ID]], #[[NONE]], #[[ID]]]
// CHECK: arith.maximumf
// CHECK: arith.minimumf
func.func @select(%p: tensor<i1>, %x: tensor<4xf32>, %y: tensor<4xf32>, %lo: tensor<f32>, %hi: tensor<f32>) -> tensor<4xf32> {
  %0 = stablehlo.select %p, %x, %y : tensor<i1>, tensor<4xf32>
  %1 = stablehlo.clamp %lo, %0, %hi : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// Narrow floats are computed in f32.
// CHECK: func.func @narrow
// CHECK: arith.extf {{.*}} : bf16 to f32
// CHECK: arith.extf {{.*}} : bf16 to f32
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.truncf {{.*}} : f32 to bf16
func.func @narrow(%x: tensor<4xbf16>, %y: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = stablehlo.multiply %x, %y : tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// -----

// Division by zero and shifts by too much are defined.
// CHECK: func.func @defined
// CHECK: arith.cmpi eq
// CHECK: %[[D:.*]] = arith.select
// CHECK: arith.divsi %{{.*}}, %[[D]]
// CHECK: arith.select
// CHECK: arith.cmpi ult
// CHECK: arith.shli
// CHECK: arith.select
func.func @defined(%x: tensor<4xi32>, %y: tensor<4xi32>) -> tensor<4xi32> {
  %0 = stablehlo.divide %x, %y : tensor<4xi32>
  %1 = stablehlo.shift_left %0, %y : tensor<4xi32>
  return %1 : tensor<4xi32>
}

// -----

// Out of range numbers never reach the conversion.
// CHECK: func.func @saturate
// CHECK: arith.cmpf uno
// CHECK: %[[SAFE:.*]] = arith.select
// CHECK: arith.fptosi %[[SAFE]]
// CHECK: arith.select
// CHECK: arith.select
func.func @saturate(%x: tensor<4xf32>) -> tensor<4xi8> {
  %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}
