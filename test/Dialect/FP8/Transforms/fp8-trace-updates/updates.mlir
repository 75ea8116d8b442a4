// RUN: fp8-opt %s --fp8-trace-updates --split-input-file | FileCheck %s

// What a second moment averages and what the update divides by, in different
// spellings: count and sum of g^2 / v are a row, called as the parameter.

// v = b v + (1 - b) g g, with the bias corrected and g clipped.
// CHECK-LABEL: func.func @adam(
// CHECK-SAME: tensor<2xf64> {fp8.kind = "trace_update", fp8.path = "trace.update.a"}
// CHECK: %[[CLIPPED:.*]] = stablehlo.multiply %{{.*}}, %{{.*}} : tensor<4x32xf32>
// CHECK: %[[V:.*]] = stablehlo.divide
// CHECK: %[[G64:.*]] = stablehlo.convert %[[CLIPPED]] : (tensor<4x32xf32>) -> tensor<4x32xf64>
// CHECK: %[[V64:.*]] = stablehlo.convert %[[V]] : (tensor<4x32xf32>) -> tensor<4x32xf64>
// CHECK: %[[LEAST:.*]] = stablehlo.maximum %[[V64]]
// CHECK: %[[SQUARE:.*]] = stablehlo.multiply %[[G64]], %[[G64]]
// CHECK: stablehlo.divide %[[SQUARE]], %[[LEAST]]
// CHECK: stablehlo.concatenate {{.*}} -> tensor<2xf64>
// CHECK: stablehlo.sqrt %[[V]]
func.func @adam(%p: tensor<4x32xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "a"},
                %v: tensor<4x32xf32> {fp8.role = "state", fp8.kind = "moment2", fp8.path = "b"},
                %g: tensor<4x32xf32> {fp8.role = "batch", fp8.path = "g"}, %clip: tensor<f32>, %bias: tensor<f32>)
    -> (tensor<4x32xf32> {fp8.state = "b", fp8.path = "r0"}, tensor<4x32xf32> {fp8.state = "a", fp8.path = "r1"}) {
  %c = stablehlo.broadcast_in_dim %clip, dims = [] : (tensor<f32>) -> tensor<4x32xf32>
  %clipped = stablehlo.multiply %g, %c : tensor<4x32xf32>
  %b = stablehlo.constant dense<0.9> : tensor<4x32xf32>
  %rest = stablehlo.constant dense<0.1> : tensor<4x32xf32>
  %0 = stablehlo.multiply %clipped, %rest : tensor<4x32xf32>
  %1 = stablehlo.multiply %0, %clipped : tensor<4x32xf32>
  %2 = stablehlo.multiply %v, %b : tensor<4x32xf32>
  %3 = stablehlo.add %1, %2 : tensor<4x32xf32>
  %4 = stablehlo.broadcast_in_dim %bias, dims = [] : (tensor<f32>) -> tensor<4x32xf32>
  %5 = stablehlo.divide %3, %4 : tensor<4x32xf32>
  %6 = stablehlo.sqrt %5 : tensor<4x32xf32>
  %7 = stablehlo.divide %clipped, %6 : tensor<4x32xf32>
  %8 = stablehlo.subtract %p, %7 : tensor<4x32xf32>
  return %3, %8 : tensor<4x32xf32>, tensor<4x32xf32>
}

// -----

// v + (1 - b)(g^2 - v), in a branch, taken if the gradient is finite.
// CHECK-LABEL: func.func @branch(
// CHECK-SAME: tensor<2xf64> {fp8.kind = "trace_update", fp8.path = "trace.update.a"}
// CHECK: "stablehlo.if"
// CHECK: stablehlo.concatenate {{.*}} -> tensor<2xf64>
// CHECK: %[[SUM:.*]] = stablehlo.select
// CHECK: stablehlo.rsqrt
// CHECK: stablehlo.return %{{.*}}, %{{.*}}, %[[SUM]]
func.func @branch(%p: tensor<4x32xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "a"},
                  %v: tensor<4x32xf32> {fp8.role = "state", fp8.kind = "moment2", fp8.path = "b"},
                  %g: tensor<4x32xf32> {fp8.role = "batch", fp8.path = "g"}, %take: tensor<i1>)
    -> (tensor<4x32xf32> {fp8.state = "b", fp8.path = "r0"}, tensor<4x32xf32> {fp8.state = "a", fp8.path = "r1"}) {
  %0:2 = "stablehlo.if"(%take) ({
    %rest = stablehlo.constant dense<0.1> : tensor<4x32xf32>
    %1 = stablehlo.multiply %g, %g : tensor<4x32xf32>
    %2 = stablehlo.subtract %1, %v : tensor<4x32xf32>
    %3 = stablehlo.multiply %rest, %2 : tensor<4x32xf32>
    %4 = stablehlo.add %v, %3 : tensor<4x32xf32>
    %5 = stablehlo.rsqrt %4 : tensor<4x32xf32>
    %6 = stablehlo.multiply %g, %5 : tensor<4x32xf32>
    %7 = stablehlo.subtract %p, %6 : tensor<4x32xf32>
    stablehlo.return %4, %7 : tensor<4x32xf32>, tensor<4x32xf32>
  }, {
    stablehlo.return %v, %p : tensor<4x32xf32>, tensor<4x32xf32>
  }) : (tensor<i1>) -> (tensor<4x32xf32>, tensor<4x32xf32>)
  return %0#0, %0#1 : tensor<4x32xf32>, tensor<4x32xf32>
}

// -----

// An average of something else than a square is no second moment, whatever its
// kind says.
// CHECK-LABEL: func.func @other(
// CHECK-NOT: trace
func.func @other(%v: tensor<4x32xf32> {fp8.role = "state", fp8.kind = "moment2", fp8.path = "b"},
                 %g: tensor<4x32xf32> {fp8.role = "batch", fp8.path = "g"}, %h: tensor<4x32xf32> {fp8.role = "batch", fp8.path = "h"})
    -> (tensor<4x32xf32> {fp8.state = "b", fp8.path = "r0"}, tensor<4x32xf32> {fp8.path = "r1", fp8.kind = "output"}) {
  %0 = stablehlo.multiply %g, %h : tensor<4x32xf32>
  %1 = stablehlo.add %0, %v : tensor<4x32xf32>
  %2 = stablehlo.sqrt %1 : tensor<4x32xf32>
  return %1, %2 : tensor<4x32xf32>, tensor<4x32xf32>
}
