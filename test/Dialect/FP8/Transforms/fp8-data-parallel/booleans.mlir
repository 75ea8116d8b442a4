// RUN: fp8-opt %s --fp8-data-parallel --split-input-file | FileCheck %s

// Is any row's value large, are all finite: the largest and the smallest of
// booleans, which travel as bytes. A negation needs the whole value.
// CHECK-LABEL: func.func public @main
// CHECK: %[[ANY:.*]] = stablehlo.reduce(%{{.*}}) applies stablehlo.or
// CHECK-NEXT: %[[BYTE:.*]] = stablehlo.convert %[[ANY]] : (tensor<i1>) -> tensor<i8>
// CHECK-NEXT: %[[LARGEST:.*]] = fp8.all_reduce max %[[BYTE]] {{.*}}: tensor<i8>
// CHECK-NEXT: %[[LARGE:.*]] = stablehlo.convert %[[LARGEST]] : (tensor<i8>) -> tensor<i1>
// CHECK: %[[ALL:.*]] = stablehlo.reduce(%{{.*}}) applies stablehlo.and
// CHECK: %[[BOTH:.*]] = stablehlo.and %[[ALL]]
// CHECK-NEXT: stablehlo.convert %[[BOTH]]
// CHECK-NEXT: fp8.all_reduce min
// CHECK: stablehlo.not %[[LARGE]]
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"},
        tensor<i1> {fp8.kind = "metric", fp8.path = "[2]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sixteen = stablehlo.constant dense<16.0> : tensor<f32>
  %limits = stablehlo.constant dense<100.0> : tensor<16xf32>
  %no = stablehlo.constant dense<false> : tensor<i1>
  %yes = stablehlo.constant dense<true> : tensor<i1>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %sixteen : tensor<f32>
  %over = stablehlo.compare GT, %y, %limits : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xi1>
  %any = stablehlo.reduce(%over init: %no) applies stablehlo.or across dimensions = [0] : (tensor<16xi1>, tensor<i1>) -> tensor<i1>
  %finite = stablehlo.is_finite %x : (tensor<16x8xf32>) -> tensor<16x8xi1>
  %all = stablehlo.reduce(%finite init: %yes) applies stablehlo.and across dimensions = [0, 1] : (tensor<16x8xi1>, tensor<i1>) -> tensor<i1>
  %both = stablehlo.and %all, %yes : tensor<i1>
  %small = stablehlo.not %any : tensor<i1>
  %new = stablehlo.select %small, %w, %w : tensor<i1>, tensor<8xf32>
  return %new, %loss, %both : tensor<8xf32>, tensor<f32>, tensor<i1>
}

// -----

// Whether any row is large decides if there is a step: all ranks decide alike,
// so the gradient may be reduced in the branch.
// CHECK-LABEL: func.func public @main
// CHECK: %[[LARGEST:.*]] = fp8.all_reduce max
// CHECK-NEXT: %[[LARGE:.*]] = stablehlo.convert %[[LARGEST]]
// CHECK-NEXT: "stablehlo.if"(%[[LARGE]])
// CHECK: fp8.all_reduce mean
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sixteen = stablehlo.constant dense<16.0> : tensor<f32>
  %ones = stablehlo.constant dense<1.0> : tensor<16xf32>
  %sixteens = stablehlo.constant dense<16.0> : tensor<8xf32>
  %limits = stablehlo.constant dense<100.0> : tensor<16xf32>
  %no = stablehlo.constant dense<false> : tensor<i1>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %sixteen : tensor<f32>
  %over = stablehlo.compare GT, %y, %limits : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xi1>
  %any = stablehlo.reduce(%over init: %no) applies stablehlo.or across dimensions = [0] : (tensor<16xi1>, tensor<i1>) -> tensor<i1>
  %new = "stablehlo.if"(%any) ({
    stablehlo.return %w : tensor<8xf32>
  }, {
    %sums = stablehlo.dot_general %ones, %x, contracting_dims = [0] x [0] : (tensor<16xf32>, tensor<16x8xf32>) -> tensor<8xf32>
    %g = stablehlo.divide %sums, %sixteens : tensor<8xf32>
    %stepped = stablehlo.subtract %w, %g : tensor<8xf32>
    stablehlo.return %stepped : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  return %new, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// Every iteration asks all ranks whether another one follows.
// CHECK-LABEL: func.func public @main
// CHECK: stablehlo.while
// CHECK: %[[MOST:.*]] = fp8.all_reduce max
// CHECK-NEXT: %[[MORE:.*]] = stablehlo.convert %[[MOST]]
// CHECK-NEXT: stablehlo.return %[[MORE]]
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sixteen = stablehlo.constant dense<16.0> : tensor<f32>
  %half = stablehlo.constant dense<0.5> : tensor<16xf32>
  %limits = stablehlo.constant dense<1.0> : tensor<16xf32>
  %no = stablehlo.constant dense<false> : tensor<i1>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %small = stablehlo.while(%v = %y) : tensor<16xf32>
  cond {
    %over = stablehlo.compare GT, %v, %limits : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xi1>
    %any = stablehlo.reduce(%over init: %no) applies stablehlo.or across dimensions = [0] : (tensor<16xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %any : tensor<i1>
  } do {
    %next = stablehlo.multiply %v, %half : tensor<16xf32>
    stablehlo.return %next : tensor<16xf32>
  }
  %s = stablehlo.reduce(%small init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %sixteen : tensor<f32>
  return %w, %loss : tensor<8xf32>, tensor<f32>
}
