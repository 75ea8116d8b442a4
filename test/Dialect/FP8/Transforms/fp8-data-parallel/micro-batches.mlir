// RUN: fp8-opt %s --fp8-data-parallel | FileCheck %s

// A batch of [micro-batches, rows, ...] that a loop reads one by one, also behind
// what works by element: rows are along the second dimension.
// CHECK-LABEL: func.func public @main
// CHECK: %[[LOOP:.*]]:3 = stablehlo.while
// CHECK-NOT: all_reduce
// CHECK: stablehlo.return
// CHECK: stablehlo.return
// CHECK: fp8.all_reduce mean %[[LOOP]]#1 label = "gradient w" {{.*}}: tensor<8xf32>
// CHECK: fp8.all_reduce mean %{{.*}} label = "[1]" {{.*}}: tensor<f32>
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<2x16x8xbf16> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<8xf32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %i1 = stablehlo.constant dense<1> : tensor<i32>
  %i2 = stablehlo.constant dense<2> : tensor<i32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %ns = stablehlo.constant dense<16.0> : tensor<8xf32>
  %half = stablehlo.constant dense<0.5> : tensor<f32>
  %xs = stablehlo.convert %x : (tensor<2x16x8xbf16>) -> tensor<2x16x8xf32>
  %0:3 = stablehlo.while(%i = %i0, %sum = %zeros, %total = %zero) : tensor<i32>, tensor<8xf32>, tensor<f32>
  cond {
    %1 = stablehlo.compare LT, %i, %i2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %xs, %i, %i0, %i0, sizes = [1, 16, 8] : (tensor<2x16x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x8xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x16x8xf32>) -> tensor<16x8xf32>
    %y = stablehlo.dot_general %2, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
    %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %l = stablehlo.divide %s, %n : tensor<f32>
    %gs = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16x8xf32>, tensor<f32>) -> tensor<8xf32>
    %g = stablehlo.divide %gs, %ns : tensor<8xf32>
    %3 = stablehlo.add %sum, %g : tensor<8xf32>
    %4 = stablehlo.add %total, %l : tensor<f32>
    %5 = stablehlo.add %i, %i1 : tensor<i32>
    stablehlo.return %5, %3, %4 : tensor<i32>, tensor<8xf32>, tensor<f32>
  }
  %loss = stablehlo.multiply %0#2, %half : tensor<f32>
  %new = stablehlo.subtract %w, %0#1 : tensor<8xf32>
  return %new, %loss : tensor<8xf32>, tensor<f32>
}
