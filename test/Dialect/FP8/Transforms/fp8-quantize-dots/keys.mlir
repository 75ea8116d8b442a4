// RUN: split-file %s %t
// RUN: fp8-opt %t/step.mlir --fp8-resolve-recipe=recipe=%t/recipe.yaml --fp8-decide --fp8-quantize-dots --fp8-compute-types --fp8-drop-verdicts | FileCheck %t/step.mlir
// RUN: fp8-opt %t/step.mlir --fp8-resolve-recipe=recipe=%t/recipe.yaml --fp8-decide=emit-remarks --verify-diagnostics -o /dev/null
// RUN: fp8-opt %t/data.mlir --fp8-resolve-recipe --fp8-decide=emit-remarks --verify-diagnostics -o /dev/null

// Every key of a recipe is seen in the IR.

//--- recipe.yaml
name: keys
forward:
  activation: {format: f8E5M2, tile: tensor, scale: pow2, margin: 2, rounding: nearest_even, overflow: nan}
  weight: {format: f8E4M3FN, scale: ocp_floor}
//--- step.mlir
// CHECK-DAG: fp8.compute_scale {{.*}} {format = f8E5M2, margin = 2 : i64, rule = #fp8.scale_rule<pow2>}
// CHECK-DAG: fp8.quantize %arg1, {{.*}} rounding = nearest_even, overflow = nan {{.*}}xf8E5M2
// CHECK-DAG: fp8.compute_scale {{.*}} {format = f8E4M3FN, rule = #fp8.scale_rule<ocp_floor>}
// CHECK-DAG: fp8.quantize %arg0, {{.*}} rounding = nearest_even, overflow = saturate {{.*}}xf8E4M3FN
// CHECK: fp8.dot_general
// CHECK: stablehlo.dot_general
func.func @main(
    %w: tensor<16x8xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['w']"},
    %x: tensor<6x16xf32> {fp8.role = "batch", fp8.path = "x"})
    -> (tensor<8x16xf32> {fp8.state = "p['w']"}, tensor<6x8xf32> {fp8.kind = "loss"}) {
  // expected-remark @+1 {{fp8: forward of p['w'] (batch 1, M 6, N 8, K 16; f8E5M2 x f8E4M3FN): head: no other layer reads the layer's output}}
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<6x16xf32>, tensor<16x8xf32>) -> tensor<6x8xf32>
  // A dot that the recipe does not have stays in high precision.
  // expected-remark @+1 {{high_precision: wgrad of p['w'] (batch 1, M 8, N 16, K 6; f32 x f32): recipe 'keys' has no 'wgrad' key}}
  %1 = stablehlo.dot_general %0, %x, contracting_dims = [0] x [0]
      : (tensor<6x8xf32>, tensor<6x16xf32>) -> tensor<8x16xf32>
  return %1, %0 : tensor<8x16xf32>, tensor<6x8xf32>
}
//--- data.mlir
func.func @main(%w: tensor<16x8xf32> {fp8.role = "batch"}, %x: tensor<6x16xf32> {fp8.role = "batch"}) -> tensor<6x8xf32> {
  // expected-remark @+1 {{(no argument is a parameter)}}
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<6x16xf32>, tensor<16x8xf32>) -> tensor<6x8xf32>
  return %0 : tensor<6x8xf32>
}
