// RUN: fp8-opt %s --split-input-file --fp8-analyze-signature=states=arg2=result2 | FileCheck %s

// Optimizers that approximate a gradient by factors of low rank, one of which is
// kept. Its next value is a product of the gradient with its own, as the gradient
// of a parameter would be, but nothing is added to it: it is no parameter.

// The next value is that product (PowerSGD).
// CHECK-LABEL: func.func public @powersgd
// CHECK-SAME: tensor<8x6xf32> {fp8.kind = "parameter", fp8.path = "arg1", fp8.role = "state"}
// CHECK-SAME: tensor<8x2xf32> {fp8.kind = "other", fp8.path = "arg2", fp8.role = "state"}
func.func public @powersgd(%v: tensor<4x8xf32>, %w: tensor<8x6xf32>, %p: tensor<8x2xf32>, %x: tensor<5x4xf32>) -> (tensor<4x8xf32>, tensor<8x6xf32>, tensor<8x2xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %h = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<5x4xf32>, tensor<4x8xf32>) -> tensor<5x8xf32>
  %y = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<5x8xf32>, tensor<8x6xf32>) -> tensor<5x6xf32>
  %y2 = stablehlo.multiply %y, %y : tensor<5x6xf32>
  %loss = stablehlo.reduce(%y2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<5x6xf32>, tensor<f32>) -> tensor<f32>
  %dy = stablehlo.add %y, %y : tensor<5x6xf32>
  %g = stablehlo.dot_general %h, %dy, contracting_dims = [0] x [0] : (tensor<5x8xf32>, tensor<5x6xf32>) -> tensor<8x6xf32>
  %dh = stablehlo.dot_general %dy, %w, contracting_dims = [1] x [1] : (tensor<5x6xf32>, tensor<8x6xf32>) -> tensor<5x8xf32>
  %gv = stablehlo.dot_general %x, %dh, contracting_dims = [0] x [0] : (tensor<5x4xf32>, tensor<5x8xf32>) -> tensor<4x8xf32>
  %a = stablehlo.dot_general %g, %p, contracting_dims = [0] x [0] : (tensor<8x6xf32>, tensor<8x2xf32>) -> tensor<6x2xf32>
  %b = stablehlo.dot_general %g, %a, contracting_dims = [1] x [0] : (tensor<8x6xf32>, tensor<6x2xf32>) -> tensor<8x2xf32>
  %s = stablehlo.dot_general %b, %a, contracting_dims = [1] x [1] : (tensor<8x2xf32>, tensor<6x2xf32>) -> tensor<8x6xf32>
  %new = stablehlo.subtract %w, %s : tensor<8x6xf32>
  %newv = stablehlo.subtract %v, %gv : tensor<4x8xf32>
  return %newv, %new, %b, %loss : tensor<4x8xf32>, tensor<8x6xf32>, tensor<8x2xf32>, tensor<f32>
}

// -----

// It is only computed now and then, and its columns are made orthogonal (GaLore).
// CHECK-LABEL: func.func public @galore
// CHECK-SAME: tensor<8x6xf32> {fp8.kind = "parameter", fp8.path = "arg1", fp8.role = "state"}
// CHECK-SAME: tensor<8x2xf32> {fp8.kind = "other", fp8.path = "arg2", fp8.role = "state"}
func.func public @galore(%v: tensor<4x8xf32>, %w: tensor<8x6xf32>, %p: tensor<8x2xf32>, %x: tensor<5x4xf32>, %now: tensor<i1>) -> (tensor<4x8xf32>, tensor<8x6xf32>, tensor<8x2xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %h = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<5x4xf32>, tensor<4x8xf32>) -> tensor<5x8xf32>
  %y = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<5x8xf32>, tensor<8x6xf32>) -> tensor<5x6xf32>
  %y2 = stablehlo.multiply %y, %y : tensor<5x6xf32>
  %loss = stablehlo.reduce(%y2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<5x6xf32>, tensor<f32>) -> tensor<f32>
  %dy = stablehlo.add %y, %y : tensor<5x6xf32>
  %g = stablehlo.dot_general %h, %dy, contracting_dims = [0] x [0] : (tensor<5x8xf32>, tensor<5x6xf32>) -> tensor<8x6xf32>
  %dh = stablehlo.dot_general %dy, %w, contracting_dims = [1] x [1] : (tensor<5x6xf32>, tensor<8x6xf32>) -> tensor<5x8xf32>
  %gv = stablehlo.dot_general %x, %dh, contracting_dims = [0] x [0] : (tensor<5x4xf32>, tensor<5x8xf32>) -> tensor<4x8xf32>
  %b = "stablehlo.if"(%now) ({
    %a = stablehlo.dot_general %g, %p, contracting_dims = [0] x [0] : (tensor<8x6xf32>, tensor<8x2xf32>) -> tensor<6x2xf32>
    %c = stablehlo.dot_general %g, %a, contracting_dims = [1] x [0] : (tensor<8x6xf32>, tensor<6x2xf32>) -> tensor<8x2xf32>
    %first = stablehlo.slice %c [0:8, 0:1] : (tensor<8x2xf32>) -> tensor<8x1xf32>
    %column = stablehlo.reshape %first : (tensor<8x1xf32>) -> tensor<8xf32>
    %along = stablehlo.dot_general %column, %c, contracting_dims = [0] x [0] : (tensor<8xf32>, tensor<8x2xf32>) -> tensor<2xf32>
    %left = stablehlo.broadcast_in_dim %column, dims = [0] : (tensor<8xf32>) -> tensor<8x2xf32>
    %right = stablehlo.broadcast_in_dim %along, dims = [1] : (tensor<2xf32>) -> tensor<8x2xf32>
    %part = stablehlo.multiply %left, %right : tensor<8x2xf32>
    %rest = stablehlo.subtract %c, %part : tensor<8x2xf32>
    stablehlo.return %rest : tensor<8x2xf32>
  }, {
    stablehlo.return %p : tensor<8x2xf32>
  }) : (tensor<i1>) -> tensor<8x2xf32>
  %low = stablehlo.dot_general %b, %g, contracting_dims = [0] x [0] : (tensor<8x2xf32>, tensor<8x6xf32>) -> tensor<2x6xf32>
  %s = stablehlo.dot_general %b, %low, contracting_dims = [1] x [0] : (tensor<8x2xf32>, tensor<2x6xf32>) -> tensor<8x6xf32>
  %new = stablehlo.subtract %w, %s : tensor<8x6xf32>
  %newv = stablehlo.subtract %v, %gv : tensor<4x8xf32>
  return %newv, %new, %b, %loss : tensor<4x8xf32>, tensor<8x6xf32>, tensor<8x2xf32>, tensor<f32>
}
