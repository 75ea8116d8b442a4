// RUN: fp8-opt %s --fp8-resolve-recipe="recipe=none set=compute.saved=bf16" --fp8-decide --fp8-save-activations --fp8-compute-types --cse | FileCheck %s
// RUN: fp8-opt %s --fp8-resolve-recipe="recipe=none set=compute.attention=f8" --fp8-decide --fp8-save-activations --fp8-compute-types --cse | FileCheck %s --check-prefix=F8

// Keys that two heads of queries share are saved before they are repeated.
// CHECK-LABEL: @repeated
// CHECK: %[[K:.*]] = stablehlo.dot_general %{{.*}}, %arg0
// CHECK: %[[K16:.*]] = stablehlo.convert %[[K]] : (tensor<2x16x8xf32>) -> tensor<2x16x8xbf16>
// CHECK: %[[SAVED:.*]] = stablehlo.optimization_barrier %[[K16]]
// CHECK: %[[FORWARD:.*]] = stablehlo.broadcast_in_dim %[[K]], dims = [0, 2, 3]
// CHECK: stablehlo.dot_general %arg2, %[[FORWARD]]
// CHECK: %[[RESTORED:.*]] = stablehlo.convert %[[SAVED]] : (tensor<2x16x8xbf16>) -> tensor<2x16x8xf32>
// CHECK: %[[BACKWARD:.*]] = stablehlo.broadcast_in_dim %[[RESTORED]], dims = [0, 2, 3]
// CHECK: stablehlo.dot_general %arg2, %[[BACKWARD]]
// CHECK-NOT: stablehlo.optimization_barrier

// So is the payload that attention in f8 reads.
// F8-LABEL: @repeated
// F8: %[[K:.*]] = stablehlo.dot_general %{{.*}}, %arg0
// F8: %[[K16:.*]] = stablehlo.convert %[[K]]
// F8: %[[K8:.*]] = fp8.quantize %[[K16]], {{.*}} -> !fp8.scaled<2x16x8xf8E4M3FN, tile = [1, 64, *], scale = f32>
// F8: %[[FORWARD:.*]] = fp8.dequantize %[[K8]] {{.*}} -> tensor<2x16x8xbf16>
// F8: %[[PAYLOAD:.*]], %[[SCALE:.*]] = fp8.unpack %[[K8]]
// F8: %[[SAVED:.*]]:2 = stablehlo.optimization_barrier %[[PAYLOAD]], %[[SCALE]]
// F8: %[[PACKED:.*]] = fp8.pack %[[SAVED]]#0, %[[SAVED]]#1
// F8: stablehlo.broadcast_in_dim %[[FORWARD]], dims = [0, 2, 3]
// F8: %[[RESTORED:.*]] = fp8.dequantize %[[PACKED]]
// F8: %[[NARROW:.*]] = stablehlo.convert %[[RESTORED]]
// F8: stablehlo.broadcast_in_dim %[[NARROW]], dims = [0, 2, 3]
func.func @repeated(
    %w: tensor<8x8xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "w"},
    %x: tensor<2x16x8xf32> {fp8.role = "batch", fp8.path = "x"},
    %q: tensor<2x2x16x8xf32> {fp8.role = "batch", fp8.path = "q"},
    %y: tensor<2x2x16x8xf32> {fp8.role = "batch", fp8.path = "y"})
    -> (tensor<8x8xf32> {fp8.path = "w1", fp8.state = "w"}, tensor<f32> {fp8.kind = "loss", fp8.path = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %inf = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %k = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<2x16x8xf32>, tensor<8x8xf32>) -> tensor<2x16x8xf32>
  %keys = stablehlo.broadcast_in_dim %k, dims = [0, 2, 3] : (tensor<2x16x8xf32>) -> tensor<2x2x16x8xf32>
  %s = stablehlo.dot_general %q, %keys, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>) -> tensor<2x2x16x16xf32>
  %max = stablehlo.reduce(%s init: %inf) applies stablehlo.maximum across dimensions = [3] : (tensor<2x2x16x16xf32>, tensor<f32>) -> tensor<2x2x16xf32>
  %maxes = stablehlo.broadcast_in_dim %max, dims = [0, 1, 2] : (tensor<2x2x16xf32>) -> tensor<2x2x16x16xf32>
  %shifted = stablehlo.subtract %s, %maxes : tensor<2x2x16x16xf32>
  %e = stablehlo.exponential %shifted : tensor<2x2x16x16xf32>
  %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x2x16x16xf32>, tensor<f32>) -> tensor<2x2x16xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1, 2] : (tensor<2x2x16xf32>) -> tensor<2x2x16x16xf32>
  %p = stablehlo.divide %e, %sums : tensor<2x2x16x16xf32>
  %o = stablehlo.dot_general %p, %keys, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x2x16x16xf32>, tensor<2x2x16x8xf32>) -> tensor<2x2x16x8xf32>
  %weighted = stablehlo.multiply %o, %y : tensor<2x2x16x8xf32>
  %loss = stablehlo.reduce(%weighted init: %zero) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<2x2x16x8xf32>, tensor<f32>) -> tensor<f32>
  // The backward pass computes the weights once more.
  %s1 = stablehlo.dot_general %q, %keys, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>) -> tensor<2x2x16x16xf32>
  %max1 = stablehlo.reduce(%s1 init: %inf) applies stablehlo.maximum across dimensions = [3] : (tensor<2x2x16x16xf32>, tensor<f32>) -> tensor<2x2x16xf32>
  %maxes1 = stablehlo.broadcast_in_dim %max1, dims = [0, 1, 2] : (tensor<2x2x16xf32>) -> tensor<2x2x16x16xf32>
  %shifted1 = stablehlo.subtract %s1, %maxes1 : tensor<2x2x16x16xf32>
  %e1 = stablehlo.exponential %shifted1 : tensor<2x2x16x16xf32>
  %sum1 = stablehlo.reduce(%e1 init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x2x16x16xf32>, tensor<f32>) -> tensor<2x2x16xf32>
  %sums1 = stablehlo.broadcast_in_dim %sum1, dims = [0, 1, 2] : (tensor<2x2x16xf32>) -> tensor<2x2x16x16xf32>
  %p1 = stablehlo.divide %e1, %sums1 : tensor<2x2x16x16xf32>
  %dp = stablehlo.dot_general %y, %keys, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>) -> tensor<2x2x16x16xf32>
  %product = stablehlo.multiply %p1, %dp : tensor<2x2x16x16xf32>
  %mean = stablehlo.reduce(%product init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x2x16x16xf32>, tensor<f32>) -> tensor<2x2x16xf32>
  %means = stablehlo.broadcast_in_dim %mean, dims = [0, 1, 2] : (tensor<2x2x16xf32>) -> tensor<2x2x16x16xf32>
  %difference = stablehlo.subtract %dp, %means : tensor<2x2x16x16xf32>
  %ds = stablehlo.multiply %p1, %difference : tensor<2x2x16x16xf32>
  %dkeys = stablehlo.dot_general %ds, %q, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [2] : (tensor<2x2x16x16xf32>, tensor<2x2x16x8xf32>) -> tensor<2x2x16x8xf32>
  %dk = stablehlo.reduce(%dkeys init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x2x16x8xf32>, tensor<f32>) -> tensor<2x16x8xf32>
  %dw = stablehlo.dot_general %x, %dk, contracting_dims = [0, 1] x [0, 1] : (tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<8x8xf32>
  %w1 = stablehlo.subtract %w, %dw : tensor<8x8xf32>
  return %w1, %loss : tensor<8x8xf32>, tensor<f32>
}
