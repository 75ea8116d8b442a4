// RUN: fp8-opt %s --fp8-data-parallel --split-input-file | FileCheck %s

// A sum that is also divided by the number of its elements: the mean reads the
// rank's part, and is reduced behind the division. So it is if the loss is that
// mean, and if a count of the batch is divided.
// CHECK-LABEL: func.func public @shared
// CHECK: %[[S:.*]] = stablehlo.reduce(
// CHECK-NEXT: %[[SUM:.*]] = fp8.all_reduce sum %[[S]]
// CHECK: %[[M:.*]] = stablehlo.divide %[[S]], %{{.*}} : tensor<f32>
// CHECK-NEXT: %[[MEAN:.*]] = fp8.all_reduce mean %[[M]] label = "[1]"
// CHECK: stablehlo.sqrt %[[SUM]]
// CHECK: %[[C:.*]] = stablehlo.reduce(%arg2
// CHECK-NEXT: %[[COUNT:.*]] = fp8.all_reduce sum %[[C]]
// CHECK: stablehlo.sqrt %[[COUNT]]
// CHECK: %[[P:.*]] = stablehlo.convert %[[C]]
// CHECK: %[[Q:.*]] = stablehlo.multiply %[[P]]
// CHECK-NEXT: fp8.all_reduce mean %[[Q]] label = "[4]"
func.func public @shared(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"},
    %mask: tensor<16xf32> {fp8.path = "mask", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"},
        tensor<f32> {fp8.kind = "metric", fp8.path = "[2]"},
        tensor<f32> {fp8.kind = "metric", fp8.path = "[3]"},
        tensor<bf16> {fp8.kind = "metric", fp8.path = "[4]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %yy = stablehlo.multiply %y, %y : tensor<16xf32>
  %s = stablehlo.reduce(%yy init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  %norm = stablehlo.sqrt %s : tensor<f32>
  %c = stablehlo.reduce(%mask init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %root = stablehlo.sqrt %c : tensor<f32>
  %cn = stablehlo.convert %c : (tensor<f32>) -> tensor<bf16>
  %part = stablehlo.constant dense<0.0625> : tensor<bf16>
  %share = stablehlo.multiply %cn, %part : tensor<bf16>
  return %w, %loss, %norm, %root, %share : tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<bf16>
}

// -----

// What enters the state is averaged with the loss only if it is a gradient: the
// backward pass begins with the reciprocal of a count. A dot of rows with
// themselves proves a loss, too; and what is divided by a completed sum of
// parameters and rows is a sum.
// CHECK-LABEL: func.func public @state
// CHECK: %[[S:.*]] = stablehlo.dot_general %[[Y:.*]], %[[Y]], contracting_dims = [0] x [0]
// CHECK: %[[L:.*]] = stablehlo.divide %[[S]]
// CHECK: fp8.all_reduce mean %[[L]] label = "[3]"
// CHECK: %[[G:.*]] = stablehlo.dot_general %arg3, %{{.*}}, contracting_dims = [0] x [0]
// CHECK-NEXT: fp8.all_reduce mean %[[G]] label = "gradient w"
// CHECK: %[[N:.*]] = stablehlo.reduce(
// CHECK-NEXT: fp8.all_reduce sum %[[N]] label = "gradient counts"
// CHECK: %[[D:.*]] = stablehlo.dot_general %arg3, %[[Y]], contracting_dims = [0] x [0]
// CHECK-NEXT: fp8.all_reduce sum %[[D]] label = "gradient sums"
// CHECK: %[[T:.*]] = stablehlo.reduce(
// CHECK-NEXT: %[[TOTAL:.*]] = fp8.all_reduce sum %[[T]]
// CHECK: %[[R:.*]] = stablehlo.divide %{{.*}}, %[[TOTAL]]
// CHECK-NEXT: fp8.all_reduce sum %[[R]] label = "[4]"
func.func public @state(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %counts: tensor<f32> {fp8.kind = "other", fp8.path = "counts", fp8.role = "state"},
    %sums: tensor<8xf32> {fp8.kind = "other", fp8.path = "sums", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "state", fp8.path = "[1]", fp8.state = "counts"},
        tensor<8xf32> {fp8.kind = "state", fp8.path = "[2]", fp8.state = "sums"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[3]"},
        tensor<f32> {fp8.kind = "metric", fp8.path = "[4]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<16xf32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %s = stablehlo.dot_general %y, %y, contracting_dims = [0] x [0] : (tensor<16xf32>, tensor<16xf32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  %seed = stablehlo.constant dense<0.125> : tensor<16xf32>
  %dy = stablehlo.multiply %y, %seed : tensor<16xf32>
  %g = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16xf32>) -> tensor<8xf32>
  %new = stablehlo.subtract %w, %g : tensor<8xf32>
  %on = stablehlo.compare GT, %y, %zeros, FLOAT : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xi1>
  %ones = stablehlo.convert %on : (tensor<16xi1>) -> tensor<16xf32>
  %count = stablehlo.reduce(%ones init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %newcounts = stablehlo.add %counts, %count : tensor<f32>
  %xy = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16xf32>) -> tensor<8xf32>
  %newsums = stablehlo.add %sums, %xy : tensor<8xf32>
  %abs = stablehlo.abs %y : tensor<16xf32>
  %total = stablehlo.reduce(%abs init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %sum = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %ratio = stablehlo.divide %sum, %total : tensor<f32>
  return %new, %newcounts, %newsums, %loss, %ratio : tensor<8xf32>, tensor<f32>, tensor<8xf32>, tensor<f32>, tensor<f32>
}

// -----

// The weights of a running average count no rows: what is averaged is a sum, also
// if its rows have the weight.
// CHECK-LABEL: func.func public @running
// CHECK: %[[S:.*]] = stablehlo.multiply %{{.*}} : tensor<f32>
// CHECK-NEXT: fp8.all_reduce sum %[[S]] label = "gradient count"
// CHECK: %[[D:.*]] = stablehlo.dot_general
// CHECK-NEXT: fp8.all_reduce sum %[[D]] label = "gradient average"
func.func public @running(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %count: tensor<f32> {fp8.kind = "other", fp8.path = "count", fp8.role = "state"},
    %average: tensor<8xf32> {fp8.kind = "other", fp8.path = "average", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "state", fp8.path = "[1]", fp8.state = "count"},
        tensor<8xf32> {fp8.kind = "state", fp8.path = "[2]", fp8.state = "average"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[3]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %d = stablehlo.constant dense<0.9> : tensor<f32>
  %ds = stablehlo.constant dense<0.9> : tensor<8xf32>
  %e = stablehlo.constant dense<0.1> : tensor<f32>
  %es = stablehlo.constant dense<0.1> : tensor<16xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %yy = stablehlo.multiply %y, %y : tensor<16xf32>
  %s = stablehlo.reduce(%yy init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  %c = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %c1 = stablehlo.multiply %c, %e : tensor<f32>
  %c0 = stablehlo.multiply %d, %count : tensor<f32>
  %newcount = stablehlo.add %c0, %c1 : tensor<f32>
  %ye = stablehlo.multiply %y, %es : tensor<16xf32>
  %a1 = stablehlo.dot_general %x, %ye, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16xf32>) -> tensor<8xf32>
  %a0 = stablehlo.multiply %average, %ds : tensor<8xf32>
  %newaverage = stablehlo.add %a1, %a0 : tensor<8xf32>
  return %w, %newcount, %newaverage, %loss : tensor<8xf32>, tensor<f32>, tensor<8xf32>, tensor<f32>
}

// -----

// The rows of a metric may read what follows from all rows: it has no gradient.
// CHECK-LABEL: func.func public @variance
// CHECK: %[[S:.*]] = stablehlo.reduce(
// CHECK: %[[M:.*]] = stablehlo.divide %[[S]]
// CHECK-NEXT: fp8.all_reduce mean %[[M]] label = "[1]"
// CHECK: %[[SUM:.*]] = stablehlo.reduce(
// CHECK-NEXT: %[[MEAN:.*]] = stablehlo.divide %[[SUM]]
// CHECK-NEXT: %[[WHOLE:.*]] = fp8.all_reduce mean %[[MEAN]]
// CHECK-NEXT: stablehlo.broadcast_in_dim %[[WHOLE]]
// CHECK: %[[V:.*]] = stablehlo.reduce(
// CHECK-NEXT: fp8.all_reduce sum %[[V]] label = "[2]"
func.func public @variance(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"},
        tensor<f32> {fp8.kind = "metric", fp8.path = "[2]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %yy = stablehlo.multiply %y, %y : tensor<16xf32>
  %s = stablehlo.reduce(%yy init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  %sum = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %mean = stablehlo.divide %sum, %n : tensor<f32>
  %means = stablehlo.broadcast_in_dim %mean, dims = [] : (tensor<f32>) -> tensor<16xf32>
  %d = stablehlo.subtract %y, %means : tensor<16xf32>
  %dd = stablehlo.multiply %d, %d : tensor<16xf32>
  %variation = stablehlo.reduce(%dd init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  return %w, %loss, %variation : tensor<8xf32>, tensor<f32>, tensor<f32>
}
