// RUN: fp8-opt %s --fp8-resolve-recipe='recipe=delayed set=forward.activation.history=4 set=forward.weight.history=4' --fp8-decide --fp8-quantize-dots --fp8-compute-types --fp8-drop-verdicts --cse --split-input-file | FileCheck %s

// Each micro-batch of an update is a call of its own. Every call raises entry 0
// of the history; the call that updates the parameter rolls the history.
// CHECK-LABEL: func.func @factor
// CHECK-SAME: %[[H:[^:]*]]: tensor<4xf32> {{{[^}]*}}fp8.path = "fp8.p['w'].activation.amax_history"
// CHECK-SAME: %[[Q:[^:]*]]: tensor<f32> {{{[^}]*}}fp8.path = "fp8.p['w'].activation.quantizer"
// CHECK: %[[AMAX:.*]] = fp8.amax
// CHECK: %[[LAST:.*]] = stablehlo.compare EQ, {{.*}} : (tensor<i32>
// CHECK: %[[FINITE:.*]] = stablehlo.is_finite
// CHECK: %[[TAKEN:.*]] = stablehlo.and %[[LAST]], %[[FINITE]]
// CHECK: stablehlo.slice %[[H]] [0:1]
// CHECK: %[[RUNNING:.*]] = stablehlo.maximum
// CHECK: %[[REST:.*]] = stablehlo.slice %[[H]] [1:4]
// CHECK: %[[NEXT:.*]] = stablehlo.select %{{.*}}, %{{.*}}, %[[Q]]
// CHECK: %[[NOTED:.*]] = stablehlo.concatenate %{{.*}}, %[[REST]]
// CHECK: %[[KEPT:.*]] = stablehlo.select %{{.*}}, %[[NOTED]], %[[H]]
// CHECK: stablehlo.select %[[TAKEN]], %{{.*}}, %[[KEPT]]
// CHECK: stablehlo.select %[[TAKEN]], %[[NEXT]], %[[Q]]
func.func @factor(%w: tensor<32x16xf32> {fp8.kind = "parameter", fp8.role = "state", fp8.path = "p['w']"},
                  %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
                  %count: tensor<i32> {fp8.kind = "other", fp8.role = "state", fp8.path = "n"},
                  %x: tensor<4x32xf32> {fp8.role = "batch", fp8.path = "x"})
    -> (tensor<32x16xf32> {fp8.path = "p['w']", fp8.state = "p['w']"}, tensor<i32> {fp8.path = "n", fp8.state = "n"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "loss"}) {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
  %logits = stablehlo.dot_general %y, %head, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %loss = stablehlo.reduce(%logits init: %init) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %next = stablehlo.add %count, %one : tensor<i32>
  %rest = stablehlo.remainder %next, %three : tensor<i32>
  %last = stablehlo.compare EQ, %count, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %factor = stablehlo.convert %last : (tensor<i1>) -> tensor<f32>
  %spread = stablehlo.broadcast_in_dim %factor, dims = [] : (tensor<f32>) -> tensor<32x16xf32>
  %update = stablehlo.sine %w : tensor<32x16xf32>
  %taken = stablehlo.multiply %update, %spread : tensor<32x16xf32>
  %new = stablehlo.add %w, %taken : tensor<32x16xf32>
  return %new, %rest, %loss : tensor<32x16xf32>, tensor<i32>, tensor<f32>
}

// -----

// If the gradients make the step reject its update, no amax is recorded either.
// Otherwise the history is updated in the last call.
// CHECK-LABEL: func.func @rejected
// CHECK: %[[CASE:.*]]:3 = "stablehlo.case"(%{{.*}}) ({
// CHECK: %[[EMIT:.*]] = stablehlo.compare EQ
// CHECK: %[[TRUE:.*]] = stablehlo.constant dense<true>
// CHECK: stablehlo.return %{{.*}}, %[[EMIT]], %[[TRUE]]
// CHECK: }, {
// CHECK: %[[FALSE:.*]] = stablehlo.constant dense<false>
// CHECK: stablehlo.return %{{.*}}, %[[FALSE]], %[[FALSE]] :
// CHECK-DAG: %[[TAKEN:.*]] = stablehlo.reshape %[[CASE]]#1
// CHECK-DAG: %[[VALID:.*]] = stablehlo.reshape %[[CASE]]#2
// CHECK: %[[FINITE:.*]] = stablehlo.is_finite
// CHECK-DAG: stablehlo.and %[[TAKEN]], %[[FINITE]]
// CHECK-DAG: stablehlo.and %[[VALID]], %[[FINITE]]
func.func @rejected(%w: tensor<32x16xf32> {fp8.kind = "parameter", fp8.role = "state", fp8.path = "p['w']"},
                    %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
                    %count: tensor<i32> {fp8.kind = "other", fp8.role = "state", fp8.path = "n"},
                    %x: tensor<4x32xf32> {fp8.role = "batch", fp8.path = "x"})
    -> (tensor<32x16xf32> {fp8.path = "p['w']", fp8.state = "p['w']"}, tensor<f32> {fp8.kind = "loss", fp8.path = "loss"}) {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
  %logits = stablehlo.dot_general %y, %head, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %loss = stablehlo.reduce(%logits init: %init) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
  %size = stablehlo.reduce(%y init: %init) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<4x16xf32>, tensor<f32>) -> tensor<f32>
  %finite = stablehlo.is_finite %size : (tensor<f32>) -> tensor<i1>
  %bad = stablehlo.not %finite : tensor<i1>
  %index = stablehlo.convert %bad : (tensor<i1>) -> tensor<i32>
  %update = "stablehlo.case"(%index) ({
    %three = stablehlo.constant dense<3> : tensor<i32>
    %last = stablehlo.compare EQ, %count, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %factor = stablehlo.convert %last : (tensor<i1>) -> tensor<f32>
    %spread = stablehlo.broadcast_in_dim %factor, dims = [] : (tensor<f32>) -> tensor<32x16xf32>
    %full = stablehlo.sine %w : tensor<32x16xf32>
    %taken = stablehlo.multiply %full, %spread : tensor<32x16xf32>
    stablehlo.return %taken : tensor<32x16xf32>
  }, {
    %zero = stablehlo.constant dense<0.0> : tensor<32x16xf32>
    stablehlo.return %zero : tensor<32x16xf32>
  }) : (tensor<i32>) -> tensor<32x16xf32>
  %new = stablehlo.subtract %w, %update : tensor<32x16xf32>
  return %new, %loss : tensor<32x16xf32>, tensor<f32>
}

// -----

// A select of the old value and a loop that may not run reject no update.
// CHECK-LABEL: func.func @loop
// CHECK: %[[LOOP:.*]]:4 = stablehlo.while({{.*}}) : tensor<i32>, tensor<32x16xf32>, tensor<i1>, tensor<i1>
// CHECK: stablehlo.or
// CHECK: stablehlo.return
// CHECK: stablehlo.select %[[OPEN:.*]], %[[LOOP]]#1
// CHECK: %[[TAKEN:.*]] = stablehlo.select %[[OPEN]], %[[LOOP]]#2
// CHECK: %[[FINITE:.*]] = stablehlo.is_finite
// CHECK: stablehlo.and %[[TAKEN]], %[[FINITE]]
func.func @loop(%w: tensor<32x16xf32> {fp8.kind = "parameter", fp8.role = "state", fp8.path = "p['w']"},
                %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
                %count: tensor<i32> {fp8.kind = "other", fp8.role = "state", fp8.path = "n"},
                %x: tensor<4x32xf32> {fp8.role = "batch", fp8.path = "x"})
    -> (tensor<32x16xf32> {fp8.path = "p['w']", fp8.state = "p['w']"}, tensor<f32> {fp8.kind = "loss", fp8.path = "loss"}) {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
  %logits = stablehlo.dot_general %y, %head, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %loss = stablehlo.reduce(%logits init: %init) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %l:2 = stablehlo.while(%i = %zero, %v = %w) : tensor<i32>, tensor<32x16xf32>
  cond {
    %c = stablehlo.compare LT, %i, %count : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %s = stablehlo.sine %v : tensor<32x16xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %s : tensor<i32>, tensor<32x16xf32>
  }
  %seven = stablehlo.constant dense<7> : tensor<i32>
  %open = stablehlo.compare NE, %count, %seven : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %new = stablehlo.select %open, %l#1, %w : tensor<i1>, tensor<32x16xf32>
  return %new, %loss : tensor<32x16xf32>, tensor<f32>
}
