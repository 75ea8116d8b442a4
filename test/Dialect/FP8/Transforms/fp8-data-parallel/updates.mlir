// RUN: fp8-opt %s --fp8-data-parallel --verify-diagnostics --split-input-file | FileCheck %s

// Rows read a parameter that the step has updated before. Both gradients are
// means, as the loss is, although the loss follows from the first one, too.
// CHECK-LABEL: func.func public @main
// CHECK: %[[FIRST:.*]] = stablehlo.dot_general {{.*}} contracting_dims = [0] x [0]
// CHECK: %[[MEAN:.*]] = fp8.all_reduce mean %[[FIRST]]
// CHECK: %[[NEW:.*]] = stablehlo.subtract %{{.*}}, %[[MEAN]]
// CHECK: %[[ROWS:.*]] = stablehlo.dot_general %{{.*}}, %[[NEW]]
// CHECK: fp8.all_reduce mean %{{.*}} label = "[1]"
// CHECK: %[[SECOND:.*]] = stablehlo.dot_general {{.*}} contracting_dims = [0] x [0]
// CHECK: fp8.all_reduce mean %[[SECOND]]
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %by = stablehlo.constant dense<0.125> : tensor<16xf32>
  %y0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %c0 = stablehlo.multiply %y0, %by : tensor<16xf32>
  %g0 = stablehlo.dot_general %c0, %x, contracting_dims = [0] x [0] : (tensor<16xf32>, tensor<16x8xf32>) -> tensor<8xf32>
  %w1 = stablehlo.subtract %w, %g0 : tensor<8xf32>
  %y1 = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %squares = stablehlo.multiply %y1, %y1 : tensor<16xf32>
  %s = stablehlo.reduce(%squares init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  %c1 = stablehlo.multiply %y1, %by : tensor<16xf32>
  %g1 = stablehlo.dot_general %c1, %x, contracting_dims = [0] x [0] : (tensor<16xf32>, tensor<16x8xf32>) -> tensor<8xf32>
  %w2 = stablehlo.subtract %w1, %g1 : tensor<8xf32>
  return %w2, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// A gradient that flows back through the update: each row reads the gradient of
// the new parameter, which is a sum over the rows of all ranks.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %by = stablehlo.constant dense<0.125> : tensor<16xf32>
  %y0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %c0 = stablehlo.multiply %y0, %by : tensor<16xf32>
  %g0 = stablehlo.dot_general %c0, %x, contracting_dims = [0] x [0] : (tensor<16xf32>, tensor<16x8xf32>) -> tensor<8xf32>
  %w1 = stablehlo.subtract %w, %g0 : tensor<8xf32>
  %y1 = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %squares = stablehlo.multiply %y1, %y1 : tensor<16xf32>
  %s = stablehlo.reduce(%squares init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  %c1 = stablehlo.multiply %y1, %by : tensor<16xf32>
  %g1 = stablehlo.dot_general %c1, %x, contracting_dims = [0] x [0] : (tensor<16xf32>, tensor<16x8xf32>) -> tensor<8xf32>
  // expected-error @+1 {{it reads a value that follows from the parameters and the rows of all ranks}}
  %r = stablehlo.dot_general %x, %g1, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %c2 = stablehlo.multiply %r, %by : tensor<16xf32>
  %g2 = stablehlo.dot_general %c2, %x, contracting_dims = [0] x [0] : (tensor<16xf32>, tensor<16x8xf32>) -> tensor<8xf32>
  %g = stablehlo.subtract %g1, %g2 : tensor<8xf32>
  %w2 = stablehlo.subtract %w, %g : tensor<8xf32>
  return %w2, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// Two losses: the gradient of a mean, and one that is divided by a count.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %v: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "v", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"},
    %mask: tensor<16xf32> {fp8.path = "mask", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<8xf32> {fp8.kind = "state", fp8.path = "[1]", fp8.state = "v"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[2]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %by = stablehlo.constant dense<0.125> : tensor<16xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %squares = stablehlo.multiply %y, %y : tensor<16xf32>
  %s = stablehlo.reduce(%squares init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  %c = stablehlo.multiply %y, %by : tensor<16xf32>
  %g = stablehlo.dot_general %c, %x, contracting_dims = [0] x [0] : (tensor<16xf32>, tensor<16x8xf32>) -> tensor<8xf32>
  %w1 = stablehlo.subtract %w, %g : tensor<8xf32>
  %z = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %count = stablehlo.reduce(%mask init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %over = stablehlo.divide %one, %count : tensor<f32>
  %overs = stablehlo.broadcast_in_dim %over, dims = [] : (tensor<f32>) -> tensor<16xf32>
  %masked = stablehlo.multiply %z, %mask : tensor<16xf32>
  %d0 = stablehlo.multiply %masked, %overs : tensor<16xf32>
  %two = stablehlo.constant dense<2.0> : tensor<16xf32>
  %d = stablehlo.multiply %d0, %two : tensor<16xf32>
  // expected-error @+1 {{expected all losses of the step to be means over the batch, as '[2]' is, but got a gradient of one that is divided by a count that follows from the batch: divide both by such a count ('gradient v')}}
  %h = stablehlo.dot_general %d, %x, contracting_dims = [0] x [0] : (tensor<16xf32>, tensor<16x8xf32>) -> tensor<8xf32>
  %v1 = stablehlo.subtract %v, %h : tensor<8xf32>
  return %w1, %v1, %loss : tensor<8xf32>, tensor<8xf32>, tensor<f32>
}

// -----

// The same two, of which the loss is the other one.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %v: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "v", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"},
    %mask: tensor<16xf32> {fp8.path = "mask", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<8xf32> {fp8.kind = "state", fp8.path = "[1]", fp8.state = "v"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[2]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %by = stablehlo.constant dense<0.125> : tensor<16xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %c = stablehlo.multiply %y, %by : tensor<16xf32>
  // expected-error @+1 {{expected all losses of the step to be divided by a count that follows from the batch, as '[2]' is, but got a gradient of one that may be a mean, since it is not divided by a count that follows from the batch: divide both by such a count ('gradient w')}}
  %g = stablehlo.dot_general %c, %x, contracting_dims = [0] x [0] : (tensor<16xf32>, tensor<16x8xf32>) -> tensor<8xf32>
  %w1 = stablehlo.subtract %w, %g : tensor<8xf32>
  %z = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %count = stablehlo.reduce(%mask init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %squares = stablehlo.multiply %z, %z : tensor<16xf32>
  %kept = stablehlo.multiply %squares, %mask : tensor<16xf32>
  %s = stablehlo.reduce(%kept init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %count : tensor<f32>
  %over = stablehlo.divide %one, %count : tensor<f32>
  %overs = stablehlo.broadcast_in_dim %over, dims = [] : (tensor<f32>) -> tensor<16xf32>
  %masked = stablehlo.multiply %z, %mask : tensor<16xf32>
  %d0 = stablehlo.multiply %masked, %overs : tensor<16xf32>
  %two = stablehlo.constant dense<2.0> : tensor<16xf32>
  %d = stablehlo.multiply %d0, %two : tensor<16xf32>
  %h = stablehlo.dot_general %d, %x, contracting_dims = [0] x [0] : (tensor<16xf32>, tensor<16x8xf32>) -> tensor<8xf32>
  %v1 = stablehlo.subtract %v, %h : tensor<8xf32>
  return %w1, %v1, %loss : tensor<8xf32>, tensor<8xf32>, tensor<f32>
}
