// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-analyze-signature | FileCheck %s

// A step that returns a tree of state with a value of another type: it would
// keep the first one for ever.

// expected-error @+1 {{expected result[0]['n'], in the place of 's['n']', to be 'tensor<i32>' but got 'tensor<f32>'; return it as that type, or choose with the option 'roles' (fp8-run: --role s['n']=constant) if it does not change}}
func.func public @main(%w: tensor<4x3xf32> loc("s['w']"), %n: tensor<i32> loc("s['n']"), %x: tensor<2x4xf32> loc("x")) -> (tensor<4x3xf32> {jax.result_info = "result[0]['w']"}, tensor<f32> {jax.result_info = "result[0]['n']"}, tensor<f32> {jax.result_info = "result[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %z2 = stablehlo.multiply %z, %z : tensor<2x3xf32>
  %loss = stablehlo.reduce(%z2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %z, contracting_dims = [0] x [0] : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %new = stablehlo.subtract %w, %g : tensor<4x3xf32>
  %count = stablehlo.convert %n : (tensor<i32>) -> tensor<f32>
  %next = stablehlo.add %count, %one : tensor<f32>
  return %new, %next, %loss : tensor<4x3xf32>, tensor<f32>, tensor<f32>
}

// -----

// expected-error @+1 {{expected result[0]['b'], in the place of 's['b']', to be 'tensor<3xf32>' but got 'tensor<3xbf16>'; return it as that type, or choose with the option 'roles' (fp8-run: --role s['b']=frozen) if it does not change}}
func.func public @main(%w: tensor<4x3xf32> loc("s['w']"), %b: tensor<3xf32> loc("s['b']"), %x: tensor<2x4xf32> loc("x")) -> (tensor<4x3xf32> {jax.result_info = "result[0]['w']"}, tensor<3xbf16> {jax.result_info = "result[0]['b']"}, tensor<f32> {jax.result_info = "result[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %bias = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %z = stablehlo.add %y, %bias : tensor<2x3xf32>
  %z2 = stablehlo.multiply %z, %z : tensor<2x3xf32>
  %loss = stablehlo.reduce(%z2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %z, contracting_dims = [0] x [0] : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %gb = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
  %new = stablehlo.subtract %w, %g : tensor<4x3xf32>
  %newBias = stablehlo.subtract %b, %gb : tensor<3xf32>
  %narrow = stablehlo.convert %newBias : (tensor<3xf32>) -> tensor<3xbf16>
  return %new, %narrow, %loss : tensor<4x3xf32>, tensor<3xbf16>, tensor<f32>
}

// -----

// In a tuple of all results, a metric has the place of what does not change.
// CHECK: tensor<3xf32> {fp8.path = "s[1]", fp8.role = "frozen"}
func.func public @main(%w: tensor<4x3xf32> loc("s[0]"), %b: tensor<3xf32> loc("s[1]"), %x: tensor<2x4xf32> loc("x")) -> (tensor<4x3xf32> {jax.result_info = "result[0]"}, tensor<2x3xf32> {jax.result_info = "result[1]"}, tensor<f32> {jax.result_info = "result[2]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %bias = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %z = stablehlo.add %y, %bias : tensor<2x3xf32>
  %z2 = stablehlo.multiply %z, %z : tensor<2x3xf32>
  %loss = stablehlo.reduce(%z2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %z, contracting_dims = [0] x [0] : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %new = stablehlo.subtract %w, %g : tensor<4x3xf32>
  return %new, %z, %loss : tensor<4x3xf32>, tensor<2x3xf32>, tensor<f32>
}
