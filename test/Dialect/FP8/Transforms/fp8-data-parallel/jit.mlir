// RUN: fp8-opt %s --fp8-data-parallel | FileCheck %s
// RUN: fp8-opt %s --fp8-data-parallel=global-batch=4 | FileCheck %s --check-prefix=OPTION

// A jit that splits the rows of its batch over 2 devices says it itself, unless
// the option does.

// CHECK-LABEL: func.func public @jit
// CHECK-SAME: tensor<8x8xf32> {fp8.path = "x", fp8.role = "batch", stablehlo.part
// CHECK-NOT: stablehlo.{{rows|sharing}}
// OPTION-LABEL: func.func public @jit
// OPTION-SAME: tensor<4x8xf32> {fp8.path = "x", fp8.role = "batch", stablehlo.part
func.func public @jit(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch", stablehlo.rows})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]['w']", fp8.state = "params['w']"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) attributes {stablehlo.sharing = 2 : i64} {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %g = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16x8xf32>, tensor<f32>) -> tensor<8xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %new = stablehlo.subtract %w, %g : tensor<8xf32>
  return %new, %loss : tensor<8xf32>, tensor<f32>
}
