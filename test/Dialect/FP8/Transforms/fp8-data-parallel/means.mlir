// RUN: fp8-opt %s --fp8-data-parallel --split-input-file | FileCheck %s

// Each value is divided by the number of rows before the sum, and the sum of a
// row is a sum over other dimensions.
// CHECK-LABEL: func.func public @before(
// CHECK: fp8.all_reduce mean %{{.*}} label = "[1]"
// CHECK: fp8.all_reduce mean %{{.*}} label = "gradient w"
func.func public @before(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<16xf32>
  %seed = stablehlo.constant dense<6.250000e-02> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %part = stablehlo.divide %y, %n : tensor<16xf32>
  %loss = stablehlo.reduce(%part init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %seeds = stablehlo.broadcast_in_dim %seed, dims = [] : (tensor<f32>) -> tensor<16xf32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %dz = stablehlo.multiply %z, %seeds : tensor<16xf32>
  %g = stablehlo.dot_general %x, %dz, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16xf32>) -> tensor<8xf32>
  %new = stablehlo.subtract %w, %g : tensor<8xf32>
  return %new, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// The number of rows divides a sum over rows and other dimensions.
// CHECK-LABEL: func.func public @rows(
// CHECK: fp8.all_reduce mean %{{.*}} label = "[1]"
// CHECK: fp8.all_reduce mean %{{.*}} label = "gradient w"
func.func public @rows(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %seed = stablehlo.constant dense<6.250000e-02> : tensor<f32>
  %ws = stablehlo.broadcast_in_dim %w, dims = [1] : (tensor<8xf32>) -> tensor<16x8xf32>
  %y = stablehlo.multiply %x, %ws : tensor<16x8xf32>
  %sum = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x8xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %sum, %n : tensor<f32>
  %seeds = stablehlo.broadcast_in_dim %seed, dims = [] : (tensor<f32>) -> tensor<16xf32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %dz = stablehlo.multiply %z, %seeds : tensor<16xf32>
  %g = stablehlo.dot_general %x, %dz, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16xf32>) -> tensor<8xf32>
  %new = stablehlo.subtract %w, %g : tensor<8xf32>
  return %new, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// An inner product of rows, divided by the number of rows and by two.
// CHECK-LABEL: func.func public @inner_product(
// CHECK: fp8.all_reduce mean %{{.*}} label = "[1]"
// CHECK: fp8.all_reduce mean %{{.*}} label = "gradient w"
func.func public @inner_product(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<32.0> : tensor<f32>
  %seed = stablehlo.constant dense<3.125000e-02> : tensor<f32>
  %ws = stablehlo.broadcast_in_dim %w, dims = [1] : (tensor<8xf32>) -> tensor<16x8xf32>
  %y = stablehlo.multiply %x, %ws : tensor<16x8xf32>
  %sum = stablehlo.dot_general %y, %y, contracting_dims = [0, 1] x [0, 1] : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<f32>
  %loss = stablehlo.divide %sum, %n : tensor<f32>
  %seeds = stablehlo.broadcast_in_dim %seed, dims = [] : (tensor<f32>) -> tensor<16xf32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %dz = stablehlo.multiply %z, %seeds : tensor<16xf32>
  %g = stablehlo.dot_general %x, %dz, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16xf32>) -> tensor<8xf32>
  %new = stablehlo.subtract %w, %g : tensor<8xf32>
  return %new, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// Sums of two positions, added before they are divided by the number of both.
// CHECK-LABEL: func.func public @parts(
// CHECK: fp8.all_reduce mean %{{.*}} label = "[1]"
// CHECK: fp8.all_reduce mean %{{.*}} label = "gradient w"
func.func public @parts(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<48.0> : tensor<f32>
  %seed = stablehlo.constant dense<0.020833333> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %t = stablehlo.tanh %y : tensor<16xf32>
  %e = stablehlo.exponential %y : tensor<16xf32>
  %a = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %b = stablehlo.reduce(%t init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %c = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %ab = stablehlo.add %a, %b : tensor<f32>
  %sum = stablehlo.add %ab, %c : tensor<f32>
  %loss = stablehlo.divide %sum, %n : tensor<f32>
  %seeds = stablehlo.broadcast_in_dim %seed, dims = [] : (tensor<f32>) -> tensor<16xf32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %dz = stablehlo.multiply %z, %seeds : tensor<16xf32>
  %g = stablehlo.dot_general %x, %dz, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16xf32>) -> tensor<8xf32>
  %new = stablehlo.subtract %w, %g : tensor<8xf32>
  return %new, %loss : tensor<8xf32>, tensor<f32>
}
