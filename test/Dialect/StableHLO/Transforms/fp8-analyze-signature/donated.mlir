// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-analyze-signature | FileCheck %s

// Codes that are chosen by comparison: no sum or product leads from an old to a
// new code. The caller gives up the old ones, so they are state.
// CHECK-LABEL: func.func public @donated
func.func public @donated(%w: tensor<4x3xf32> {tf.aliasing_output = 0 : i32}, %code: tensor<2x3xf32> {tf.aliasing_output = 1 : i32}, %x: tensor<2x4xf32>) -> (tensor<4x3xf32>, tensor<2x3xf32>, tensor<f32>) {
  // CHECK-SAME: tensor<2x3xf32> {fp8.kind = "{{[a-z]+}}", fp8.path = "arg1", fp8.role = "state"}
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %above = stablehlo.compare GT, %z, %code, FLOAT : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
  %next = stablehlo.convert %above : (tensor<2x3xi1>) -> tensor<2x3xf32>
  %e = stablehlo.subtract %z, %code : tensor<2x3xf32>
  %e2 = stablehlo.multiply %e, %e : tensor<2x3xf32>
  %loss = stablehlo.reduce(%e2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %e, contracting_dims = [0] x [0] : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %new = stablehlo.subtract %w, %g : tensor<4x3xf32>
  return %new, %next, %loss : tensor<4x3xf32>, tensor<2x3xf32>, tensor<f32>
}

// -----

// Names do not tell: a result of a tuple has only a number.
#params = loc("params")
#code = loc("code")
#x = loc("x")
// expected-error @+1 {{ambiguous state: 'code' is frozen, or replaced by result[1]; choose with the option 'states' or 'roles' (fp8-run: --state code=result[1] or --role code=frozen)}}
func.func public @kept(%w: tensor<4x3xf32> loc(#params), %code: tensor<2x3xf32> loc(#code), %x: tensor<2x4xf32> loc(#x)) -> (tensor<4x3xf32> {jax.result_info = "result[0]"}, tensor<2x3xf32> {jax.result_info = "result[1]"}, tensor<f32> {jax.result_info = "result[2]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %z = stablehlo.dot_general %h, %code, contracting_dims = [1] x [1] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
  %sums = stablehlo.dot_general %z, %h, contracting_dims = [0] x [0] : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %above = stablehlo.compare GT, %sums, %h, FLOAT : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
  %next = stablehlo.convert %above : (tensor<2x3xi1>) -> tensor<2x3xf32>
  %z2 = stablehlo.multiply %z, %z : tensor<2x2xf32>
  %loss = stablehlo.reduce(%z2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x2xf32>, tensor<f32>) -> tensor<f32>
  %dh = stablehlo.dot_general %z, %code, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %g = stablehlo.dot_general %x, %dh, contracting_dims = [0] x [0] : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %new = stablehlo.subtract %w, %g : tensor<4x3xf32>
  return %new, %next, %loss : tensor<4x3xf32>, tensor<2x3xf32>, tensor<f32>
}

// -----

// Activations of the last step, which the next one reads: each is replaced by
// values that do not depend on it. All pairs are in order.
// CHECK-LABEL: func.func public @memories
func.func public @memories(%w: tensor<4x4xf32> {tf.aliasing_output = 0 : i32}, %m: tensor<2x4xf32> {tf.aliasing_output = 1 : i32}, %n: tensor<2x4xf32> {tf.aliasing_output = 2 : i32}, %x: tensor<3x4xf32>) -> (tensor<4x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<f32>) {
  // CHECK-SAME: fp8.path = "arg1", fp8.role = "state"}
  // CHECK-SAME: fp8.path = "arg2", fp8.role = "state"}
  // CHECK-SAME: tensor<2x4xf32> {fp8.path = "result1", fp8.state = "arg1"}, tensor<2x4xf32> {fp8.path = "result2", fp8.state = "arg2"}
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %old = stablehlo.concatenate %m, %n, dim = 0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %h = stablehlo.dot_general %x, %old, contracting_dims = [1] x [1] : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %z = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %z2 = stablehlo.multiply %z, %z : tensor<3x4xf32>
  %loss = stablehlo.reduce(%z2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %h, %z, contracting_dims = [0] x [0] : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<4x4xf32>
  %new = stablehlo.subtract %w, %g : tensor<4x4xf32>
  %first = stablehlo.slice %x [0:2, 0:4] : (tensor<3x4xf32>) -> tensor<2x4xf32>
  %second = stablehlo.slice %z [0:2, 0:4] : (tensor<3x4xf32>) -> tensor<2x4xf32>
  return %new, %first, %second, %loss : tensor<4x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<f32>
}
