// RUN: fp8-opt %s --split-input-file --fp8-defer-division | FileCheck %s


// The weights are the right operand, as jax.numpy.einsum prints it. The transpose
// stays at the dot, and the quotient follows it.
// CHECK-LABEL: @transposed
// CHECK: %[[E:.*]] = stablehlo.exponential
// CHECK: %[[L:.*]] = stablehlo.reduce(%[[E]] init: {{.*}}) applies stablehlo.add
// CHECK-NOT: stablehlo.divide
// CHECK: %[[DOT:.*]] = stablehlo.dot_general %{{.*}}, %[[E]]
// CHECK: %[[OUT:.*]] = stablehlo.transpose %[[DOT]], dims = [2, 0, 1] : (tensor<2x8x32xf32>) -> tensor<32x2x8xf32>
// CHECK: %[[ROWS:.*]] = stablehlo.broadcast_in_dim %[[L]], dims = [1, 0] : (tensor<2x32xf32>) -> tensor<32x2x8xf32>
// CHECK: %[[QUOTIENT:.*]] = stablehlo.divide %[[OUT]], %[[ROWS]]
// CHECK: fp8.yield %[[QUOTIENT]]
func.func @transposed(%q: tensor<2x32x8xf32>, %k: tensor<2x32x8xf32>, %v: tensor<2x32x8xf32>) -> tensor<32x2x8xf32> {
  %0 = fp8.attention %q, %k, %v : (tensor<2x32x8xf32>, tensor<2x32x8xf32>, tensor<2x32x8xf32>) -> tensor<32x2x8xf32> {
  ^bb0(%a: tensor<2x32x8xf32>, %b: tensor<2x32x8xf32>, %c: tensor<2x32x8xf32>):
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2]
        : (tensor<2x32x8xf32>, tensor<2x32x8xf32>) -> tensor<2x32x32xf32>
    %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %b0 = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x32xf32>
    %x = stablehlo.subtract %s, %b0 : tensor<2x32x32xf32>
    %e = stablehlo.exponential %x : tensor<2x32x32xf32>
    %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %b1 = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x32xf32>
    %p = stablehlo.divide %e, %b1 : tensor<2x32x32xf32>
    %o = stablehlo.dot_general %c, %p, batching_dims = [0] x [0], contracting_dims = [1] x [2]
        : (tensor<2x32x8xf32>, tensor<2x32x32xf32>) -> tensor<2x8x32xf32>
    %t = stablehlo.transpose %o, dims = [2, 0, 1] : (tensor<2x8x32xf32>) -> tensor<32x2x8xf32>
    fp8.yield %t : tensor<32x2x8xf32>
  }
  return %0 : tensor<32x2x8xf32>
}

// -----

// The dot's sums are divided in f32, and rounded once.
// CHECK-LABEL: @rounded
// CHECK: %[[E:.*]] = stablehlo.exponential
// CHECK: %[[L:.*]] = stablehlo.reduce(%[[E]] init: {{.*}}) applies stablehlo.add
// CHECK: %[[W:.*]] = stablehlo.convert %[[E]] : (tensor<2x32x32xf32>) -> tensor<2x32x32xbf16>
// CHECK: %[[DOT:.*]] = stablehlo.dot_general %[[W]], {{.*}} -> tensor<2x32x8xf32>
// CHECK: %[[ROWS:.*]] = stablehlo.broadcast_in_dim %[[L]], dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x8xf32>
// CHECK: %[[QUOTIENT:.*]] = stablehlo.divide %[[DOT]], %[[ROWS]]
// CHECK: %[[OUT:.*]] = stablehlo.convert %[[QUOTIENT]] : (tensor<2x32x8xf32>) -> tensor<2x32x8xbf16>
// CHECK: fp8.yield %[[OUT]]
func.func @rounded(%q: tensor<2x32x8xf32>, %k: tensor<2x32x8xf32>, %v: tensor<2x32x8xbf16>) -> tensor<2x32x8xbf16> {
  %0 = fp8.attention %q, %k, %v : (tensor<2x32x8xf32>, tensor<2x32x8xf32>, tensor<2x32x8xbf16>) -> tensor<2x32x8xbf16> {
  ^bb0(%a: tensor<2x32x8xf32>, %b: tensor<2x32x8xf32>, %c: tensor<2x32x8xbf16>):
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2]
        : (tensor<2x32x8xf32>, tensor<2x32x8xf32>) -> tensor<2x32x32xf32>
    %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %b0 = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x32xf32>
    %x = stablehlo.subtract %s, %b0 : tensor<2x32x32xf32>
    %e = stablehlo.exponential %x : tensor<2x32x32xf32>
    %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %b1 = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x32xf32>
    %p = stablehlo.divide %e, %b1 : tensor<2x32x32xf32>
    %w = stablehlo.convert %p : (tensor<2x32x32xf32>) -> tensor<2x32x32xbf16>
    %o = stablehlo.dot_general %w, %c, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<2x32x32xbf16>, tensor<2x32x8xbf16>) -> tensor<2x32x8xbf16>
    fp8.yield %o : tensor<2x32x8xbf16>
  }
  return %0 : tensor<2x32x8xbf16>
}

// -----

// A dropout keeps some weights, times a constant. If it keeps none of a row whose
// sum is zero or NaN, the result is zero.
// CHECK-LABEL: @dropout
// CHECK: %[[E:.*]] = stablehlo.exponential
// CHECK: %[[L:.*]] = stablehlo.reduce(%[[E]]
// CHECK: %[[W:.*]] = stablehlo.multiply %[[E]],
// CHECK: %[[KEPT:.*]] = stablehlo.select %{{.*}}, %[[W]],
// CHECK: %[[DOT:.*]] = stablehlo.dot_general %[[KEPT]],
// CHECK: %[[ZERO:.*]] = stablehlo.constant dense<0.000000e+00>
// CHECK: %[[POSITIVE:.*]] = stablehlo.compare GT, %[[L]], %[[ZERO]]
// CHECK: %[[ONE:.*]] = stablehlo.constant dense<1.000000e+00>
// CHECK: %[[SUMS:.*]] = stablehlo.select %[[POSITIVE]], %[[L]], %[[ONE]]
// CHECK: %[[ROWS:.*]] = stablehlo.broadcast_in_dim %[[SUMS]],
// CHECK: stablehlo.divide %[[DOT]], %[[ROWS]]
func.func @dropout(%q: tensor<2x32x8xf32>, %k: tensor<2x32x8xf32>, %v: tensor<2x32x8xf32>, %drop: tensor<2x32x32xi1>) -> tensor<2x32x8xf32> {
  %0 = fp8.attention %q, %k, %v, %drop : (tensor<2x32x8xf32>, tensor<2x32x8xf32>, tensor<2x32x8xf32>, tensor<2x32x32xi1>) -> tensor<2x32x8xf32> {
  ^bb0(%a: tensor<2x32x8xf32>, %b: tensor<2x32x8xf32>, %c: tensor<2x32x8xf32>, %mask: tensor<2x32x32xi1>):
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2]
        : (tensor<2x32x8xf32>, tensor<2x32x8xf32>) -> tensor<2x32x32xf32>
    %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %b0 = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x32xf32>
    %x = stablehlo.subtract %s, %b0 : tensor<2x32x32xf32>
    %e = stablehlo.exponential %x : tensor<2x32x32xf32>
    %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %b1 = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x32xf32>
    %p = stablehlo.divide %e, %b1 : tensor<2x32x32xf32>
    %rate = stablehlo.constant dense<1.25> : tensor<2x32x32xf32>
    %none = stablehlo.constant dense<0.0> : tensor<2x32x32xf32>
    %more = stablehlo.multiply %p, %rate : tensor<2x32x32xf32>
    %w = stablehlo.select %mask, %more, %none : tensor<2x32x32xi1>, tensor<2x32x32xf32>
    %o = stablehlo.dot_general %w, %c, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<2x32x32xf32>, tensor<2x32x8xf32>) -> tensor<2x32x8xf32>
    fp8.yield %o : tensor<2x32x8xf32>
  }
  return %0 : tensor<2x32x8xf32>
}

// -----

// Without the maximum exponentials could be large: their undivided sum would
// overflow.
// CHECK-LABEL: @no_maximum
// CHECK: %[[P:.*]] = stablehlo.divide {{.*}} : tensor<2x32x32xf32>
// CHECK-NOT: stablehlo.divide
func.func @no_maximum(%q: tensor<2x32x8xf32>, %k: tensor<2x32x8xf32>, %v: tensor<2x32x8xf32>) -> tensor<2x32x8xf32> {
  %0 = fp8.attention %q, %k, %v : (tensor<2x32x8xf32>, tensor<2x32x8xf32>, tensor<2x32x8xf32>) -> tensor<2x32x8xf32> {
  ^bb0(%a: tensor<2x32x8xf32>, %b: tensor<2x32x8xf32>, %c: tensor<2x32x8xf32>):
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2]
        : (tensor<2x32x8xf32>, tensor<2x32x8xf32>) -> tensor<2x32x32xf32>
    %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %b0 = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x32xf32>
    %x = stablehlo.subtract %s, %b0 : tensor<2x32x32xf32>
    %e = stablehlo.exponential %s : tensor<2x32x32xf32>
    %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %b1 = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x32xf32>
    %p = stablehlo.divide %e, %b1 : tensor<2x32x32xf32>
    %o = stablehlo.dot_general %p, %c, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<2x32x32xf32>, tensor<2x32x8xf32>) -> tensor<2x32x8xf32>
    fp8.yield %o : tensor<2x32x8xf32>
  }
  return %0 : tensor<2x32x8xf32>
}

// -----

// So could those of a row that is subtracted from its maximum.
// CHECK-LABEL: @from_maximum
// CHECK: %[[P:.*]] = stablehlo.divide {{.*}} : tensor<2x32x32xf32>
// CHECK-NOT: stablehlo.divide
func.func @from_maximum(%q: tensor<2x32x8xf32>, %k: tensor<2x32x8xf32>, %v: tensor<2x32x8xf32>) -> tensor<2x32x8xf32> {
  %0 = fp8.attention %q, %k, %v : (tensor<2x32x8xf32>, tensor<2x32x8xf32>, tensor<2x32x8xf32>) -> tensor<2x32x8xf32> {
  ^bb0(%a: tensor<2x32x8xf32>, %b: tensor<2x32x8xf32>, %c: tensor<2x32x8xf32>):
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2]
        : (tensor<2x32x8xf32>, tensor<2x32x8xf32>) -> tensor<2x32x32xf32>
    %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %b0 = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x32xf32>
    %x = stablehlo.subtract %b0, %s : tensor<2x32x32xf32>
    %e = stablehlo.exponential %x : tensor<2x32x32xf32>
    %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %b1 = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x32xf32>
    %p = stablehlo.divide %e, %b1 : tensor<2x32x32xf32>
    %o = stablehlo.dot_general %p, %c, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<2x32x32xf32>, tensor<2x32x8xf32>) -> tensor<2x32x8xf32>
    fp8.yield %o : tensor<2x32x8xf32>
  }
  return %0 : tensor<2x32x8xf32>
}

// -----

// The maximum of another row is not one of this row.
// CHECK-LABEL: @other_maximum
// CHECK: %[[P:.*]] = stablehlo.divide {{.*}} : tensor<2x32x32xf32>
// CHECK-NOT: stablehlo.divide
func.func @other_maximum(%q: tensor<2x32x8xf32>, %k: tensor<2x32x8xf32>, %v: tensor<2x32x8xf32>) -> tensor<2x32x8xf32> {
  %0 = fp8.attention %q, %k, %v : (tensor<2x32x8xf32>, tensor<2x32x8xf32>, tensor<2x32x8xf32>) -> tensor<2x32x8xf32> {
  ^bb0(%a: tensor<2x32x8xf32>, %b: tensor<2x32x8xf32>, %c: tensor<2x32x8xf32>):
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2]
        : (tensor<2x32x8xf32>, tensor<2x32x8xf32>) -> tensor<2x32x32xf32>
    %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %b0 = stablehlo.broadcast_in_dim %m, dims = [0, 2] : (tensor<2x32xf32>) -> tensor<2x32x32xf32>
    %x = stablehlo.subtract %s, %b0 : tensor<2x32x32xf32>
    %e = stablehlo.exponential %x : tensor<2x32x32xf32>
    %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %b1 = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x32xf32>
    %p = stablehlo.divide %e, %b1 : tensor<2x32x32xf32>
    %o = stablehlo.dot_general %p, %c, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<2x32x32xf32>, tensor<2x32x8xf32>) -> tensor<2x32x8xf32>
    fp8.yield %o : tensor<2x32x8xf32>
  }
  return %0 : tensor<2x32x8xf32>
}

// -----

// A maximum that is not finite counts as zero, as in jax.nn.softmax.
// CHECK-LABEL: @finite_maximum
// CHECK: %[[DOT:.*]] = stablehlo.dot_general %{{.*}} : (tensor<2x32x32xf32>, tensor<2x32x8xf32>) -> tensor<2x32x8xf32>
// CHECK: stablehlo.divide %[[DOT]]
func.func @finite_maximum(%q: tensor<2x32x8xf32>, %k: tensor<2x32x8xf32>, %v: tensor<2x32x8xf32>) -> tensor<2x32x8xf32> {
  %0 = fp8.attention %q, %k, %v : (tensor<2x32x8xf32>, tensor<2x32x8xf32>, tensor<2x32x8xf32>) -> tensor<2x32x8xf32> {
  ^bb0(%a: tensor<2x32x8xf32>, %b: tensor<2x32x8xf32>, %c: tensor<2x32x8xf32>):
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2]
        : (tensor<2x32x8xf32>, tensor<2x32x8xf32>) -> tensor<2x32x32xf32>
    %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %finite = stablehlo.is_finite %m : (tensor<2x32xf32>) -> tensor<2x32xi1>
    %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<2x32xf32>
    %m0 = stablehlo.select %finite, %m, %zeros : tensor<2x32xi1>, tensor<2x32xf32>
    %b0 = stablehlo.broadcast_in_dim %m0, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x32xf32>
    %x = stablehlo.subtract %s, %b0 : tensor<2x32x32xf32>
    %e = stablehlo.exponential %x : tensor<2x32x32xf32>
    %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %b1 = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x32xf32>
    %p = stablehlo.divide %e, %b1 : tensor<2x32x32xf32>
    %o = stablehlo.dot_general %p, %c, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<2x32x32xf32>, tensor<2x32x8xf32>) -> tensor<2x32x8xf32>
    fp8.yield %o : tensor<2x32x8xf32>
  }
  return %0 : tensor<2x32x8xf32>
}

// -----

// The sum of the weights reads them, too.
// CHECK-LABEL: @two_readers
// CHECK: %[[P:.*]] = stablehlo.divide {{.*}} : tensor<2x32x32xf32>
// CHECK-NOT: stablehlo.divide
func.func @two_readers(%q: tensor<2x32x8xf32>, %k: tensor<2x32x8xf32>, %v: tensor<2x32x8xf32>) -> tensor<2x32x8xf32> {
  %0 = fp8.attention %q, %k, %v : (tensor<2x32x8xf32>, tensor<2x32x8xf32>, tensor<2x32x8xf32>) -> tensor<2x32x8xf32> {
  ^bb0(%a: tensor<2x32x8xf32>, %b: tensor<2x32x8xf32>, %c: tensor<2x32x8xf32>):
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2]
        : (tensor<2x32x8xf32>, tensor<2x32x8xf32>) -> tensor<2x32x32xf32>
    %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %b0 = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x32xf32>
    %x = stablehlo.subtract %s, %b0 : tensor<2x32x32xf32>
    %e = stablehlo.exponential %x : tensor<2x32x32xf32>
    %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %b1 = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x32xf32>
    %p = stablehlo.divide %e, %b1 : tensor<2x32x32xf32>
    %n = stablehlo.reduce(%p init: %zero) applies stablehlo.add across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %b2 = stablehlo.broadcast_in_dim %n, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x8xf32>
    %o = stablehlo.dot_general %p, %c, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<2x32x32xf32>, tensor<2x32x8xf32>) -> tensor<2x32x8xf32>
    %r = stablehlo.add %o, %b2 : tensor<2x32x8xf32>
    fp8.yield %r : tensor<2x32x8xf32>
  }
  return %0 : tensor<2x32x8xf32>
}

// -----

// A divisor of each key is not one of a row.
// CHECK-LABEL: @divided_by_keys
// CHECK: %[[P:.*]] = stablehlo.divide {{.*}} : tensor<2x32x32xf32>
// CHECK-NOT: stablehlo.divide
func.func @divided_by_keys(%q: tensor<2x32x8xf32>, %k: tensor<2x32x8xf32>, %v: tensor<2x32x8xf32>) -> tensor<2x32x8xf32> {
  %0 = fp8.attention %q, %k, %v : (tensor<2x32x8xf32>, tensor<2x32x8xf32>, tensor<2x32x8xf32>) -> tensor<2x32x8xf32> {
  ^bb0(%a: tensor<2x32x8xf32>, %b: tensor<2x32x8xf32>, %c: tensor<2x32x8xf32>):
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2]
        : (tensor<2x32x8xf32>, tensor<2x32x8xf32>) -> tensor<2x32x32xf32>
    %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %b0 = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x32xf32>
    %x = stablehlo.subtract %s, %b0 : tensor<2x32x32xf32>
    %e = stablehlo.exponential %x : tensor<2x32x32xf32>
    %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %b1 = stablehlo.broadcast_in_dim %l, dims = [0, 2] : (tensor<2x32xf32>) -> tensor<2x32x32xf32>
    %p = stablehlo.divide %e, %b1 : tensor<2x32x32xf32>
    %o = stablehlo.dot_general %p, %c, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<2x32x32xf32>, tensor<2x32x8xf32>) -> tensor<2x32x8xf32>
    fp8.yield %o : tensor<2x32x8xf32>
  }
  return %0 : tensor<2x32x8xf32>
}

// -----

// A row of results is longer than a row of weights.
// CHECK-LABEL: @few_keys
// CHECK: %[[P:.*]] = stablehlo.divide {{.*}} : tensor<2x32x32xf32>
// CHECK-NOT: stablehlo.divide
func.func @few_keys(%q: tensor<2x32x8xf32>, %k: tensor<2x32x8xf32>, %v: tensor<2x32x64xf32>) -> tensor<2x32x64xf32> {
  %0 = fp8.attention %q, %k, %v : (tensor<2x32x8xf32>, tensor<2x32x8xf32>, tensor<2x32x64xf32>) -> tensor<2x32x64xf32> {
  ^bb0(%a: tensor<2x32x8xf32>, %b: tensor<2x32x8xf32>, %c: tensor<2x32x64xf32>):
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2]
        : (tensor<2x32x8xf32>, tensor<2x32x8xf32>) -> tensor<2x32x32xf32>
    %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %b0 = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x32xf32>
    %x = stablehlo.subtract %s, %b0 : tensor<2x32x32xf32>
    %e = stablehlo.exponential %x : tensor<2x32x32xf32>
    %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %b1 = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x32xf32>
    %p = stablehlo.divide %e, %b1 : tensor<2x32x32xf32>
    %o = stablehlo.dot_general %p, %c, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<2x32x32xf32>, tensor<2x32x64xf32>) -> tensor<2x32x64xf32>
    fp8.yield %o : tensor<2x32x64xf32>
  }
  return %0 : tensor<2x32x64xf32>
}

// -----

// FP8 has too few numbers for weights of any size.
// CHECK-LABEL: @in_fp8
// CHECK: %[[P:.*]] = stablehlo.divide {{.*}} : tensor<2x32x32xf32>
// CHECK-NOT: stablehlo.divide
func.func @in_fp8(%q: tensor<2x32x8xf32>, %k: tensor<2x32x8xf32>, %v: tensor<2x32x8xf32>) -> tensor<2x32x8xf32> {
  %0 = fp8.attention %q, %k, %v : (tensor<2x32x8xf32>, tensor<2x32x8xf32>, tensor<2x32x8xf32>) -> tensor<2x32x8xf32> {
  ^bb0(%a: tensor<2x32x8xf32>, %b: tensor<2x32x8xf32>, %c: tensor<2x32x8xf32>):
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2]
        : (tensor<2x32x8xf32>, tensor<2x32x8xf32>) -> tensor<2x32x32xf32>
    %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %b0 = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x32xf32>
    %x = stablehlo.subtract %s, %b0 : tensor<2x32x32xf32>
    %e = stablehlo.exponential %x : tensor<2x32x32xf32>
    %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2]
        : (tensor<2x32x32xf32>, tensor<f32>) -> tensor<2x32xf32>
    %b1 = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x32xf32>
    %p = stablehlo.divide %e, %b1 : tensor<2x32x32xf32>
    %f = stablehlo.convert %p : (tensor<2x32x32xf32>) -> tensor<2x32x32xf8E4M3FN>
    %w = stablehlo.convert %f : (tensor<2x32x32xf8E4M3FN>) -> tensor<2x32x32xf32>
    %o = stablehlo.dot_general %w, %c, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<2x32x32xf32>, tensor<2x32x8xf32>) -> tensor<2x32x8xf32>
    fp8.yield %o : tensor<2x32x8xf32>
  }
  return %0 : tensor<2x32x8xf32>
}
