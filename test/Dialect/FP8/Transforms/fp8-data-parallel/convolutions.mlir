// RUN: fp8-opt %s --fp8-data-parallel --split-input-file --verify-diagnostics | FileCheck %s

// Windows of images keep the rows of the batch; the gradient of the kernel sums
// over them, and so does that of a kernel for each channel.
// CHECK-LABEL: func.func public @windows
// CHECK: fp8.windows %{{.*}} : tensor<4x8x16xf32> -> tensor<4x6x3x16xf32>
// CHECK: %[[G:.*]] = stablehlo.dot_general {{.*}} -> tensor<3x16x16xf32>
// CHECK: fp8.all_reduce mean %[[G]]
// CHECK: %[[C:.*]] = stablehlo.convolution{{.*}}batch_group_count = 16
// CHECK: fp8.all_reduce mean %[[C]]
func.func public @windows(
    %w: tensor<3x16x16xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %c: tensor<3x1x16xf32> {fp8.kind = "parameter", fp8.path = "c", fp8.role = "state"},
    %x: tensor<4x8x16xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<3x16x16xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<3x1x16xf32> {fp8.kind = "state", fp8.path = "[1]", fp8.state = "c"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[2]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<4.0> : tensor<f32>
  %share = stablehlo.constant dense<2.5e-01> : tensor<4x6x16xf32>
  %windows = fp8.windows %x dims = [1] sizes = [3] strides = [1] dilations = [1]
      low = [0] high = [0] interior = [0] reversed = [false] : tensor<4x8x16xf32> -> tensor<4x6x3x16xf32>
  %y = stablehlo.dot_general %windows, %w, contracting_dims = [2, 3] x [0, 1] : (tensor<4x6x3x16xf32>, tensor<3x16x16xf32>) -> tensor<4x6x16xf32>
  %z = stablehlo.convolution(%x, %c) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {stride = [1], pad = [[0, 0]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]}
    {batch_group_count = 1 : i64, feature_group_count = 16 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<4x8x16xf32>, tensor<3x1x16xf32>) -> tensor<4x6x16xf32>
  %both = stablehlo.add %y, %z : tensor<4x6x16xf32>
  %s = stablehlo.reduce(%both init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<4x6x16xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  %dy = stablehlo.multiply %both, %share : tensor<4x6x16xf32>
  %taps = fp8.windows %x dims = [1] sizes = [6] strides = [1] dilations = [1]
      low = [0] high = [0] interior = [0] reversed = [false] : tensor<4x8x16xf32> -> tensor<4x3x6x16xf32>
  %gw = stablehlo.dot_general %taps, %dy, contracting_dims = [0, 2] x [0, 1] : (tensor<4x3x6x16xf32>, tensor<4x6x16xf32>) -> tensor<3x16x16xf32>
  %gc = stablehlo.convolution(%x, %dy) dim_numbers = [f, 0, b]x[i, 0, o]->[0, b, f],
    window = {stride = [1], pad = [[0, 0]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]}
    {batch_group_count = 16 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<4x8x16xf32>, tensor<4x6x16xf32>) -> tensor<3x1x16xf32>
  %w1 = stablehlo.subtract %w, %gw : tensor<3x16x16xf32>
  %c1 = stablehlo.subtract %c, %gc : tensor<3x1x16xf32>
  return %w1, %c1, %loss : tensor<3x16x16xf32>, tensor<3x1x16xf32>, tensor<f32>
}

// -----

func.func public @rows(
    %w: tensor<3x16xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<8x16xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<3x16xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"}, tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-error @+1 {{it is a convolution over rows}}
  %windows = fp8.windows %x dims = [0] sizes = [3] strides = [1] dilations = [1]
      low = [1] high = [1] interior = [0] reversed = [false] : tensor<8x16xf32> -> tensor<8x3x16xf32>
  %y = stablehlo.dot_general %windows, %w, contracting_dims = [1, 2] x [0, 1] : (tensor<8x3x16xf32>, tensor<3x16xf32>) -> tensor<8xf32>
  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  return %w, %loss : tensor<3x16xf32>, tensor<f32>
}

// -----

// The gradient of a maximum over windows of each image.
// CHECK-LABEL: func.func public @pool
// CHECK: "stablehlo.select_and_scatter"
// CHECK: %[[G:.*]] = stablehlo.dot_general {{.*}} -> tensor<16x16xf32>
// CHECK: fp8.all_reduce mean %[[G]]
func.func public @pool(
    %w: tensor<16x16xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<4x8x16xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<16x16xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<4.0> : tensor<f32>
  %share = stablehlo.constant dense<2.5e-01> : tensor<4x4x16xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<4x8x16xf32>, tensor<16x16xf32>) -> tensor<4x8x16xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<4x8x16xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  %dy = "stablehlo.select_and_scatter"(%y, %share, %zero) <{
    window_dimensions = array<i64: 1, 2, 1>, window_strides = array<i64: 1, 2, 1>, padding = dense<0> : tensor<3x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x8x16xf32>, tensor<4x4x16xf32>, tensor<f32>) -> tensor<4x8x16xf32>
  %g = stablehlo.dot_general %x, %dy, contracting_dims = [0, 1] x [0, 1] : (tensor<4x8x16xf32>, tensor<4x8x16xf32>) -> tensor<16x16xf32>
  %new = stablehlo.subtract %w, %g : tensor<16x16xf32>
  return %new, %loss : tensor<16x16xf32>, tensor<f32>
}
