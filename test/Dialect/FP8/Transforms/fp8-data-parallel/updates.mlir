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
