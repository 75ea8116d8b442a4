// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide=emit-remarks --verify-diagnostics -o /dev/null

// Products of the momentum of a stack of weights, in a loop, as Muon has them: they
// are batched products of two activations outside of the forward pass, but no
// attention. Those of scores that the loss reads are.

func.func public @main(
    %w: tensor<3x16x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "w"},
    %m: tensor<3x16x16xf32> {fp8.role = "state", fp8.kind = "other", fp8.path = "m"},
    %a: tensor<2x8x16xf32> {fp8.role = "batch", fp8.path = "a"})
    -> (tensor<3x16x16xf32> {fp8.state = "w"}, tensor<3x16x16xf32> {fp8.state = "m"}, tensor<f32> {fp8.kind = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  // expected-remark @+1 {{high_precision: attention (batch 2, M 8, N 8, K 16; bf16 x bf16): attention: a batched product of two activations}}
  %s = stablehlo.dot_general %a, %a, batching_dims = [0] x [0], contracting_dims = [2] x [2]
      : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x8xf32>
  %scores = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x8x8xf32>, tensor<f32>) -> tensor<f32>
  %weights = stablehlo.reduce(%w init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<3x16x16xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.multiply %scores, %weights : tensor<f32>
  %g = stablehlo.broadcast_in_dim %scores, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
  %m1 = stablehlo.add %m, %g : tensor<3x16x16xf32>
  %0:2 = stablehlo.while(%x = %m1, %i = %i0) : tensor<3x16x16xf32>, tensor<i32>
  cond {
    %c = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    // expected-remark @+1 {{high_precision: other (batch 3, M 16, N 16, K 16; bf16 x bf16): not a linear layer: follows from the optimizer's state; in a loop of 5 iterations}}
    %y = stablehlo.dot_general %x, %x, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<3x16x16xf32>, tensor<3x16x16xf32>) -> tensor<3x16x16xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %y, %next : tensor<3x16x16xf32>, tensor<i32>
  }
  %w1 = stablehlo.subtract %w, %0#0 : tensor<3x16x16xf32>
  return %w1, %m1, %loss : tensor<3x16x16xf32>, tensor<3x16x16xf32>, tensor<f32>
}

// A scale of the loss is state, too, and all of the backward pass follows from
// it, but nothing there is a dot of the optimizer.
func.func public @scaled(
    %w: tensor<16x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "w"},
    %scale: tensor<f32> {fp8.role = "state", fp8.kind = "other", fp8.path = "scale"},
    %a: tensor<2x8x16xf32> {fp8.role = "batch", fp8.path = "a"})
    -> (tensor<16x16xf32> {fp8.state = "w"}, tensor<f32> {fp8.state = "scale"}, tensor<f32> {fp8.kind = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  // expected-remark @+1 {{forward of w}}
  %q = stablehlo.dot_general %a, %w, contracting_dims = [2] x [0]
      : (tensor<2x8x16xf32>, tensor<16x16xf32>) -> tensor<2x8x16xf32>
  // expected-remark @+1 {{high_precision: attention (batch 2, M 8, N 8, K 16; bf16 x bf16): attention: a batched product of two activations}}
  %s = stablehlo.dot_general %q, %a, batching_dims = [0] x [0], contracting_dims = [2] x [2]
      : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x8xf32>
  %e = stablehlo.exponential %s : tensor<2x8x8xf32>
  %loss = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x8x8xf32>, tensor<f32>) -> tensor<f32>
  %wide = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<2x8x8xf32>
  %ds = stablehlo.multiply %wide, %e : tensor<2x8x8xf32>
  // expected-remark @+1 {{high_precision: attention (batch 2, M 8, N 16, K 8; bf16 x bf16): attention: a batched product of two activations}}
  %dq = stablehlo.dot_general %ds, %a, batching_dims = [0] x [0], contracting_dims = [2] x [1]
      : (tensor<2x8x8xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  // expected-remark @+1 {{wgrad of w}}
  %g = stablehlo.dot_general %a, %dq, contracting_dims = [0, 1] x [0, 1]
      : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<16x16xf32>
  %w1 = stablehlo.subtract %w, %g : tensor<16x16xf32>
  %scale1 = stablehlo.multiply %scale, %two : tensor<f32>
  return %w1, %scale1, %loss : tensor<16x16xf32>, tensor<f32>, tensor<f32>
}
