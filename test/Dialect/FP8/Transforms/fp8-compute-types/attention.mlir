// RUN: fp8-opt %s --split-input-file --fp8-compute-types | FileCheck %s

// Queries, keys and values are rounded in blocks of 64 tokens of a head, weights
// row by row; the dots read all of it as bf16.
// CHECK-LABEL: @f8
// CHECK-SAME: (%[[Q:.*]]: tensor<2x16x2x8xf32>, %[[K:.*]]: tensor<2x16x2x8xf32>, %[[V:.*]]: tensor<2x16x2x8xf32>)
// CHECK-DAG: %[[Q16:.*]] = stablehlo.convert %[[Q]] : (tensor<2x16x2x8xf32>) -> tensor<2x16x2x8xbf16>
// CHECK-DAG: %[[QS:.*]], %[[QI:.*]] = fp8.compute_scale %{{.*}} {format = f8E4M3FN, rule = #fp8.scale_rule<pow2>} : tensor<2x1x2x1xf32>
// CHECK-DAG: %[[Q8:.*]] = fp8.quantize %[[Q16]], {{.*}} -> !fp8.scaled<2x16x2x8xf8E4M3FN, tile = [1, 64, 1, *], scale = f32>
// CHECK-DAG: %[[QB:.*]] = fp8.dequantize %[[Q8]] : {{.*}} -> tensor<2x16x2x8xbf16>
// CHECK-DAG: %[[K16:.*]] = stablehlo.convert %[[K]]
// CHECK-DAG: %[[K8:.*]] = fp8.quantize %[[K16]]
// CHECK-DAG: %[[KB:.*]] = fp8.dequantize %[[K8]]
// CHECK: stablehlo.dot_general %[[QB]], %[[KB]], {{.*}} -> tensor<2x2x16x16xf32>
// CHECK: %[[P:.*]] = stablehlo.divide
// CHECK: %[[SIZES:.*]] = stablehlo.abs %[[P]]
// CHECK: %[[MAX:.*]] = stablehlo.reduce(%[[SIZES]] {{.*}}) applies stablehlo.maximum across dimensions = [3]
// CHECK: stablehlo.reduce_precision {{.*}}, format = e8m0 : tensor<2x2x16xf32>
// CHECK: %[[P8:.*]] = stablehlo.convert %{{.*}} : (tensor<2x2x16x16xf32>) -> tensor<2x2x16x16xf8E4M3FN>
// CHECK: %[[WIDE:.*]] = stablehlo.convert %[[P8]]
// CHECK: %[[SCALED:.*]] = stablehlo.multiply %[[WIDE]]
// CHECK: %[[PB:.*]] = stablehlo.convert %[[SCALED]] : (tensor<2x2x16x16xf32>) -> tensor<2x2x16x16xbf16>
// CHECK: %[[V16:.*]] = stablehlo.convert %[[V]]
// CHECK: %[[V8:.*]] = fp8.quantize %[[V16]]
// CHECK: %[[VB:.*]] = fp8.dequantize %[[V8]]
// CHECK: stablehlo.dot_general %[[VB]], %[[PB]], {{.*}} -> tensor<2x2x8x16xf32>
module attributes {fp8.recipe = #fp8.recipe<{name = mine, compute = {attention = f8, unquantized_dots = f32}}>} {
  func.func @f8(%q: tensor<2x16x2x8xf32>, %k: tensor<2x16x2x8xf32>, %v: tensor<2x16x2x8xf32>) -> tensor<2x16x2x8xf32> {
    %s = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 16, k = 8, lhs_format = bf16, rhs_format = bf16, reason = "attention">}
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
        batch = 4, m = 16, n = 16, k = 8, lhs_format = bf16, rhs_format = bf16, reason = "attention">}
        : (tensor<2x16x2x8xf32>, tensor<2x2x16x16xf32>) -> tensor<2x2x8x16xf32>
    %t = stablehlo.transpose %out, dims = [0, 3, 1, 2] : (tensor<2x2x8x16xf32>) -> tensor<2x16x2x8xf32>
    return %t : tensor<2x16x2x8xf32>
  }
}

// -----

// The key is about attention, whatever the other dots read.
// CHECK-LABEL: @bf16
// CHECK: stablehlo.dot_general {{.*}} : (tensor<2x16x2x8xbf16>, tensor<2x16x2x8xbf16>) -> tensor<2x2x16x16xf32>
// CHECK: stablehlo.dot_general {{.*}} : (tensor<2x16x2x8xbf16>, tensor<2x2x16x16xbf16>) -> tensor<2x2x8x16xf32>
// CHECK: stablehlo.dot_general {{.*}} : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
module attributes {fp8.recipe = #fp8.recipe<{name = mine, compute = {attention = bf16, unquantized_dots = f32}}>} {
  func.func @bf16(%q: tensor<2x16x2x8xf32>, %k: tensor<2x16x2x8xf32>, %v: tensor<2x16x2x8xf32>, %x: tensor<16x32xf32>, %w: tensor<32x8xf32>) -> (tensor<2x16x2x8xf32>, tensor<16x8xf32>) {
    %s = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 16, n = 16, k = 8, lhs_format = bf16, rhs_format = bf16, reason = "attention">}
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
        batch = 4, m = 16, n = 16, k = 8, lhs_format = bf16, rhs_format = bf16, reason = "attention">}
        : (tensor<2x16x2x8xf32>, tensor<2x2x16x16xf32>) -> tensor<2x2x8x16xf32>
    %t = stablehlo.transpose %out, dims = [0, 3, 1, 2] : (tensor<2x2x8x16xf32>) -> tensor<2x16x2x8xf32>
    %other = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
    return %t, %other : tensor<2x16x2x8xf32>, tensor<16x8xf32>
  }
}

// -----

// CHECK-LABEL: @f32
// CHECK-COUNT-2: stablehlo.dot_general {{.*}} : (tensor<2x{{.*}}xf32>, tensor<2x{{.*}}xf32>)
// CHECK: stablehlo.dot_general {{.*}} : (tensor<16x32xbf16>, tensor<32x8xbf16>) -> tensor<16x8xf32>
module attributes {fp8.recipe = #fp8.recipe<{name = mine, compute = {attention = f32, unquantized_dots = bf16}}>} {
  func.func @f32(%q: tensor<2x16x2x8xf32>, %k: tensor<2x16x2x8xf32>, %v: tensor<2x16x2x8xf32>, %x: tensor<16x32xf32>, %w: tensor<32x8xf32>) -> (tensor<2x16x2x8xf32>, tensor<16x8xf32>) {
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
    %other = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
    return %t, %other : tensor<2x16x2x8xf32>, tensor<16x8xf32>
  }
}

// -----

// Three heads of queries share keys: each has blocks of tokens of its own.
// CHECK-LABEL: @grouped
// CHECK: fp8.quantize {{.*}} : tensor<2x16x2x3x8xbf16> -> !fp8.scaled<2x16x2x3x8xf8E4M3FN, tile = [1, 64, 1, 1, *], scale = f32>
// CHECK: fp8.quantize {{.*}} : tensor<2x16x2x8xbf16> -> !fp8.scaled<2x16x2x8xf8E4M3FN, tile = [1, 64, 1, *], scale = f32>
module attributes {fp8.recipe = #fp8.recipe<{name = mine, compute = {attention = f8, unquantized_dots = f32}}>} {
  func.func @grouped(%q: tensor<2x16x2x3x8xf32>, %k: tensor<2x16x2x8xf32>, %v: tensor<2x16x2x8xf32>) -> tensor<2x2x16x3x8xf32> {
    %s = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 48, n = 16, k = 8, lhs_format = bf16, rhs_format = bf16, reason = "attention">}
        : (tensor<2x16x2x3x8xf32>, tensor<2x16x2x8xf32>) -> tensor<2x2x16x3x16xf32>
    %inf = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %max = stablehlo.reduce(%s init: %inf) applies stablehlo.maximum across dimensions = [4] : (tensor<2x2x16x3x16xf32>, tensor<f32>) -> tensor<2x2x16x3xf32>
    %maxes = stablehlo.broadcast_in_dim %max, dims = [0, 1, 2, 3] : (tensor<2x2x16x3xf32>) -> tensor<2x2x16x3x16xf32>
    %shifted = stablehlo.subtract %s, %maxes : tensor<2x2x16x3x16xf32>
    %e = stablehlo.exponential %shifted : tensor<2x2x16x3x16xf32>
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [4] : (tensor<2x2x16x3x16xf32>, tensor<f32>) -> tensor<2x2x16x3xf32>
    %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1, 2, 3] : (tensor<2x2x16x3xf32>) -> tensor<2x2x16x3x16xf32>
    %p = stablehlo.divide %e, %sums : tensor<2x2x16x3x16xf32>
    %out = stablehlo.dot_general %p, %v, batching_dims = [0, 1] x [0, 2], contracting_dims = [4] x [1]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
        batch = 4, m = 48, n = 8, k = 16, lhs_format = bf16, rhs_format = bf16, reason = "attention">}
        : (tensor<2x2x16x3x16xf32>, tensor<2x16x2x8xf32>) -> tensor<2x2x16x3x8xf32>
    return %out : tensor<2x2x16x3x8xf32>
  }
}
