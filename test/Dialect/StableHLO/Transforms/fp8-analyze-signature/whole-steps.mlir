// RUN: fp8-opt %s --split-input-file --fp8-analyze-signature | FileCheck %s

// Two steps in a loop, without names: bf16 weights follow from the masters that
// the loop updates beside them.
// CHECK: tensor<4x3xbf16> {fp8.kind = "parameter", fp8.path = "arg0", fp8.role = "state"}
// CHECK-SAME: tensor<4x3xf32> {fp8.kind = "other", fp8.parameter = "arg0", fp8.path = "arg1", fp8.role = "state"}
// CHECK-SAME: tensor<f32> {fp8.kind = "loss"
func.func public @main(%w: tensor<4x3xbf16>, %master: tensor<4x3xf32>, %x: tensor<2x4xbf16>, %y: tensor<2x3xbf16>) -> (tensor<4x3xbf16>, tensor<4x3xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %first = stablehlo.constant dense<0> : tensor<i32>
  %l:4 = stablehlo.while(%i = %first, %p = %w, %m = %master, %sum = %zero) : tensor<i32>, tensor<4x3xbf16>, tensor<4x3xf32>, tensor<f32>
  cond {
    %two = stablehlo.constant dense<2> : tensor<i32>
    %more = stablehlo.compare LT, %i, %two, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %rate = stablehlo.constant dense<0.1> : tensor<4x3xf32>
    %z = stablehlo.dot_general %x, %p, contracting_dims = [1] x [0] : (tensor<2x4xbf16>, tensor<4x3xbf16>) -> tensor<2x3xbf16>
    %e = stablehlo.subtract %z, %y : tensor<2x3xbf16>
    %e2 = stablehlo.multiply %e, %e : tensor<2x3xbf16>
    %wide = stablehlo.convert %e2 : (tensor<2x3xbf16>) -> tensor<2x3xf32>
    %loss = stablehlo.reduce(%wide init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
    %g = stablehlo.dot_general %x, %e, contracting_dims = [0] x [0] : (tensor<2x4xbf16>, tensor<2x3xbf16>) -> tensor<4x3xbf16>
    %g32 = stablehlo.convert %g : (tensor<4x3xbf16>) -> tensor<4x3xf32>
    %u = stablehlo.multiply %rate, %g32 : tensor<4x3xf32>
    %new = stablehlo.subtract %m, %u : tensor<4x3xf32>
    %narrow = stablehlo.convert %new : (tensor<4x3xf32>) -> tensor<4x3xbf16>
    %next = stablehlo.add %i, %one : tensor<i32>
    %total = stablehlo.add %sum, %loss : tensor<f32>
    stablehlo.return %next, %narrow, %new, %total : tensor<i32>, tensor<4x3xbf16>, tensor<4x3xf32>, tensor<f32>
  }
  return %l#1, %l#2, %l#3 : tensor<4x3xbf16>, tensor<4x3xf32>, tensor<f32>
}

// -----

// The rate comes from the inner product of weights and gradient, which makes
// the gradient no activation of the weights.
// CHECK: tensor<4x3xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"}
// CHECK-SAME: tensor<3x2xf32> {fp8.kind = "parameter", fp8.path = "v", fp8.role = "state"}
// CHECK-SAME: tensor<f32> {fp8.kind = "loss"
func.func public @main(%w: tensor<4x3xf32> loc("w"), %v: tensor<3x2xf32> loc("v"), %x: tensor<2x4xf32> loc("x"), %y: tensor<2x2xf32> loc("y")) -> (tensor<4x3xf32> {jax.result_info = "result[0]"}, tensor<3x2xf32> {jax.result_info = "result[1]"}, tensor<f32> {jax.result_info = "result[2]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %first = stablehlo.constant dense<0> : tensor<i32>
  %l:4 = stablehlo.while(%i = %first, %p = %w, %q = %v, %sum = %zero) : tensor<i32>, tensor<4x3xf32>, tensor<3x2xf32>, tensor<f32>
  cond {
    %two = stablehlo.constant dense<2> : tensor<i32>
    %more = stablehlo.compare LT, %i, %two, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %h = stablehlo.dot_general %x, %p, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
    %z = stablehlo.dot_general %h, %q, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %e = stablehlo.subtract %z, %y : tensor<2x2xf32>
    %e2 = stablehlo.multiply %e, %e : tensor<2x2xf32>
    %loss = stablehlo.reduce(%e2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x2xf32>, tensor<f32>) -> tensor<f32>
    %dq = stablehlo.dot_general %h, %e, contracting_dims = [0] x [0] : (tensor<2x3xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
    %dh = stablehlo.dot_general %e, %q, contracting_dims = [1] x [1] : (tensor<2x2xf32>, tensor<3x2xf32>) -> tensor<2x3xf32>
    %dp = stablehlo.dot_general %x, %dh, contracting_dims = [0] x [0] : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
    %wp = stablehlo.dot_general %dp, %p, contracting_dims = [0, 1] x [0, 1] : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<f32>
    %wq = stablehlo.dot_general %dq, %q, contracting_dims = [0, 1] x [0, 1] : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<f32>
    %rate = stablehlo.add %wp, %wq : tensor<f32>
    %rp = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
    %rq = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<3x2xf32>
    %up = stablehlo.multiply %rp, %dp : tensor<4x3xf32>
    %uq = stablehlo.multiply %rq, %dq : tensor<3x2xf32>
    %np = stablehlo.subtract %p, %up : tensor<4x3xf32>
    %nq = stablehlo.subtract %q, %uq : tensor<3x2xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %total = stablehlo.add %sum, %loss : tensor<f32>
    stablehlo.return %next, %np, %nq, %total : tensor<i32>, tensor<4x3xf32>, tensor<3x2xf32>, tensor<f32>
  }
  return %l#1, %l#2, %l#3 : tensor<4x3xf32>, tensor<3x2xf32>, tensor<f32>
}

// -----

// Masters are pulled towards those of the step before. The gradient is that of
// the weights in bf16; the loop tells which copy in f32 replaces which.
// CHECK-LABEL: func.func public @masters
func.func public @masters(%x: tensor<2x4xbf16>, %anchor: tensor<4x3xf32>, %master: tensor<4x3xf32>, %w: tensor<4x3xbf16>) -> (tensor<f32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xbf16>) {
  // CHECK-SAME: tensor<4x3xf32> {fp8.path = "result1", fp8.state = "arg1"}, tensor<4x3xf32> {fp8.path = "result2", fp8.state = "arg2"}
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %start = stablehlo.constant dense<0.0> : tensor<f32>
  %pull = stablehlo.constant dense<0.5> : tensor<4x3xf32>
  %rate = stablehlo.constant dense<0.1> : tensor<4x3xf32>
  %0:5 = stablehlo.while(%i = %zero, %a = %anchor, %m = %master, %p = %w, %l = %start) : tensor<i32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xbf16>, tensor<f32>
  cond {
    %c = stablehlo.compare LT, %i, %two, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %z = stablehlo.dot_general %x, %p, contracting_dims = [1] x [0] : (tensor<2x4xbf16>, tensor<4x3xbf16>) -> tensor<2x3xbf16>
    %z2 = stablehlo.multiply %z, %z : tensor<2x3xbf16>
    %f = stablehlo.convert %z2 : (tensor<2x3xbf16>) -> tensor<2x3xf32>
    %loss = stablehlo.reduce(%f init: %start) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
    %g = stablehlo.dot_general %x, %z, contracting_dims = [0] x [0] : (tensor<2x4xbf16>, tensor<2x3xbf16>) -> tensor<4x3xbf16>
    %g32 = stablehlo.convert %g : (tensor<4x3xbf16>) -> tensor<4x3xf32>
    %d = stablehlo.subtract %m, %a : tensor<4x3xf32>
    %half = stablehlo.multiply %pull, %d : tensor<4x3xf32>
    %sum = stablehlo.add %g32, %half : tensor<4x3xf32>
    %u = stablehlo.multiply %rate, %sum : tensor<4x3xf32>
    %new = stablehlo.subtract %m, %u : tensor<4x3xf32>
    %narrow = stablehlo.convert %new : (tensor<4x3xf32>) -> tensor<4x3xbf16>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %m, %new, %narrow, %loss : tensor<i32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xbf16>, tensor<f32>
  }
  return %0#4, %0#1, %0#2, %0#3 : tensor<f32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xbf16>
}
