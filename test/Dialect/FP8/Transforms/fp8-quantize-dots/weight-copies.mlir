// RUN: fp8-opt %s --fp8-quantize='recipe=delayed set=forward.weight.history=4 set=dgrad=none set=wgrad=none set=weight_copies=state' --split-input-file | FileCheck %s

// The step's dot reads a payload that it is given. At the end, the new weight is
// quantized by a scale that follows from the amaxes of the old ones; a scale of
// its own is computed only where there was never one.
// CHECK-LABEL: func.func @always
// CHECK-SAME: %[[W:[^:]*]]: tensor<32x16xf32>
// CHECK-SAME: %[[H:[^:]*]]: tensor<4xf32> {{{[^}]*}}fp8.path = "fp8.p['w'].weight.amax_history"
// CHECK-SAME: %[[P:[^:]*]]: !fp8.scaled<32x16xf8E4M3FN, tile = [*, *], scale = f32> {fp8.kind = "other", fp8.path = "fp8.p['w'].weight.payload", fp8.role = "state"}
// CHECK-SAME: %[[AMAX:[^:]*]]: tensor<f32> {fp8.kind = "other", fp8.path = "fp8.p['w'].weight.amax", fp8.role = "state"}
// CHECK: fp8.dot_general %{{.*}}, %[[P]]
// CHECK: %[[NEW:.*]] = stablehlo.subtract %[[W]]
// CHECK: %[[QUANTIZER:.*]] = stablehlo.select
// CHECK: %[[FIRST:.*]]:2 = "stablehlo.if"
// CHECK: fp8.amax
// CHECK: fp8.compute_scale
// CHECK: %[[NEXT:.*]] = fp8.amax %[[NEW]]
// CHECK: %[[Q:.*]] = fp8.quantize %[[NEW]]
// CHECK-NOT: fp8.quantize
// CHECK: return {{.*}}%[[Q]], %[[NEXT]]

// CHECK: func.func private @fp8_store(%[[W0:.*]]: tensor<32x16xf32> {fp8.path = "p['w']", fp8.role = "frozen"})
// CHECK-SAME: -> (!fp8.scaled<32x16xf8E4M3FN, tile = [*, *], scale = f32> {fp8.kind = "output", fp8.path = "fp8.p['w'].weight.payload"}, tensor<f32> {fp8.kind = "output", fp8.path = "fp8.p['w'].weight.amax"})
// CHECK-SAME: fp8.entry = "store"
// CHECK: fp8.quantize %[[W0]]
// CHECK: func.func private @fp8_load() attributes {fp8.entry = "load"}
func.func @always(%w: tensor<32x16xf32> {fp8.kind = "parameter", fp8.role = "state", fp8.path = "p['w']"},
                  %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
                  %x: tensor<4x32xf32> {fp8.role = "batch", fp8.path = "x"})
    -> (tensor<32x16xf32> {fp8.path = "p['w']", fp8.state = "p['w']"}, tensor<f32> {fp8.kind = "loss", fp8.path = "loss"}) {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
  %logits = stablehlo.dot_general %y, %head, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %loss = stablehlo.reduce(%logits init: %init) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
  %update = stablehlo.sine %w : tensor<32x16xf32>
  %new = stablehlo.subtract %w, %update : tensor<32x16xf32>
  return %new, %loss : tensor<32x16xf32>, tensor<f32>
}

// -----

// The dot reads a view of the weights in bf16: so does the copy. Where the step
// does not take its update, it passes the copy on.
// CHECK-LABEL: func.func @sometimes
// CHECK-SAME: %[[P:[^:]*]]: !fp8.scaled<32x16xf8E4M3FN, tile = [*, *], scale = f32> {{{[^}]*}}fp8.path = "fp8.p['w'].weight.payload"
// CHECK-SAME: %[[AMAX:[^:]*]]: tensor<f32> {{{[^}]*}}fp8.path = "fp8.p['w'].weight.amax"
// CHECK: %[[FINITE:.*]] = stablehlo.is_finite
// CHECK: %[[NEW:.*]] = stablehlo.select %[[FINITE]]
// CHECK: %[[PAYLOAD:.*]], %[[SCALE:.*]] = fp8.unpack %[[P]]
// CHECK: "stablehlo.if"(%[[FINITE]]) ({
// CHECK: fp8.compute_scale
// CHECK: %[[NARROW:.*]] = stablehlo.convert %[[NEW]]
// CHECK: fp8.quantize %[[NARROW]]
// CHECK: }, {
// CHECK-NEXT: stablehlo.return %[[PAYLOAD]], %[[SCALE]], %[[AMAX]]
// CHECK: func.func private @fp8_store(%[[W0:.*]]: tensor<32x16xf32>
// CHECK: stablehlo.convert %[[W0]]
func.func @sometimes(%w: tensor<32x16xf32> {fp8.kind = "parameter", fp8.role = "state", fp8.path = "p['w']"},
                     %head: tensor<16x8xbf16> {fp8.role = "frozen", fp8.path = "p['head']"},
                     %x: tensor<4x32xbf16> {fp8.role = "batch", fp8.path = "x"})
    -> (tensor<32x16xf32> {fp8.path = "p['w']", fp8.state = "p['w']"}, tensor<bf16> {fp8.kind = "loss", fp8.path = "loss"}) {
  %wide = stablehlo.convert %w : (tensor<32x16xf32>) -> tensor<32x16xbf16>
  %y = stablehlo.dot_general %x, %wide, contracting_dims = [1] x [0] : (tensor<4x32xbf16>, tensor<32x16xbf16>) -> tensor<4x16xbf16>
  %logits = stablehlo.dot_general %y, %head, contracting_dims = [1] x [0] : (tensor<4x16xbf16>, tensor<16x8xbf16>) -> tensor<4x8xbf16>
  %init = stablehlo.constant dense<0.0> : tensor<bf16>
  %loss = stablehlo.reduce(%logits init: %init) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xbf16>, tensor<bf16>) -> tensor<bf16>
  %finite = stablehlo.is_finite %loss : (tensor<bf16>) -> tensor<i1>
  %update = stablehlo.sine %w : tensor<32x16xf32>
  %updated = stablehlo.subtract %w, %update : tensor<32x16xf32>
  %new = stablehlo.select %finite, %updated, %w : tensor<i1>, tensor<32x16xf32>
  return %new, %loss : tensor<32x16xf32>, tensor<bf16>
}
