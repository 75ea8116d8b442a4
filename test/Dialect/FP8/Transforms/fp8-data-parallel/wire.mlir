// RUN: fp8-opt %s "--fp8-resolve-recipe=recipe=none set=all_reduce.format=f8E4M3FN set=all_reduce.tile=1x128" --fp8-data-parallel | FileCheck %s --check-prefixes=CHECK,F8
// RUN: fp8-opt %s "--fp8-resolve-recipe=recipe=none set=all_reduce.format=bf16" --fp8-data-parallel | FileCheck %s --check-prefixes=CHECK,BF16
// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=none --fp8-data-parallel | FileCheck %s --check-prefixes=CHECK,NONE

// A gradient travels in few bits, with its scale in the state; the loss does not.
// CHECK-LABEL: func.func public @main
// F8-SAME: %[[MU:arg[0-9]+]]: tensor<2xf32> {fp8.kind = "other", fp8.path = "fp8.w.all_reduce.mu", fp8.role = "state", fp8.zero_init}
// F8-SAME: tensor<2xf32> {fp8.path = "fp8.w.all_reduce.mu", fp8.state = "fp8.w.all_reduce.mu"}
// CHECK: fp8.all_reduce mean %{{.*}} label = "[1]" {{.*}}: tensor<f32>
// F8: %{{.*}}, %[[NEW:.*]] = fp8.all_reduce mean %{{.*}} mu %[[MU]] wire = f8E4M3FN block = 128 label = "gradient w" {{.*}}: tensor<8xf32>, tensor<2xf32> -> tensor<2xf32>
// BF16: fp8.all_reduce mean %{{.*}} wire = bf16 label = "gradient w" {{.*}}: tensor<8xf32>
// NONE: fp8.all_reduce mean %{{.*}} label = "gradient w" {{.*}}: tensor<8xf32>
// F8: return %{{.*}}, %{{.*}}, %[[NEW]]
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %yy = stablehlo.multiply %y, %y : tensor<16xf32>
  %s = stablehlo.reduce(%yy init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  %seed = stablehlo.constant dense<0.125> : tensor<16xf32>
  %dy = stablehlo.multiply %y, %seed : tensor<16xf32>
  %g = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16xf32>) -> tensor<8xf32>
  %new = stablehlo.subtract %w, %g : tensor<8xf32>
  return %new, %loss : tensor<8xf32>, tensor<f32>
}
