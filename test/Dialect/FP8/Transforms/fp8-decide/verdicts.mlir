// RUN: fp8-opt %s --fp8-resolve-recipe="recipe=delayed set=smooth_swiglu.granularity=channel" --fp8-smooth-swiglu --fp8-decide | FileCheck %s
// RUN: fp8-opt %s --fp8-resolve-recipe="recipe=delayed set=smooth_swiglu.granularity=channel" --fp8-smooth-swiglu --fp8-decide | fp8-opt --fp8-decide | FileCheck %s

// Every dot has its verdict; nothing else changes. What later passes need of
// the analysis is in it: role, layer, kinds of operands, and that a smoothed
// weight has a scale of its own.
// CHECK: stablehlo.dot_general {{.*}} {fp8.verdict = #fp8.verdict<fp8, role = forward, category = linear, layer = "p['gate']", lhs = activation, rhs = weight, batch = 1, m = 4, n = 32, k = 16, lhs_format = f8E4M3FN, rhs_format = f8E4M3FN, lhs_tile = tensor, rhs_tile = tensor, reason = "linear layer">}
// CHECK: stablehlo.dot_general {{.*}}layer = "p['up']"
// CHECK: stablehlo.dot_general {{.*}}layer = "p['down']", {{.*}}current_scale = true, number = 2, reason = "linear layer", notes = ["smoothed per channel, pow2, current", "the smoothed weight has a current scale"]>}
// CHECK: stablehlo.dot_general {{.*}} {fp8.verdict = #fp8.verdict<high_precision, role = forward, category = head, layer = "p['head']", lhs = activation, rhs = weight, batch = 1, m = 4, n = 8, k = 16, lhs_format = bf16, rhs_format = bf16, rule = 1, number = {{[1-9]}}, reason = "head: no other layer reads the layer's output", notes = ["kept by rule 1 (line {{[0-9]+}}): part: head"]>}
// CHECK: stablehlo.dot_general {{.*}} {fp8.verdict = #fp8.verdict<high_precision, role = other, category = other, batch = 1, m = 4, n = 4, k = 8, lhs_format = bf16, rhs_format = bf16, number = {{[1-9]}}, reason =
func.func @main(%gate: tensor<16x32xf32> {fp8.role = "frozen", fp8.path = "p['gate']"},
                %up: tensor<16x32xf32> {fp8.role = "frozen", fp8.path = "p['up']"},
                %down: tensor<32x16xf32> {fp8.role = "frozen", fp8.path = "p['down']"},
                %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
                %x: tensor<4x16xf32> {fp8.role = "batch", fp8.path = "x"}) -> tensor<4x4xf32> {
  %0 = stablehlo.dot_general %x, %gate, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
  %1 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
  %2 = stablehlo.logistic %0 : tensor<4x32xf32>
  %3 = stablehlo.multiply %0, %2 : tensor<4x32xf32>
  %4 = stablehlo.multiply %3, %1 : tensor<4x32xf32>
  %5 = stablehlo.dot_general %4, %down, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
  %6 = stablehlo.dot_general %5, %head, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %7 = stablehlo.dot_general %6, %6, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>
  return %7 : tensor<4x4xf32>
}
