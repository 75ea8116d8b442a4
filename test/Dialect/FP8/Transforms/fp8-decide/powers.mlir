// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide=emit-remarks --verify-diagnostics -o /dev/null

// Powers of a stack of frozen matrices: what the product of a loop reads leads
// back to the product itself.
func.func @main(%w: tensor<16x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "w"},
                %m: tensor<3x16x16xf32> {fp8.role = "frozen", fp8.path = "m"},
                %x: tensor<3x8x16xf32> {fp8.role = "batch", fp8.path = "x"})
    -> (tensor<f32> {fp8.kind = "loss", fp8.path = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %powers:2 = stablehlo.while(%y = %m, %i = %i0) : tensor<3x16x16xf32>, tensor<i32>
  cond {
    %goes = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %goes : tensor<i1>
  } do {
    // expected-remark @below {{not a linear layer: both operands come from parameters}}
    %square = stablehlo.dot_general %y, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<3x16x16xf32>, tensor<3x16x16xf32>) -> tensor<3x16x16xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %square, %next : tensor<3x16x16xf32>, tensor<i32>
  }
  // expected-remark @below {{fp8: forward of w}}
  %h = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<3x8x16xf32>, tensor<16x16xf32>) -> tensor<3x8x16xf32>
  // expected-remark @below {{high_precision: forward of m}}
  %o = stablehlo.dot_general %h, %powers#0, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<3x8x16xf32>, tensor<3x16x16xf32>) -> tensor<3x8x16xf32>
  %loss = stablehlo.reduce(%o init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<3x8x16xf32>, tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}
