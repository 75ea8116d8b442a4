// RUN: fp8-opt %s --convert-fp8-to-linalg | FileCheck %s

!t = !fp8.scaled<8x16xf8E4M3FN, tile = [*, *], scale = f32>
!r = !fp8.scaled<8x16xf8E4M3FN, tile = [1, *], scale = f32>

// Names survive; donation by index stays with the payload.
// CHECK-LABEL: func @main(
// CHECK-SAME: %[[P:.*]]: tensor<8x16xf8E4M3FN> {fp8.kind = "parameter", fp8.path = "p['w']", fp8.role = "state", tf.aliasing_output = 0 : i32},
// CHECK-SAME: %[[S:.*]]: tensor<f32> {fp8.kind = "parameter", fp8.path = "p['w'].scale", fp8.role = "state"},
// CHECK-SAME: %[[X:.*]]: tensor<4xf32> {fp8.path = "x", fp8.role = "batch"})
// CHECK-SAME: -> (tensor<4xf32> {fp8.path = "y"},
// CHECK-SAME: tensor<8x16xf8E4M3FN> {fp8.path = "q['w']", fp8.state = "p['w']"},
// CHECK-SAME: tensor<f32> {fp8.path = "q['w'].scale", fp8.state = "p['w'].scale"})
func.func @main(%w: !t {fp8.path = "p['w']", fp8.role = "state", fp8.kind = "parameter", tf.aliasing_output = 0 : i32},
                %x: tensor<4xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<4xf32> {fp8.path = "y"}, !t {fp8.path = "q['w']", fp8.state = "p['w']"}) {
  // CHECK: %[[C:.*]]:3 = call @callee(%[[P]], %[[S]]) : (tensor<8x16xf8E4M3FN>, tensor<f32>) -> (tensor<i1>, tensor<8x16xf8E4M3FN>, tensor<f32>)
  %c, %0 = func.call @callee(%w) : (!t) -> (tensor<i1>, !t)
  // CHECK: return %[[X]], %[[C]]#1, %[[C]]#2
  return %x, %0 : tensor<4xf32>, !t
}

// CHECK: func private @callee(tensor<8x16xf8E4M3FN>, tensor<f32>) -> (tensor<i1>, tensor<8x16xf8E4M3FN>, tensor<f32>)
func.func private @callee(!t) -> (tensor<i1>, !t)

// Smaller tiles pass through where nothing is computed with them.
// CHECK-LABEL: func @pairs(
// CHECK-SAME: %[[P:.*]]: tensor<8x16xf8E4M3FN>, %[[S:.*]]: tensor<8x1xf32>
// CHECK-NEXT: return %[[P]], %[[S]]
func.func @pairs(%p: tensor<8x16xf8E4M3FN>, %s: tensor<8x1xf32>) -> !r {
  %0 = fp8.pack %p, %s : !r
  %1, %2 = fp8.unpack %0 : !r
  %3 = fp8.pack %1, %2 : !r
  return %3 : !r
}

// CHECK-LABEL: func @loop(
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (tensor<8x16xf8E4M3FN>, tensor<f32>)
// CHECK: scf.yield %{{.*}}, %{{.*}} : tensor<8x16xf8E4M3FN>, tensor<f32>
func.func @loop(%x: !t, %n: index) -> !t {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (!t) {
    %1:2 = func.call @callee(%a) : (!t) -> (tensor<i1>, !t)
    scf.yield %1#1 : !t
  }
  return %0 : !t
}

// Regions capture a scaled tensor; a loop of StableHLO carries one as the pair.
// CHECK-LABEL: func @control_flow(
// CHECK-SAME: %[[P:[a-z0-9]*]]: tensor<8x16xf8E4M3FN>, %[[S:[a-z0-9]*]]: tensor<f32>
func.func @control_flow(%x: !t, %n: tensor<i32>, %p: tensor<i1>) -> (!t, tensor<8x16xf32>) {
  // CHECK: %[[W:.*]]:3 = stablehlo.while(%{{.*}} = %{{.*}}, %[[CP:.*]] = %[[P]], %[[CS:.*]] = %[[S]]) : tensor<i32>, tensor<8x16xf8E4M3FN>, tensor<f32>
  %px, %sx = fp8.unpack %x : !t
  %0:3 = stablehlo.while(%i = %n, %payload = %px, %scale = %sx) : tensor<i32>, tensor<8x16xf8E4M3FN>, tensor<f32>
  cond {
    %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %carry = fp8.pack %payload, %scale : !t
    // CHECK: linalg.generic
    // CHECK-SAME: ins(%[[CP]], %[[CS]]
    %d = fp8.dequantize %carry : !t -> tensor<8x16xf32>
    %a = fp8.amax %d : tensor<8x16xf32> -> tensor<f32>
    // CHECK: %[[G:.*]]:2 = linalg.generic
    %s, %q = fp8.compute_scale %a {rule = #fp8.scale_rule<pow2>, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
    // CHECK: %[[Q:.*]] = linalg.generic
    %y = fp8.quantize %d, %s, %q rounding = nearest_even, overflow = saturate : tensor<8x16xf32> -> !t
    %py, %sy = fp8.unpack %y : !t
    // CHECK: stablehlo.return %{{.*}}, %[[Q]], %[[G]]#0
    stablehlo.return %i, %py, %sy : tensor<i32>, tensor<8x16xf8E4M3FN>, tensor<f32>
  }
  // CHECK: "stablehlo.if"
  %1 = "stablehlo.if"(%p) ({
    // CHECK: ins(%[[W]]#1, %[[W]]#2
    %z = fp8.pack %0#1, %0#2 : !t
    %d = fp8.dequantize %z : !t -> tensor<8x16xf32>
    stablehlo.return %d : tensor<8x16xf32>
  }, {
    // CHECK: ins(%[[P]], %[[S]]
    %d = fp8.dequantize %x : !t -> tensor<8x16xf32>
    stablehlo.return %d : tensor<8x16xf32>
  }) : (tensor<i1>) -> tensor<8x16xf32>
  return %x, %1 : !t, tensor<8x16xf32>
}
