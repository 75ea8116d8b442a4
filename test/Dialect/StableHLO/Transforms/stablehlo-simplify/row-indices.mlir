// RUN: fp8-opt %s --stablehlo-simplify --split-input-file | FileCheck %s

// x[arange(8), y]: the rows are batches. A number that counts is not negative.
// CHECK-LABEL: @pick
// CHECK-SAME: (%[[X:.*]]: tensor<8x16xf32>, %[[Y:.*]]: tensor<8x1xi32>)
// CHECK-NEXT: "stablehlo.gather"(%[[X]], %[[Y]])
// CHECK-SAME: collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1
// CHECK-NEXT: return
func.func @pick(%x: tensor<8x16xf32>, %y: tensor<8x1xi32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<8xi32>
  %eight = stablehlo.constant dense<8> : tensor<8xi32>
  %i = stablehlo.iota dim = 0 : tensor<8xi32>
  %negative = stablehlo.compare LT, %i, %zero, SIGNED : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
  %wrapped = stablehlo.add %i, %eight : tensor<8xi32>
  %row = stablehlo.select %negative, %wrapped, %i : tensor<8xi1>, tensor<8xi32>
  %rows = stablehlo.broadcast_in_dim %row, dims = [0] : (tensor<8xi32>) -> tensor<8x1xi32>
  %both = stablehlo.concatenate %rows, %y, dim = 1 : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x2xi32>
  %0 = "stablehlo.gather"(%x, %both) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>,
      indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<8x16xf32>, tensor<8x2xi32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Two of three indices count, in another order than the operand's dimensions.
// CHECK-LABEL: @two
// CHECK: "stablehlo.gather"(%arg0, %arg1)
// CHECK-SAME: collapsed_slice_dims = [1], operand_batching_dims = [0, 2], start_indices_batching_dims = [1, 0], start_index_map = [1], index_vector_dim = 2
func.func @two(%x: tensor<4x6x10xf32>, %y: tensor<10x4x1xi32>) -> tensor<10x4xf32> {
  %a = stablehlo.iota dim = 1 : tensor<10x4x1xi32>
  %c = stablehlo.iota dim = 0 : tensor<10x4x1xi32>
  %all = stablehlo.concatenate %c, %y, %a, dim = 2 : (tensor<10x4x1xi32>, tensor<10x4x1xi32>, tensor<10x4x1xi32>) -> tensor<10x4x3xi32>
  %0 = "stablehlo.gather"(%x, %all) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1, 2], start_index_map = [2, 1, 0], index_vector_dim = 2>,
      indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<4x6x10xf32>, tensor<10x4x3xi32>) -> tensor<10x4xf32>
  return %0 : tensor<10x4xf32>
}

// -----

// x.at[arange(8)[:, None], y].add(u)
// CHECK-LABEL: @add
// CHECK: "stablehlo.scatter"(%arg0, %arg1, %arg2)
// CHECK-SAME: inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2
func.func @add(%x: tensor<8x16xf32>, %y: tensor<8x3x1xi32>, %u: tensor<8x3xf32>) -> tensor<8x16xf32> {
  %i = stablehlo.iota dim = 0 : tensor<8xi32>
  %rows = stablehlo.broadcast_in_dim %i, dims = [0] : (tensor<8xi32>) -> tensor<8x3x1xi32>
  %both = stablehlo.concatenate %rows, %y, dim = 2 : (tensor<8x3x1xi32>, tensor<8x3x1xi32>) -> tensor<8x3x2xi32>
  %0 = "stablehlo.scatter"(%x, %both, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 2>,
      indices_are_sorted = false, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %sum = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<8x16xf32>, tensor<8x3x2xi32>, tensor<8x3xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

// Fewer rows than the operand has stay indexed, and so do rows whose numbers do
// not fit into their type.
// CHECK-LABEL: @some
// CHECK-NOT: batching
func.func @some(%x: tensor<8x16xf32>, %y: tensor<4x1xi32>, %z: tensor<200x16xf32>, %w: tensor<200x1xi8>) -> (tensor<4xf32>, tensor<200xf32>) {
  %rows = stablehlo.iota dim = 0 : tensor<4x1xi32>
  %both = stablehlo.concatenate %rows, %y, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %0 = "stablehlo.gather"(%x, %both) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>,
      indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<8x16xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  %narrow = stablehlo.iota dim = 0 : tensor<200x1xi8>
  %pairs = stablehlo.concatenate %narrow, %w, dim = 1 : (tensor<200x1xi8>, tensor<200x1xi8>) -> tensor<200x2xi8>
  %1 = "stablehlo.gather"(%z, %pairs) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>,
      indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<200x16xf32>, tensor<200x2xi8>) -> tensor<200xf32>
  return %0, %1 : tensor<4xf32>, tensor<200xf32>
}
