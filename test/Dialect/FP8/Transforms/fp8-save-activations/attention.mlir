// RUN: fp8-opt %s --split-input-file --fp8-resolve-recipe="recipe=none set=compute.attention=f8" --fp8-decide --fp8-save-activations --fp8-compute-types --cse | FileCheck %s

// Queries that only attention dots read from the forward pass are saved as the payload that these dots read, and not rounded once more.
// CHECK-LABEL: @saved
// CHECK: %[[Q:.*]] = stablehlo.dot_general %{{.*}}, %arg0
// CHECK: %[[Q16:.*]] = stablehlo.convert %[[Q]]
// CHECK: %[[Q8:.*]] = fp8.quantize %[[Q16]], {{.*}} tile = [1, 64, *]
// CHECK: %[[FORWARD:.*]] = fp8.dequantize %[[Q8]] {{.*}} -> tensor<2x16x8xbf16>
// CHECK: %[[PAYLOAD:.*]], %[[SCALE:.*]] = fp8.unpack %[[Q8]]
// CHECK: %[[SAVED:.*]]:2 = stablehlo.optimization_barrier %[[PAYLOAD]], %[[SCALE]]
// CHECK: %[[PACKED:.*]] = fp8.pack %[[SAVED]]#0, %[[SAVED]]#1
// CHECK: stablehlo.dot_general %[[FORWARD]]
// CHECK: %[[RESTORED:.*]] = fp8.dequantize %[[PACKED]] {{.*}} -> tensor<2x16x8xf32>
// CHECK: %[[BACKWARD:.*]] = stablehlo.convert %[[RESTORED]]
// CHECK-NOT: fp8.quantize
// CHECK: stablehlo.dot_general %[[BACKWARD]]
func.func @saved(
    %w: tensor<8x8xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "w"},
    %x: tensor<2x16x8xf32> {fp8.role = "batch", fp8.path = "x"},
    %y: tensor<2x16x8xf32> {fp8.role = "batch", fp8.path = "y"})
    -> (tensor<8x8xf32> {fp8.path = "w1", fp8.state = "w"}, tensor<f32> {fp8.kind = "loss", fp8.path = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %inf = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %q = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<2x16x8xf32>, tensor<8x8xf32>) -> tensor<2x16x8xf32>
  %s = stablehlo.dot_general %q, %x, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<2x16x16xf32>
  %max = stablehlo.reduce(%s init: %inf) applies stablehlo.maximum across dimensions = [2] : (tensor<2x16x16xf32>, tensor<f32>) -> tensor<2x16xf32>
  %maxes = stablehlo.broadcast_in_dim %max, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x16xf32>
  %shifted = stablehlo.subtract %s, %maxes : tensor<2x16x16xf32>
  %e = stablehlo.exponential %shifted : tensor<2x16x16xf32>
  %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x16x16xf32>, tensor<f32>) -> tensor<2x16xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x16xf32>
  %p = stablehlo.divide %e, %sums : tensor<2x16x16xf32>
  %o = stablehlo.dot_general %p, %x, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x16x16xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
  %weighted = stablehlo.multiply %o, %y : tensor<2x16x8xf32>
  %loss = stablehlo.reduce(%weighted init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x16x8xf32>, tensor<f32>) -> tensor<f32>
  // The backward pass computes the weights once more.
  %s1 = stablehlo.dot_general %q, %x, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<2x16x16xf32>
  %max1 = stablehlo.reduce(%s1 init: %inf) applies stablehlo.maximum across dimensions = [2] : (tensor<2x16x16xf32>, tensor<f32>) -> tensor<2x16xf32>
  %maxes1 = stablehlo.broadcast_in_dim %max1, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x16xf32>
  %shifted1 = stablehlo.subtract %s1, %maxes1 : tensor<2x16x16xf32>
  %e1 = stablehlo.exponential %shifted1 : tensor<2x16x16xf32>
  %sum1 = stablehlo.reduce(%e1 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x16x16xf32>, tensor<f32>) -> tensor<2x16xf32>
  %sums1 = stablehlo.broadcast_in_dim %sum1, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x16xf32>
  %p1 = stablehlo.divide %e1, %sums1 : tensor<2x16x16xf32>
  %dp = stablehlo.dot_general %y, %x, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<2x16x16xf32>
  %product = stablehlo.multiply %p1, %dp : tensor<2x16x16xf32>
  %mean = stablehlo.reduce(%product init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x16x16xf32>, tensor<f32>) -> tensor<2x16xf32>
  %means = stablehlo.broadcast_in_dim %mean, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x16xf32>
  %difference = stablehlo.subtract %dp, %means : tensor<2x16x16xf32>
  %ds = stablehlo.multiply %p1, %difference : tensor<2x16x16xf32>
  %dq = stablehlo.dot_general %ds, %x, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x16x16xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
  %dw = stablehlo.dot_general %x, %dq, contracting_dims = [0, 1] x [0, 1] : (tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<8x8xf32>
  %w1 = stablehlo.subtract %w, %dw : tensor<8x8xf32>
  return %w1, %loss : tensor<8x8xf32>, tensor<f32>
}

// -----

// The backward pass also computes a cosine of these: they are saved as they are.
// CHECK-LABEL: @otherReader
// CHECK: %[[Q:.*]] = stablehlo.dot_general %{{.*}}, %arg0
// CHECK: %[[SAVED:.*]] = stablehlo.optimization_barrier %[[Q]] : tensor<2x16x8xf32>
// CHECK: %[[Q16:.*]] = stablehlo.convert %[[SAVED]]
// CHECK: %[[Q8:.*]] = fp8.quantize %[[Q16]]
// CHECK: %[[BACKWARD:.*]] = fp8.dequantize %[[Q8]]
// CHECK: stablehlo.dot_general %[[BACKWARD]]
// CHECK: stablehlo.cosine %[[SAVED]]
func.func @otherReader(
    %w: tensor<8x8xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "w"},
    %x: tensor<2x16x8xf32> {fp8.role = "batch", fp8.path = "x"},
    %y: tensor<2x16x8xf32> {fp8.role = "batch", fp8.path = "y"})
    -> (tensor<8x8xf32> {fp8.path = "w1", fp8.state = "w"}, tensor<f32> {fp8.kind = "loss", fp8.path = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %inf = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %q = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<2x16x8xf32>, tensor<8x8xf32>) -> tensor<2x16x8xf32>
  %s = stablehlo.dot_general %q, %x, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<2x16x16xf32>
  %max = stablehlo.reduce(%s init: %inf) applies stablehlo.maximum across dimensions = [2] : (tensor<2x16x16xf32>, tensor<f32>) -> tensor<2x16xf32>
  %maxes = stablehlo.broadcast_in_dim %max, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x16xf32>
  %shifted = stablehlo.subtract %s, %maxes : tensor<2x16x16xf32>
  %e = stablehlo.exponential %shifted : tensor<2x16x16xf32>
  %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x16x16xf32>, tensor<f32>) -> tensor<2x16xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x16xf32>
  %p = stablehlo.divide %e, %sums : tensor<2x16x16xf32>
  %o = stablehlo.dot_general %p, %x, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x16x16xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
  %weighted = stablehlo.multiply %o, %y : tensor<2x16x8xf32>
  %sine = stablehlo.sine %q : tensor<2x16x8xf32>
  %both = stablehlo.add %weighted, %sine : tensor<2x16x8xf32>
  %loss = stablehlo.reduce(%both init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x16x8xf32>, tensor<f32>) -> tensor<f32>
  // The backward pass computes the weights once more.
  %s1 = stablehlo.dot_general %q, %x, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<2x16x16xf32>
  %max1 = stablehlo.reduce(%s1 init: %inf) applies stablehlo.maximum across dimensions = [2] : (tensor<2x16x16xf32>, tensor<f32>) -> tensor<2x16xf32>
  %maxes1 = stablehlo.broadcast_in_dim %max1, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x16xf32>
  %shifted1 = stablehlo.subtract %s1, %maxes1 : tensor<2x16x16xf32>
  %e1 = stablehlo.exponential %shifted1 : tensor<2x16x16xf32>
  %sum1 = stablehlo.reduce(%e1 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x16x16xf32>, tensor<f32>) -> tensor<2x16xf32>
  %sums1 = stablehlo.broadcast_in_dim %sum1, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x16xf32>
  %p1 = stablehlo.divide %e1, %sums1 : tensor<2x16x16xf32>
  %dp = stablehlo.dot_general %y, %x, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<2x16x16xf32>
  %product = stablehlo.multiply %p1, %dp : tensor<2x16x16xf32>
  %mean = stablehlo.reduce(%product init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x16x16xf32>, tensor<f32>) -> tensor<2x16xf32>
  %means = stablehlo.broadcast_in_dim %mean, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x16xf32>
  %difference = stablehlo.subtract %dp, %means : tensor<2x16x16xf32>
  %ds = stablehlo.multiply %p1, %difference : tensor<2x16x16xf32>
  %dq = stablehlo.dot_general %ds, %x, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x16x16xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
  // The gradient of a sine of the queries.
  %c = stablehlo.cosine %q : tensor<2x16x8xf32>
  %dq1 = stablehlo.add %dq, %c : tensor<2x16x8xf32>
  %dw = stablehlo.dot_general %x, %dq1, contracting_dims = [0, 1] x [0, 1] : (tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<8x8xf32>
  %w1 = stablehlo.subtract %w, %dw : tensor<8x8xf32>
  return %w1, %loss : tensor<8x8xf32>, tensor<f32>
}
