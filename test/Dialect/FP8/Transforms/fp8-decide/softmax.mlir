// RUN: fp8-opt %s --fp8-resolve-recipe="recipe=none set=compute.attention=f8" --fp8-decide=emit-remarks --verify-diagnostics -o /dev/null
// RUN: fp8-opt %s --fp8-resolve-recipe="recipe=none set=compute.attention=f8" --fp8-decide --fp8-compute-types | FileCheck %s

// `compute.attention` is about the dots of softmaxes; dots between which
// there is no exponential read what other dots read.

// CHECK: stablehlo.dot_general {{.*}} : (tensor<2x4x8x8xbf16>, tensor<2x4x8x8xbf16>) -> tensor<2x4x8x8xf32>
// CHECK: stablehlo.exponential
// CHECK: stablehlo.dot_general {{.*}} : (tensor<2x4x8x8xbf16>, tensor<2x4x8x8xbf16>) -> tensor<2x4x8x8xf32>
// CHECK: stablehlo.dot_general {{.*}} : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
func.func public @main(
    %q: tensor<2x4x8x8xf32> {fp8.role = "batch", fp8.path = "q"},
    %k: tensor<2x4x8x8xf32> {fp8.role = "batch", fp8.path = "k"})
    -> (tensor<f32> {fp8.kind = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-remark @+1 {{bf16 x bf16): attention: a batched product of two activations, in f8 blocks if its softmax can be followed}}
  %s = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3]
      : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %e = stablehlo.exponential %s : tensor<2x4x8x8xf32>
  %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<2x4x8xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1, 2] : (tensor<2x4x8xf32>) -> tensor<2x4x8x8xf32>
  %p = stablehlo.divide %e, %sums : tensor<2x4x8x8xf32>
  // expected-remark @+1 {{bf16 x bf16): attention: a batched product of two activations, in f8 blocks if its softmax can be followed}}
  %o = stablehlo.dot_general %p, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2]
      : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  // expected-remark @+1 {{f32 x f32): attention: a batched product of two activations, of no softmax}}
  %g = stablehlo.dot_general %q, %q, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [2]
      : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %y = stablehlo.add %o, %g : tensor<2x4x8x8xf32>
  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1, 2, 3]
      : (tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}
