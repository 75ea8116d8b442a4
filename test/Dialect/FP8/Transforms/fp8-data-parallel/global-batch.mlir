// RUN: fp8-opt %s --fp8-data-parallel=global-batch=4 --split-input-file --verify-roundtrip | FileCheck %s
// RUN: fp8-opt %s --fp8-data-parallel=global-batch=8 --split-input-file | FileCheck %s --check-prefix=SINGLE

// The batch of 8 rows is that of all ranks. A batch normalization reads sums
// over the rows of all ranks, which are completed before. The divisors stay 8:
// nothing is averaged over the ranks.

// CHECK-LABEL: func.func public @normalize
// CHECK-SAME: %[[W:[a-z0-9]*]]: tensor<8xf32>
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<2x8xf32> {fp8.path = "x", fp8.role = "batch"
// CHECK-SAME: stablehlo.part = {offsets = dense<{{\[\[}}0, 0], [2, 0], [4, 0], [6, 0]]> : tensor<4x2xi64>, whole = array<i64: 8, 8>}
// CHECK-DAG: %[[EIGHTS:.*]] = stablehlo.constant dense<8.0{{.*}}> : tensor<8xf32>
// CHECK: %[[SUM:.*]] = stablehlo.reduce(%[[X]]
// CHECK: %[[PART:.*]] = stablehlo.divide %[[SUM]], %[[EIGHTS]]
// CHECK: %[[MEAN:.*]] = fp8.all_reduce sum %[[PART]]
// CHECK: %[[MEANS:.*]] = stablehlo.broadcast_in_dim %[[MEAN]], dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>
// CHECK: %[[CENTERED:.*]] = stablehlo.subtract %[[X]], %[[MEANS]]
// CHECK: fp8.all_reduce sum {{.*}} label = "[1]"
// CHECK: fp8.all_reduce sum {{.*}} label = "gradient params['w']"
// CHECK-NOT: fp8.all_reduce

// A rank may have a single row.
// SINGLE-LABEL: func.func public @normalize
// SINGLE-SAME: tensor<1x8xf32> {fp8.path = "x"
func.func public @normalize(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"},
    %x: tensor<8x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]['w']", fp8.state = "params['w']"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %eight = stablehlo.constant dense<8.0> : tensor<f32>
  %eights = stablehlo.constant dense<8.0> : tensor<8xf32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %mean = stablehlo.divide %s, %eights : tensor<8xf32>
  %means = stablehlo.broadcast_in_dim %mean, dims = [1] : (tensor<8xf32>) -> tensor<8x8xf32>
  %centered = stablehlo.subtract %x, %means : tensor<8x8xf32>
  %y = stablehlo.dot_general %centered, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %t = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %t, %eight : tensor<f32>
  %d = stablehlo.reduce(%centered init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %g = stablehlo.divide %d, %eights : tensor<8xf32>
  %square = stablehlo.multiply %g, %g : tensor<8xf32>
  %new = stablehlo.subtract %w, %square : tensor<8xf32>
  return %new, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// Micro-batches: a rank has a part of each, and they are slices of its own rows,
// at a part of where those of all ranks begin. What all rows read alike is made for the rows of a
// rank, also where a loop begins.

// CHECK-LABEL: func.func public @micro_batches
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<4x8xf32> {fp8.path = "x", fp8.role = "batch"
// CHECK-SAME: stablehlo.part = {blocks = 2 : i64, offsets = dense<{{\[\[}}0, 0], [2, 0], [4, 0], [6, 0]]> : tensor<4x2xi64>, whole = array<i64: 16, 8>}
// CHECK-DAG: %[[ZEROS:.*]] = stablehlo.constant dense<0.0{{.*}}> : tensor<2x8xf32>
// CHECK: stablehlo.while({{.*}} = %[[ZEROS]]
// CHECK: %[[START:.*]] = stablehlo.multiply
// CHECK: %[[FOUR:.*]] = stablehlo.constant dense<4> : tensor<i32>
// CHECK: %[[OWN:.*]] = stablehlo.divide %[[START]], %[[FOUR]]
// CHECK: stablehlo.dynamic_slice %[[X]], %[[OWN]], {{.*}}, sizes = [2, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<2x8xf32>
// CHECK: stablehlo.slice %[[X]] [2:4, 0:8]
func.func public @micro_batches(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]['w']", fp8.state = "params['w']"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<8x8xf32>
  %first = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %size = stablehlo.constant dense<8> : tensor<i32>
  %all:2 = stablehlo.while(%i = %first, %sum = %zeros) : tensor<i32>, tensor<8x8xf32>
    cond {
      %more = stablehlo.compare LT, %i, %two, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %start = stablehlo.multiply %i, %size : tensor<i32>
      %part = stablehlo.dynamic_slice %x, %start, %first, sizes = [8, 8] : (tensor<16x8xf32>, tensor<i32>, tensor<i32>) -> tensor<8x8xf32>
      %next = stablehlo.add %sum, %part : tensor<8x8xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %next : tensor<i32>, tensor<8x8xf32>
    }
  %last = stablehlo.slice %x [8:16, 0:8] : (tensor<16x8xf32>) -> tensor<8x8xf32>
  %both = stablehlo.multiply %all#1, %last : tensor<8x8xf32>
  %g = stablehlo.reduce(%both init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %y = stablehlo.dot_general %both, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %new = stablehlo.subtract %w, %g : tensor<8xf32>
  return %new, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// Scores of rows with rows: each rank has the scores of its rows with the rows
// of all ranks. The places of its own rows follow from its number.

// CHECK-LABEL: func.func public @contrastive
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<4x8xf32> {fp8.path = "x", fp8.role = "batch"
// CHECK-DAG: %[[PARTS:.*]] = fp8.exchange gather %{{.*}} ranks = dense<{{\[\[}}0, 1, 2, 3]]> : tensor<1x4xi64> label = "rows of all ranks" : tensor<1x4x8xf32> -> tensor<4x1x4x8xf32>
// CHECK-DAG: %[[ALL:.*]] = stablehlo.reshape %{{.*}} : (tensor<1x4x4x8xf32>) -> tensor<16x8xf32>
// CHECK: %[[SCORES:.*]] = stablehlo.dot_general %[[X]], %[[ALL]], {{.*}} -> tensor<4x16xf32>
// CHECK-DAG: %[[PLACES:.*]] = stablehlo.iota dim = 0 : tensor<16xf32>
// CHECK-DAG: %[[RANK:.*]] = fp8.row_iota dim = 0 : tensor<1xi32>
// CHECK-DAG: stablehlo.dynamic_slice {{.*}} sizes = [1, 4] : (tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
// CHECK: fp8.all_reduce sum
func.func public @contrastive(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]['w']", fp8.state = "params['w']"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %scores = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1] : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
  %sums = stablehlo.reduce(%scores init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<16x16xf32>, tensor<f32>) -> tensor<16xf32>
  %places = stablehlo.iota dim = 0 : tensor<16xf32>
  %weighed = stablehlo.multiply %sums, %places : tensor<16xf32>
  %loss = stablehlo.reduce(%weighed init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %y = stablehlo.broadcast_in_dim %weighed, dims = [0] : (tensor<16xf32>) -> tensor<16x8xf32>
  %g = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16x8xf32>, tensor<f32>) -> tensor<8xf32>
  %new = stablehlo.subtract %w, %g : tensor<8xf32>
  return %new, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// The rows of a half are compared with each other: ranks exchange their rows of
// this half.

// CHECK-LABEL: func.func public @half
// CHECK-SAME: blocks = 2 : i64
// CHECK: %[[HALF:.*]] = stablehlo.slice %{{.*}} [0:2, 0:8]
// CHECK: %[[SLICED:.*]] = stablehlo.reshape %[[HALF]] : (tensor<2x8xf32>) -> tensor<1x2x8xf32>
// CHECK: fp8.exchange gather %[[SLICED]] {{.*}} tensor<1x2x8xf32> -> tensor<4x1x2x8xf32>
// CHECK: stablehlo.dot_general %[[HALF]], {{.*}} -> tensor<2x8xf32>
func.func public @half(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]['w']", fp8.state = "params['w']"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %half = stablehlo.slice %x [0:8, 0:8] : (tensor<16x8xf32>) -> tensor<8x8xf32>
  %scores = stablehlo.dot_general %half, %half, contracting_dims = [1] x [1] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = stablehlo.reduce(%scores init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32>
  return %w, %s : tensor<8xf32>, tensor<f32>
}

// -----

// Eight groups of two rows, each of which has its own mean: a rank has whole
// groups, as they lie in the batch. Flags that divide among no ranks are whole.

// CHECK-LABEL: func.func public @groups
// CHECK-SAME: tensor<4x8xf32> {fp8.path = "x", fp8.role = "batch", stablehlo.part = {offsets
// CHECK-SAME: %[[FLAGS:[a-z0-9]*]]: tensor<3xf32> {fp8.path = "flags", fp8.role = "batch"}
// CHECK: stablehlo.reshape %{{.*}} : (tensor<4xf32>) -> tensor<2x2xf32>
// CHECK: stablehlo.slice %[[FLAGS]] [0:1]
// CHECK-NOT: fp8.exchange
func.func public @groups(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"},
    %flags: tensor<3xf32> {fp8.path = "flags", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]['w']", fp8.state = "params['w']"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %grouped = stablehlo.reshape %y : (tensor<16xf32>) -> tensor<8x2xf32>
  %sums = stablehlo.reduce(%grouped init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x2xf32>, tensor<f32>) -> tensor<8xf32>
  %spread = stablehlo.broadcast_in_dim %sums, dims = [0] : (tensor<8xf32>) -> tensor<8x2xf32>
  %rows = stablehlo.reshape %spread : (tensor<8x2xf32>) -> tensor<16xf32>
  %relative = stablehlo.divide %y, %rows : tensor<16xf32>
  %flag = stablehlo.slice %flags [0:1] : (tensor<3xf32>) -> tensor<1xf32>
  %scale = stablehlo.reshape %flag : (tensor<1xf32>) -> tensor<f32>
  %sum = stablehlo.reduce(%relative init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.multiply %sum, %scale : tensor<f32>
  return %w, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// Two updates with 16 rows each, which are two micro-batches: the second
// dimension of the stack consists of these.

// CHECK-LABEL: func.func public @stack
// CHECK-SAME: tensor<2x4x8xf32> {fp8.path = "x", fp8.role = "batch", stablehlo.part = {blocks = 2 : i64, offsets = dense<{{\[\[}}0, 0, 0], [0, 2, 0], [0, 4, 0], [0, 6, 0]]> : tensor<4x3xi64>, whole = array<i64: 2, 16, 8>}}
// CHECK: stablehlo.reshape %{{.*}} : (tensor<1x4x8xf32>) -> tensor<2x2x8xf32>
func.func public @stack(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"},
    %x: tensor<2x16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]['w']", fp8.state = "params['w']"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.slice %x [1:2, 0:16, 0:8] : (tensor<2x16x8xf32>) -> tensor<1x16x8xf32>
  %parts = stablehlo.reshape %one : (tensor<1x16x8xf32>) -> tensor<2x8x8xf32>
  %first = stablehlo.slice %parts [0:1, 0:8, 0:8] : (tensor<2x8x8xf32>) -> tensor<1x8x8xf32>
  %s = stablehlo.reduce(%first init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x8x8xf32>, tensor<f32>) -> tensor<f32>
  return %w, %s : tensor<8xf32>, tensor<f32>
}
