// RUN: fp8-opt %s --convert-stablehlo-to-linalg --split-input-file | FileCheck %s

// CHECK: #[[INDEX:.*]] = affine_map<(d0, d1) -> (d0, 0)>
// CHECK: func.func @embedding(%[[T:.*]]: tensor<256x32xf32>, %[[I:.*]]: tensor<8x1xi32>)
// CHECK: linalg.generic {indexing_maps = [#[[INDEX]], #{{.*}}], {{.*}}} ins(%[[I]] : tensor<8x1xi32>)
// CHECK: ^bb0(%[[R:.*]]: i32
// CHECK: arith.index_cast %[[R]] : i32 to index
// CHECK: arith.maxsi
// CHECK: %[[ROW:.*]] = arith.minsi
// CHECK: %[[COLUMN:.*]] = linalg.index 1
// CHECK: tensor.extract %[[T]][%[[ROW]], %[[COLUMN]]]
func.func @embedding(%t: tensor<256x32xf32>, %i: tensor<8x1xi32>) -> tensor<8x32xf32> {
  %0 = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
    start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 32>}>
    : (tensor<256x32xf32>, tensor<8x1xi32>) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}

// -----

// CHECK: func.func @scatter(%[[T:.*]]: tensor<256x32xf32>, %[[I:.*]]: tensor<8x1xi32>, %[[U:.*]]: tensor<8x32xf32>)
// CHECK: %[[R:.*]] = scf.for %[[ROW:.*]] = {{.*}} iter_args(%[[OUTER:.*]] = %[[T]])
// CHECK: %[[E:.*]] = tensor.extract %[[I]][%[[ROW]], %{{.*}}]
// CHECK: scf.for %[[COLUMN:.*]] = {{.*}} iter_args(%[[INNER:.*]] = %[[OUTER]])
// CHECK: %[[IN:.*]] = arith.cmpi ult
// CHECK: %[[OLD:.*]] = tensor.extract %[[INNER]]
// CHECK: %[[NEW:.*]] = tensor.extract %[[U]][%[[ROW]], %[[COLUMN]]]
// CHECK: %[[SUM:.*]] = arith.addf %[[OLD]], %[[NEW]]
// CHECK: %[[VALUE:.*]] = arith.select %[[IN]], %[[SUM]], %[[OLD]]
// CHECK: tensor.insert %[[VALUE]] into %[[INNER]]
// CHECK: return %[[R]]
func.func @scatter(%t: tensor<256x32xf32>, %i: tensor<8x1xi32>, %u: tensor<8x32xf32>) -> tensor<256x32xf32> {
  %0 = "stablehlo.scatter"(%t, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<256x32xf32>, tensor<8x1xi32>, tensor<8x32xf32>) -> tensor<256x32xf32>
  return %0 : tensor<256x32xf32>
}

// -----

// A single element needs no loop.
// CHECK: func.func @one
// CHECK-NOT: scf.for
// CHECK: linalg.generic
// CHECK: tensor.extract
// CHECK: arith.select
func.func @one(%t: tensor<256xf32>, %i: tensor<1xi32>, %u: tensor<f32>) -> tensor<256xf32> {
  %0 = "stablehlo.scatter"(%t, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<256xf32>, tensor<1xi32>, tensor<f32>) -> tensor<256xf32>
  return %0 : tensor<256xf32>
}

// -----

// Only the first dimension can start elsewhere than at 0.
// CHECK: func.func @dynamic_slice(%[[X:.*]]: tensor<8x4xf32>, %[[I:.*]]: tensor<i32>, %{{.*}}: tensor<i32>)
// CHECK: linalg.generic {{.*}} ins(%[[I]] : tensor<i32>)
// CHECK: arith.minsi
// CHECK: tensor.extract %[[X]]
func.func @dynamic_slice(%x: tensor<8x4xf32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<2x4xf32> {
  %0 = stablehlo.dynamic_slice %x, %i, %j, sizes = [2, 4] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// CHECK: func.func @dynamic_update_slice(%[[X:.*]]: tensor<8x4xf32>, %[[U:.*]]: tensor<2x4xf32>
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[X]])
// CHECK: scf.for
// CHECK: %[[E:.*]] = tensor.extract %[[U]]
// CHECK: tensor.insert %[[E]]
func.func @dynamic_update_slice(%x: tensor<8x4xf32>, %u: tensor<2x4xf32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<8x4xf32> {
  %0 = stablehlo.dynamic_update_slice %x, %u, %i, %j : (tensor<8x4xf32>, tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
