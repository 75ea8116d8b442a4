// A result for each row that follows from an array of the batch, as a priority
// of its rows does, is no next value of it: no result could replace b['x'], and
// state is replaced as a whole. Without b['x'] the array may be state.

// RUN: fp8-opt %s --split-input-file --fp8-analyze-signature=explain=true -o /dev/null | FileCheck %s

// CHECK:      w          f32[4]    state parameter
// CHECK-NEXT: b['done']  f32[8]    batch
// CHECK-NEXT: b['x']     f32[8,4]  batch
// CHECK:      result[1]['priority']  f32[8]
func.func @train(%w: tensor<4xf32> loc("w"), %done: tensor<8xf32> loc("b['done']"), %x: tensor<8x4xf32> loc("b['x']"))
    -> (tensor<4xf32> {jax.result_info = "result[0]"}, tensor<f32> {jax.result_info = "result[1]['loss']"}, tensor<8xf32> {jax.result_info = "result[1]['priority']"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %discount = stablehlo.constant dense<0.9> : tensor<8xf32>
  %rate = stablehlo.constant dense<0.1> : tensor<4xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %target = stablehlo.multiply %discount, %done : tensor<8xf32>
  %error = stablehlo.add %y, %target : tensor<8xf32>
  %square = stablehlo.multiply %error, %error : tensor<8xf32>
  %loss = stablehlo.reduce(%square init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %twice = stablehlo.add %error, %error : tensor<8xf32>
  %g = stablehlo.dot_general %x, %twice, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8xf32>) -> tensor<4xf32>
  %step = stablehlo.multiply %rate, %g : tensor<4xf32>
  %next = stablehlo.subtract %w, %step : tensor<4xf32>
  %priority = stablehlo.abs %error : tensor<8xf32>
  return %next, %loss, %priority : tensor<4xf32>, tensor<f32>, tensor<8xf32>
}

// -----

// CHECK:      w          f32[4]    state parameter
// CHECK-NEXT: m['mean']  f32[8]    state {{.*}}; replaced by result[1] (update chain and type)
// CHECK-NEXT: x          f32[8,4]  batch
func.func @average(%w: tensor<4xf32> loc("w"), %mean: tensor<8xf32> loc("m['mean']"), %x: tensor<8x4xf32> loc("x"))
    -> (tensor<4xf32> {jax.result_info = "result[0]"}, tensor<8xf32> {jax.result_info = "result[1]"}, tensor<f32> {jax.result_info = "result[2]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %discount = stablehlo.constant dense<0.9> : tensor<8xf32>
  %rate = stablehlo.constant dense<0.1> : tensor<4xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %old = stablehlo.multiply %discount, %mean : tensor<8xf32>
  %error = stablehlo.add %y, %old : tensor<8xf32>
  %square = stablehlo.multiply %error, %error : tensor<8xf32>
  %loss = stablehlo.reduce(%square init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %twice = stablehlo.add %error, %error : tensor<8xf32>
  %g = stablehlo.dot_general %x, %twice, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8xf32>) -> tensor<4xf32>
  %step = stablehlo.multiply %rate, %g : tensor<4xf32>
  %next = stablehlo.subtract %w, %step : tensor<4xf32>
  return %next, %error, %loss : tensor<4xf32>, tensor<8xf32>, tensor<f32>
}
