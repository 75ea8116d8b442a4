// What the initial values hold and no result replaces is set once; floats that
// they lack are data where nothing else tells.
// RUN: fp8-opt %s --fp8-analyze-signature="initial=w=tensor<4xf32>,scale=tensor<8xf32>,file/order=tensor<8xi32>,other=tensor<8xi1>" | FileCheck %s
// RUN: fp8-opt %s --fp8-analyze-signature="initial=w=tensor<4xf32>,scale=tensor<8xf32>,file/order=tensor<8xi32> roles=order=batch,scale=batch" | FileCheck %s --check-prefix=FORCED
// RUN: fp8-opt %s --fp8-analyze-signature | FileCheck %s --check-prefix=UNKNOWN
// RUN: not fp8-opt %s --fp8-analyze-signature="initial=w=tensor" 2>&1 | FileCheck %s --check-prefix=MALFORMED

// CHECK-LABEL: @main
// CHECK-SAME: fp8.path = "w", fp8.role = "state"
// CHECK-SAME: fp8.path = "x", fp8.role = "batch"
// CHECK-SAME: fp8.path = "y", fp8.role = "batch"
// CHECK-SAME: fp8.path = "scale", fp8.role = "frozen"
// CHECK-SAME: fp8.path = "order", fp8.role = "constant"
// A source of another name is another thing.
// CHECK-SAME: fp8.path = "mask", fp8.role = "batch"

// FORCED: fp8.path = "scale", fp8.role = "batch"
// FORCED-SAME: fp8.path = "order", fp8.role = "batch"

// UNKNOWN: fp8.path = "scale", fp8.role = "batch"
// UNKNOWN-SAME: fp8.path = "order", fp8.role = "batch"

// MALFORMED: expected '<'
func.func public @main(%w: tensor<4xf32> {fp8.path = "w"}, %x: tensor<8x4xf32> {fp8.path = "x"}, %y: tensor<8xf32> {fp8.path = "y"}, %scale: tensor<8xf32> {fp8.path = "scale"}, %order: tensor<8xi32> {fp8.path = "order"}, %mask: tensor<8xi1> {fp8.path = "mask"}) -> (tensor<f32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<8xf32>
  %rate = stablehlo.constant dense<0.1> : tensor<4xf32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %o = stablehlo.convert %order : (tensor<8xi32>) -> tensor<8xf32>
  %c = stablehlo.multiply %o, %scale : tensor<8xf32>
  %e = stablehlo.subtract %z, %y : tensor<8xf32>
  %f = stablehlo.multiply %e, %c : tensor<8xf32>
  %d = stablehlo.select %mask, %f, %zeros : tensor<8xi1>, tensor<8xf32>
  %s = stablehlo.multiply %d, %d : tensor<8xf32>
  %loss = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %dc = stablehlo.multiply %d, %c : tensor<8xf32>
  %g = stablehlo.dot_general %dc, %x, contracting_dims = [0] x [0] : (tensor<8xf32>, tensor<8x4xf32>) -> tensor<4xf32>
  %u = stablehlo.multiply %g, %rate : tensor<4xf32>
  %new = stablehlo.subtract %w, %u : tensor<4xf32>
  return %loss, %new : tensor<f32>, tensor<4xf32>
}
