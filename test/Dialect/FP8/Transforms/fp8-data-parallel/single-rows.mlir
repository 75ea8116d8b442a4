// RUN: fp8-opt %s --fp8-data-parallel --verify-diagnostics --split-input-file | FileCheck %s

// A loop over single rows: what it adds up is a part of a sum, and what it
// stacks has rows.
// CHECK-LABEL: func.func public @main
// CHECK: %[[LOOP:.*]]:4 = stablehlo.while
// CHECK-NOT: all_reduce
// CHECK: fp8.all_reduce mean %[[LOOP]]#1 label = "gradient w"
// CHECK: stablehlo.reduce(%[[LOOP]]#2
// CHECK: fp8.all_reduce mean %{{.*}} label = "[1]"
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<4x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<8xf32>
  %stack = stablehlo.constant dense<0.0> : tensor<4xf32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %i1 = stablehlo.constant dense<1> : tensor<i32>
  %i3 = stablehlo.constant dense<3> : tensor<i32>
  %i4 = stablehlo.constant dense<4> : tensor<i32>
  %n = stablehlo.constant dense<4.0> : tensor<f32>
  %c = stablehlo.constant dense<0.5> : tensor<8xf32>
  %0:4 = stablehlo.while(%i = %i0, %sum = %zeros, %losses = %stack, %last = %zero) : tensor<i32>, tensor<8xf32>, tensor<4xf32>, tensor<f32>
  cond {
    %1 = stablehlo.compare LT, %i, %i4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %xi = stablehlo.dynamic_slice %x, %i, %i0, sizes = [1, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
    %row = stablehlo.reshape %xi : (tensor<1x8xf32>) -> tensor<8xf32>
    %y = stablehlo.dot_general %row, %w, contracting_dims = [0] x [0] : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
    %ys = stablehlo.broadcast_in_dim %y, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %yx = stablehlo.multiply %ys, %row : tensor<8xf32>
    %g = stablehlo.multiply %yx, %c : tensor<8xf32>
    %added = stablehlo.add %sum, %g : tensor<8xf32>
    %y2 = stablehlo.multiply %y, %y : tensor<f32>
    %part = stablehlo.reshape %y2 : (tensor<f32>) -> tensor<1xf32>
    %put = stablehlo.dynamic_update_slice %losses, %part, %i : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
    %next = stablehlo.add %i, %i1 : tensor<i32>
    stablehlo.return %next, %added, %put, %last : tensor<i32>, tensor<8xf32>, tensor<4xf32>, tensor<f32>
  }
  %total = stablehlo.reduce(%0#2 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %total, %n : tensor<f32>
  %new = stablehlo.subtract %w, %0#1 : tensor<8xf32>
  return %new, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// A position.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<4x1x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<8xf32>
  %stack = stablehlo.constant dense<0.0> : tensor<4xf32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %i1 = stablehlo.constant dense<1> : tensor<i32>
  %i3 = stablehlo.constant dense<3> : tensor<i32>
  %i4 = stablehlo.constant dense<4> : tensor<i32>
  %n = stablehlo.constant dense<4.0> : tensor<f32>
  %c = stablehlo.constant dense<0.5> : tensor<8xf32>
  %0:4 = stablehlo.while(%i = %i0, %sum = %zeros, %losses = %stack, %last = %zero) : tensor<i32>, tensor<8xf32>, tensor<4xf32>, tensor<f32>
  cond {
    %1 = stablehlo.compare LT, %i, %i4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %xi = stablehlo.dynamic_slice %x, %i, %i0, %i0, sizes = [1, 1, 8] : (tensor<4x1x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x8xf32>
    %row = stablehlo.reshape %xi : (tensor<1x1x8xf32>) -> tensor<8xf32>
    %y = stablehlo.dot_general %row, %w, contracting_dims = [0] x [0] : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
    %ys = stablehlo.broadcast_in_dim %y, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %yx = stablehlo.multiply %ys, %row : tensor<8xf32>
    %g = stablehlo.multiply %yx, %c : tensor<8xf32>
    %added = stablehlo.add %sum, %g : tensor<8xf32>
    %at = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
    // expected-error @+1 {{a row reads a value that is another one in every turn of the loop over rows}}
    %yat = stablehlo.multiply %y, %at : tensor<f32>
    %y2 = stablehlo.multiply %yat, %y : tensor<f32>
    %part = stablehlo.reshape %y2 : (tensor<f32>) -> tensor<1xf32>
    %put = stablehlo.dynamic_update_slice %losses, %part, %i : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
    %next = stablehlo.add %i, %i1 : tensor<i32>
    stablehlo.return %next, %added, %put, %last : tensor<i32>, tensor<8xf32>, tensor<4xf32>, tensor<f32>
  }
  %total = stablehlo.reduce(%0#2 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %total, %n : tensor<f32>
  %new = stablehlo.subtract %w, %0#1 : tensor<8xf32>
  return %new, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// A value that each row leaves to the next one.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<4x1x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<8xf32>
  %stack = stablehlo.constant dense<0.0> : tensor<4xf32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %i1 = stablehlo.constant dense<1> : tensor<i32>
  %i3 = stablehlo.constant dense<3> : tensor<i32>
  %i4 = stablehlo.constant dense<4> : tensor<i32>
  %n = stablehlo.constant dense<4.0> : tensor<f32>
  %c = stablehlo.constant dense<0.5> : tensor<8xf32>
  // expected-error @+1 {{each turn has its own row, and reads a value that the turn before it has left}}
  %0:4 = stablehlo.while(%i = %i0, %sum = %zeros, %losses = %stack, %last = %zero) : tensor<i32>, tensor<8xf32>, tensor<4xf32>, tensor<f32>
  cond {
    %1 = stablehlo.compare LT, %i, %i4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %xi = stablehlo.dynamic_slice %x, %i, %i0, %i0, sizes = [1, 1, 8] : (tensor<4x1x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x8xf32>
    %row = stablehlo.reshape %xi : (tensor<1x1x8xf32>) -> tensor<8xf32>
    %y = stablehlo.dot_general %row, %w, contracting_dims = [0] x [0] : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
    %ys = stablehlo.broadcast_in_dim %y, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %yx = stablehlo.multiply %ys, %row : tensor<8xf32>
    %g = stablehlo.multiply %yx, %c : tensor<8xf32>
    %added = stablehlo.add %sum, %g : tensor<8xf32>
    %y2 = stablehlo.multiply %y, %y : tensor<f32>
    %part = stablehlo.reshape %y2 : (tensor<f32>) -> tensor<1xf32>
    %put = stablehlo.dynamic_update_slice %losses, %part, %i : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
    %next = stablehlo.add %i, %i1 : tensor<i32>
    stablehlo.return %next, %added, %put, %y : tensor<i32>, tensor<8xf32>, tensor<4xf32>, tensor<f32>
  }
  %total = stablehlo.reduce(%0#2 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %total, %n : tensor<f32>
  %new = stablehlo.subtract %w, %0#1 : tensor<8xf32>
  return %new, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// Another row.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<4x1x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<8xf32>
  %stack = stablehlo.constant dense<0.0> : tensor<4xf32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %i1 = stablehlo.constant dense<1> : tensor<i32>
  %i3 = stablehlo.constant dense<3> : tensor<i32>
  %i4 = stablehlo.constant dense<4> : tensor<i32>
  %n = stablehlo.constant dense<4.0> : tensor<f32>
  %c = stablehlo.constant dense<0.5> : tensor<8xf32>
  %0:4 = stablehlo.while(%i = %i0, %sum = %zeros, %losses = %stack, %last = %zero) : tensor<i32>, tensor<8xf32>, tensor<4xf32>, tensor<f32>
  cond {
    %1 = stablehlo.compare LT, %i, %i4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %xi = stablehlo.dynamic_slice %x, %i, %i0, %i0, sizes = [1, 1, 8] : (tensor<4x1x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x8xf32>
    %row = stablehlo.reshape %xi : (tensor<1x1x8xf32>) -> tensor<8xf32>
    %y = stablehlo.dot_general %row, %w, contracting_dims = [0] x [0] : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
    %ys = stablehlo.broadcast_in_dim %y, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %yx = stablehlo.multiply %ys, %row : tensor<8xf32>
    %g = stablehlo.multiply %yx, %c : tensor<8xf32>
    %added = stablehlo.add %sum, %g : tensor<8xf32>
    %j = stablehlo.subtract %i3, %i : tensor<i32>
    %xj = stablehlo.dynamic_slice %x, %j, %i0, %i0, sizes = [1, 1, 8] : (tensor<4x1x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x8xf32>
    %other = stablehlo.reshape %xj : (tensor<1x1x8xf32>) -> tensor<8xf32>
    %yj = stablehlo.dot_general %other, %w, contracting_dims = [0] x [0] : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
    // expected-error @+1 {{it combines different rows of the batch}}
    %both = stablehlo.multiply %y, %yj : tensor<f32>
    %y2 = stablehlo.multiply %both, %y : tensor<f32>
    %part = stablehlo.reshape %y2 : (tensor<f32>) -> tensor<1xf32>
    %put = stablehlo.dynamic_update_slice %losses, %part, %i : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
    %next = stablehlo.add %i, %i1 : tensor<i32>
    stablehlo.return %next, %added, %put, %last : tensor<i32>, tensor<8xf32>, tensor<4xf32>, tensor<f32>
  }
  %total = stablehlo.reduce(%0#2 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %total, %n : tensor<f32>
  %new = stablehlo.subtract %w, %0#1 : tensor<8xf32>
  return %new, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// Neither micro-batches nor single rows.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<4x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %i1 = stablehlo.constant dense<1> : tensor<i32>
  %i4 = stablehlo.constant dense<4> : tensor<i32>
  %0:2 = stablehlo.while(%i = %i0, %sum = %zero) : tensor<i32>, tensor<f32>
  cond {
    %1 = stablehlo.compare LT, %i, %i4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %xi = stablehlo.dynamic_slice %x, %i, %i0, sizes = [1, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
    %row = stablehlo.reshape %xi : (tensor<1x8xf32>) -> tensor<8xf32>
    // expected-error @+2 {{it reads a value that is another one for every place in the batch}}
    // expected-note @+1 {{for single rows: 'stablehlo.multiply' op expected every example to be computed from its own row of the batch, as data parallel ranks do, but a row reads a value that is another one in every turn}}
    %y = stablehlo.dot_general %row, %w, contracting_dims = [0] x [0] : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
    %at = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
    %yat = stablehlo.multiply %y, %at : tensor<f32>
    %added = stablehlo.add %sum, %yat : tensor<f32>
    %next = stablehlo.add %i, %i1 : tensor<i32>
    stablehlo.return %next, %added : tensor<i32>, tensor<f32>
  }
  return %w, %0#1 : tensor<8xf32>, tensor<f32>
}
