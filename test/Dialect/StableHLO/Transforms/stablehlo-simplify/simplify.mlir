// RUN: fp8-opt %s --stablehlo-simplify --split-input-file | FileCheck %s

// CHECK-LABEL: @splats
// CHECK: %[[C:.*]] = stablehlo.constant dense<-0.166666672> : tensor<f32>
// CHECK: return %[[C]]
func.func @splats() -> tensor<f32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %minus = stablehlo.negate %one : tensor<f32>
  %six = stablehlo.constant dense<6.0> : tensor<f32>
  %0 = stablehlo.divide %minus, %six : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// The square of a complex number's imaginary part, as optax writes it.
// CHECK-LABEL: @square
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
// CHECK: %[[Y:.*]] = chlo.square %[[X]]
// CHECK: return %[[Y]]
func.func @square(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = chlo.square %x : tensor<4xf32> -> tensor<4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %2 = chlo.square %1 : tensor<4xf32> -> tensor<4xf32>
  %3 = stablehlo.add %0, %2 : tensor<4xf32>
  return %3 : tensor<4xf32>
}

// -----

// einsum("bhqk,h->hbqk"), and a result in another type.
// CHECK-LABEL: @mask_of_heads
// CHECK-SAME: (%[[X:.*]]: tensor<2x4x8x6xbf16>, %[[M:.*]]: tensor<4xbf16>)
// CHECK-DAG: %[[WIDE:.*]] = stablehlo.convert %[[X]] : (tensor<2x4x8x6xbf16>) -> tensor<2x4x8x6xf32>
// CHECK-DAG: %[[HEADS:.*]] = stablehlo.convert %[[M]] : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK-DAG: %[[A:.*]] = stablehlo.transpose %[[WIDE]], dims = [1, 0, 2, 3]
// CHECK-DAG: %[[B:.*]] = stablehlo.broadcast_in_dim %[[HEADS]], dims = [0]
// CHECK: %[[RESULT:.*]] = stablehlo.multiply %[[A]], %[[B]]
// CHECK: return %[[RESULT]]
func.func @mask_of_heads(%x: tensor<2x4x8x6xbf16>, %m: tensor<4xbf16>) -> tensor<4x2x8x6xf32> {
  %0 = stablehlo.dot_general %x, %m, batching_dims = [1] x [0], contracting_dims = [] x [] : (tensor<2x4x8x6xbf16>, tensor<4xbf16>) -> tensor<4x2x8x6xf32>
  return %0 : tensor<4x2x8x6xf32>
}

// -----

// Positions of NumPy: 10 + 2 * row - column.
// CHECK-LABEL: @positions
// CHECK-DAG: %[[ROW:.*]] = stablehlo.iota dim = 0 : tensor<8x8xi32>
// CHECK-DAG: %[[COLUMN:.*]] = stablehlo.iota dim = 1 : tensor<8x8xi32>
// CHECK-DAG: %[[TWO:.*]] = stablehlo.constant dense<2> : tensor<8x8xi32>
// CHECK-DAG: %[[MINUS:.*]] = stablehlo.constant dense<-1> : tensor<8x8xi32>
// CHECK-DAG: %[[TEN:.*]] = stablehlo.constant dense<10> : tensor<8x8xi32>
// CHECK-DAG: %[[A:.*]] = stablehlo.multiply %[[ROW]], %[[TWO]]
// CHECK-DAG: %[[B:.*]] = stablehlo.multiply %[[COLUMN]], %[[MINUS]]
// CHECK: %[[SUM:.*]] = stablehlo.add %[[A]], %[[B]]
// CHECK: %[[RESULT:.*]] = stablehlo.add %[[SUM]], %[[TEN]]
// CHECK: return %[[RESULT]]
func.func @positions() -> tensor<8x8xi32> {
  %0 = stablehlo.constant dense<[[10, 9, 8, 7, 6, 5, 4, 3], [12, 11, 10, 9, 8, 7, 6, 5], [14, 13, 12, 11, 10, 9, 8, 7], [16, 15, 14, 13, 12, 11, 10, 9], [18, 17, 16, 15, 14, 13, 12, 11], [20, 19, 18, 17, 16, 15, 14, 13], [22, 21, 20, 19, 18, 17, 16, 15], [24, 23, 22, 21, 20, 19, 18, 17]]> : tensor<8x8xi32>
  return %0 : tensor<8x8xi32>
}

// -----

// One element is another.
// CHECK-LABEL: @no_positions
// CHECK-NOT: iota
func.func @no_positions() -> tensor<8x8xi32> {
  %0 = stablehlo.constant dense<[[10, 9, 8, 7, 6, 5, 4, 3], [12, 11, 10, 9, 8, 7, 6, 5], [14, 13, 12, 11, 10, 9, 8, 7], [16, 15, 14, 13, 12, 11, 10, 9], [18, 17, 16, 15, 14, 13, 12, 11], [20, 19, 18, 17, 16, 15, 14, 13], [22, 21, 20, 19, 18, 17, 16, 15], [24, 23, 22, 22, 20, 19, 18, 17]]> : tensor<8x8xi32>
  return %0 : tensor<8x8xi32>
}

// -----

// A window of three columns before the row's own.
// CHECK-LABEL: @window
// CHECK-DAG: %[[ROW:.*]] = stablehlo.iota dim = 1 : tensor<1x8x9xi32>
// CHECK-DAG: %[[COLUMN:.*]] = stablehlo.iota dim = 2 : tensor<1x8x9xi32>
// CHECK: %[[FIRST:.*]] = stablehlo.add %[[ROW]], %{{.*}}
// CHECK: %[[LATE:.*]] = stablehlo.compare GE, %[[COLUMN]], %[[FIRST]]
// CHECK: %[[EARLY:.*]] = stablehlo.compare LE, %[[COLUMN]], %[[ROW]]
// CHECK: %[[BOTH:.*]] = stablehlo.and %[[LATE]], %[[EARLY]]
// CHECK: return %[[BOTH]]
func.func @window() -> tensor<1x8x9xi1> {
  %0 = stablehlo.constant dense<[[[true, false, false, false, false, false, false, false, false], [true, true, false, false, false, false, false, false, false], [true, true, true, false, false, false, false, false, false], [true, true, true, true, false, false, false, false, false], [false, true, true, true, true, false, false, false, false], [false, false, true, true, true, true, false, false, false], [false, false, false, true, true, true, true, false, false], [false, false, false, false, true, true, true, true, false]]]> : tensor<1x8x9xi1>
  return %0 : tensor<1x8x9xi1>
}

// -----

// A causal mask that is added.
// CHECK-LABEL: @added
// CHECK-DAG: %[[IN:.*]] = stablehlo.constant dense<0xFF800000> : tensor<8x8xf32>
// CHECK-DAG: %[[OUT:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<8x8xf32>
// CHECK: %[[MASK:.*]] = stablehlo.compare GE
// CHECK: %[[RESULT:.*]] = stablehlo.select %[[MASK]], %[[IN]], %[[OUT]]
// CHECK: return %[[RESULT]]
func.func @added() -> tensor<8x8xf32> {
  %0 = stablehlo.constant dense<[[0.0, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000], [0.0, 0.0, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000], [0.0, 0.0, 0.0, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000], [0.0, 0.0, 0.0, 0.0, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000], [0.0, 0.0, 0.0, 0.0, 0.0, 0xFF800000, 0xFF800000, 0xFF800000], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0xFF800000, 0xFF800000], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0xFF800000], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// Two bands are no band.
// CHECK-LABEL: @stripes
// CHECK-NOT: iota
func.func @stripes() -> tensor<8x8xi1> {
  %0 = stablehlo.constant dense<[[true, false, false, true, false, false, true, false], [false, true, false, false, true, false, false, true], [false, false, true, false, false, true, false, false], [true, false, false, true, false, false, true, false], [false, true, false, false, true, false, false, true], [false, false, true, false, false, true, false, false], [true, false, false, true, false, false, true, false], [false, true, false, false, true, false, false, true]]> : tensor<8x8xi1>
  return %0 : tensor<8x8xi1>
}

// -----

// x + 0 turns a negative zero into a positive one: it stays.
// CHECK-LABEL: @add_zero
// CHECK: stablehlo.add
func.func @add_zero(%x: tensor<f32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.add %x, %zero : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// CHECK-LABEL: @identities
// CHECK-SAME: (%[[X:.*]]: tensor<f32>, %[[I:.*]]: tensor<i32>)
// CHECK-NOT: stablehlo.{{convert|multiply|divide|subtract|add}}
// CHECK: return %[[X]], %[[I]]
func.func @identities(%x: tensor<f32>, %i: tensor<i32>) -> (tensor<f32>, tensor<i32>) {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.convert %x : tensor<f32>
  %1 = stablehlo.multiply %one, %0 : tensor<f32>
  %2 = stablehlo.divide %1, %one : tensor<f32>
  %3 = stablehlo.subtract %2, %zero : tensor<f32>
  %nothing = stablehlo.constant dense<0> : tensor<i32>
  %4 = stablehlo.add %nothing, %i : tensor<i32>
  return %3, %4 : tensor<f32>, tensor<i32>
}

// -----

// The gradient of a bias.
// CHECK-LABEL: @bias
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>)
// CHECK: %[[R:.*]] = stablehlo.reduce
// CHECK-NOT: reshape
// CHECK: return %[[R]]
func.func @bias(%x: tensor<2x3x4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.reshape %0 : (tensor<4xf32>) -> tensor<1x1x4xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x4xf32>, tensor<f32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// Whether any of one flag is set is the flag: jnp.any of a scalar.
// CHECK-LABEL: func.func @any_of_one
// CHECK-SAME: (%[[FLAG:.*]]: tensor<i1>)
// CHECK: return %[[FLAG]]
func.func @any_of_one(%flag: tensor<i1>) -> tensor<i1> {
  %false = stablehlo.constant dense<false> : tensor<i1>
  %0 = stablehlo.reduce(%flag init: %false) applies stablehlo.or across dimensions = [] : (tensor<i1>, tensor<i1>) -> tensor<i1>
  return %0 : tensor<i1>
}

// -----

// CHECK-LABEL: @shapes
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<2x3x4xf32>)
// CHECK: %[[A:.*]] = stablehlo.broadcast_in_dim %[[X]], dims = [2] : (tensor<4xf32>) -> tensor<2x3x4xf32>
// CHECK: %[[B:.*]] = stablehlo.transpose %[[Y]], dims = [2, 1, 0]
// CHECK: return %[[A]], %[[B]]
func.func @shapes(%x: tensor<4xf32>, %y: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<4x3x2xf32>) {
  %0 = stablehlo.broadcast_in_dim %x, dims = [2] : (tensor<4xf32>) -> tensor<1x1x4xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1, 2] : (tensor<1x1x4xf32>) -> tensor<2x3x4xf32>
  %2 = stablehlo.transpose %y, dims = [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %3 = stablehlo.transpose %2, dims = [1, 0, 2] : (tensor<3x4x2xf32>) -> tensor<4x3x2xf32>
  return %1, %3 : tensor<2x3x4xf32>, tensor<4x3x2xf32>
}

// -----

// CHECK-LABEL: @conversions
// CHECK-DAG: dense<3.000000e+00> : tensor<f32>
// CHECK-DAG: dense<4.2949673E+9> : tensor<f32>
// CHECK-DAG: dense<1.000980e-01> : tensor<bf16>
// CHECK-NOT: stablehlo.convert
// CHECK: return
func.func @conversions() -> (tensor<f32>, tensor<f32>, tensor<bf16>) {
  %i = stablehlo.constant dense<3> : tensor<i32>
  %0 = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
  %u = stablehlo.constant dense<4294967295> : tensor<ui32>
  %1 = stablehlo.convert %u : (tensor<ui32>) -> tensor<f32>
  %f = stablehlo.constant dense<0.1> : tensor<f32>
  %2 = stablehlo.convert %f : (tensor<f32>) -> tensor<bf16>
  return %0, %1, %2 : tensor<f32>, tensor<f32>, tensor<bf16>
}

// -----

// What is combined of nothing is what the combination begins with.
// CHECK-LABEL: @nothing
// CHECK-SAME: %[[M:.*]]: tensor<f32>, %[[X:.*]]: tensor<0x5xf32>, %[[Y:.*]]: tensor<5x0xf32>
// CHECK-DAG: %[[D:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<5x5xf32>
// CHECK-DAG: %[[R:.*]] = stablehlo.broadcast_in_dim %[[M]], dims = [] : (tensor<f32>) -> tensor<5xf32>
// CHECK-DAG: %[[P:.*]] = stablehlo.broadcast_in_dim %[[M]], dims = [] : (tensor<f32>) -> tensor<2x5xf32>
// CHECK: return %[[R]], %[[P]], %[[D]]
func.func @nothing(%m: tensor<f32>, %x: tensor<0x5xf32>, %y: tensor<5x0xf32>) -> (tensor<5xf32>, tensor<2x5xf32>, tensor<5x5xf32>) {
  %0 = stablehlo.reduce(%x init: %m) applies stablehlo.maximum across dimensions = [0] : (tensor<0x5xf32>, tensor<f32>) -> tensor<5xf32>
  %1 = stablehlo.pad %x, %m, low = [2, 0], high = [0, 0], interior = [0, 0] : (tensor<0x5xf32>, tensor<f32>) -> tensor<2x5xf32>
  %2 = stablehlo.dot_general %y, %x, contracting_dims = [1] x [0] : (tensor<5x0xf32>, tensor<0x5xf32>) -> tensor<5x5xf32>
  return %0, %1, %2 : tensor<5xf32>, tensor<2x5xf32>, tensor<5x5xf32>
}

// -----

// A gather whose window is all of its operand, and the scatter that adds to all
// of a tensor. Indices of a gather are clamped; those of a scatter must be zero.
// CHECK-LABEL: @whole_windows
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x3x1xf32>, %[[I:[^:]*]]: tensor<1xi32>, %[[U:[^:]*]]: tensor<2x3xf32>
// CHECK-DAG: %[[G:.*]] = stablehlo.reshape %[[X]] : (tensor<2x3x1xf32>) -> tensor<2x3xf32>
// CHECK: %[[S:.*]] = stablehlo.reshape %[[U]] : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
// CHECK: %[[T:.*]] = stablehlo.reshape %[[U]] : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
// CHECK: %[[A:.*]] = stablehlo.add %[[X]], %[[T]]
// CHECK: %[[N:.*]] = "stablehlo.scatter"(%[[X]], %[[I]], %[[U]])
// CHECK: return %[[G]], %[[S]], %[[A]], %[[N]]
func.func @whole_windows(%x: tensor<2x3x1xf32>, %i: tensor<1xi32>, %u: tensor<2x3xf32>)
    -> (tensor<2x3xf32>, tensor<2x3x1xf32>, tensor<2x3x1xf32>, tensor<2x3x1xf32>) {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], collapsed_slice_dims = [2], start_index_map = [2]>,
      indices_are_sorted = false, slice_sizes = array<i64: 2, 3, 1>}> : (tensor<2x3x1xf32>, tensor<1xi32>) -> tensor<2x3xf32>
  %zeros = stablehlo.constant dense<0.0> : tensor<2x3x1xf32>
  %first = stablehlo.constant dense<0> : tensor<1xi32>
  %1 = "stablehlo.scatter"(%zeros, %first, %u) <{indices_are_sorted = false, unique_indices = false,
      scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], inserted_window_dims = [2], scatter_dims_to_operand_dims = [2]>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %sum = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<2x3x1xf32>, tensor<1xi32>, tensor<2x3xf32>) -> tensor<2x3x1xf32>
  %2 = "stablehlo.scatter"(%x, %first, %u) <{indices_are_sorted = false, unique_indices = false,
      scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], inserted_window_dims = [2], scatter_dims_to_operand_dims = [2]>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %sum = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<2x3x1xf32>, tensor<1xi32>, tensor<2x3xf32>) -> tensor<2x3x1xf32>
  %3 = "stablehlo.scatter"(%x, %i, %u) <{indices_are_sorted = false, unique_indices = false,
      scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], inserted_window_dims = [2], scatter_dims_to_operand_dims = [2]>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %sum = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<2x3x1xf32>, tensor<1xi32>, tensor<2x3xf32>) -> tensor<2x3x1xf32>
  return %0, %1, %2, %3 : tensor<2x3xf32>, tensor<2x3x1xf32>, tensor<2x3x1xf32>, tensor<2x3x1xf32>
}

// -----

// A slice of one part of a concatenation, or of a slice of it, reads the part;
// empty parts are left out, and an update of all elements is its operand.
// CHECK-LABEL: @parts
// CHECK-SAME: (%[[X:.*]]: tensor<2x3xf32>, %[[Y:.*]]: tensor<3x3xf32>, %[[I:.*]]: tensor<i32>)
// CHECK-NEXT: %[[ALL:.*]] = stablehlo.concatenate %[[X]], %[[Y]], dim = 0
// CHECK-NEXT: %[[BOTH:.*]] = stablehlo.slice %[[ALL]] [1:4, 0:3]
// CHECK-NEXT: %[[ONE:.*]] = stablehlo.slice %[[Y]] [1:2, 0:2]
// CHECK-NEXT: return %[[Y]], %[[ONE]], %[[BOTH]], %[[X]]
func.func @parts(%x: tensor<2x3xf32>, %y: tensor<3x3xf32>, %i: tensor<i32>)
    -> (tensor<3x3xf32>, tensor<1x2xf32>, tensor<3x3xf32>, tensor<2x3xf32>) {
  %none = stablehlo.constant dense<0.0> : tensor<0x3xf32>
  %all = stablehlo.concatenate %none, %x, %y, dim = 0 : (tensor<0x3xf32>, tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<5x3xf32>
  %0 = stablehlo.slice %all [2:5, 0:3] : (tensor<5x3xf32>) -> tensor<3x3xf32>
  %both = stablehlo.slice %all [1:4, 0:3] : (tensor<5x3xf32>) -> tensor<3x3xf32>
  %1 = stablehlo.slice %both [2:3, 0:2] : (tensor<3x3xf32>) -> tensor<1x2xf32>
  %2 = stablehlo.dynamic_update_slice %x, %x, %i, %i : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
  return %0, %1, %both, %2 : tensor<3x3xf32>, tensor<1x2xf32>, tensor<3x3xf32>, tensor<2x3xf32>
}

// -----

// A loop of one iteration stores a stack of one stack.
// CHECK-LABEL: @stack_of_one
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>, %[[Y:.*]]: tensor<4x8xf32>)
// CHECK-NEXT: return %[[Y]]
func.func @stack_of_one(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [1, 2] : (tensor<4x8xf32>) -> tensor<1x4x8xf32>
  %1 = stablehlo.broadcast_in_dim %y, dims = [1, 2] : (tensor<4x8xf32>) -> tensor<1x4x8xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> tensor<2x4x8xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [1, 2, 3] : (tensor<2x4x8xf32>) -> tensor<1x2x4x8xf32>
  %4 = stablehlo.reshape %3 : (tensor<1x2x4x8xf32>) -> tensor<2x4x8xf32>
  %5 = stablehlo.slice %4 [1:2, 0:4, 0:8] : (tensor<2x4x8xf32>) -> tensor<1x4x8xf32>
  %6 = stablehlo.reshape %5 : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
  return %6 : tensor<4x8xf32>
}
