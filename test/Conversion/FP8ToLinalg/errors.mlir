// RUN: fp8-opt %s --convert-fp8-to-linalg --split-input-file --verify-diagnostics

func.func @amax(%x: tensor<8x256xf32>) -> tensor<8x2xf32> {
  // expected-error@+1 {{expected a per-tensor tile [*, *] but got [1, 128]}}
  %0 = fp8.amax %x tile = [1, 128] : tensor<8x256xf32> -> tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}

// -----

!t = !fp8.scaled<8x16xf8E4M3FN, tile = [1, *], scale = f32>
func.func @quantize(%x: tensor<8x16xf32>, %s: tensor<8x1xf32>) -> !t {
  // expected-error@+1 {{expected a per-tensor tile [*, *] but got [1, *]}}
  %0 = fp8.quantize %x, %s, %s rounding = nearest_even, overflow = saturate : tensor<8x16xf32> -> !t
  return %0 : !t
}

// -----

!t = !fp8.scaled<8x16xf8E4M3FN, tile = [*, *], scale = f32>
func.func @stochastic(%x: tensor<8x16xf32>, %s: tensor<f32>) -> !t {
  // expected-error@+1 {{expected rounding nearest_even but got stochastic}}
  %0 = fp8.quantize %x, %s, %s rounding = stochastic, overflow = saturate : tensor<8x16xf32> -> !t
  return %0 : !t
}

// -----

!t = !fp8.scaled<8x256xf8E4M3FN, tile = [1, 128], scale = f32>
func.func @dot(%x: !t) -> tensor<8x8xf32> {
  // expected-error@+1 {{expected a per-tensor tile [*, *] but got [1, 128]}}
  %0 = fp8.dot_general %x, %x, contracting_dims = [1] x [1] {accumulator = f32} : (!t, !t) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

func.func @e8m0(%a: tensor<8x2xf32>) -> tensor<8x2xf8E8M0FNU> {
  // expected-error@+1 {{expected scales of f32 but got 'f8E8M0FNU'}}
  %s, %q = fp8.compute_scale %a {rule = #fp8.scale_rule<pow2>, format = f8E4M3FN} : tensor<8x2xf32> -> tensor<8x2xf8E8M0FNU>
  return %s : tensor<8x2xf8E8M0FNU>
}
