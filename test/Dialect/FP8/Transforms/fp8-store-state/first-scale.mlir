// RUN: fp8-opt %s --split-input-file --fp8-resolve-recipe="set=optimizer.moment2.format=f8E5M2 set=optimizer.moment2.scaling=delayed set=optimizer.min_elements=1" --fp8-store-state --fp8-drop-verdicts --canonicalize --cse | FileCheck %s

// Before a delayed scale is set the value's own amax scales it, in a branch that
// computes the value again: the update that is always there waits for nothing.

// CHECK-LABEL: func.func @dot(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<f32> {{{[^}]*}}fp8.path = "fp8.v.quantizer"
// CHECK: %[[GRAD:.*]] = stablehlo.add
// CHECK: %[[UNSET:.*]] = stablehlo.compare EQ, %[[Q]]
// CHECK: %[[FIRST:.*]]:2 = "stablehlo.if"(%[[UNSET]]) ({
// CHECK: %[[G:.*]] = stablehlo.dot_general %{{.*}}, %[[GRAD]]
// CHECK: %[[S:.*]] = stablehlo.multiply %[[G]], %[[G]]
// CHECK: %[[V:.*]] = stablehlo.add
// CHECK: fp8.amax %[[V]]
// CHECK: fp8.compute_scale
// CHECK: }, {
// CHECK-NEXT: stablehlo.return %[[ONE:.*]], %[[ONE]]
// CHECK: %[[QUANTIZER:.*]] = stablehlo.select %[[UNSET]], %[[FIRST]]#1, %[[Q]]
// CHECK: %[[SCALE:.*]] = stablehlo.select %[[UNSET]], %[[FIRST]]#0
// CHECK: %[[G2:.*]] = stablehlo.dot_general %{{.*}}, %[[GRAD]]
// CHECK: fp8.quantize %{{.*}}, %[[SCALE]], %[[QUANTIZER]]
func.func @dot(%v: tensor<64x32xf32> {fp8.kind = "moment2", fp8.parameter = "p", fp8.path = "v", fp8.role = "state"},
               %x: tensor<8x64xf32> {fp8.path = "x", fp8.role = "batch"}, %y: tensor<8x32xf32> {fp8.path = "y", fp8.role = "batch"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "v"}) {
  %0 = stablehlo.add %y, %y : tensor<8x32xf32>
  %1 = stablehlo.dot_general %x, %0, contracting_dims = [0] x [0] : (tensor<8x64xf32>, tensor<8x32xf32>) -> tensor<64x32xf32>
  %2 = stablehlo.multiply %1, %1 : tensor<64x32xf32>
  %3 = stablehlo.add %v, %2 : tensor<64x32xf32>
  return %3 : tensor<64x32xf32>
}

// -----

// What is divided by the gradient's norm is there anyway.

// CHECK-LABEL: func.func @norm(
// CHECK: %[[G:.*]] = stablehlo.dot_general
// CHECK: %[[NORM:.*]] = stablehlo.reduce(%[[G]]
// CHECK: "stablehlo.if"
// CHECK-NOT: stablehlo.dot_general
// CHECK: stablehlo.divide %[[G]]
// CHECK: fp8.amax
// CHECK: fp8.quantize
func.func @norm(%v: tensor<64x32xf32> {fp8.kind = "moment2", fp8.parameter = "p", fp8.path = "v", fp8.role = "state"},
                %x: tensor<8x64xf32> {fp8.path = "x", fp8.role = "batch"}, %y: tensor<8x32xf32> {fp8.path = "y", fp8.role = "batch"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "v"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<8x64xf32>, tensor<8x32xf32>) -> tensor<64x32xf32>
  %norm = stablehlo.reduce(%1 init: %zero) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<64x32xf32>, tensor<f32>) -> tensor<f32>
  %spread = stablehlo.broadcast_in_dim %norm, dims = [] : (tensor<f32>) -> tensor<64x32xf32>
  %g = stablehlo.divide %1, %spread : tensor<64x32xf32>
  %2 = stablehlo.multiply %g, %g : tensor<64x32xf32>
  %3 = stablehlo.add %v, %2 : tensor<64x32xf32>
  return %3 : tensor<64x32xf32>
}

// -----

// In the branch that takes the update.

// CHECK-LABEL: func.func @branch(
// CHECK: "stablehlo.if"(%{{.*}}) ({
// CHECK: %[[FIRST:.*]]:2 = "stablehlo.if"
// CHECK: fp8.amax
// CHECK: fp8.quantize
// CHECK: }, {
// CHECK-NEXT: stablehlo.return %{{.*}}, %{{.*}}
func.func @branch(%v: tensor<64x32xf32> {fp8.kind = "moment2", fp8.parameter = "p", fp8.path = "v", fp8.role = "state"},
                  %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"}, %c: tensor<i1> {fp8.path = "c", fp8.role = "constant"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "v"}) {
  %0 = "stablehlo.if"(%c) ({
    %2 = stablehlo.multiply %g, %g : tensor<64x32xf32>
    %3 = stablehlo.add %v, %2 : tensor<64x32xf32>
    stablehlo.return %3 : tensor<64x32xf32>
  }, {
    stablehlo.return %v : tensor<64x32xf32>
  }) : (tensor<i1>) -> tensor<64x32xf32>
  return %0 : tensor<64x32xf32>
}
