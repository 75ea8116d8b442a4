// RUN: fp8-opt %s --verify-diagnostics --fp8-analyze-signature

// Two biases in bf16 are added to the same sum and have the same gradient. Only
// their order could tell which master belongs to which bias, but the other
// results are in another order.
// expected-error @+1 {{ambiguous state: several results could replace arg1: result1, result3; choose with the option 'states' (fp8-run: --state ARGUMENT=RESULT)}}
func.func public @main(%w: tensor<4x3xf32>, %b: tensor<3xbf16>, %masterB: tensor<3xf32>, %c: tensor<3xbf16>, %masterC: tensor<3xf32>, %x: tensor<2x4xf32>, %y: tensor<2x3xf32>) -> (tensor<f32>, tensor<3xbf16>, tensor<3xf32>, tensor<3xbf16>, tensor<3xf32>, tensor<4x3xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %wideB = stablehlo.convert %b : (tensor<3xbf16>) -> tensor<3xf32>
  %wideC = stablehlo.convert %c : (tensor<3xbf16>) -> tensor<3xf32>
  %allB = stablehlo.broadcast_in_dim %wideB, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  %allC = stablehlo.broadcast_in_dim %wideC, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  %zb = stablehlo.add %z, %allB : tensor<2x3xf32>
  %zc = stablehlo.add %zb, %allC : tensor<2x3xf32>
  %e = stablehlo.subtract %zc, %y : tensor<2x3xf32>
  %e2 = stablehlo.multiply %e, %e : tensor<2x3xf32>
  %loss = stablehlo.reduce(%e2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %e, contracting_dims = [0] x [0] : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %gb = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
  %new = stablehlo.subtract %w, %g : tensor<4x3xf32>
  %newB = stablehlo.subtract %masterB, %gb : tensor<3xf32>
  %newC = stablehlo.subtract %masterC, %gb : tensor<3xf32>
  %narrowB = stablehlo.convert %newB : (tensor<3xf32>) -> tensor<3xbf16>
  %narrowC = stablehlo.convert %newC : (tensor<3xf32>) -> tensor<3xbf16>
  return %loss, %narrowB, %newB, %narrowC, %newC, %new : tensor<f32>, tensor<3xbf16>, tensor<3xf32>, tensor<3xbf16>, tensor<3xf32>, tensor<4x3xf32>
}
