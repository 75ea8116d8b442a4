// RUN: fp8-opt %s --fp8-split-heads | FileCheck %s

// A softmax over scores and one sink for each row is computed as two values;
// sums over keys add the sink's.

#attention = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
  batch = 1, m = 16, n = 16, k = 8, lhs_format = f32, rhs_format = f32, reason = "attention">

// CHECK-LABEL: @sink
// CHECK-SAME: %[[SINK:[a-z0-9]*]]: tensor<16x1xf32>)
// CHECK: %[[S:.*]] = stablehlo.dot_general
// CHECK-NOT: 16x17
// CHECK: %[[LARGEST:.*]] = stablehlo.reduce(%[[S]] {{.*}} applies stablehlo.maximum
// CHECK: %[[ONE:.*]] = stablehlo.reshape %[[SINK]]
// CHECK: %[[MAX:.*]] = stablehlo.maximum %[[LARGEST]], %[[ONE]]
// CHECK: %[[MAXES:.*]] = stablehlo.broadcast_in_dim %[[MAX]], dims = [0] : (tensor<16xf32>) -> tensor<16x16xf32>
// CHECK: %[[A:.*]] = stablehlo.subtract %[[S]], %[[MAXES]]
// CHECK: %[[B:.*]] = stablehlo.subtract %[[SINK]],
// CHECK: %[[EA:.*]] = stablehlo.exponential %[[A]]
// CHECK: %[[EB:.*]] = stablehlo.exponential %[[B]]
// CHECK: stablehlo.reduce(%[[EA]] {{.*}} applies stablehlo.add
// CHECK: stablehlo.reshape %[[EB]]
// CHECK: %[[P:.*]] = stablehlo.divide %[[EA]],
// CHECK: stablehlo.dot_general %[[P]],
func.func @sink(%q: tensor<16x8xf32>, %k: tensor<16x8xf32>, %v: tensor<16x8xf32>, %sink: tensor<16x1xf32>) -> tensor<16x8xf32> {
  %inf = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] {fp8.verdict = #attention} : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
  %all = stablehlo.concatenate %s, %sink, dim = 1 : (tensor<16x16xf32>, tensor<16x1xf32>) -> tensor<16x17xf32>
  %max = stablehlo.reduce(%all init: %inf) applies stablehlo.maximum across dimensions = [1] : (tensor<16x17xf32>, tensor<f32>) -> tensor<16xf32>
  %maxes = stablehlo.broadcast_in_dim %max, dims = [0] : (tensor<16xf32>) -> tensor<16x17xf32>
  %shifted = stablehlo.subtract %all, %maxes : tensor<16x17xf32>
  %e = stablehlo.exponential %shifted : tensor<16x17xf32>
  %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<16x17xf32>, tensor<f32>) -> tensor<16xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<16xf32>) -> tensor<16x17xf32>
  %weights = stablehlo.divide %e, %sums : tensor<16x17xf32>
  %p = stablehlo.slice %weights [0:16, 0:16] : (tensor<16x17xf32>) -> tensor<16x16xf32>
  %out = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] {fp8.verdict = #attention} : (tensor<16x16xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  return %out : tensor<16x8xf32>
}

// A dot with all of the keys needs the whole value.
// CHECK-LABEL: @more_keys
// CHECK: stablehlo.concatenate
// CHECK: stablehlo.exponential %{{.*}} : tensor<16x17xf32>
func.func @more_keys(%q: tensor<16x8xf32>, %k: tensor<16x8xf32>, %v: tensor<17x8xf32>, %sink: tensor<16x1xf32>) -> tensor<16x8xf32> {
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] {fp8.verdict = #attention} : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
  %all = stablehlo.concatenate %s, %sink, dim = 1 : (tensor<16x16xf32>, tensor<16x1xf32>) -> tensor<16x17xf32>
  %e = stablehlo.exponential %all : tensor<16x17xf32>
  %out = stablehlo.dot_general %e, %v, contracting_dims = [1] x [0] {fp8.verdict = #attention} : (tensor<16x17xf32>, tensor<17x8xf32>) -> tensor<16x8xf32>
  return %out : tensor<16x8xf32>
}

// Of one score and one sink the initial value is still a part of the maximum.
// CHECK-LABEL: @one_key
// CHECK-SAME: %[[SINK:[a-z0-9]*]]: tensor<3x1xf32>)
// CHECK: %[[S:.*]] = stablehlo.dot_general
// CHECK: %[[ONE:.*]] = stablehlo.reshape %[[S]]
// CHECK: %[[MOST:.*]] = stablehlo.reduce(%[[SINK]] init: %{{.*}}) applies stablehlo.maximum
// CHECK: stablehlo.maximum %[[ONE]], %[[MOST]]
func.func @one_key(%q: tensor<3x8xf32>, %k: tensor<1x8xf32>, %sink: tensor<3x1xf32>) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] {fp8.verdict = #attention} : (tensor<3x8xf32>, tensor<1x8xf32>) -> tensor<3x1xf32>
  %all = stablehlo.concatenate %s, %sink, dim = 1 : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>
  %max = stablehlo.reduce(%all init: %zero) applies stablehlo.maximum across dimensions = [1] : (tensor<3x2xf32>, tensor<f32>) -> tensor<3xf32>
  return %max : tensor<3xf32>
}
