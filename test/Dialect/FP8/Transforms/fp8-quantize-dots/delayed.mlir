// RUN: fp8-opt %s --fp8-quantize='recipe=delayed set=forward.activation.history=4 set=forward.weight.history=4' | FileCheck %s

// Each quantized tensor has a history and a quantizer; where it is not set yet,
// the tensor's own amax scales. In a loop over layers both have an entry for
// each layer.
// CHECK: func.func @main(
// CHECK-SAME: %[[H:[^:]*]]: tensor<4x3xf32> {fp8.kind = "other", fp8.path = "fp8.p['w'].activation.amax_history", fp8.role = "state", fp8.zero_init}
// CHECK-SAME: %[[Q:[^:]*]]: tensor<3xf32> {fp8.kind = "other", fp8.path = "fp8.p['w'].activation.quantizer", fp8.role = "state", fp8.zero_init}
// CHECK-SAME: tensor<4x3x1x1xf32> {{{[^}]*}}fp8.path = "fp8.p['w'].weight.amax_history"
// CHECK-SAME: -> (tensor<f32> {{.*}}tensor<4x3xf32> {fp8.path = "fp8.p['w'].activation.amax_history", fp8.state = "fp8.p['w'].activation.amax_history"}

// The loop brings the amaxes of its layers out.
// CHECK: stablehlo.while({{.*}}) : tensor<i32>, tensor<4x32xf32>, tensor<3xf32>
// CHECK: %[[AMAX:.*]] = fp8.amax
// CHECK: stablehlo.maximum %{{.*}}, %[[AMAX]]
// CHECK: stablehlo.dynamic_update_slice %{{[^,]*}}, %{{[^,]*}}, %[[I:[^ ]*]] :
// CHECK: stablehlo.dynamic_slice %[[Q]], %[[I]], sizes = [1]
// CHECK: fp8.dot_general
// CHECK: stablehlo.return

// Then the next state: nothing of it changes if an amax is not finite.
// CHECK: stablehlo.is_finite
// CHECK: fp8.compute_scale
// CHECK: stablehlo.concatenate
// CHECK: stablehlo.select
func.func @main(%w: tensor<3x32x32xf32> {fp8.role = "frozen", fp8.path = "p['w']"},
                %head: tensor<32x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
                %x: tensor<4x32xf32> {fp8.role = "batch", fp8.path = "x"}) -> (tensor<f32> {fp8.kind = "loss", fp8.path = "loss"}) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<4x32xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %w, %i, %zero, %zero, sizes = [1, 32, 32]
        : (tensor<3x32x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x32x32xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x32x32xf32>) -> tensor<32x32xf32>
    %3 = stablehlo.dot_general %y, %2, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %4 = stablehlo.tanh %3 : tensor<4x32xf32>
    %5 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %5, %4 : tensor<i32>, tensor<4x32xf32>
  }
  %logits = stablehlo.dot_general %0#1, %head, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x8xf32>) -> tensor<4x8xf32>
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %loss = stablehlo.reduce(%logits init: %init) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}
