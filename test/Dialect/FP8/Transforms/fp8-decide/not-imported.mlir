// RUN: fp8-opt %s --fp8-quantize=recipe=tensorwise --verify-diagnostics
// RUN: fp8-opt %s --fp8-import --fp8-quantize=recipe=tensorwise | FileCheck %s

// A step as JAX prints it: without the import nothing says what its arguments are.

// CHECK: fp8.dot_general
// expected-error @+1 {{expected arguments of 'main' with the attribute 'fp8.role' but got none; run fp8-import first}}
func.func public @main(%w: tensor<32x16xf32>, %head: tensor<16x8xf32>, %x: tensor<4x32xf32>) -> (tensor<32x16xf32>, tensor<16x8xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
  %y = stablehlo.dot_general %h, %head, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
  %dy = stablehlo.cosine %y : tensor<4x8xf32>
  %dhead = stablehlo.dot_general %h, %dy, contracting_dims = [0] x [0] : (tensor<4x16xf32>, tensor<4x8xf32>) -> tensor<16x8xf32>
  %dh = stablehlo.dot_general %dy, %head, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  %dw = func.call @gradient(%x, %dh) : (tensor<4x32xf32>, tensor<4x16xf32>) -> tensor<32x16xf32>
  %new = stablehlo.subtract %w, %dw : tensor<32x16xf32>
  %newhead = stablehlo.subtract %head, %dhead : tensor<16x8xf32>
  return %new, %newhead, %loss : tensor<32x16xf32>, tensor<16x8xf32>, tensor<f32>
}
func.func private @gradient(%x: tensor<4x32xf32>, %dh: tensor<4x16xf32>) -> tensor<32x16xf32> {
  %dw = stablehlo.dot_general %x, %dh, contracting_dims = [0] x [0] : (tensor<4x32xf32>, tensor<4x16xf32>) -> tensor<32x16xf32>
  return %dw : tensor<32x16xf32>
}
