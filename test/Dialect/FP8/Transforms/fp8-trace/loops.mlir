// RUN: fp8-opt %s --fp8-quantize='recipe=tensorwise trace=true' --split-input-file | FileCheck %s

// A loop over layers: a row for each layer. Activations write theirs in the
// loop, the weights of all layers are quantized before it.
// CHECK-LABEL: func.func @layers(
// CHECK-SAME: -> (tensor<f32> {fp8.kind = "loss", fp8.path = "loss"},
// CHECK-SAME: tensor<3x11xf64> {fp8.kind = "trace_quantization", fp8.path = "trace.quantization.p['w'].weight"},
// CHECK-SAME: tensor<3x11xf64> {fp8.kind = "trace_quantization", fp8.path = "trace.quantization.p['w'].activation"})
// CHECK: fp8.quantize {{.*}} : tensor<3x32x32xf32>
// CHECK: stablehlo.concatenate {{.*}} -> tensor<3x11xf64>
// CHECK: stablehlo.while({{.*}}%[[ROWS:[^ ]*]] = {{.*}}tensor<3x11xf64>
// CHECK: do {
// CHECK: fp8.quantize {{.*}} : tensor<4x32xf32>
// CHECK: stablehlo.dynamic_slice %[[ROWS]], %[[I:[^,]*]], %{{.*}}, sizes = [1, 11]
// CHECK: stablehlo.select
// CHECK: stablehlo.dynamic_update_slice %[[ROWS]], %{{.*}}, %[[I]],
func.func @layers(%w: tensor<3x32x32xf32> {fp8.role = "frozen", fp8.path = "p['w']"},
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

// -----

// Micro-batches: the weight does not change with the loop, so its iterations
// add to one row, maxima and sums alike.
// CHECK-LABEL: func.func @micro_batches(
// CHECK-SAME: tensor<11xf64> {fp8.kind = "trace_quantization", fp8.path = "trace.quantization.p['w'].activation"}
// CHECK: %[[MASK:.*]] = stablehlo.constant dense<[true, true, true, false, false, false, false, false, false, false, false]>
// CHECK: stablehlo.while({{.*}}%[[ROW:[^ ]*]] = {{.*}}tensor<11xf64>
// CHECK: do {
// CHECK: %[[NEW:.*]] = stablehlo.concatenate {{.*}} -> tensor<11xf64>
// CHECK: %[[MAX:.*]] = stablehlo.maximum %[[ROW]], %[[NEW]]
// CHECK: %[[SUM:.*]] = stablehlo.add %[[ROW]], %[[NEW]]
// CHECK: stablehlo.select %[[MASK]], %[[MAX]], %[[SUM]]
func.func @micro_batches(%w: tensor<32x32xf32> {fp8.role = "frozen", fp8.path = "p['w']"},
                         %head: tensor<32x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
                         %x: tensor<3x4x32xf32> {fp8.role = "batch", fp8.path = "x"}) -> (tensor<f32> {fp8.kind = "loss", fp8.path = "loss"}) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %0:2 = stablehlo.while(%i = %zero, %sum = %init) : tensor<i32>, tensor<f32>
  cond {
    %1 = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %x, %i, %zero, %zero, sizes = [1, 4, 32]
        : (tensor<3x4x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x32xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x4x32xf32>) -> tensor<4x32xf32>
    %3 = stablehlo.dot_general %2, %w, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    %4 = stablehlo.tanh %3 : tensor<4x32xf32>
    %logits = stablehlo.dot_general %4, %head, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x8xf32>) -> tensor<4x8xf32>
    %loss = stablehlo.reduce(%logits init: %init) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
    %5 = stablehlo.add %sum, %loss : tensor<f32>
    %6 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %6, %5 : tensor<i32>, tensor<f32>
  }
  return %0#1 : tensor<f32>
}

// -----

// A branch that is not taken adds nothing.
// CHECK-LABEL: func.func @branch(
// CHECK-SAME: tensor<11xf64> {fp8.kind = "trace_quantization", fp8.path = "trace.quantization.p['w'].activation"}
// CHECK: %[[BEFORE:.*]] = stablehlo.constant dense<[0xFFF0000000000000, 0xFFF0000000000000, 0xFFF0000000000000, 0.0
// CHECK: %[[IF:.*]]:2 = "stablehlo.if"
// CHECK: fp8.quantize
// CHECK: %[[AFTER:.*]] = stablehlo.select
// CHECK: stablehlo.return %{{.*}}, %[[AFTER]]
// CHECK: stablehlo.return %{{.*}}, %[[BEFORE]]
// CHECK: return %{{.*}}, %[[IF]]#1
func.func @branch(%w: tensor<32x32xf32> {fp8.role = "frozen", fp8.path = "p['w']"},
                  %head: tensor<32x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
                  %x: tensor<4x32xf32> {fp8.role = "batch", fp8.path = "x"},
                  %p: tensor<i1> {fp8.role = "batch", fp8.path = "p"}) -> (tensor<f32> {fp8.kind = "loss", fp8.path = "loss"}) {
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.sine %x : tensor<4x32xf32>
    %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
    stablehlo.return %2 : tensor<4x32xf32>
  }, {
    stablehlo.return %x : tensor<4x32xf32>
  }) : (tensor<i1>) -> tensor<4x32xf32>
  %3 = stablehlo.tanh %0 : tensor<4x32xf32>
  %logits = stablehlo.dot_general %3, %head, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x8xf32>) -> tensor<4x8xf32>
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %loss = stablehlo.reduce(%logits init: %init) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}
