// RUN: fp8-opt %s --split-input-file --fp8-form-attention | FileCheck %s
// RUN: fp8-opt %s --split-input-file --fp8-form-attention=emit-remarks -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: fp8-opt %s --split-input-file --fp8-form-attention=store-scores | FileCheck %s --check-prefix=STORE --implicit-check-not="fp8.attention"

// STORE: softmax_verdict<stored, batch = 4, queries = 16, keys = 16, reason = "as asked for (store-scores)">

// The mask is computed inside, the result is transposed there, and batches,
// heads, queries and keys are the dimensions of all that is in between.
// CHECK-LABEL: @causal
// CHECK: %[[OUT:.*]] = fp8.attention %arg0, %arg1, %arg2
// CHECK-SAME: {fp8.softmax_verdict = #fp8.softmax_verdict<tiled, batch = 4, queries = 16, keys = 16, reason = "computed tile by tile">}
// CHECK-SAME: -> tensor<2x16x2x8xf32> {
// CHECK: ^bb0(%[[Q:.*]]: tensor<2x16x2x8xf32>, %[[K:.*]]: tensor<2x16x2x8xf32>, %[[V:.*]]: tensor<2x16x2x8xf32>):
// CHECK-DAG: stablehlo.iota dim = 0 : tensor<16xi32>
// CHECK-DAG: %[[S:.*]] = stablehlo.dot_general %[[Q]], %[[K]], {{.*}} {fp8.verdict = {{.*}} -> tensor<2x2x16x16xf32>
// CHECK-DAG: %[[MASK:.*]] = stablehlo.compare GE
// CHECK: stablehlo.select
// CHECK: stablehlo.reduce({{.*}}) applies stablehlo.maximum
// CHECK: stablehlo.exponential
// CHECK: stablehlo.reduce({{.*}}) applies stablehlo.add
// CHECK: %[[P:.*]] = stablehlo.divide
// CHECK: %[[O:.*]] = stablehlo.dot_general %[[V]], %[[P]]
// CHECK: %[[T:.*]] = stablehlo.transpose %[[O]], dims = [0, 3, 1, 2]
// CHECK: fp8.yield %[[T]]
// CHECK: return %[[OUT]]
module {
  func.func @causal(%q: tensor<2x16x2x8xf32>, %k: tensor<2x16x2x8xf32>, %v: tensor<2x16x2x8xf32>) -> tensor<2x16x2x8xf32> {
    %s = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 16, k = 8, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> tensor<2x2x16x16xf32>
    %rows = stablehlo.iota dim = 0 : tensor<16x16xi32>
    %columns = stablehlo.iota dim = 1 : tensor<16x16xi32>
    %causal = stablehlo.compare GE, %rows, %columns, SIGNED : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi1>
    %mask = stablehlo.broadcast_in_dim %causal, dims = [2, 3] : (tensor<16x16xi1>) -> tensor<2x2x16x16xi1>
    %low = stablehlo.constant dense<-1.0e+30> : tensor<2x2x16x16xf32>
    %masked = stablehlo.select %mask, %s, %low : tensor<2x2x16x16xi1>, tensor<2x2x16x16xf32>
    %inf = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %max = stablehlo.reduce(%masked init: %inf) applies stablehlo.maximum across dimensions = [3] : (tensor<2x2x16x16xf32>, tensor<f32>) -> tensor<2x2x16xf32>
    %maxes = stablehlo.broadcast_in_dim %max, dims = [0, 1, 2] : (tensor<2x2x16xf32>) -> tensor<2x2x16x16xf32>
    %shifted = stablehlo.subtract %masked, %maxes : tensor<2x2x16x16xf32>
    %e = stablehlo.exponential %shifted : tensor<2x2x16x16xf32>
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x2x16x16xf32>, tensor<f32>) -> tensor<2x2x16xf32>
    %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1, 2] : (tensor<2x2x16xf32>) -> tensor<2x2x16x16xf32>
    %p = stablehlo.divide %e, %sums : tensor<2x2x16x16xf32>
    %out = stablehlo.dot_general %v, %p, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 16, k = 8, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<2x16x2x8xf32>, tensor<2x2x16x16xf32>) -> tensor<2x2x8x16xf32>
    %t = stablehlo.transpose %out, dims = [0, 3, 1, 2] : (tensor<2x2x8x16xf32>) -> tensor<2x16x2x8xf32>
    return %t : tensor<2x16x2x8xf32>
  }
}

// -----

// Sums of rows may leave; scores may not.
// CHECK-LABEL: @row_sums
// CHECK: %[[A:.*]]:2 = fp8.attention {{.*}} -> (tensor<2x2x8x16xf32>, tensor<2x2x16xf32>)
// CHECK: return %[[A]]#0, %[[A]]#1
module {
  func.func @row_sums(%q: tensor<2x16x2x8xf32>, %k: tensor<2x16x2x8xf32>, %v: tensor<2x16x2x8xf32>) -> (tensor<2x2x8x16xf32>, tensor<2x2x16xf32>) {
    %s = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 16, k = 8, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> tensor<2x2x16x16xf32>
    %rows = stablehlo.iota dim = 0 : tensor<16x16xi32>
    %columns = stablehlo.iota dim = 1 : tensor<16x16xi32>
    %causal = stablehlo.compare GE, %rows, %columns, SIGNED : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi1>
    %mask = stablehlo.broadcast_in_dim %causal, dims = [2, 3] : (tensor<16x16xi1>) -> tensor<2x2x16x16xi1>
    %low = stablehlo.constant dense<-1.0e+30> : tensor<2x2x16x16xf32>
    %masked = stablehlo.select %mask, %s, %low : tensor<2x2x16x16xi1>, tensor<2x2x16x16xf32>
    %inf = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %max = stablehlo.reduce(%masked init: %inf) applies stablehlo.maximum across dimensions = [3] : (tensor<2x2x16x16xf32>, tensor<f32>) -> tensor<2x2x16xf32>
    %maxes = stablehlo.broadcast_in_dim %max, dims = [0, 1, 2] : (tensor<2x2x16xf32>) -> tensor<2x2x16x16xf32>
    %shifted = stablehlo.subtract %masked, %maxes : tensor<2x2x16x16xf32>
    %e = stablehlo.exponential %shifted : tensor<2x2x16x16xf32>
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x2x16x16xf32>, tensor<f32>) -> tensor<2x2x16xf32>
    %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1, 2] : (tensor<2x2x16xf32>) -> tensor<2x2x16x16xf32>
    %p = stablehlo.divide %e, %sums : tensor<2x2x16x16xf32>
    %out = stablehlo.dot_general %v, %p, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 16, k = 8, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<2x16x2x8xf32>, tensor<2x2x16x16xf32>) -> tensor<2x2x8x16xf32>
    return %out, %sum : tensor<2x2x8x16xf32>, tensor<2x2x16xf32>
  }
}

// -----

// CHECK-LABEL: @returned
// CHECK-NOT: fp8.attention
// CHECK: stablehlo.dot_general %{{.*}} {fp8.softmax_verdict = #fp8.softmax_verdict<stored, batch = 4, queries = 16, keys = 16, reason = "scores are read by func.return", obstacle = "{{.*}}forward.mlir:{{[0-9:]*}}">,
// CHECK-NOT: softmax_verdict
// CHECK: return
// REMARK: remark: scores are stored: scores are read by func.return
module {
  func.func @returned(%q: tensor<2x16x2x8xf32>, %k: tensor<2x16x2x8xf32>, %v: tensor<2x16x2x8xf32>) -> (tensor<2x2x8x16xf32>, tensor<2x2x16x16xf32>) {
    %s = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 16, k = 8, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> tensor<2x2x16x16xf32>
    %rows = stablehlo.iota dim = 0 : tensor<16x16xi32>
    %columns = stablehlo.iota dim = 1 : tensor<16x16xi32>
    %causal = stablehlo.compare GE, %rows, %columns, SIGNED : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi1>
    %mask = stablehlo.broadcast_in_dim %causal, dims = [2, 3] : (tensor<16x16xi1>) -> tensor<2x2x16x16xi1>
    %low = stablehlo.constant dense<-1.0e+30> : tensor<2x2x16x16xf32>
    %masked = stablehlo.select %mask, %s, %low : tensor<2x2x16x16xi1>, tensor<2x2x16x16xf32>
    %inf = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %max = stablehlo.reduce(%masked init: %inf) applies stablehlo.maximum across dimensions = [3] : (tensor<2x2x16x16xf32>, tensor<f32>) -> tensor<2x2x16xf32>
    %maxes = stablehlo.broadcast_in_dim %max, dims = [0, 1, 2] : (tensor<2x2x16xf32>) -> tensor<2x2x16x16xf32>
    %shifted = stablehlo.subtract %masked, %maxes : tensor<2x2x16x16xf32>
    %e = stablehlo.exponential %shifted : tensor<2x2x16x16xf32>
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x2x16x16xf32>, tensor<f32>) -> tensor<2x2x16xf32>
    %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1, 2] : (tensor<2x2x16xf32>) -> tensor<2x2x16x16xf32>
    %p = stablehlo.divide %e, %sums : tensor<2x2x16x16xf32>
    %out = stablehlo.dot_general %v, %p, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 16, k = 8, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<2x16x2x8xf32>, tensor<2x2x16x16xf32>) -> tensor<2x2x8x16xf32>
    return %out, %p : tensor<2x2x8x16xf32>, tensor<2x2x16x16xf32>
  }
}

// -----

// A dimension of one element is none: one row of tokens, one head.
// CHECK-LABEL: @units
// CHECK: %[[Q2:.*]] = stablehlo.reshape %arg0 : (tensor<1x16x1x8xf32>) -> tensor<16x8xf32>
// CHECK: fp8.attention %[[Q2]]
// CHECK: stablehlo.dot_general {{.*}} : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
// CHECK: fp8.yield %{{.*}} : tensor<8x16xf32>
module {
  func.func @units(%q: tensor<1x16x1x8xf32>, %k: tensor<1x16x1x8xf32>, %v: tensor<1x16x1x8xf32>) -> tensor<1x1x8x16xf32> {
    %s = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 16, k = 8, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<1x16x1x8xf32>, tensor<1x16x1x8xf32>) -> tensor<1x1x16x16xf32>
    %rows = stablehlo.iota dim = 0 : tensor<16x16xi32>
    %columns = stablehlo.iota dim = 1 : tensor<16x16xi32>
    %causal = stablehlo.compare GE, %rows, %columns, SIGNED : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi1>
    %mask = stablehlo.broadcast_in_dim %causal, dims = [2, 3] : (tensor<16x16xi1>) -> tensor<1x1x16x16xi1>
    %low = stablehlo.constant dense<-1.0e+30> : tensor<1x1x16x16xf32>
    %masked = stablehlo.select %mask, %s, %low : tensor<1x1x16x16xi1>, tensor<1x1x16x16xf32>
    %inf = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %max = stablehlo.reduce(%masked init: %inf) applies stablehlo.maximum across dimensions = [3] : (tensor<1x1x16x16xf32>, tensor<f32>) -> tensor<1x1x16xf32>
    %maxes = stablehlo.broadcast_in_dim %max, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<1x1x16x16xf32>
    %shifted = stablehlo.subtract %masked, %maxes : tensor<1x1x16x16xf32>
    %e = stablehlo.exponential %shifted : tensor<1x1x16x16xf32>
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<1x1x16x16xf32>, tensor<f32>) -> tensor<1x1x16xf32>
    %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<1x1x16x16xf32>
    %p = stablehlo.divide %e, %sums : tensor<1x1x16x16xf32>
    %out = stablehlo.dot_general %v, %p, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 16, k = 8, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<1x16x1x8xf32>, tensor<1x1x16x16xf32>) -> tensor<1x1x8x16xf32>
    return %out : tensor<1x1x8x16xf32>
  }
}

// -----

// Without a reduction of rows it is no softmax.
// CHECK-LABEL: @squares
// CHECK-NOT: fp8.attention
module {
  func.func @squares(%q: tensor<16x8xf32>, %k: tensor<16x8xf32>, %v: tensor<16x8xf32>) -> tensor<16x8xf32> {
    %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 16, k = 8, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
    %p = stablehlo.multiply %s, %s : tensor<16x16xf32>
    %out = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 16, k = 8, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<16x16xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    return %out : tensor<16x8xf32>
  }
}

// -----

// An op that mixes dimensions: there is no softmax to be seen, but it has a row
// in the report.
// CHECK-LABEL: @sink
// CHECK: stablehlo.dot_general %{{.*}} {fp8.softmax_verdict = #fp8.softmax_verdict<stored, batch = 4, queries = 16, keys = 16, reason = "scores are read by stablehlo.concatenate", obstacle = "{{.*}}forward.mlir:{{[0-9:]*}}">,
// CHECK-NOT: softmax_verdict
// CHECK: return
// REMARK: remark: scores are stored: scores are read by stablehlo.concatenate
module {
  func.func @sink(%q: tensor<2x2x16x8xf32>, %k: tensor<2x2x16x8xf32>, %v: tensor<2x2x16x8xf32>) -> tensor<2x2x16x8xf32> {
    %s = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 16, k = 8, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>) -> tensor<2x2x16x16xf32>
    %ones = stablehlo.constant dense<1.0> : tensor<2x2x16x1xf32>
    %more = stablehlo.concatenate %s, %ones, dim = 3 : (tensor<2x2x16x16xf32>, tensor<2x2x16x1xf32>) -> tensor<2x2x16x17xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %e = stablehlo.exponential %more : tensor<2x2x16x17xf32>
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x2x16x17xf32>, tensor<f32>) -> tensor<2x2x16xf32>
    %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1, 2] : (tensor<2x2x16xf32>) -> tensor<2x2x16x17xf32>
    %p = stablehlo.divide %e, %sums : tensor<2x2x16x17xf32>
    %w = stablehlo.slice %p [0:2, 0:2, 0:16, 0:16] : (tensor<2x2x16x17xf32>) -> tensor<2x2x16x16xf32>
    %out = stablehlo.dot_general %w, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 8, k = 16, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<2x2x16x16xf32>, tensor<2x2x16x8xf32>) -> tensor<2x2x16x8xf32>
    return %out : tensor<2x2x16x8xf32>
  }
}
