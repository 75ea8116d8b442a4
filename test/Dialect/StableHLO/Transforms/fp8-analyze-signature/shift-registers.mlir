// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-analyze-signature=explain=true -o /dev/null | FileCheck %s

// The last two gradients, which the update combines: %g1 is replaced by the new
// gradient, and %g2 by the old %g1. Their order in the results does not matter.

// CHECK:      arg0  f32[4,3]  state parameter  the loss depends on it; replaced by result2
// CHECK-NEXT: arg1  f32[4,3]  state {{.*}}replaced by result3
// CHECK-NEXT: arg2  f32[4,3]  state {{.*}}replaced by result1
func.func public @main(%w: tensor<4x3xf32>, %g1: tensor<4x3xf32>, %g2: tensor<4x3xf32>, %x: tensor<2x4xf32>, %y: tensor<2x3xf32>) -> (tensor<f32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %rate = stablehlo.constant dense<0.1> : tensor<4x3xf32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %e = stablehlo.subtract %z, %y : tensor<2x3xf32>
  %e2 = stablehlo.multiply %e, %e : tensor<2x3xf32>
  %loss = stablehlo.reduce(%e2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %e, contracting_dims = [0] x [0] : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %a = stablehlo.subtract %g, %g1 : tensor<4x3xf32>
  %b = stablehlo.add %a, %g2 : tensor<4x3xf32>
  %c = stablehlo.multiply %b, %rate : tensor<4x3xf32>
  %new = stablehlo.subtract %w, %c : tensor<4x3xf32>
  return %loss, %g1, %new, %g : tensor<f32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>
}

// -----

// The update reads the last gradient and something else, each for itself: that
// may be frozen, or the last gradient but one.
// expected-error @+1 {{ambiguous state: several results could replace arg2: result3, result1; choose with the option 'states' (fp8-run: --state ARGUMENT=RESULT)}}
func.func public @main(%w: tensor<4x3xf32>, %last: tensor<4x3xf32>, %anchor: tensor<4x3xf32>, %x: tensor<2x4xf32>, %y: tensor<2x3xf32>) -> (tensor<f32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %rate = stablehlo.constant dense<0.1> : tensor<4x3xf32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %e = stablehlo.subtract %z, %y : tensor<2x3xf32>
  %e2 = stablehlo.multiply %e, %e : tensor<2x3xf32>
  %loss = stablehlo.reduce(%e2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %e, contracting_dims = [0] x [0] : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %a = stablehlo.subtract %g, %last : tensor<4x3xf32>
  %d = stablehlo.subtract %w, %anchor : tensor<4x3xf32>
  %b = stablehlo.add %a, %d : tensor<4x3xf32>
  %c = stablehlo.multiply %b, %rate : tensor<4x3xf32>
  %new = stablehlo.subtract %w, %c : tensor<4x3xf32>
  return %loss, %anchor, %new, %g : tensor<f32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>
}

// -----

// In the order of the arguments, the anchor is frozen.

// CHECK:      arg0  f32[4,3]  state parameter  the loss depends on it; replaced by result1
// CHECK-NEXT: arg1  f32[4,3]  state {{.*}}replaced by result2
// CHECK-NEXT: arg2  f32[4,3]  state {{.*}}never changes;{{.*}}replaced by result3
func.func public @main(%w: tensor<4x3xf32>, %last: tensor<4x3xf32>, %anchor: tensor<4x3xf32>, %x: tensor<2x4xf32>, %y: tensor<2x3xf32>) -> (tensor<f32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %rate = stablehlo.constant dense<0.1> : tensor<4x3xf32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %e = stablehlo.subtract %z, %y : tensor<2x3xf32>
  %e2 = stablehlo.multiply %e, %e : tensor<2x3xf32>
  %loss = stablehlo.reduce(%e2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %e, contracting_dims = [0] x [0] : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %a = stablehlo.subtract %g, %last : tensor<4x3xf32>
  %d = stablehlo.subtract %w, %anchor : tensor<4x3xf32>
  %b = stablehlo.add %a, %d : tensor<4x3xf32>
  %c = stablehlo.multiply %b, %rate : tensor<4x3xf32>
  %new = stablehlo.subtract %w, %c : tensor<4x3xf32>
  return %loss, %new, %g, %anchor : tensor<f32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>
}
