// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-analyze-signature | FileCheck %s

// Scalars of a module without names. A flag is replaced by what follows from
// scalars alone, here a constant.
// CHECK: tensor<i1> {fp8.kind = "other", fp8.path = "arg1", fp8.role = "state"}
func.func public @main(%w: tensor<4x3xf32>, %first: tensor<i1>, %x: tensor<2x4xf32>, %y: tensor<2x3xf32>) -> (tensor<4x3xf32>, tensor<i1>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %slow = stablehlo.constant dense<0.1> : tensor<f32>
  %fast = stablehlo.constant dense<0.2> : tensor<f32>
  %no = stablehlo.constant dense<false> : tensor<i1>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %e = stablehlo.subtract %z, %y : tensor<2x3xf32>
  %e2 = stablehlo.multiply %e, %e : tensor<2x3xf32>
  %loss = stablehlo.reduce(%e2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %e, contracting_dims = [0] x [0] : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %rate = stablehlo.select %first, %slow, %fast : tensor<i1>, tensor<f32>
  %rates = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
  %u = stablehlo.multiply %rates, %g : tensor<4x3xf32>
  %new = stablehlo.subtract %w, %u : tensor<4x3xf32>
  return %new, %no, %loss : tensor<4x3xf32>, tensor<i1>, tensor<f32>
}

// -----

// A rate may be constant and what follows from it the size of the update, or
// the next rate.
// expected-error @+1 {{ambiguous state: 'arg1' is constant, or replaced by result1; choose with the option 'states' or 'roles' (fp8-run: --state arg1=result1 or --role arg1=constant)}}
func.func public @main(%w: tensor<4x3xf32>, %rate: tensor<f32>, %x: tensor<2x4xf32>, %y: tensor<2x3xf32>) -> (tensor<4x3xf32>, tensor<f32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %e = stablehlo.subtract %z, %y : tensor<2x3xf32>
  %e2 = stablehlo.multiply %e, %e : tensor<2x3xf32>
  %loss = stablehlo.reduce(%e2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %e, contracting_dims = [0] x [0] : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %rates = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
  %u = stablehlo.multiply %rates, %g : tensor<4x3xf32>
  %u2 = stablehlo.multiply %u, %u : tensor<4x3xf32>
  %norm = stablehlo.reduce(%u2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x3xf32>, tensor<f32>) -> tensor<f32>
  %new = stablehlo.subtract %w, %u : tensor<4x3xf32>
  return %new, %norm, %loss : tensor<4x3xf32>, tensor<f32>, tensor<f32>
}

// -----

// What does not depend on the rate is a metric, and so is a loss times a scale.
// CHECK: tensor<f32> {fp8.path = "arg1", fp8.role = "constant"}
// CHECK-SAME: tensor<f32> {fp8.path = "arg2", fp8.role = "constant"}
func.func public @main(%w: tensor<4x3xf32>, %rate: tensor<f32>, %scale: tensor<f32>, %x: tensor<2x4xf32>, %y: tensor<2x3xf32>) -> (tensor<4x3xf32>, tensor<f32>, tensor<f32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %e = stablehlo.subtract %z, %y : tensor<2x3xf32>
  %e2 = stablehlo.multiply %e, %e : tensor<2x3xf32>
  %loss = stablehlo.reduce(%e2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
  %scaled = stablehlo.multiply %loss, %scale : tensor<f32>
  %g = stablehlo.dot_general %x, %e, contracting_dims = [0] x [0] : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %g2 = stablehlo.multiply %g, %g : tensor<4x3xf32>
  %norm = stablehlo.reduce(%g2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x3xf32>, tensor<f32>) -> tensor<f32>
  %rates = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
  %u = stablehlo.multiply %rates, %g : tensor<4x3xf32>
  %new = stablehlo.subtract %w, %u : tensor<4x3xf32>
  return %new, %norm, %scaled, %loss : tensor<4x3xf32>, tensor<f32>, tensor<f32>, tensor<f32>
}

// -----

// A loss with some tolerance is what the next one is compared with: a place in a
// tuple does not say that it is a metric.
// expected-error @+1 {{ambiguous state: 'last' is constant, or replaced by result[1]; choose with the option 'states' or 'roles' (fp8-run: --state last=result[1] or --role last=constant)}}
func.func public @main(%w: tensor<4x3xf32> loc("p['w']"), %last: tensor<f32> loc("last"), %x: tensor<2x4xf32> loc("x"), %y: tensor<2x3xf32> loc("y")) -> (tensor<4x3xf32> {jax.result_info = "result[0]['w']"}, tensor<f32> {jax.result_info = "result[1]"}, tensor<f32> {jax.result_info = "result[2]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %slow = stablehlo.constant dense<0.1> : tensor<f32>
  %fast = stablehlo.constant dense<0.2> : tensor<f32>
  %tolerance = stablehlo.constant dense<1.05> : tensor<f32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %e = stablehlo.subtract %z, %y : tensor<2x3xf32>
  %e2 = stablehlo.multiply %e, %e : tensor<2x3xf32>
  %loss = stablehlo.reduce(%e2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %e, contracting_dims = [0] x [0] : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %worse = stablehlo.compare GT, %loss, %last : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %rate = stablehlo.select %worse, %slow, %fast : tensor<i1>, tensor<f32>
  %rates = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
  %u = stablehlo.multiply %rates, %g : tensor<4x3xf32>
  %new = stablehlo.subtract %w, %u : tensor<4x3xf32>
  %next = stablehlo.multiply %loss, %tolerance : tensor<f32>
  return %new, %next, %loss : tensor<4x3xf32>, tensor<f32>, tensor<f32>
}
