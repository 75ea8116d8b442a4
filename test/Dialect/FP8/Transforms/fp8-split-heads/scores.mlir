// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-split-heads --canonicalize | FileCheck %s

// Heads of groups: all that is computed from scores has the dimensions of the
// dots. A bias is split in front of its broadcast.
// CHECK-LABEL: @groups
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x3x16x8xf32>, %[[K:[^:]*]]: tensor<2x16x8xf32>, %[[B:[^:]*]]: tensor<6xf32>
// CHECK: %[[S:.*]] = stablehlo.dot_general %[[Q]], %[[K]]
// CHECK: %[[SPLIT:.*]] = stablehlo.reshape %[[B]] : (tensor<6xf32>) -> tensor<2x3xf32>
// CHECK: %[[BIAS:.*]] = stablehlo.broadcast_in_dim %[[SPLIT]], dims = [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x16x16xf32>
// CHECK: %[[BIASED:.*]] = stablehlo.add %[[S]], %[[BIAS]]
// CHECK: %[[MAX:.*]] = stablehlo.reduce(%[[BIASED]] init: %{{.*}}) applies stablehlo.maximum across dimensions = [3]
// CHECK: %[[ROWS:.*]] = stablehlo.broadcast_in_dim %[[MAX]], dims = [0, 1, 2] : (tensor<2x3x16xf32>) -> tensor<2x3x16x16xf32>
// CHECK: %[[P:.*]] = stablehlo.subtract %[[BIASED]], %[[ROWS]]
// CHECK-NOT: stablehlo.reshape
// CHECK: return %[[P]]
module {
  func.func @groups(%q: tensor<2x3x16x8xf32>, %k: tensor<2x16x8xf32>, %b: tensor<6xf32>) -> tensor<2x3x16x16xf32> {
    %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [3] x [2]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 2, m = 48, n = 16, k = 8, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<2x3x16x8xf32>, tensor<2x16x8xf32>) -> tensor<2x3x16x16xf32>
    %m = stablehlo.reshape %s : (tensor<2x3x16x16xf32>) -> tensor<6x16x16xf32>
    %bias = stablehlo.broadcast_in_dim %b, dims = [0] : (tensor<6xf32>) -> tensor<6x16x16xf32>
    %biased = stablehlo.add %m, %bias : tensor<6x16x16xf32>
    %inf = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %max = stablehlo.reduce(%biased init: %inf) applies stablehlo.maximum across dimensions = [2] : (tensor<6x16x16xf32>, tensor<f32>) -> tensor<6x16xf32>
    %rows = stablehlo.broadcast_in_dim %max, dims = [0, 1] : (tensor<6x16xf32>) -> tensor<6x16x16xf32>
    %p = stablehlo.subtract %biased, %rows : tensor<6x16x16xf32>
    %split = stablehlo.reshape %p : (tensor<6x16x16xf32>) -> tensor<2x3x16x16xf32>
    return %split : tensor<2x3x16x16xf32>
  }
}

// -----

// Batches and heads as one dimension of the dot. What reads the merged scores
// gets them merged.
// CHECK-LABEL: @flat
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x3x16x8xf32>, %[[K:[^:]*]]: tensor<2x3x16x8xf32>, %[[M:[^:]*]]: tensor<2x16xf32>
// CHECK: %[[S:.*]] = stablehlo.dot_general %[[Q]], %[[K]], batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3]
// CHECK-SAME: -> tensor<2x3x16x16xf32>
// CHECK: %[[MERGED:.*]] = stablehlo.reshape %[[S]] : (tensor<2x3x16x16xf32>) -> tensor<6x16x16xf32>
// CHECK: %[[MASK:.*]] = stablehlo.broadcast_in_dim %[[M]], dims = [0, 3]
// CHECK: %[[P:.*]] = stablehlo.multiply %[[S]], %[[MASK]]
// CHECK: return %[[MERGED]], %[[P]]
module {
  func.func @flat(%q: tensor<2x3x16x8xf32>, %k: tensor<2x3x16x8xf32>, %m: tensor<2x16xf32>) -> (tensor<6x16x16xf32>, tensor<2x3x16x16xf32>) {
    %fq = stablehlo.reshape %q : (tensor<2x3x16x8xf32>) -> tensor<6x16x8xf32>
    %fk = stablehlo.reshape %k : (tensor<2x3x16x8xf32>) -> tensor<6x16x8xf32>
    %s = stablehlo.dot_general %fq, %fk, batching_dims = [0] x [0], contracting_dims = [2] x [2]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 6, m = 16, n = 16, k = 8, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<6x16x8xf32>, tensor<6x16x8xf32>) -> tensor<6x16x16xf32>
    %split = stablehlo.reshape %s : (tensor<6x16x16xf32>) -> tensor<2x3x16x16xf32>
    %mask = stablehlo.broadcast_in_dim %m, dims = [0, 3] : (tensor<2x16xf32>) -> tensor<2x3x16x16xf32>
    %p = stablehlo.multiply %split, %mask : tensor<2x3x16x16xf32>
    return %s, %p : tensor<6x16x16xf32>, tensor<2x3x16x16xf32>
  }
}

// -----

// Nothing splits the scores again: the dot stays as it is.
// CHECK-LABEL: @merged
// CHECK: stablehlo.dot_general %{{.*}}, %{{.*}}, batching_dims = [0] x [0]
// CHECK-SAME: -> tensor<6x16x16xf32>
module {
  func.func @merged(%q: tensor<2x3x16x8xf32>, %k: tensor<6x16x8xf32>) -> tensor<6x16x16xf32> {
    %fq = stablehlo.reshape %q : (tensor<2x3x16x8xf32>) -> tensor<6x16x8xf32>
    %s = stablehlo.dot_general %fq, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 6, m = 16, n = 16, k = 8, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<6x16x8xf32>, tensor<6x16x8xf32>) -> tensor<6x16x16xf32>
    %e = stablehlo.exponential %s : tensor<6x16x16xf32>
    return %e : tensor<6x16x16xf32>
  }
}

// -----

func.func @undecided(%q: tensor<4x8xf32>, %k: tensor<8x4xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{expected #fp8.verdict in 'fp8.verdict' but got none; run fp8-decide first}}
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  return %s : tensor<4x4xf32>
}
