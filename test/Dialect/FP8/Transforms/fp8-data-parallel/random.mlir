// RUN: fp8-opt %s --fp8-data-parallel --split-input-file | FileCheck %s

// A hash of places and of a key that is the same on all ranks: each rank hashes
// the places of its own rows. What else counts places stays as it is.
// CHECK-LABEL: func.func public @places
// CHECK: %[[ROWS:.*]] = fp8.row_iota dim = 0 : tensor<4x8xui32>
// CHECK: %[[COLUMNS:.*]] = stablehlo.iota dim = 1 : tensor<4x8xui32>
// CHECK: %[[PLACE:.*]] = stablehlo.multiply %[[ROWS]]
// CHECK: stablehlo.add %[[PLACE]], %[[COLUMNS]]
// CHECK: stablehlo.xor
// The count of what is kept is that of all ranks.
// CHECK: %[[COUNT:.*]] = stablehlo.reduce
// CHECK-NEXT: fp8.all_reduce sum %[[COUNT]] {{.*}}: tensor<f32>
func.func public @places(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %key: tensor<ui32> {fp8.path = "key", fp8.role = "key"},
    %x: tensor<4x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"},
        tensor<4x8xui32> {fp8.kind = "output", fp8.path = "[2]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<4x8xf32>
  %eight = stablehlo.constant dense<8> : tensor<4x8xui32>
  %half = stablehlo.constant dense<2147483648> : tensor<4x8xui32>
  %seven = stablehlo.constant dense<7> : tensor<4x8xui32>
  %rows = stablehlo.iota dim = 0 : tensor<4x8xui32>
  %columns = stablehlo.iota dim = 1 : tensor<4x8xui32>
  %first = stablehlo.multiply %rows, %eight : tensor<4x8xui32>
  %place = stablehlo.add %first, %columns : tensor<4x8xui32>
  %keys = stablehlo.broadcast_in_dim %key, dims = [] : (tensor<ui32>) -> tensor<4x8xui32>
  %a = stablehlo.add %place, %keys : tensor<4x8xui32>
  %b = stablehlo.shift_left %a, %seven : tensor<4x8xui32>
  %bits = stablehlo.xor %a, %b : tensor<4x8xui32>
  %keep = stablehlo.compare LT, %bits, %half, UNSIGNED : (tensor<4x8xui32>, tensor<4x8xui32>) -> tensor<4x8xi1>
  %kept = stablehlo.select %keep, %x, %zeros : tensor<4x8xi1>, tensor<4x8xf32>
  %ones = stablehlo.convert %keep : (tensor<4x8xi1>) -> tensor<4x8xf32>
  %count = stablehlo.reduce(%ones init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
  %y = stablehlo.dot_general %kept, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %count : tensor<f32>
  %sums = stablehlo.reduce(%kept init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  %counts = stablehlo.broadcast_in_dim %count, dims = [] : (tensor<f32>) -> tensor<8xf32>
  %g = stablehlo.divide %sums, %counts : tensor<8xf32>
  %new = stablehlo.subtract %w, %g : tensor<8xf32>
  return %new, %loss, %place : tensor<8xf32>, tensor<f32>, tensor<4x8xui32>
}

// -----

// Behind a dimension of three samples the rows of a rank begin where all that the
// rank before has drawn ends: three times as far.
// CHECK-LABEL: func.func public @behind
// CHECK: %[[ALL:.*]] = fp8.row_iota dim = 0 : tensor<12xui32>
// CHECK: %[[OWN:.*]] = stablehlo.slice %[[ALL]] [0:4] : (tensor<12xui32>) -> tensor<4xui32>
// CHECK: stablehlo.broadcast_in_dim %[[OWN]], dims = [1] : (tensor<4xui32>) -> tensor<3x4xui32>
// CHECK: stablehlo.iota dim = 0 : tensor<3x4xui32>
func.func public @behind(
    %w: tensor<4xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %key: tensor<ui32> {fp8.path = "key", fp8.role = "key"},
    %x: tensor<4xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<4xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<3x4xf32>
  %n = stablehlo.constant dense<12.0> : tensor<f32>
  %four = stablehlo.constant dense<4> : tensor<3x4xui32>
  %half = stablehlo.constant dense<2147483648> : tensor<3x4xui32>
  %seven = stablehlo.constant dense<7> : tensor<3x4xui32>
  %rows = stablehlo.iota dim = 1 : tensor<3x4xui32>
  %samples = stablehlo.iota dim = 0 : tensor<3x4xui32>
  %first = stablehlo.multiply %samples, %four : tensor<3x4xui32>
  %place = stablehlo.add %first, %rows : tensor<3x4xui32>
  %keys = stablehlo.broadcast_in_dim %key, dims = [] : (tensor<ui32>) -> tensor<3x4xui32>
  %a = stablehlo.add %place, %keys : tensor<3x4xui32>
  %b = stablehlo.shift_left %a, %seven : tensor<3x4xui32>
  %bits = stablehlo.xor %a, %b : tensor<3x4xui32>
  %keep = stablehlo.compare LT, %bits, %half, UNSIGNED : (tensor<3x4xui32>, tensor<3x4xui32>) -> tensor<3x4xi1>
  %xs = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xf32>) -> tensor<3x4xf32>
  %kept = stablehlo.select %keep, %xs, %zeros : tensor<3x4xi1>, tensor<3x4xf32>
  %s = stablehlo.reduce(%kept init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  return %w, %loss : tensor<4xf32>, tensor<f32>
}

// -----

// A generator with a counter: 4 x 8 words are 8 blocks of Philox.
// CHECK-LABEL: func.func public @counter
// CHECK: %[[OWN:.*]] = fp8.row_state %[[STATE:arg[0-9]+]] blocks = 8 : tensor<2xui64>
// CHECK: %{{.*}}, %[[BITS:.*]] = stablehlo.rng_bit_generator %[[OWN]]
// CHECK: stablehlo.compare LT, %[[BITS]]
func.func public @counter(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %state: tensor<2xui64> {fp8.path = "rng", fp8.role = "key"},
    %x: tensor<4x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %four = stablehlo.constant dense<4.0> : tensor<f32>
  %fours = stablehlo.constant dense<4.0> : tensor<8xf32>
  %zeros = stablehlo.constant dense<0.0> : tensor<4x8xf32>
  %half = stablehlo.constant dense<2147483648> : tensor<4x8xui32>
  %next, %bits = stablehlo.rng_bit_generator %state, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4x8xui32>)
  %keep = stablehlo.compare LT, %bits, %half, UNSIGNED : (tensor<4x8xui32>, tensor<4x8xui32>) -> tensor<4x8xi1>
  %kept = stablehlo.select %keep, %x, %zeros : tensor<4x8xi1>, tensor<4x8xf32>
  %y = stablehlo.dot_general %kept, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %four : tensor<f32>
  %sums = stablehlo.reduce(%kept init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  %g = stablehlo.divide %sums, %fours : tensor<8xf32>
  %new = stablehlo.subtract %w, %g : tensor<8xf32>
  return %new, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// Through the stack of a loop: what reads it is told of no mistake before the
// draw is each rank's own.
// CHECK-LABEL: func.func public @stack
// CHECK: fp8.row_iota dim = 0 : tensor<4xui32>
// CHECK: %[[S:.*]] = stablehlo.reduce
// CHECK: fp8.all_reduce mean
func.func public @stack(
    %w: tensor<f32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %key: tensor<ui32> {fp8.path = "key", fp8.role = "key"},
    %x: tensor<4xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<f32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %four = stablehlo.constant dense<4.0> : tensor<f32>
  %seven = stablehlo.constant dense<7> : tensor<4xui32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %i1 = stablehlo.constant dense<1> : tensor<i32>
  %i2 = stablehlo.constant dense<2> : tensor<i32>
  %no = stablehlo.constant dense<0> : tensor<2x4xui32>
  %rows = stablehlo.iota dim = 0 : tensor<4xui32>
  %0:3 = stablehlo.while(%i = %i0, %stack = %no, %h = %x) : tensor<i32>, tensor<2x4xui32>, tensor<4xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %i2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %keys = stablehlo.broadcast_in_dim %key, dims = [] : (tensor<ui32>) -> tensor<4xui32>
    %a = stablehlo.add %rows, %keys : tensor<4xui32>
    %b = stablehlo.shift_left %a, %seven : tensor<4xui32>
    %bits = stablehlo.xor %a, %b : tensor<4xui32>
    %f = stablehlo.convert %bits : (tensor<4xui32>) -> tensor<4xf32>
    %1 = stablehlo.multiply %h, %f : tensor<4xf32>
    %2 = stablehlo.reshape %bits : (tensor<4xui32>) -> tensor<1x4xui32>
    %3 = stablehlo.dynamic_update_slice %stack, %2, %i, %i0 : (tensor<2x4xui32>, tensor<1x4xui32>, tensor<i32>, tensor<i32>) -> tensor<2x4xui32>
    %5 = stablehlo.add %i, %i1 : tensor<i32>
    stablehlo.return %5, %3, %1 : tensor<i32>, tensor<2x4xui32>, tensor<4xf32>
  }
  %last = stablehlo.slice %0#1 [1:2, 0:4] : (tensor<2x4xui32>) -> tensor<1x4xui32>
  %bits = stablehlo.reshape %last : (tensor<1x4xui32>) -> tensor<4xui32>
  %f = stablehlo.convert %bits : (tensor<4xui32>) -> tensor<4xf32>
  %y = stablehlo.multiply %0#2, %f : tensor<4xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %four : tensor<f32>
  %new = stablehlo.subtract %w, %loss : tensor<f32>
  return %new, %loss : tensor<f32>, tensor<f32>
}

// -----

// A one-hot row of each example, at the same place: no random number.
// CHECK-LABEL: func.func public @same_label
// CHECK-NOT: fp8.row_iota
// CHECK: fp8.all_reduce mean
func.func public @same_label(
    %w: tensor<f32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<4x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<f32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %four = stablehlo.constant dense<4.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<4x8xf32>
  %first = stablehlo.constant dense<0> : tensor<4x1x1xi32>
  %ones = stablehlo.constant dense<1.0> : tensor<4x1xf32>
  %hot = "stablehlo.scatter"(%zeros, %first, %ones) <{
    scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0],
      scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, indices_are_sorted = false, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<4x1x1xi32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %y = stablehlo.multiply %x, %hot : tensor<4x8xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %four : tensor<f32>
  %new = stablehlo.subtract %w, %loss : tensor<f32>
  return %new, %loss : tensor<f32>, tensor<f32>
}
