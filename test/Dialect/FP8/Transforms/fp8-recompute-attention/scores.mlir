// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-recompute-attention | FileCheck %s

// The gradient of v reads the softmax: it is computed again from q and k, which
// are all that is kept. The mask, which follows from iotas, is read as it is.
// CHECK-LABEL: @step
// CHECK-SAME: (%[[Q:.*]]: tensor<2x16x2x8xf32> {{.*}}, %[[K:.*]]: tensor<2x16x2x8xf32> {{.*}}, %[[V:.*]]: tensor<2x16x2x8xf32>
// CHECK: %[[S:.*]] = stablehlo.dot_general %[[Q]], %[[K]],
// CHECK-NOT: fp8.recompute
// CHECK: %[[MASK:.*]] = stablehlo.broadcast_in_dim {{.*}} -> tensor<2x2x16x16xi1>
// CHECK: %[[P:.*]] = stablehlo.divide
// CHECK: stablehlo.dot_general %[[V]], %[[P]],
// CHECK-DAG: %[[Q2:.*]] = stablehlo.optimization_barrier %[[Q]]
// CHECK-DAG: %[[K2:.*]] = stablehlo.optimization_barrier %[[K]]
// CHECK: %[[S2:.*]] = stablehlo.dot_general %[[Q2]], %[[K2]],
// CHECK-SAME: fp8.recompute
// CHECK: stablehlo.select %[[MASK]], %[[S2]],
// CHECK: stablehlo.reduce({{.*}}) applies stablehlo.maximum
// CHECK: %[[E2:.*]] = stablehlo.exponential
// CHECK: stablehlo.reduce(%[[E2]] {{.*}}) applies stablehlo.add
// CHECK: %[[P2:.*]] = stablehlo.divide %[[E2]]
// CHECK: stablehlo.dot_general %{{.*}}, %[[P2]],
module {
  func.func @step(%q: tensor<2x16x2x8xf32> {fp8.role = "batch", fp8.path = "q"}, %k: tensor<2x16x2x8xf32> {fp8.role = "batch", fp8.path = "k"},
                  %v: tensor<2x16x2x8xf32> {fp8.role = "batch", fp8.path = "v"})
      -> (tensor<f32> {fp8.kind = "loss"}, tensor<2x2x8x16xf32>) {
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
    %loss = stablehlo.reduce(%out init: %zero) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<2x2x8x16xf32>, tensor<f32>) -> tensor<f32>
    %do = stablehlo.constant dense<1.0> : tensor<2x2x8x16xf32>
    %dv = stablehlo.dot_general %do, %p, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 16, k = 8, lhs_format = f32, rhs_format = f32, reason = "attention">}
        : (tensor<2x2x8x16xf32>, tensor<2x2x16x16xf32>) -> tensor<2x2x8x16xf32>
    return %loss, %dv : tensor<f32>, tensor<2x2x8x16xf32>
  }
}

// -----

func.func @undecided(%q: tensor<16x8xf32>) -> tensor<16x16xf32> {
  // expected-error @+1 {{expected #fp8.verdict in 'fp8.verdict' but got none; run fp8-decide first}}
  %0 = stablehlo.dot_general %q, %q, contracting_dims = [1] x [1] : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}

// -----

#attention = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
  batch = 2, m = 16, n = 16, k = 8, lhs_format = f32, rhs_format = f32, reason = "attention">

// Two attentions share a learned bias, so sums of their scores meet in its
// gradient. They are two attentions all the same: both are computed again.
// CHECK-LABEL: @shared_bias
// CHECK-COUNT-2: fp8.recompute
func.func @shared_bias(%q0: tensor<2x16x8xf32> {fp8.role = "batch", fp8.path = "q0"}, %q1: tensor<2x16x8xf32> {fp8.role = "batch", fp8.path = "q1"},
                       %k: tensor<2x16x8xf32> {fp8.role = "batch", fp8.path = "k"}, %v: tensor<2x16x8xf32> {fp8.role = "batch", fp8.path = "v"},
                       %bias: tensor<16x16xf32> {fp8.role = "state", fp8.path = "bias"})
    -> (tensor<f32> {fp8.kind = "loss"}, tensor<16x16xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %biases = stablehlo.broadcast_in_dim %bias, dims = [1, 2] : (tensor<16x16xf32>) -> tensor<2x16x16xf32>
  %s0 = stablehlo.dot_general %q0, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] {fp8.verdict = #attention} : (tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<2x16x16xf32>
  %t0 = stablehlo.add %s0, %biases : tensor<2x16x16xf32>
  %e0 = stablehlo.exponential %t0 : tensor<2x16x16xf32>
  %sum0 = stablehlo.reduce(%e0 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x16x16xf32>, tensor<f32>) -> tensor<2x16xf32>
  %sums0 = stablehlo.broadcast_in_dim %sum0, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x16xf32>
  %p0 = stablehlo.divide %e0, %sums0 : tensor<2x16x16xf32>
  %o0 = stablehlo.dot_general %p0, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] {fp8.verdict = #attention} : (tensor<2x16x16xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
  %s1 = stablehlo.dot_general %q1, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] {fp8.verdict = #attention} : (tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<2x16x16xf32>
  %t1 = stablehlo.add %s1, %biases : tensor<2x16x16xf32>
  %e1 = stablehlo.exponential %t1 : tensor<2x16x16xf32>
  %sum1 = stablehlo.reduce(%e1 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x16x16xf32>, tensor<f32>) -> tensor<2x16xf32>
  %sums1 = stablehlo.broadcast_in_dim %sum1, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x16xf32>
  %p1 = stablehlo.divide %e1, %sums1 : tensor<2x16x16xf32>
  %o1 = stablehlo.dot_general %p1, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] {fp8.verdict = #attention} : (tensor<2x16x16xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
  %o = stablehlo.add %o0, %o1 : tensor<2x16x8xf32>
  %loss = stablehlo.reduce(%o init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x16x8xf32>, tensor<f32>) -> tensor<f32>
  %do = stablehlo.constant dense<1.0> : tensor<2x16x8xf32>
  %dp0 = stablehlo.dot_general %do, %v, batching_dims = [0] x [0], contracting_dims = [2] x [2] {fp8.verdict = #attention} : (tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<2x16x16xf32>
  %ds0 = stablehlo.multiply %dp0, %p0 : tensor<2x16x16xf32>
  %db0 = stablehlo.reduce(%ds0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2x16x16xf32>, tensor<f32>) -> tensor<16x16xf32>
  %dp1 = stablehlo.dot_general %do, %v, batching_dims = [0] x [0], contracting_dims = [2] x [2] {fp8.verdict = #attention} : (tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<2x16x16xf32>
  %ds1 = stablehlo.multiply %dp1, %p1 : tensor<2x16x16xf32>
  %db1 = stablehlo.reduce(%ds1 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2x16x16xf32>, tensor<f32>) -> tensor<16x16xf32>
  %db = stablehlo.add %db0, %db1 : tensor<16x16xf32>
  return %loss, %db : tensor<f32>, tensor<16x16xf32>
}
