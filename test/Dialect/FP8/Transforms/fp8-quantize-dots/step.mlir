// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide --fp8-quantize-dots --fp8-compute-types --fp8-drop-verdicts --cse | FileCheck %s
// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=none --fp8-decide --fp8-quantize-dots --fp8-compute-types --fp8-drop-verdicts | FileCheck %s --check-prefix=NONE

// A step of two linear layers and a head, as JAX differentiates them. Both
// layers and their gradients become FP8, the head does not; every tensor is
// quantized once, where it is defined.

// NONE-NOT: fp8.amax
// NONE-NOT: fp8.dot_general
// NONE-COUNT-8: stablehlo.dot_general

// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %[[W1:[a-z0-9]+]]: tensor<32x16xf32> {
// CHECK-SAME: %[[W2:[a-z0-9]+]]: tensor<16x16xf32> {
// CHECK-SAME: %[[HEAD:[a-z0-9]+]]: tensor<16x8xf32> {
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x32xf32> {
func.func public @main(
    %w1: tensor<32x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['w1']"},
    %w2: tensor<16x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['w2']"},
    %head: tensor<16x8xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['head']"},
    %x: tensor<4x32xf32> {fp8.role = "batch", fp8.path = "x"})
    -> (tensor<32x16xf32> {fp8.state = "p['w1']", fp8.path = "r['w1']"},
        tensor<16x16xf32> {fp8.state = "p['w2']", fp8.path = "r['w2']"},
        tensor<16x8xf32> {fp8.state = "p['head']", fp8.path = "r['head']"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>

  // CHECK: %[[AX:.*]] = fp8.amax %[[X]] : tensor<4x32xf32> -> tensor<f32>
  // CHECK: %[[SX:.*]], %[[QX:.*]] = fp8.compute_scale %[[AX]] {{.*}}format = f8E4M3FN
  // CHECK: %[[XS:.*]] = fp8.quantize %[[X]], %[[SX]], %[[QX]] rounding = nearest_even, overflow = saturate
  // CHECK: %[[W1S:.*]] = fp8.quantize %[[W1]],
  // CHECK: %[[H1:.*]] = fp8.dot_general %[[XS]], %[[W1S]], contracting_dims = [1] x [0] {accumulator = f32}
  // CHECK-SAME: -> tensor<4x16xf32>
  %h1 = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT]
      : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
  // CHECK: %[[A1:.*]] = stablehlo.tanh %[[H1]]
  // CHECK: %[[A1S:.*]] = fp8.quantize %[[A1]], {{.*}} -> !fp8.scaled<4x16xf8E4M3FN, tile = [*, *], scale = f32>
  %a1 = stablehlo.tanh %h1 : tensor<4x16xf32>
  // CHECK: %[[W2S:.*]] = fp8.quantize %[[W2]],
  // CHECK: fp8.dot_general %[[A1S]], %[[W2S]], contracting_dims = [1] x [0]
  %h2 = stablehlo.dot_general %a1, %w2, contracting_dims = [1] x [0]
      : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  %a2 = stablehlo.tanh %h2 : tensor<4x16xf32>
  // CHECK: %[[HEADB:.*]] = stablehlo.convert %[[HEAD]] : (tensor<16x8xf32>) -> tensor<16x8xbf16>
  // CHECK: stablehlo.dot_general {{.*}}, %[[HEADB]], {{.*}} -> tensor<4x8xf32>
  %y = stablehlo.dot_general %a2, %head, contracting_dims = [1] x [0]
      : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1]
      : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>

  // The head's gradients stay with the head.
  %dy = stablehlo.cosine %y : tensor<4x8xf32>
  // CHECK: stablehlo.dot_general
  %dhead_t = stablehlo.dot_general %dy, %a2, contracting_dims = [0] x [0]
      : (tensor<4x8xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %dhead = stablehlo.transpose %dhead_t, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
  // CHECK: stablehlo.dot_general {{.*}}, %[[HEADB]]
  %da2 = stablehlo.dot_general %dy, %head, contracting_dims = [1] x [1]
      : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  // CHECK: %[[DH2:.*]] = stablehlo.multiply
  // CHECK: %[[DH2S:.*]] = fp8.quantize %[[DH2]], {{.*}} -> !fp8.scaled<4x16xf8E5M2, tile = [*, *], scale = f32>
  %dh2 = stablehlo.multiply %da2, %h2 : tensor<4x16xf32>
  // CHECK: fp8.dot_general %[[DH2S]], %[[A1S]], contracting_dims = [0] x [0]
  %dw2_t = stablehlo.dot_general %dh2, %a1, contracting_dims = [0] x [0]
      : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<16x16xf32>
  %dw2 = stablehlo.transpose %dw2_t, dims = [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>
  // The weight is square: which of its dimensions is contracted tells dgrad
  // from forward.
  // CHECK: fp8.dot_general %[[DH2S]], %[[W2S]], contracting_dims = [1] x [1]
  %da1 = stablehlo.dot_general %dh2, %w2, contracting_dims = [1] x [1]
      : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  // CHECK: %[[DH1S:.*]] = fp8.quantize {{.*}} -> !fp8.scaled<4x16xf8E5M2
  %dh1 = stablehlo.multiply %da1, %h1 : tensor<4x16xf32>
  // CHECK: fp8.dot_general %[[DH1S]], %[[XS]], contracting_dims = [0] x [0]
  %dw1_t = stablehlo.dot_general %dh1, %x, contracting_dims = [0] x [0]
      : (tensor<4x16xf32>, tensor<4x32xf32>) -> tensor<16x32xf32>
  %dw1 = stablehlo.transpose %dw1_t, dims = [1, 0] : (tensor<16x32xf32>) -> tensor<32x16xf32>
  // CHECK-NOT: fp8.quantize
  %w1_new = stablehlo.subtract %w1, %dw1 : tensor<32x16xf32>
  %w2_new = stablehlo.subtract %w2, %dw2 : tensor<16x16xf32>
  %head_new = stablehlo.subtract %head, %dhead : tensor<16x8xf32>
  return %w1_new, %w2_new, %head_new, %loss
      : tensor<32x16xf32>, tensor<16x16xf32>, tensor<16x8xf32>, tensor<f32>
}
