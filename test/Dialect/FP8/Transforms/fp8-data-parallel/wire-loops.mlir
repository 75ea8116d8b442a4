// RUN: fp8-opt %s "--fp8-resolve-recipe=recipe=none set=all_reduce.format=f8E4M3FN" --fp8-data-parallel --split-input-file | FileCheck %s --check-prefixes=CHECK,F8
// RUN: fp8-opt %s "--fp8-resolve-recipe=recipe=none set=all_reduce.format=bf16" --fp8-data-parallel --split-input-file | FileCheck %s --check-prefixes=CHECK,BF16

// An optimizer in a loop over layers: each iteration reduces a layer's gradient, and has a mu of its own.
// CHECK-LABEL: func.func public @layers
// F8-SAME: %[[MU:arg[0-9]+]]: tensor<3x2xf32> {fp8.kind = "other", fp8.path = "fp8.w.all_reduce.mu", fp8.role = "state", fp8.zero_init}
// F8: %[[LOOP:.*]]:3 = stablehlo.while(%[[I:.*]] = %{{.*}}, %{{.*}} = %{{.*}}, %[[CARRY:.*]] = %[[MU]])
// F8: %[[SLICE:.*]] = stablehlo.dynamic_slice %[[CARRY]], %[[I]], %{{.*}}, sizes = [1, 2]
// F8: %[[OLD:.*]] = stablehlo.reshape %[[SLICE]] : (tensor<1x2xf32>) -> tensor<2xf32>
// F8: %{{.*}}, %[[NEW:.*]] = fp8.all_reduce mean %{{.*}} mu %[[OLD]] wire = f8E4M3FN label = "gradient w" {fp8.wire_reason = "a gradient, as all_reduce of the recipe says"} : tensor<8xf32>
// F8: %[[PART:.*]] = stablehlo.reshape %[[NEW]] : (tensor<2xf32>) -> tensor<1x2xf32>
// F8: %[[NEXT:.*]] = stablehlo.dynamic_update_slice %[[CARRY]], %[[PART]], %[[I]]
// F8: stablehlo.return %{{.*}}, %{{.*}}, %[[NEXT]]
// BF16: fp8.all_reduce mean %{{.*}} wire = bf16 label = "gradient w" {{.*}} : tensor<8xf32>
// F8: return %{{.*}}, %{{.*}}, %[[LOOP]]#2
func.func public @layers(
    %w: tensor<3x8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<3x8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<48.0> : tensor<f32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %i1 = stablehlo.constant dense<1> : tensor<i32>
  %i3 = stablehlo.constant dense<3> : tensor<i32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<16x8xf32>, tensor<3x8xf32>) -> tensor<16x3xf32>
  %yy = stablehlo.multiply %y, %y : tensor<16x3xf32>
  %s = stablehlo.reduce(%yy init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x3xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  %seed = stablehlo.constant dense<0.0416667> : tensor<16x3xf32>
  %dy = stablehlo.multiply %y, %seed : tensor<16x3xf32>
  %g = stablehlo.dot_general %dy, %x, contracting_dims = [0] x [0] : (tensor<16x3xf32>, tensor<16x8xf32>) -> tensor<3x8xf32>
  %0:2 = stablehlo.while(%i = %i0, %new = %w) : tensor<i32>, tensor<3x8xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %i3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %g, %i, %i0, sizes = [1, 8] : (tensor<3x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x8xf32>) -> tensor<8xf32>
    %3 = stablehlo.tanh %2 : tensor<8xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %5 = stablehlo.dynamic_slice %new, %i, %i0, sizes = [1, 8] : (tensor<3x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
    %6 = stablehlo.subtract %5, %4 : tensor<1x8xf32>
    %7 = stablehlo.dynamic_update_slice %new, %6, %i, %i0 : (tensor<3x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<3x8xf32>
    %8 = stablehlo.add %i, %i1 : tensor<i32>
    stablehlo.return %8, %7 : tensor<i32>, tensor<3x8xf32>
  }
  return %0#1, %loss : tensor<3x8xf32>, tensor<f32>
}

// -----

// In a branch that is not taken mu stays as it is.
// CHECK-LABEL: func.func public @branch
// F8-SAME: %[[MU:arg[0-9]+]]: tensor<2xf32> {fp8.kind = "other", fp8.path = "fp8.w.all_reduce.mu"
// F8: %[[IF:.*]]:2 = "stablehlo.if"
// F8: %{{.*}}, %[[NEW:.*]] = fp8.all_reduce mean %{{.*}} mu %[[MU]] wire = f8E4M3FN label = "gradient w"
// BF16: fp8.all_reduce mean %{{.*}} wire = bf16 label = "gradient w"
// F8: stablehlo.return %{{.*}}, %[[NEW]]
// F8: stablehlo.return %{{.*}}, %[[MU]]
// F8: return %{{.*}}, %{{.*}}, %[[IF]]#1
func.func public @branch(
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
  %large = stablehlo.compare GT, %loss, %zero, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %new = "stablehlo.if"(%large) ({
    %seed = stablehlo.constant dense<0.125> : tensor<16xf32>
    %dy = stablehlo.multiply %y, %seed : tensor<16xf32>
    %g = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16xf32>) -> tensor<8xf32>
    %t = stablehlo.tanh %g : tensor<8xf32>
    %u = stablehlo.subtract %w, %t : tensor<8xf32>
    stablehlo.return %u : tensor<8xf32>
  }, {
    stablehlo.return %w : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  return %new, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// The loop ends when the weights are small: mu has no state for its iterations.
// CHECK-LABEL: func.func public @unbounded
// F8: fp8.all_reduce mean %{{.*}} label = "gradient w" {fp8.wire_reason = "made whole in a loop that may run any number of times: mu is state of each iteration"} : tensor<8xf32>
// BF16: fp8.all_reduce mean %{{.*}} wire = bf16 label = "gradient w"
func.func public @unbounded(
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
  %0 = stablehlo.while(%now = %w) : tensor<8xf32>
  cond {
    %1 = stablehlo.reduce(%now init: %zero) applies stablehlo.maximum across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    %2 = stablehlo.compare GT, %1, %n, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %1 = stablehlo.negate %g : tensor<8xf32>
    %2 = stablehlo.tanh %1 : tensor<8xf32>
    %3 = stablehlo.add %now, %2 : tensor<8xf32>
    stablehlo.return %3 : tensor<8xf32>
  }
  return %0, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// A loop that stacks the gradients of layers, the last one first: the stack is reduced in slices, each with a mu.
// CHECK-LABEL: func.func public @stack
// F8-SAME: %[[MU:arg[0-9]+]]: tensor<3x2xf32> {fp8.kind = "other", fp8.path = "fp8.w.all_reduce.mu"
// CHECK: %[[LOOP:.*]]:2 = stablehlo.while
// F8: fp8.all_reduce mean %[[LOOP]]#1 mu %[[MU]] wire = f8E4M3FN slices = 3 label = "gradient w"
// BF16: fp8.all_reduce mean %[[LOOP]]#1 wire = bf16 slices = 3 label = "gradient w"
func.func public @stack(
    %w: tensor<3x8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<3x8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<3x8xf32>
  %n = stablehlo.constant dense<48.0> : tensor<f32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %i1 = stablehlo.constant dense<1> : tensor<i32>
  %i2 = stablehlo.constant dense<2> : tensor<i32>
  %i3 = stablehlo.constant dense<3> : tensor<i32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<16x8xf32>, tensor<3x8xf32>) -> tensor<16x3xf32>
  %yy = stablehlo.multiply %y, %y : tensor<16x3xf32>
  %s = stablehlo.reduce(%yy init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x3xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  %seed = stablehlo.constant dense<0.0416667> : tensor<16x3xf32>
  %dy = stablehlo.multiply %y, %seed : tensor<16x3xf32>
  %0:2 = stablehlo.while(%i = %i0, %g = %zeros) : tensor<i32>, tensor<3x8xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %i3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.subtract %i2, %i : tensor<i32>
    %2 = stablehlo.dynamic_slice %dy, %i0, %1, sizes = [16, 1] : (tensor<16x3xf32>, tensor<i32>, tensor<i32>) -> tensor<16x1xf32>
    %3 = stablehlo.dot_general %2, %x, contracting_dims = [0] x [0] : (tensor<16x1xf32>, tensor<16x8xf32>) -> tensor<1x8xf32>
    %4 = stablehlo.dynamic_update_slice %g, %3, %1, %i0 : (tensor<3x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<3x8xf32>
    %5 = stablehlo.add %i, %i1 : tensor<i32>
    stablehlo.return %5, %4 : tensor<i32>, tensor<3x8xf32>
  }
  %new = stablehlo.subtract %w, %0#1 : tensor<3x8xf32>
  return %new, %loss : tensor<3x8xf32>, tensor<f32>
}
