// RUN: fp8-opt %s --split-input-file --fp8-split-heads --canonicalize | FileCheck %s

// The mask of each window is added to scores that are reshaped for it. They
// keep their shape.
// CHECK-LABEL: @windows
// CHECK-SAME: (%[[Q:.*]]: tensor<8x16x4xf32>, %[[K:.*]]: tensor<8x16x4xf32>, %[[MASK:.*]]: tensor<4x16x16xf32>)
// CHECK-DAG: %[[SCORES:.*]] = stablehlo.dot_general
// CHECK-DAG: %[[SPREAD:.*]] = stablehlo.broadcast_in_dim %[[MASK]], dims = [1, 2, 3] : (tensor<4x16x16xf32>) -> tensor<2x4x16x16xf32>
// CHECK-DAG: %[[SHAPED:.*]] = stablehlo.reshape %[[SPREAD]] : (tensor<2x4x16x16xf32>) -> tensor<8x16x16xf32>
// CHECK: %[[SUM:.*]] = stablehlo.add %[[SCORES]], %[[SHAPED]] : tensor<8x16x16xf32>
// CHECK: %[[RESULT:.*]] = stablehlo.exponential %[[SUM]]
// CHECK: return %[[RESULT]]
func.func @windows(%q: tensor<8x16x4xf32>, %k: tensor<8x16x4xf32>, %mask: tensor<4x16x16xf32>) -> tensor<8x16x16xf32> {
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2]
      {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
      batch = 8, m = 16, n = 16, k = 4, lhs_format = f32, rhs_format = f32, reason = "attention">}
      : (tensor<8x16x4xf32>, tensor<8x16x4xf32>) -> tensor<8x16x16xf32>
  %t = stablehlo.reshape %s : (tensor<8x16x16xf32>) -> tensor<2x4x16x16xf32>
  %m = stablehlo.broadcast_in_dim %mask, dims = [1, 2, 3] : (tensor<4x16x16xf32>) -> tensor<2x4x16x16xf32>
  %u = stablehlo.add %t, %m : tensor<2x4x16x16xf32>
  %back = stablehlo.reshape %u : (tensor<2x4x16x16xf32>) -> tensor<8x16x16xf32>
  %e = stablehlo.exponential %back : tensor<8x16x16xf32>
  return %e : tensor<8x16x16xf32>
}

// -----

// The reshaped scores have another reader.
// CHECK-LABEL: @read
// CHECK: stablehlo.reshape
// CHECK: stablehlo.add %{{.*}}, %{{.*}} : tensor<2x4x16x16xf32>
func.func @read(%q: tensor<8x16x4xf32>, %k: tensor<8x16x4xf32>, %m: tensor<2x4x16x16xf32>) -> (tensor<8x16x16xf32>, tensor<2x4x16x16xf32>) {
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2]
      {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
      batch = 8, m = 16, n = 16, k = 4, lhs_format = f32, rhs_format = f32, reason = "attention">}
      : (tensor<8x16x4xf32>, tensor<8x16x4xf32>) -> tensor<8x16x16xf32>
  %t = stablehlo.reshape %s : (tensor<8x16x16xf32>) -> tensor<2x4x16x16xf32>
  %u = stablehlo.add %t, %m : tensor<2x4x16x16xf32>
  %back = stablehlo.reshape %u : (tensor<2x4x16x16xf32>) -> tensor<8x16x16xf32>
  return %back, %u : tensor<8x16x16xf32>, tensor<2x4x16x16xf32>
}
