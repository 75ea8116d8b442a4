// RUN: fp8-opt %s --split-input-file --fp8-verify-quantized --verify-diagnostics

func.func @unused_amax(%x: tensor<4x32xf32>) {
  // expected-error @+1 {{'fp8.amax' op expected its result to be used}}
  %amax = fp8.amax %x : tensor<4x32xf32> -> tensor<f32>
  return
}

// -----

func.func @unused_scale(%amax: tensor<f32>) {
  // expected-error @+1 {{'fp8.compute_scale' op expected one of its results to be used}}
  %scale, %q = fp8.compute_scale %amax {rule = #fp8.scale_rule<exact>, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
  return
}

// -----

// Delayed scaling keeps the quantizer alone.
func.func @state(%amax: tensor<f32>) -> tensor<f32> {
  %scale, %q = fp8.compute_scale %amax {rule = #fp8.scale_rule<exact>, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
  return %q : tensor<f32>
}

// -----

func.func @twice(%x: tensor<4x32xf32>, %s: tensor<f32>, %q: tensor<f32>)
    -> (!fp8.scaled<4x32xf8E5M2, tile = [*, *], scale = f32>, !fp8.scaled<4x32xf8E5M2, tile = [*, *], scale = f32>) {
  // expected-note @+1 {{quantized here first}}
  %0 = fp8.quantize %x, %s, %q rounding = nearest_even, overflow = saturate
      : tensor<4x32xf32> -> !fp8.scaled<4x32xf8E5M2, tile = [*, *], scale = f32>
  // expected-error @+1 {{quantizes a tensor that is already quantized in the same way}}
  %1 = fp8.quantize %x, %s, %q rounding = nearest_even, overflow = saturate
      : tensor<4x32xf32> -> !fp8.scaled<4x32xf8E5M2, tile = [*, *], scale = f32>
  return %0, %1 : !fp8.scaled<4x32xf8E5M2, tile = [*, *], scale = f32>, !fp8.scaled<4x32xf8E5M2, tile = [*, *], scale = f32>
}

// -----

func.func @swapped(%x: tensor<4x32xf32>, %amax: tensor<f32>) -> !fp8.scaled<4x32xf8E5M2, tile = [*, *], scale = f32> {
  %s, %q = fp8.compute_scale %amax {rule = #fp8.scale_rule<exact>, format = f8E5M2} : tensor<f32> -> tensor<f32>
  // expected-error @+1 {{expected scale and quantizer to be the first and the second result of one fp8.compute_scale}}
  %0 = fp8.quantize %x, %q, %s rounding = nearest_even, overflow = saturate
      : tensor<4x32xf32> -> !fp8.scaled<4x32xf8E5M2, tile = [*, *], scale = f32>
  return %0 : !fp8.scaled<4x32xf8E5M2, tile = [*, *], scale = f32>
}

// -----

func.func @not_quantized(%x: tensor<4x32xf32>, %s: tensor<f32>, %w: !fp8.scaled<32x8xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<4x8xf32> {
  // expected-note @+1 {{defined here}}
  %0 = stablehlo.convert %x : (tensor<4x32xf32>) -> tensor<4x32xf8E4M3FN>
  %1 = fp8.pack %0, %s : !fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>
  // expected-error @+1 {{expected operands that come from fp8.quantize but got one from stablehlo.convert}}
  %2 = fp8.dot_general %1, %w, contracting_dims = [1] x [0] {accumulator = f32}
      : (!fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>, !fp8.scaled<32x8xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// -----

!m = !fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>
// expected-error @+1 {{expected the result that replaces "m" to be '!fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>' but got 'tensor<4x32xf32>'}}
func.func @state(%m: !m {fp8.path = "m"}) -> (tensor<4x32xf32> {fp8.path = "r", fp8.state = "m"}) {
  %0 = fp8.dequantize %m : !m -> tensor<4x32xf32>
  return %0 : tensor<4x32xf32>
}

// -----

// expected-error @+1 {{expected a public function, and one with fp8.entry = "store" and one with "load"}}
module {
  func.func private @fp8_store(%m: tensor<4x32xf32> {fp8.path = "m"}) -> (tensor<4x32xbf16> {fp8.path = "m"}) attributes {fp8.entry = "store"} {
    %0 = fp8.round %m rounding = nearest_even : tensor<4x32xf32> -> tensor<4x32xbf16>
    return %0 : tensor<4x32xbf16>
  }
}

// -----

func.func @main(%m: tensor<4x32xbf16> {fp8.path = "m"}) -> (tensor<4x32xbf16> {fp8.path = "r", fp8.state = "m"}) {
  return %m : tensor<4x32xbf16>
}
// expected-error @+1 {{expected the stored 'm' to be 'tensor<4x32xbf16>' but got 'tensor<4x32xf16>'}}
func.func private @fp8_store(%m: tensor<4x32xf32> {fp8.path = "m"}) -> (tensor<4x32xf16> {fp8.path = "m"}) attributes {fp8.entry = "store"} {
  %0 = fp8.round %m rounding = nearest_even : tensor<4x32xf32> -> tensor<4x32xf16>
  return %0 : tensor<4x32xf16>
}
func.func private @fp8_load(%m: tensor<4x32xbf16> {fp8.path = "m"}) -> (tensor<4x32xf32> {fp8.path = "m"}) attributes {fp8.entry = "load"} {
  %0 = stablehlo.convert %m : (tensor<4x32xbf16>) -> tensor<4x32xf32>
  return %0 : tensor<4x32xf32>
}
