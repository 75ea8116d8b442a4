// RUN: fp8-opt %s --fp8-data-parallel --split-input-file | FileCheck %s

// A gradient is a sum over rows (here a dot that contracts them), and whole
// before it is squared; the loss is proved to be a mean.
// CHECK: module attributes {fp8.data_parallel}
// CHECK-LABEL: func.func public @main
// CHECK: %[[S:.*]] = stablehlo.reduce(
// CHECK: %[[M:.*]] = stablehlo.divide %[[S]]
// CHECK-NEXT: %[[LOSS:.*]] = fp8.all_reduce mean %[[M]] label = "[1]" {{.*}}: tensor<f32>
// CHECK: %[[D:.*]] = stablehlo.dot_general %{{.*}}, %{{.*}}, contracting_dims = [0] x [0]
// CHECK: %[[T:.*]] = stablehlo.transpose %[[D]]
// CHECK: %[[G:.*]] = stablehlo.multiply %[[T]]
// CHECK-NEXT: %[[W:.*]] = fp8.all_reduce mean %[[G]] label = "gradient w" {{.*}}: tensor<4x8xf32>
// CHECK: stablehlo.multiply %[[W]], %[[W]]
// CHECK-NOT: all_reduce
// CHECK: return %{{.*}}, %[[LOSS]]
func.func public @main(
    %w: tensor<4x8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<4x8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<64.0> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<16x8xf32>, tensor<4x8xf32>) -> tensor<16x4xf32>
  %yy = stablehlo.multiply %y, %y : tensor<16x4xf32>
  %s = stablehlo.reduce(%yy init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x4xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  %c = stablehlo.constant dense<0.03125> : tensor<4x8xf32>
  %d = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %t = stablehlo.transpose %d, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %g = stablehlo.multiply %t, %c : tensor<4x8xf32>
  %gg = stablehlo.multiply %g, %g : tensor<4x8xf32>
  %norm2 = stablehlo.reduce(%gg init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
  %norm = stablehlo.sqrt %norm2 : tensor<f32>
  %norms = stablehlo.broadcast_in_dim %norm, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
  %clipped = stablehlo.divide %g, %norms : tensor<4x8xf32>
  %new = stablehlo.subtract %w, %clipped : tensor<4x8xf32>
  return %new, %loss : tensor<4x8xf32>, tensor<f32>
}

// -----

// Divided by a count that follows from the batch: the count is summed over the
// ranks, since it divides, and then gradients are sums.
// CHECK-LABEL: func.func public @main
// CHECK: %[[C:.*]] = stablehlo.reduce(%arg2
// CHECK-NEXT: %[[COUNT:.*]] = fp8.all_reduce sum %[[C]]
// CHECK: stablehlo.maximum %[[COUNT]]
// CHECK: %[[L:.*]] = stablehlo.divide
// CHECK-NEXT: fp8.all_reduce sum %[[L]] label = "[1]"
// CHECK: %[[G:.*]] = stablehlo.dot_general
// CHECK-NEXT: fp8.all_reduce sum %[[G]] label = "gradient w"
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"},
    %mask: tensor<16xf32> {fp8.path = "mask", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %m = stablehlo.multiply %y, %mask : tensor<16xf32>
  %s = stablehlo.reduce(%m init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %c = stablehlo.reduce(%mask init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %count = stablehlo.maximum %c, %one : tensor<f32>
  %loss = stablehlo.divide %s, %count : tensor<f32>
  %counts = stablehlo.broadcast_in_dim %count, dims = [] : (tensor<f32>) -> tensor<16xf32>
  %dy0 = stablehlo.multiply %y, %mask : tensor<16xf32>
  %dy = stablehlo.divide %dy0, %counts : tensor<16xf32>
  %g = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16xf32>) -> tensor<8xf32>
  %new = stablehlo.subtract %w, %g : tensor<8xf32>
  return %new, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// Micro-batches: rows are cut in two, sums of all turns are made whole behind the loop.
// CHECK-LABEL: func.func public @main
// CHECK: %[[LOOP:.*]]:3 = stablehlo.while
// CHECK-NOT: all_reduce
// CHECK: stablehlo.return
// CHECK: stablehlo.return
// CHECK: fp8.all_reduce mean %[[LOOP]]#1 label = "gradient w" {{.*}}: tensor<8xf32>
// CHECK: %[[L:.*]] = stablehlo.multiply %[[LOOP]]#2
// CHECK-NEXT: fp8.all_reduce mean %[[L]] label = "[1]" {{.*}}: tensor<f32>
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<8xf32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %i1 = stablehlo.constant dense<1> : tensor<i32>
  %i4 = stablehlo.constant dense<4> : tensor<i32>
  %four = stablehlo.constant dense<4.0> : tensor<f32>
  %quarter = stablehlo.constant dense<0.25> : tensor<f32>
  %xs = stablehlo.reshape %x : (tensor<16x8xf32>) -> tensor<4x4x8xf32>
  %0:3 = stablehlo.while(%i = %i0, %sum = %zeros, %total = %zero) : tensor<i32>, tensor<8xf32>, tensor<f32>
  cond {
    %1 = stablehlo.compare LT, %i, %i4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %xs, %i, %i0, %i0, sizes = [1, 4, 8] : (tensor<4x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x8xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
    %y = stablehlo.dot_general %2, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4xf32>
    %yy = stablehlo.multiply %y, %y : tensor<4xf32>
    %s = stablehlo.reduce(%yy init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %l = stablehlo.divide %s, %four : tensor<f32>
    %seed = stablehlo.constant dense<0.5> : tensor<4xf32>
    %dy = stablehlo.multiply %y, %seed : tensor<4xf32>
    %g = stablehlo.dot_general %2, %dy, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4xf32>) -> tensor<8xf32>
    %3 = stablehlo.add %sum, %g : tensor<8xf32>
    %4 = stablehlo.add %total, %l : tensor<f32>
    %5 = stablehlo.add %i, %i1 : tensor<i32>
    stablehlo.return %5, %3, %4 : tensor<i32>, tensor<8xf32>, tensor<f32>
  }
  %loss = stablehlo.multiply %0#2, %quarter : tensor<f32>
  %new = stablehlo.subtract %w, %0#1 : tensor<8xf32>
  return %new, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// What is accumulated over steps is state: whole before it is added. A table's
// gradient is a sum over rows that are scattered; a count of right answers is a
// sum, the largest value a maximum.
// CHECK-LABEL: func.func public @main
// CHECK: %[[G:.*]] = "stablehlo.scatter"
// CHECK: fp8.all_reduce mean %[[G]] label = "gradient table"
// CHECK: %[[N:.*]] = stablehlo.reduce(%{{.*}}) applies stablehlo.add across dimensions = [0] : (tensor<16xi32>
// CHECK-NEXT: fp8.all_reduce sum %[[N]]
// CHECK: %[[X:.*]] = stablehlo.reduce(%{{.*}}) applies stablehlo.maximum
// CHECK-NEXT: fp8.all_reduce max %[[X]]
func.func public @main(
    %table: tensor<32x4xf32> {fp8.kind = "parameter", fp8.path = "table", fp8.role = "state"},
    %sums: tensor<32x4xf32> {fp8.kind = "gradient", fp8.parameter = "table", fp8.path = "acc", fp8.role = "state"},
    %tokens: tensor<16x1xi32> {fp8.path = "tokens", fp8.role = "batch"})
    -> (tensor<32x4xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "table"},
        tensor<32x4xf32> {fp8.kind = "state", fp8.path = "[1]", fp8.state = "acc"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[2]"},
        tensor<i32> {fp8.kind = "metric", fp8.path = "[3]"},
        tensor<f32> {fp8.kind = "metric", fp8.path = "[4]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<64.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<32x4xf32>
  %y = "stablehlo.gather"(%table, %tokens) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<32x4xf32>, tensor<16x1xi32>) -> tensor<16x4xf32>
  %yy = stablehlo.multiply %y, %y : tensor<16x4xf32>
  %s = stablehlo.reduce(%yy init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x4xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  %seed = stablehlo.constant dense<0.03125> : tensor<16x4xf32>
  %dy = stablehlo.multiply %y, %seed : tensor<16x4xf32>
  %g = "stablehlo.scatter"(%zeros, %tokens, %dy) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<32x4xf32>, tensor<16x1xi32>, tensor<16x4xf32>) -> tensor<32x4xf32>
  %acc = stablehlo.add %sums, %g : tensor<32x4xf32>
  %flat = stablehlo.reshape %tokens : (tensor<16x1xi32>) -> tensor<16xi32>
  %i0s = stablehlo.constant dense<0> : tensor<16xi32>
  %right = stablehlo.compare EQ, %flat, %i0s, SIGNED : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
  %counted = stablehlo.convert %right : (tensor<16xi1>) -> tensor<16xi32>
  %count = stablehlo.reduce(%counted init: %i0) applies stablehlo.add across dimensions = [0] : (tensor<16xi32>, tensor<i32>) -> tensor<i32>
  %max = stablehlo.reduce(%yy init: %low) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<16x4xf32>, tensor<f32>) -> tensor<f32>
  return %table, %acc, %loss, %count, %max : tensor<32x4xf32>, tensor<32x4xf32>, tensor<f32>, tensor<i32>, tensor<f32>
}
