// RUN: fp8-opt %s --fp8-data-parallel --verify-diagnostics --split-input-file

// A normalization over the batch.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %sum = stablehlo.reduce(%y0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %n0 = stablehlo.constant dense<16.0> : tensor<f32>
  %mean = stablehlo.divide %sum, %n0 : tensor<f32>
  %means = stablehlo.broadcast_in_dim %mean, dims = [] : (tensor<f32>) -> tensor<16xf32>
  // expected-error @+1 {{expected every example to be computed from its own row of the batch, as data parallel ranks do, but it reads a value that follows from the parameters and the rows of all ranks}}
  %y = stablehlo.subtract %y0, %means : tensor<16xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  return %w, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// Contrastive scores.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-error @+1 {{expected every example to be computed from its own row of the batch, as data parallel ranks do, but it contracts rows with other rows}}
  %scores = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1] : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
  %y = stablehlo.reduce(%scores init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<16x16xf32>, tensor<f32>) -> tensor<16xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  return %w, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// An order of the rows.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  // expected-error @+1 {{expected every example to be computed from its own row of the batch, as data parallel ranks do, but it puts the rows in an order, and no median or other quantile of all rows follows from those of each rank}}
  %y = "stablehlo.sort"(%y0) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<16xf32>) -> tensor<16xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  return %w, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// Positions along the batch.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %at = stablehlo.iota dim = 0 : tensor<16xf32>
  // expected-error @+1 {{expected every example to be computed from its own row of the batch, as data parallel ranks do, but it reads a value that is another one for every place in the batch, such as a position or a random number}}
  %y = stablehlo.multiply %y0, %at : tensor<16xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  return %w, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// Sums over the rows before each one.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  // expected-error @+1 {{expected every example to be computed from its own row of the batch, as data parallel ranks do, but its windows hold several rows}}
  %y = "stablehlo.reduce_window"(%y0, %zero) <{padding = dense<[[15, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 16>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<16xf32>, tensor<f32>) -> tensor<16xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  return %w, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// Rows and features in one dimension, cut elsewhere.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %f = stablehlo.constant dense<0.5> : tensor<16x6xf32>
  %yf = stablehlo.broadcast_in_dim %y0, dims = [0] : (tensor<16xf32>) -> tensor<16x6xf32>
  // expected-error @+1 {{expected every example to be computed from its own row of the batch, as data parallel ranks do, but it joins rows and other indices to one dimension and cuts that elsewhere}}
  %t = stablehlo.reshape %yf : (tensor<16x6xf32>) -> tensor<3x32xf32>
  %y = stablehlo.add %y0, %y0 : tensor<16xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  return %w, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// New state of rows.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %m: tensor<16xf32> {fp8.kind = "other", fp8.path = "m", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<16xf32> {fp8.kind = "state", fp8.path = "[1]", fp8.state = "m"}) {
  %y0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  // expected-error @+1 {{the result '[1]' is another one for every row}}
  return %w, %y0 : tensor<8xf32>, tensor<16xf32>
}

// -----

// A branch that rows decide.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %first = stablehlo.compare GT, %y0, %y0 : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xi1>
  // expected-error @+1 {{it takes single rows}}
  %one = stablehlo.slice %first [0:1] : (tensor<16xi1>) -> tensor<1xi1>
  %p = stablehlo.reshape %one : (tensor<1xi1>) -> tensor<i1>
  %y = "stablehlo.if"(%p) ({
    stablehlo.return %y0 : tensor<16xf32>
  }, {
    %1 = stablehlo.add %y0, %y0 : tensor<16xf32>
    stablehlo.return %1 : tensor<16xf32>
  }) : (tensor<i1>) -> tensor<16xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  return %w, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// Another reduction of rows.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  // expected-error @+1 {{expected every example to be computed from its own row of the batch, as data parallel ranks do, but it reduces the rows by something else than a sum, a maximum, a minimum, or the and or the or of booleans}}
  %p = stablehlo.reduce(%y0 init: %zero) applies stablehlo.multiply across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %y = stablehlo.broadcast_in_dim %p, dims = [] : (tensor<f32>) -> tensor<16xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  return %w, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// What the loss is cannot be told: a sum may be one of means, or not.
// expected-error @+1 {{expected the loss to be a mean over the batch (its sum divided by the number of its elements, or by a count that follows from the batch) but could not prove it: say loss-reduction=mean}}
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %s = stablehlo.reduce(%y0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %y0, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16xf32>) -> tensor<8xf32>
  %new = stablehlo.subtract %w, %g : tensor<8xf32>
  return %new, %s : tensor<8xf32>, tensor<f32>
}

// -----

// One row has no dimension of its own.
// expected-error @+1 {{expected batch argument 'x' to have two or more rows, which its leading dimension counts, to run on several ranks, but got 'tensor<1x8xf32>'}}
func.func public @main(%x: tensor<1x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<1x8xf32> {fp8.kind = "output", fp8.path = "[0]"}) {
  return %x : tensor<1x8xf32>
}

// -----

// The root of a count is that of one rank, where the norm is that of all.
func.func public @main(
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
  %mean = stablehlo.divide %s, %n : tensor<f32>
  %root = stablehlo.constant dense<4.0> : tensor<f32>
  %norm = stablehlo.sqrt %s : tensor<f32>
  // expected-error @+1 {{expected a sum over the rows to be divided by the number of its elements before another function is applied: 16 is that of one rank}}
  %m = stablehlo.divide %norm, %root : tensor<f32>
  return %w, %mean, %m : tensor<8xf32>, tensor<f32>, tensor<f32>
}

// -----

// A constant factor may be the reciprocal of a count, or not.
func.func public @main(
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
  %mean = stablehlo.divide %s, %n : tensor<f32>
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %t = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  // expected-error @+1 {{expected a sum or a mean over the rows of the batch but cannot tell which: divide the sum by the number of its elements, after it is made, or by nothing; any other constant may count rows, too ('[2]')}}
  %m = stablehlo.multiply %t, %two : tensor<f32>
  return %w, %mean, %m : tensor<8xf32>, tensor<f32>, tensor<f32>
}

// -----

// So may a constant that is not the weight of a running average.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %average: tensor<f32> {fp8.kind = "other", fp8.path = "average", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "state", fp8.path = "[2]", fp8.state = "average"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %yy = stablehlo.multiply %y, %y : tensor<16xf32>
  %s = stablehlo.reduce(%yy init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %mean = stablehlo.divide %s, %n : tensor<f32>
  %decay = stablehlo.constant dense<0.9> : tensor<f32>
  %rest = stablehlo.constant dense<0.25> : tensor<f32>
  %t = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  // expected-error @+1 {{expected a sum or a mean over the rows of the batch but cannot tell which: divide the sum by the number of its elements, after it is made, or by nothing; any other constant may count rows, too ('gradient average')}}
  %m = stablehlo.multiply %t, %rest : tensor<f32>
  %old = stablehlo.multiply %average, %decay : tensor<f32>
  %new = stablehlo.add %old, %m : tensor<f32>
  return %w, %new, %mean : tensor<8xf32>, tensor<f32>, tensor<f32>
}

// -----

// A mean is averaged over the ranks, and what a count of the batch divides is summed.
// expected-error @+1 {{expected all terms of the loss to be means over the batch, or all to be sums divided by a count that follows from the batch, but got both: neither loss-reduction=mean nor loss-reduction=sum is right for both; divide the means by a sum over a mask, too (result '[1]')}}
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %mask: tensor<16xf32> {fp8.path = "mask", fp8.role = "batch"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %yy = stablehlo.multiply %y, %y : tensor<16xf32>
  %s = stablehlo.reduce(%yy init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %mean = stablehlo.divide %s, %n : tensor<f32>
  %t = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %c = stablehlo.reduce(%mask init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %m = stablehlo.divide %t, %c : tensor<f32>
  %loss = stablehlo.add %mean, %m : tensor<f32>
  return %w, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// Nothing to train.
// expected-error @+1 {{expected a step with state and a batch, to run on several ranks, but got no argument of the role 'state'}}
func.func public @main(%x: tensor<2x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<f32> {fp8.kind = "output", fp8.path = "[0]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  return %zero : tensor<f32>
}

// -----

// No rows.
// expected-error @+1 {{expected a step with state and a batch, to run on several ranks, but got no argument of the role 'batch'}}
func.func public @main(%w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"}) {
  return %w : tensor<8xf32>
}

// -----

// A product with 1/16 before the sum is no proof: it may be another constant.
// expected-error @+1 {{expected the loss to be a mean over the batch}}
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<6.250000e-02> : tensor<16xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %part = stablehlo.multiply %y, %n : tensor<16xf32>
  %loss = stablehlo.reduce(%part init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %part, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16xf32>) -> tensor<8xf32>
  %new = stablehlo.subtract %w, %g : tensor<8xf32>
  return %new, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// An integer quotient is rounded before the sums of other ranks are added.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"},
    %lengths: tensor<16xi32> {fp8.path = "lengths", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"},
        tensor<i32> {fp8.kind = "metric", fp8.path = "[2]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %rows = stablehlo.constant dense<16> : tensor<i32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %mean = stablehlo.divide %s, %n : tensor<f32>
  %sum = stablehlo.reduce(%lengths init: %none) applies stablehlo.add across dimensions = [0] : (tensor<16xi32>, tensor<i32>) -> tensor<i32>
  // expected-error @+1 {{expected a sum over the rows to be divided by the number of its elements before another function is applied: 16 is that of one rank}}
  %length = stablehlo.divide %sum, %rows : tensor<i32>
  return %w, %mean, %length : tensor<8xf32>, tensor<f32>, tensor<i32>
}

// -----

// As many positions as rows: the divisor may count either.
// expected-error @+1 {{expected the loss to be a mean over the batch}}
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<16xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<16x16x8xf32>, tensor<8xf32>) -> tensor<16x16xf32>
  %each = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<16x16xf32>, tensor<f32>) -> tensor<16xf32>
  %means = stablehlo.divide %each, %n : tensor<16xf32>
  %sum = stablehlo.reduce(%means init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  return %w, %sum : tensor<8xf32>, tensor<f32>
}

// -----

// The next state counts the draws of one rank.
func.func public @counter(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %state: tensor<2xui64> {fp8.kind = "other", fp8.path = "rng", fp8.role = "state"},
    %x: tensor<4x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<2xui64> {fp8.kind = "state", fp8.path = "[1]", fp8.state = "rng"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[2]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %four = stablehlo.constant dense<4.0> : tensor<f32>
  %fours = stablehlo.constant dense<4.0> : tensor<8xf32>
  %zeros = stablehlo.constant dense<0.0> : tensor<4x8xf32>
  %half = stablehlo.constant dense<2147483648> : tensor<4x8xui32>
  %next, %bits = stablehlo.rng_bit_generator %state, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4x8xui32>)
  %keep = stablehlo.compare LT, %bits, %half, UNSIGNED : (tensor<4x8xui32>, tensor<4x8xui32>) -> tensor<4x8xi1>
  // expected-error @+1 {{it reads a value that is another one for every place in the batch, such as a position or a random number}}
  %kept = stablehlo.select %keep, %x, %zeros : tensor<4x8xi1>, tensor<4x8xf32>
  %y = stablehlo.dot_general %kept, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %four : tensor<f32>
  %sums = stablehlo.reduce(%kept init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  %g = stablehlo.divide %sums, %fours : tensor<8xf32>
  %new = stablehlo.subtract %w, %g : tensor<8xf32>
  return %new, %next, %loss : tensor<8xf32>, tensor<2xui64>, tensor<f32>
}

// -----

// The first example of the batch is set to zeros: which it is depends on the
// rank.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %first = stablehlo.constant dense<0> : tensor<1xi32>
  %zeros = stablehlo.constant dense<0.0> : tensor<8xf32>
  // expected-error @+1 {{expected every example to be computed from its own row of the batch, as data parallel ranks do, but it writes to places along the rows}}
  %set = "stablehlo.scatter"(%x, %first, %zeros) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<16x8xf32>, tensor<1xi32>, tensor<8xf32>) -> tensor<16x8xf32>
  %y = stablehlo.dot_general %set, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  return %w, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// Each example is compared with the next one.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  // expected-error @+1 {{expected every example to be computed from its own row of the batch, as data parallel ranks do, but it cuts some of the rows}}
  %a = stablehlo.slice %y [0:15] : (tensor<16xf32>) -> tensor<15xf32>
  %b = stablehlo.slice %y [1:16] : (tensor<16xf32>) -> tensor<15xf32>
  %d = stablehlo.subtract %a, %b : tensor<15xf32>
  %s = stablehlo.reduce(%d init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<15xf32>, tensor<f32>) -> tensor<f32>
  %n = stablehlo.constant dense<15.0> : tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  return %w, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// Half of the batch, from anywhere.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %start: tensor<i32> {fp8.kind = "other", fp8.path = "start", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<i32> {fp8.kind = "state", fp8.path = "[1]", fp8.state = "start"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[2]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  // expected-error @+1 {{expected every example to be computed from its own row of the batch, as data parallel ranks do, but it cuts some of the rows}}
  %half = stablehlo.dynamic_slice %x, %start, %c0, sizes = [8, 8] : (tensor<16x8xf32>, tensor<i32>, tensor<i32>) -> tensor<8x8xf32>
  %y = stablehlo.dot_general %half, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %n = stablehlo.constant dense<8.0> : tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  return %w, %start, %loss : tensor<8xf32>, tensor<i32>, tensor<f32>
}

// -----

// The rows and a row of zeros.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %row = stablehlo.constant dense<0.0> : tensor<1x8xf32>
  // expected-error @+1 {{expected every example to be computed from its own row of the batch, as data parallel ranks do, but it puts other elements beside the rows}}
  %more = stablehlo.concatenate %x, %row, dim = 0 : (tensor<16x8xf32>, tensor<1x8xf32>) -> tensor<17x8xf32>
  %y = stablehlo.dot_general %more, %w, contracting_dims = [1] x [0] : (tensor<17x8xf32>, tensor<8xf32>) -> tensor<17xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<17xf32>, tensor<f32>) -> tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  return %w, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// expected-error @+1 {{expected 'stablehlo.devices' to be positive but got 0}}
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<6xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"}) attributes {stablehlo.devices = 0 : i64} {
  return %w : tensor<8xf32>
}

// -----

// Contrastive scores in micro-batches, each of which has rows of all ranks.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %parts = stablehlo.reshape %x : (tensor<16x8xf32>) -> tensor<2x8x8xf32>
  %first = stablehlo.slice %parts [0:1, 0:8, 0:8] : (tensor<2x8x8xf32>) -> tensor<1x8x8xf32>
  %half = stablehlo.reshape %first : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
  // expected-error @+1 {{expected every example to be computed from its own row of the batch, as data parallel ranks do, but it contracts rows with other rows}}
  %scores = stablehlo.dot_general %half, %half, contracting_dims = [1] x [1] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = stablehlo.reduce(%scores init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32>
  return %w, %s : tensor<8xf32>, tensor<f32>
}
