// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide --fp8-report-verdicts=file=- --fp8-check-verdicts -o /dev/null 2>&1 | tr -s " " | FileCheck %s
// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide --fp8-check-verdicts=fail-on-fallback --verify-diagnostics
// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=none --fp8-decide --fp8-check-verdicts=fail-on-fallback -o /dev/null

// A dot that the recipe quantizes but that cannot be converted is a fallback,
// never silent.

// CHECK: fallback forward p['w'] 1 6 16 16 f64 f64 expected lhs of f32, bf16 or f16 but got f64
// CHECK: recipe tensorwise: 0 of 2 dots in FP8; 1 fallback, 1 head
func.func @main(
    %w: tensor<16x16xf64> {fp8.role = "frozen", fp8.path = "p['w']"},
    %head: tensor<16x8xf64> {fp8.role = "frozen", fp8.path = "p['head']"},
    %x: tensor<6x16xf64> {fp8.role = "batch", fp8.path = "x"}) -> tensor<6x8xf64> {
  // expected-error @+1 {{recipe 'tensorwise' quantizes this forward dot of layer 'p['w']', but it cannot be converted: expected lhs of f32, bf16 or f16 but got f64}}
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<6x16xf64>, tensor<16x16xf64>) -> tensor<6x16xf64>
  %1 = stablehlo.dot_general %0, %head, contracting_dims = [1] x [0]
      : (tensor<6x16xf64>, tensor<16x8xf64>) -> tensor<6x8xf64>
  return %1 : tensor<6x8xf64>
}
