// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=coat --fp8-decide --fp8-save-activations | FileCheck %s

// COAT keeps in E4M3 what follows from a norm's input. The mask of a rectifier
// behind the norm follows from it, too, but it is of booleans: the loop stacks
// what the comparison gives, and the backward pass selects by that. What the norm
// makes is stacked beside it, as E4M3 has it.
// CHECK: %[[F:.*]]:5 = stablehlo.while
// CHECK: stablehlo.rsqrt
// CHECK: %[[NORM:.*]] = stablehlo.multiply %{{.*}}, %{{.*}} : tensor<128x64xf32>
// CHECK: %[[Q:.*]] = fp8.quantize %[[NORM]], {{.*}} -> !fp8.scaled<128x64xf8E4M3FN, tile = [1, 16], scale = f32>
// CHECK: %[[SCALED:.*]] = stablehlo.multiply %[[NORM]],
// CHECK: %[[D:.*]] = fp8.dequantize %[[Q]]
// CHECK: %[[D1:.*]] = stablehlo.reshape %[[D]]
// CHECK: stablehlo.dynamic_update_slice %{{.*}}, %[[D1]],
// CHECK: %[[MASK:.*]] = stablehlo.compare GT, %[[SCALED]],
// CHECK-NEXT: %[[MASK1:.*]] = stablehlo.reshape %[[MASK]] : (tensor<128x64xi1>) -> tensor<1x128x64xi1>
// CHECK-NEXT: stablehlo.dynamic_update_slice %{{.*}}, %[[MASK1]], {{.*}} -> tensor<3x128x64xi1>
// CHECK: stablehlo.while
// CHECK: %[[SLOT:.*]] = stablehlo.dynamic_slice %[[F]]#3, {{.*}} -> tensor<1x128x64xi1>
// CHECK-NEXT: %[[READ:.*]] = stablehlo.reshape %[[SLOT]]
// CHECK: stablehlo.select %[[READ]],
func.func @main(
    %gain: tensor<3x64xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['gain']"},
    %w: tensor<3x64x64xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['w']"},
    %head: tensor<64x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['head']"},
    %x: tensor<128x64xf32> {fp8.role = "batch", fp8.path = "x"})
    -> (tensor<3x64xf32> {fp8.path = "p['gain']", fp8.state = "p['gain']"}, tensor<3x64x64xf32> {fp8.path = "p['w']", fp8.state = "p['w']"},
        tensor<64x16xf32> {fp8.path = "p['head']", fp8.state = "p['head']"}, tensor<f32> {fp8.kind = "loss", fp8.path = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<128x64xf32>
  %gains = stablehlo.constant dense<0.0> : tensor<3x64xf32>
  %weights = stablehlo.constant dense<0.0> : tensor<3x64x64xf32>
  %stack = stablehlo.constant dense<0.0> : tensor<3x128x64xf32>
  %masks = stablehlo.constant dense<false> : tensor<3x128x64xi1>
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %c2 = stablehlo.constant dense<2> : tensor<i32>
  %c3 = stablehlo.constant dense<3> : tensor<i32>
  // x + max(norm(x) * gain, 0) @ w, for each layer.
  %f:5 = stablehlo.while(%i = %c0, %in = %x, %norms = %stack, %positive = %masks, %rectified = %stack)
      : tensor<i32>, tensor<128x64xf32>, tensor<3x128x64xf32>, tensor<3x128x64xi1>, tensor<3x128x64xf32>
  cond {
    %more = stablehlo.compare LT, %i, %c3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %row = stablehlo.dynamic_slice %gain, %i, %c0, sizes = [1, 64] : (tensor<3x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1x64xf32>
    %rows = stablehlo.broadcast_in_dim %row, dims = [0, 1] : (tensor<1x64xf32>) -> tensor<128x64xf32>
    %slice = stablehlo.dynamic_slice %w, %i, %c0, %c0, sizes = [1, 64, 64] : (tensor<3x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x64xf32>
    %wi = stablehlo.reshape %slice : (tensor<1x64x64xf32>) -> tensor<64x64xf32>
    %squares = stablehlo.multiply %in, %in : tensor<128x64xf32>
    %sum = stablehlo.reduce(%squares init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<128x64xf32>, tensor<f32>) -> tensor<128xf32>
    %root = stablehlo.rsqrt %sum : tensor<128xf32>
    %roots = stablehlo.broadcast_in_dim %root, dims = [0] : (tensor<128xf32>) -> tensor<128x64xf32>
    %norm = stablehlo.multiply %in, %roots : tensor<128x64xf32>
    %scaled = stablehlo.multiply %norm, %rows : tensor<128x64xf32>
    %h = stablehlo.maximum %scaled, %zeros : tensor<128x64xf32>
    %mask = stablehlo.compare GT, %scaled, %zeros, FLOAT : (tensor<128x64xf32>, tensor<128x64xf32>) -> tensor<128x64xi1>
    %y = stablehlo.dot_general %h, %wi, contracting_dims = [1] x [0] : (tensor<128x64xf32>, tensor<64x64xf32>) -> tensor<128x64xf32>
    %out = stablehlo.add %in, %y : tensor<128x64xf32>
    %norm1 = stablehlo.reshape %norm : (tensor<128x64xf32>) -> tensor<1x128x64xf32>
    %norms1 = stablehlo.dynamic_update_slice %norms, %norm1, %i, %c0, %c0 : (tensor<3x128x64xf32>, tensor<1x128x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x128x64xf32>
    %mask1 = stablehlo.reshape %mask : (tensor<128x64xi1>) -> tensor<1x128x64xi1>
    %positive1 = stablehlo.dynamic_update_slice %positive, %mask1, %i, %c0, %c0 : (tensor<3x128x64xi1>, tensor<1x128x64xi1>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x128x64xi1>
    %h1 = stablehlo.reshape %h : (tensor<128x64xf32>) -> tensor<1x128x64xf32>
    %rectified1 = stablehlo.dynamic_update_slice %rectified, %h1, %i, %c0, %c0 : (tensor<3x128x64xf32>, tensor<1x128x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x128x64xf32>
    %next = stablehlo.add %i, %c1 : tensor<i32>
    stablehlo.return %next, %out, %norms1, %positive1, %rectified1 : tensor<i32>, tensor<128x64xf32>, tensor<3x128x64xf32>, tensor<3x128x64xi1>, tensor<3x128x64xf32>
  }
  %z = stablehlo.dot_general %f#1, %head, contracting_dims = [1] x [0] : (tensor<128x64xf32>, tensor<64x16xf32>) -> tensor<128x16xf32>
  %loss = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<128x16xf32>, tensor<f32>) -> tensor<f32>
  %dz = stablehlo.cosine %z : tensor<128x16xf32>
  %dhead = stablehlo.dot_general %f#1, %dz, contracting_dims = [0] x [0] : (tensor<128x64xf32>, tensor<128x16xf32>) -> tensor<64x16xf32>
  %dout = stablehlo.dot_general %dz, %head, contracting_dims = [1] x [1] : (tensor<128x16xf32>, tensor<64x16xf32>) -> tensor<128x64xf32>
  // The norm's own gradient is left out.
  %b:4 = stablehlo.while(%i = %c0, %dy = %dout, %dgains = %gains, %dws = %weights)
      : tensor<i32>, tensor<128x64xf32>, tensor<3x64xf32>, tensor<3x64x64xf32>
  cond {
    %more = stablehlo.compare LT, %i, %c3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %j = stablehlo.subtract %c2, %i : tensor<i32>
    %slice = stablehlo.dynamic_slice %w, %j, %c0, %c0, sizes = [1, 64, 64] : (tensor<3x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x64xf32>
    %wi = stablehlo.reshape %slice : (tensor<1x64x64xf32>) -> tensor<64x64xf32>
    %norm1 = stablehlo.dynamic_slice %f#2, %j, %c0, %c0, sizes = [1, 128, 64] : (tensor<3x128x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x128x64xf32>
    %norm = stablehlo.reshape %norm1 : (tensor<1x128x64xf32>) -> tensor<128x64xf32>
    %mask1 = stablehlo.dynamic_slice %f#3, %j, %c0, %c0, sizes = [1, 128, 64] : (tensor<3x128x64xi1>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x128x64xi1>
    %mask = stablehlo.reshape %mask1 : (tensor<1x128x64xi1>) -> tensor<128x64xi1>
    %h1 = stablehlo.dynamic_slice %f#4, %j, %c0, %c0, sizes = [1, 128, 64] : (tensor<3x128x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x128x64xf32>
    %h = stablehlo.reshape %h1 : (tensor<1x128x64xf32>) -> tensor<128x64xf32>
    %dw = stablehlo.dot_general %h, %dy, contracting_dims = [0] x [0] : (tensor<128x64xf32>, tensor<128x64xf32>) -> tensor<64x64xf32>
    %dh = stablehlo.dot_general %dy, %wi, contracting_dims = [1] x [1] : (tensor<128x64xf32>, tensor<64x64xf32>) -> tensor<128x64xf32>
    %dscaled = stablehlo.select %mask, %dh, %zeros : tensor<128x64xi1>, tensor<128x64xf32>
    %products = stablehlo.multiply %norm, %dscaled : tensor<128x64xf32>
    %dgain = stablehlo.reduce(%products init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<128x64xf32>, tensor<f32>) -> tensor<64xf32>
    %dgain1 = stablehlo.reshape %dgain : (tensor<64xf32>) -> tensor<1x64xf32>
    %dgains1 = stablehlo.dynamic_update_slice %dgains, %dgain1, %j, %c0 : (tensor<3x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<3x64xf32>
    %dw1 = stablehlo.reshape %dw : (tensor<64x64xf32>) -> tensor<1x64x64xf32>
    %dws1 = stablehlo.dynamic_update_slice %dws, %dw1, %j, %c0, %c0 : (tensor<3x64x64xf32>, tensor<1x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x64x64xf32>
    %next = stablehlo.add %i, %c1 : tensor<i32>
    stablehlo.return %next, %dy, %dgains1, %dws1 : tensor<i32>, tensor<128x64xf32>, tensor<3x64xf32>, tensor<3x64x64xf32>
  }
  return %b#2, %b#3, %dhead, %loss : tensor<3x64xf32>, tensor<3x64x64xf32>, tensor<64x16xf32>, tensor<f32>
}
