// RUN: fp8-opt %s --fp8-analyze-signature | FileCheck %s

// A step of FISTA without names. The loss reads %y, whose gradient is not known
// because %y is behind a nonlinearity. The step from it is brought nearer to zero
// and becomes the new %x; the new %y goes on from there by what %x has moved.
// Both new values follow from %y, and only the new %y subtracts %x.
// CHECK: tensor<16xf32> {{{.*}}fp8.path = "arg0", fp8.role = "state"}, %{{.*}}: tensor<16xf32> {{{.*}}fp8.path = "arg1", fp8.role = "state"}
// CHECK-SAME: -> (tensor<16xf32> {fp8.path = "result0", fp8.state = "arg1"}, tensor<16xf32> {fp8.path = "result1", fp8.state = "arg0"}
func.func public @main(%y: tensor<16xf32>, %x: tensor<16xf32>, %w: tensor<16x3xf32>, %data: tensor<8x16xf32>, %labels: tensor<8x3xf32>)
    -> (tensor<16xf32>, tensor<16xf32>, tensor<16x3xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<16xf32>
  %ones = stablehlo.constant dense<1.0> : tensor<16xf32>
  %rate = stablehlo.constant dense<0.1> : tensor<16xf32>
  %shrink = stablehlo.constant dense<1.0e-4> : tensor<16xf32>
  %beta = stablehlo.constant dense<0.3> : tensor<16xf32>
  %rates = stablehlo.constant dense<0.1> : tensor<16x3xf32>
  %gate = stablehlo.logistic %y : tensor<16xf32>
  %gates = stablehlo.broadcast_in_dim %gate, dims = [1] : (tensor<16xf32>) -> tensor<8x16xf32>
  %h = stablehlo.multiply %data, %gates : tensor<8x16xf32>
  %z = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x3xf32>) -> tensor<8x3xf32>
  %e = stablehlo.subtract %z, %labels : tensor<8x3xf32>
  %e2 = stablehlo.multiply %e, %e : tensor<8x3xf32>
  %loss = stablehlo.reduce(%e2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x3xf32>, tensor<f32>) -> tensor<f32>

  %dw = stablehlo.dot_general %h, %e, contracting_dims = [0] x [0] : (tensor<8x16xf32>, tensor<8x3xf32>) -> tensor<16x3xf32>
  %step = stablehlo.multiply %dw, %rates : tensor<16x3xf32>
  %wNew = stablehlo.subtract %w, %step : tensor<16x3xf32>

  %dh = stablehlo.dot_general %e, %w, contracting_dims = [1] x [1] : (tensor<8x3xf32>, tensor<16x3xf32>) -> tensor<8x16xf32>
  %products = stablehlo.multiply %dh, %data : tensor<8x16xf32>
  %dgate = stablehlo.reduce(%products init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8x16xf32>, tensor<f32>) -> tensor<16xf32>
  %rest = stablehlo.subtract %ones, %gate : tensor<16xf32>
  %slope = stablehlo.multiply %gate, %rest : tensor<16xf32>
  %dy = stablehlo.multiply %dgate, %slope : tensor<16xf32>
  %scaled = stablehlo.multiply %dy, %rate : tensor<16xf32>
  %moved = stablehlo.subtract %y, %scaled : tensor<16xf32>
  %sign = stablehlo.sign %moved : tensor<16xf32>
  %size = stablehlo.abs %moved : tensor<16xf32>
  %smaller = stablehlo.subtract %size, %shrink : tensor<16xf32>
  %positive = stablehlo.maximum %smaller, %zeros : tensor<16xf32>
  %xNew = stablehlo.multiply %sign, %positive : tensor<16xf32>
  %difference = stablehlo.subtract %xNew, %x : tensor<16xf32>
  %onward = stablehlo.multiply %difference, %beta : tensor<16xf32>
  %yNew = stablehlo.add %xNew, %onward : tensor<16xf32>
  return %xNew, %yNew, %wNew, %loss : tensor<16xf32>, tensor<16xf32>, tensor<16x3xf32>, tensor<f32>
}
