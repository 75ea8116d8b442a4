// RUN: fp8-opt %s --fp8-store-gradients=name-tensors=true | FileCheck %s
// RUN: fp8-opt %s --fp8-store-gradients | FileCheck %s --check-prefix=NONE

// For a trace, the quantization of a gradient has the name of its weight.
// CHECK: fp8.quantize {{.*}} {fp8.tensor = "p['w'].weight_gradient"}
// NONE-NOT: fp8.tensor =
module attributes {fp8.recipe = #fp8.recipe<{name = mine, gradients = {format = f8E4M3FN, tile = tensor}}>} {
  func.func @main(%x: tensor<4x32xf32>, %dy: tensor<4x16xf32>, %w: tensor<32x16xf32>) -> tensor<32x16xf32> {
    %0 = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0] {fp8.verdict = #fp8.verdict<high_precision, role = wgrad, category = linear, layer = "p['w']", lhs = activation, rhs = gradient, batch = 1, m = 32, n = 16, k = 4, lhs_format = f32, rhs_format = f32, reason = "no key">} : (tensor<4x32xf32>, tensor<4x16xf32>) -> tensor<32x16xf32>
    %1 = stablehlo.subtract %w, %0 : tensor<32x16xf32>
    return %1 : tensor<32x16xf32>
  }
}
