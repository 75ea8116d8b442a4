// RUN: fp8-opt %s --split-input-file --fp8-form-attention | FileCheck %s

// A sum over batches, as for the gradient of a bias, is an op of its own, which
// recomputes the scores.
// CHECK-LABEL: @bias_gradient
// CHECK: %[[OUT:.*]] = fp8.attention %arg0, %arg1, %arg2
// CHECK: %[[SUM:.*]] = fp8.attention_backward %arg0, %arg1
// CHECK-SAME: -> tensor<2x16x16xf32> {
// CHECK: stablehlo.dot_general
// CHECK: %[[P:.*]] = stablehlo.divide
// CHECK: %[[R:.*]] = stablehlo.reduce(%[[P]] init: %{{.*}}) applies stablehlo.add across dimensions = [0]
// CHECK: fp8.yield %[[R]]
// CHECK: return %[[OUT]], %[[SUM]]
module {
  func.func @bias_gradient(%q: tensor<2x2x16x8xf32>, %k: tensor<2x2x16x8xf32>, %v: tensor<2x2x16x8xf32>) -> (tensor<2x2x16x8xf32>, tensor<2x16x16xf32>) {
    %s = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 16, k = 8, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>) -> tensor<2x2x16x16xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %e = stablehlo.exponential %s : tensor<2x2x16x16xf32>
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x2x16x16xf32>, tensor<f32>) -> tensor<2x2x16xf32>
    %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1, 2] : (tensor<2x2x16xf32>) -> tensor<2x2x16x16xf32>
    %p = stablehlo.divide %e, %sums : tensor<2x2x16x16xf32>
    %out = stablehlo.dot_general %p, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 8, k = 16, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<2x2x16x16xf32>, tensor<2x2x16x8xf32>) -> tensor<2x2x16x8xf32>
    %r = stablehlo.reduce(%p init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2x2x16x16xf32>, tensor<f32>) -> tensor<2x16x16xf32>
    return %out, %r : tensor<2x2x16x8xf32>, tensor<2x16x16xf32>
  }
}

// -----

// Of a sum over queries and keys, each batch has its part.
// CHECK-LABEL: @total
// CHECK: %[[A:.*]]:2 = fp8.attention_backward %arg0, %arg1, %arg2
// CHECK-SAME: -> (tensor<2x2xf32>, tensor<2x2x16x8xf32>) {
// CHECK: %[[R:.*]] = stablehlo.reduce({{.*}}) applies stablehlo.add across dimensions = [2, 3]
// CHECK: fp8.yield %[[R]], %
// CHECK: %[[T:.*]] = stablehlo.reduce(%[[A]]#0 init: %{{.*}}) applies stablehlo.add across dimensions = [0] : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32>
// CHECK: return %[[A]]#1, %[[T]]
module {
  func.func @total(%q: tensor<2x2x16x8xf32>, %k: tensor<2x2x16x8xf32>, %v: tensor<2x2x16x8xf32>) -> (tensor<2x2x16x8xf32>, tensor<2xf32>) {
    %s = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 16, k = 8, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>) -> tensor<2x2x16x16xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %e = stablehlo.exponential %s : tensor<2x2x16x16xf32>
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x2x16x16xf32>, tensor<f32>) -> tensor<2x2x16xf32>
    %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1, 2] : (tensor<2x2x16xf32>) -> tensor<2x2x16x16xf32>
    %p = stablehlo.divide %e, %sums : tensor<2x2x16x16xf32>
    %out = stablehlo.dot_general %p, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 8, k = 16, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<2x2x16x16xf32>, tensor<2x2x16x8xf32>) -> tensor<2x2x16x8xf32>
    %r = stablehlo.reduce(%p init: %zero) applies stablehlo.add across dimensions = [0, 2, 3] : (tensor<2x2x16x16xf32>, tensor<f32>) -> tensor<2xf32>
    return %out, %r : tensor<2x2x16x8xf32>, tensor<2xf32>
  }
}

// -----

// A sum from which scores are computed stays outside, and so do they.
// CHECK-LABEL: @feeds_scores
// CHECK-NOT: fp8.attention
// CHECK: reason = "scores are read by stablehlo.reduce"
module {
  func.func @feeds_scores(%q: tensor<2x2x16x8xf32>, %k: tensor<2x2x16x8xf32>, %v: tensor<2x2x16x8xf32>) -> (tensor<2x2x16x8xf32>, tensor<f32>) {
    %s = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 16, k = 8, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>) -> tensor<2x2x16x16xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %e = stablehlo.exponential %s : tensor<2x2x16x16xf32>
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x2x16x16xf32>, tensor<f32>) -> tensor<2x2x16xf32>
    %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1, 2] : (tensor<2x2x16xf32>) -> tensor<2x2x16x16xf32>
    %all = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<2x2x16x16xf32>, tensor<f32>) -> tensor<f32>
    %alls = stablehlo.broadcast_in_dim %all, dims = [] : (tensor<f32>) -> tensor<2x2x16x16xf32>
    %n = stablehlo.divide %e, %sums : tensor<2x2x16x16xf32>
    %p = stablehlo.divide %n, %alls : tensor<2x2x16x16xf32>
    %out = stablehlo.dot_general %p, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 8, k = 16, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<2x2x16x16xf32>, tensor<2x2x16x8xf32>) -> tensor<2x2x16x8xf32>
    return %out, %all : tensor<2x2x16x8xf32>, tensor<f32>
  }
}

// -----

// A row of scores that no dot needs is another result.
// CHECK-LABEL: @entropy
// CHECK: %[[A:.*]]:2 = fp8.attention %arg0, %arg1, %arg2
// CHECK-SAME: -> (tensor<2x2x16x8xf32>, tensor<2x2x16xf32>) {
// CHECK: %[[P:.*]] = stablehlo.divide
// CHECK: %[[LOG:.*]] = stablehlo.log %[[P]]
// CHECK: %[[PRODUCT:.*]] = stablehlo.multiply %[[P]], %[[LOG]]
// CHECK: stablehlo.reduce(%[[PRODUCT]]
// CHECK: return %[[A]]#0, %[[A]]#1
module {
  func.func @entropy(%q: tensor<2x2x16x8xf32>, %k: tensor<2x2x16x8xf32>, %v: tensor<2x2x16x8xf32>) -> (tensor<2x2x16x8xf32>, tensor<2x2x16xf32>) {
    %s = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 16, k = 8, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>) -> tensor<2x2x16x16xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %e = stablehlo.exponential %s : tensor<2x2x16x16xf32>
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x2x16x16xf32>, tensor<f32>) -> tensor<2x2x16xf32>
    %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1, 2] : (tensor<2x2x16xf32>) -> tensor<2x2x16x16xf32>
    %p = stablehlo.divide %e, %sums : tensor<2x2x16x16xf32>
    %log = stablehlo.log %p : tensor<2x2x16x16xf32>
    %product = stablehlo.multiply %p, %log : tensor<2x2x16x16xf32>
    %r = stablehlo.reduce(%product init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x2x16x16xf32>, tensor<f32>) -> tensor<2x2x16xf32>
    %out = stablehlo.dot_general %p, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 8, k = 16, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<2x2x16x16xf32>, tensor<2x2x16x8xf32>) -> tensor<2x2x16x8xf32>
    return %out, %r : tensor<2x2x16x8xf32>, tensor<2x2x16xf32>
  }
}
