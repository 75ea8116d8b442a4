// RUN: fp8-opt %s --stablehlo-convolutions-to-dots | FileCheck %s

// A 1x1 convolution mixes channels.
// CHECK-LABEL: @pointwise
// CHECK: %[[W:.*]] = stablehlo.reshape %arg1 : (tensor<1x1x3x16xf32>) -> tensor<3x16xf32>
// CHECK: %[[DOT:.*]] = stablehlo.dot_general %arg0, %[[W]], contracting_dims = [3] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x8x6x3xf32>, tensor<3x16xf32>) -> tensor<2x8x6x16xf32>
// CHECK: return %[[DOT]]
func.func @pointwise(%x: tensor<2x8x6x3xf32>, %w: tensor<1x1x3x16xf32>) -> tensor<2x8x6x16xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x8x6x3xf32>, tensor<1x1x3x16xf32>) -> tensor<2x8x6x16xf32>
  return %0 : tensor<2x8x6x16xf32>
}

// Strides leave out rows and columns of the image.
// CHECK-LABEL: @strided
// CHECK: %[[X:.*]] = stablehlo.slice %arg0 [0:2, 0:7:2, 0:4:3, 0:3]
// CHECK: stablehlo.dot_general %[[X]], %{{.*}} -> tensor<2x4x2x16xf32>
func.func @strided(%x: tensor<2x8x6x3xf32>, %w: tensor<1x1x3x16xf32>) -> tensor<2x4x2x16xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [2, 3], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x8x6x3xf32>, tensor<1x1x3x16xf32>) -> tensor<2x4x2x16xf32>
  return %0 : tensor<2x4x2x16xf32>
}

// The gradient of that image has zeros in between.
// CHECK-LABEL: @strided_gradient
// CHECK: %[[DOT:.*]] = stablehlo.dot_general %arg0, %{{.*}}, contracting_dims = [3] x [1], {{.*}} -> tensor<2x4x2x3xf32>
// CHECK: stablehlo.pad %[[DOT]], %{{.*}}, low = [0, 0, 0, 0], high = [0, 1, 2, 0], interior = [0, 1, 2, 0]
func.func @strided_gradient(%x: tensor<2x4x2x16xf32>, %w: tensor<1x1x3x16xf32>) -> tensor<2x8x6x3xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f],
    window = {stride = [1, 1], pad = [[0, 1], [0, 2]], lhs_dilate = [2, 3], rhs_dilate = [1, 1], reverse = [false, false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x4x2x16xf32>, tensor<1x1x3x16xf32>) -> tensor<2x8x6x3xf32>
  return %0 : tensor<2x8x6x3xf32>
}

// An embedding of patches contracts the pixels of each.
// CHECK-LABEL: @patches
// CHECK: %[[X:.*]] = stablehlo.reshape %arg0 : (tensor<2x8x6x3xf32>) -> tensor<2x2x4x2x3x3xf32>
// CHECK: stablehlo.dot_general %[[X]], %arg1, contracting_dims = [2, 4, 5] x [0, 1, 2], {{.*}} -> tensor<2x2x2x16xf32>
func.func @patches(%x: tensor<2x8x6x3xf32>, %w: tensor<4x3x3x16xf32>) -> tensor<2x2x2x16xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [4, 3], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x8x6x3xf32>, tensor<4x3x3x16xf32>) -> tensor<2x2x2x16xf32>
  return %0 : tensor<2x2x2x16xf32>
}

// The gradient of its kernel contracts patches.
// CHECK-LABEL: @patches_of_kernel
// CHECK: %[[X:.*]] = stablehlo.reshape %arg0 : (tensor<2x8x6x3xf32>) -> tensor<2x2x4x2x3x3xf32>
// CHECK: %[[DOT:.*]] = stablehlo.dot_general %[[X]], %arg1, contracting_dims = [0, 1, 3] x [0, 1, 2], {{.*}} -> tensor<4x3x3x16xf32>
// CHECK: return %[[DOT]]
func.func @patches_of_kernel(%x: tensor<2x8x6x3xf32>, %w: tensor<2x2x2x16xf32>) -> tensor<4x3x3x16xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f],
    window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [4, 3], reverse = [false, false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x8x6x3xf32>, tensor<2x2x2x16xf32>) -> tensor<4x3x3x16xf32>
  return %0 : tensor<4x3x3x16xf32>
}

// The gradient of its image spreads each pixel over its patch. The kernel that was
// reversed for it is read as it was.
// CHECK-LABEL: @patches_of_image
// CHECK-NOT: stablehlo.reverse
// CHECK: %[[DOT:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [3] x [3], {{.*}} -> tensor<2x2x2x4x3x3xf32>
// CHECK: %[[T:.*]] = stablehlo.transpose %[[DOT]], dims = [0, 1, 3, 2, 4, 5]
// CHECK: stablehlo.reshape %[[T]] : (tensor<2x2x4x2x3x3xf32>) -> tensor<2x8x6x3xf32>
func.func @patches_of_image(%x: tensor<2x2x2x16xf32>, %w: tensor<4x3x3x16xf32>) -> tensor<2x8x6x3xf32> {
  %r = stablehlo.reverse %w, dims = [0, 1] : tensor<4x3x3x16xf32>
  %0 = stablehlo.convolution(%x, %r) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f],
    window = {stride = [1, 1], pad = [[3, 3], [2, 2]], lhs_dilate = [4, 3], rhs_dilate = [1, 1], reverse = [false, false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x2x2x16xf32>, tensor<4x3x3x16xf32>) -> tensor<2x8x6x3xf32>
  return %0 : tensor<2x8x6x3xf32>
}

// A window over all of the image.
// CHECK-LABEL: @whole
// CHECK: %[[DOT:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1, 2, 3] x [0, 1, 2], {{.*}} -> tensor<2x16xf32>
// CHECK: stablehlo.reshape %[[DOT]] : (tensor<2x16xf32>) -> tensor<2x1x1x16xf32>
func.func @whole(%x: tensor<2x4x6x3xf32>, %w: tensor<4x6x3x16xf32>) -> tensor<2x1x1x16xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x4x6x3xf32>, tensor<4x6x3x16xf32>) -> tensor<2x1x1x16xf32>
  return %0 : tensor<2x1x1x16xf32>
}

// Windows overlap.
// CHECK-LABEL: @overlapping
// CHECK: %[[X:.*]] = fp8.windows %arg0 dims = [1, 2] sizes = [3, 3] strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] interior = [0, 0] reversed = [false, false] : tensor<2x8x6x3xf32> -> tensor<2x6x3x4x3x3xf32>
// CHECK: stablehlo.dot_general %[[X]], %arg1, contracting_dims = [2, 4, 5] x [0, 1, 2], {{.*}} -> tensor<2x6x4x16xf32>
func.func @overlapping(%x: tensor<2x8x6x3xf32>, %w: tensor<3x3x3x16xf32>) -> tensor<2x6x4x16xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x8x6x3xf32>, tensor<3x3x3x16xf32>) -> tensor<2x6x4x16xf32>
  return %0 : tensor<2x6x4x16xf32>
}

// Windows at the edge see zeros.
// CHECK-LABEL: @padded
// CHECK: %[[X:.*]] = fp8.windows %arg0 dims = [1, 2] sizes = [2, 2] strides = [2, 2] dilations = [1, 1] low = [1, 1] high = [1, 1] {{.*}} -> tensor<2x5x2x4x2x3xf32>
// CHECK: stablehlo.dot_general %[[X]], %arg1, contracting_dims = [2, 4, 5] x [0, 1, 2]
func.func @padded(%x: tensor<2x8x6x3xf32>, %w: tensor<2x2x3x16xf32>) -> tensor<2x5x4x16xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [2, 2], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x8x6x3xf32>, tensor<2x2x3x16xf32>) -> tensor<2x5x4x16xf32>
  return %0 : tensor<2x5x4x16xf32>
}

// The elements of a window are reversed along one dimension; the other one is
// of patches.
// CHECK-LABEL: @reversed
// CHECK: %[[X:.*]] = fp8.windows %arg0 dims = [1] sizes = [2] strides = [2] dilations = [1] low = [0] high = [0] interior = [0] reversed = [true] : tensor<2x8x6x3xf32> -> tensor<2x4x2x6x3xf32>
// CHECK: %[[Y:.*]] = stablehlo.reshape %[[X]] : (tensor<2x4x2x6x3xf32>) -> tensor<2x4x2x3x2x3xf32>
// CHECK: stablehlo.dot_general %[[Y]], %arg1, contracting_dims = [2, 4, 5] x [0, 1, 2]
func.func @reversed(%x: tensor<2x8x6x3xf32>, %w: tensor<2x2x3x16xf32>) -> tensor<2x4x3x16xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [2, 2], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [true, false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x8x6x3xf32>, tensor<2x2x3x16xf32>) -> tensor<2x4x3x16xf32>
  return %0 : tensor<2x4x3x16xf32>
}

// Each channel has a kernel of its own.
// CHECK-LABEL: @groups
// CHECK: stablehlo.convolution
// CHECK-NOT: stablehlo.dot_general
func.func @groups(%x: tensor<2x8x6x4xf32>, %w: tensor<1x1x1x4xf32>) -> tensor<2x8x6x4xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]}
    {batch_group_count = 1 : i64, feature_group_count = 4 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x8x6x4xf32>, tensor<1x1x1x4xf32>) -> tensor<2x8x6x4xf32>
  return %0 : tensor<2x8x6x4xf32>
}

// Groups of several channels are a batch of dots.
// CHECK-LABEL: @wide_groups
// CHECK: %[[SPLIT:.*]] = stablehlo.reshape %arg0 : (tensor<2x8x6x16xf32>) -> tensor<2x8x6x2x8xf32>
// CHECK: %[[X:.*]] = fp8.windows %[[SPLIT]] dims = [1] sizes = [3] {{.*}} -> tensor<2x6x3x6x2x8xf32>
// CHECK: %[[W:.*]] = stablehlo.reshape %arg1 : (tensor<3x1x8x24xf32>) -> tensor<3x8x2x12xf32>
// CHECK: %[[DOT:.*]] = stablehlo.dot_general %[[X]], %[[W]], batching_dims = [4] x [2], contracting_dims = [2, 5] x [0, 1], {{.*}} -> tensor<2x2x6x6x12xf32>
// CHECK: %[[TURNED:.*]] = stablehlo.transpose %[[DOT]], dims = [1, 2, 3, 0, 4]
// CHECK: stablehlo.reshape %[[TURNED]] : (tensor<2x6x6x2x12xf32>) -> tensor<2x6x6x24xf32>
func.func @wide_groups(%x: tensor<2x8x6x16xf32>, %w: tensor<3x1x8x24xf32>) -> tensor<2x6x6x24xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]}
    {batch_group_count = 1 : i64, feature_group_count = 2 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x8x6x16xf32>, tensor<3x1x8x24xf32>) -> tensor<2x6x6x24xf32>
  return %0 : tensor<2x6x6x24xf32>
}

// The gradient of the image: JAX merges the groups of the kernel, whose result
// features are first. They are split before the features move to the end, so
// that both reshapes cancel.
// CHECK-LABEL: @wide_groups_of_image
// CHECK: %[[W:.*]] = stablehlo.reshape %arg1 : (tensor<24x8x3xf32>) -> tensor<2x12x8x3xf32>
// CHECK: %[[SWAPPED:.*]] = stablehlo.transpose %[[W]], dims = [1, 0, 2, 3]
// CHECK: %[[MERGED:.*]] = stablehlo.reshape %[[SWAPPED]] : (tensor<12x2x8x3xf32>) -> tensor<12x16x3xf32>
// CHECK: %[[SPLIT:.*]] = stablehlo.reshape %[[MERGED]] : (tensor<12x16x3xf32>) -> tensor<12x2x8x3xf32>
// CHECK: %[[K:.*]] = stablehlo.transpose %[[SPLIT]], dims = [0, 3, 1, 2]
// CHECK: stablehlo.dot_general %{{.*}}, %[[K]], batching_dims = [3] x [2], contracting_dims = [2, 4] x [1, 0]
func.func @wide_groups_of_image(%dy: tensor<2x24x6xf32>, %w: tensor<24x8x3xf32>) -> tensor<2x16x8xf32> {
  %split = stablehlo.reshape %w : (tensor<24x8x3xf32>) -> tensor<2x12x8x3xf32>
  %swapped = stablehlo.transpose %split, dims = [1, 0, 2, 3] : (tensor<2x12x8x3xf32>) -> tensor<12x2x8x3xf32>
  %merged = stablehlo.reshape %swapped : (tensor<12x2x8x3xf32>) -> tensor<12x16x3xf32>
  %reversed = stablehlo.reverse %merged, dims = [2] : tensor<12x16x3xf32>
  %0 = stablehlo.convolution(%dy, %reversed) dim_numbers = [b, f, 0]x[i, o, 0]->[b, f, 0],
    window = {stride = [1], pad = [[2, 2]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]}
    {batch_group_count = 1 : i64, feature_group_count = 2 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x24x6xf32>, tensor<12x16x3xf32>) -> tensor<2x16x8xf32>
  return %0 : tensor<2x16x8xf32>
}

// The gradient of the kernel: channels of the image are its batch, in groups.
// CHECK-LABEL: @wide_groups_of_kernel
// CHECK: %[[SPLIT:.*]] = stablehlo.reshape %arg0 : (tensor<2x8x16xf32>) -> tensor<2x8x2x8xf32>
// CHECK: %[[X:.*]] = fp8.windows %[[SPLIT]] dims = [1] sizes = [6] {{.*}} -> tensor<2x3x6x2x8xf32>
// CHECK: %[[DY:.*]] = stablehlo.reshape %arg1 : (tensor<2x6x24xf32>) -> tensor<2x6x2x12xf32>
// CHECK: %[[DOT:.*]] = stablehlo.dot_general %[[X]], %[[DY]], batching_dims = [3] x [2], contracting_dims = [0, 2] x [0, 1], {{.*}} -> tensor<2x3x8x12xf32>
// CHECK: %[[TURNED:.*]] = stablehlo.transpose %[[DOT]], dims = [1, 2, 0, 3]
// CHECK: stablehlo.reshape %[[TURNED]] : (tensor<3x8x2x12xf32>) -> tensor<3x8x24xf32>
func.func @wide_groups_of_kernel(%x: tensor<2x8x16xf32>, %dy: tensor<2x6x24xf32>) -> tensor<3x8x24xf32> {
  %0 = stablehlo.convolution(%x, %dy) dim_numbers = [f, 0, b]x[i, 0, o]->[0, b, f],
    window = {stride = [1], pad = [[0, 0]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]}
    {batch_group_count = 2 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x8x16xf32>, tensor<2x6x24xf32>) -> tensor<3x8x24xf32>
  return %0 : tensor<3x8x24xf32>
}

// The gradient of an image of overlapping windows reads the kernel as it is, and
// the taps backwards.
// CHECK-LABEL: @overlapping_of_image
// CHECK-NOT: stablehlo.reverse
// CHECK: %[[X:.*]] = fp8.windows %arg0 dims = [1, 2] sizes = [3, 3] strides = [1, 1] dilations = [1, 1] low = [2, 2] high = [3, 2] interior = [1, 0] reversed = [true, true] : tensor<2x3x4x16xf32> -> tensor<2x8x3x6x3x16xf32>
// CHECK: stablehlo.dot_general %[[X]], %arg1, contracting_dims = [2, 4, 5] x [0, 1, 3], {{.*}} -> tensor<2x8x6x3xf32>
func.func @overlapping_of_image(%x: tensor<2x3x4x16xf32>, %w: tensor<3x3x3x16xf32>) -> tensor<2x8x6x3xf32> {
  %r = stablehlo.reverse %w, dims = [0, 1] : tensor<3x3x3x16xf32>
  %0 = stablehlo.convolution(%x, %r) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f],
    window = {stride = [1, 1], pad = [[2, 3], [2, 2]], lhs_dilate = [2, 1], rhs_dilate = [1, 1], reverse = [false, false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x3x4x16xf32>, tensor<3x3x3x16xf32>) -> tensor<2x8x6x3xf32>
  return %0 : tensor<2x8x6x3xf32>
}

// The gradient of their kernel has a window for each tap of the kernel.
// CHECK-LABEL: @overlapping_of_kernel
// CHECK: %[[X:.*]] = fp8.windows %arg0 dims = [1, 2] sizes = [3, 4] strides = [1, 1] dilations = [2, 1] {{.*}} : tensor<2x8x6x3xf32> -> tensor<2x3x3x3x4x3xf32>
// CHECK: stablehlo.dot_general %[[X]], %arg1, contracting_dims = [0, 2, 4] x [0, 1, 2], {{.*}} -> tensor<3x3x3x16xf32>
func.func @overlapping_of_kernel(%x: tensor<2x8x6x3xf32>, %dy: tensor<2x3x4x16xf32>) -> tensor<3x3x3x16xf32> {
  %0 = stablehlo.convolution(%x, %dy) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f],
    window = {stride = [1, 1], pad = [[0, -1], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [2, 1], reverse = [false, false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x8x6x3xf32>, tensor<2x3x4x16xf32>) -> tensor<3x3x3x16xf32>
  return %0 : tensor<3x3x3x16xf32>
}

// Windows are made of floats.
// CHECK-LABEL: @integers
// CHECK: stablehlo.convolution
// CHECK-NOT: stablehlo.dot_general
func.func @integers(%x: tensor<2x8x3xi32>, %w: tensor<3x3x16xi32>) -> tensor<2x6x16xi32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {stride = [1], pad = [[0, 0]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x8x3xi32>, tensor<3x3x16xi32>) -> tensor<2x6x16xi32>
  return %0 : tensor<2x6x16xi32>
}

// Features move to the end of images, kernels and results, also of a kernel that
// is reversed; other convolutions read them where they are.
// CHECK-LABEL: @features_first
// CHECK-NOT: stablehlo.reverse
// CHECK: %[[X:.*]] = stablehlo.transpose %arg0, dims = [0, 2, 3, 1] : (tensor<2x16x8x6xf32>) -> tensor<2x8x6x16xf32>
// CHECK: %[[W:.*]] = stablehlo.transpose %arg1, dims = [0, 2, 3, 1] : (tensor<16x4x3x3xf32>) -> tensor<16x3x3x4xf32>
// CHECK: %[[WINDOWS:.*]] = fp8.windows %[[X]] dims = [1, 2] {{.*}} reversed = [true, true] : tensor<2x8x6x16xf32> -> tensor<2x8x3x6x3x16xf32>
// CHECK: %[[DOT:.*]] = stablehlo.dot_general %[[WINDOWS]], %[[W]], contracting_dims = [2, 4, 5] x [1, 2, 0], {{.*}} -> tensor<2x8x6x4xf32>
// CHECK: stablehlo.transpose %[[DOT]], dims = [0, 3, 1, 2] : (tensor<2x8x6x4xf32>) -> tensor<2x4x8x6xf32>
func.func @features_first(%x: tensor<2x16x8x6xf32>, %w: tensor<16x4x3x3xf32>) -> tensor<2x4x8x6xf32> {
  %r = stablehlo.reverse %w, dims = [2, 3] : tensor<16x4x3x3xf32>
  %0 = stablehlo.convolution(%x, %r) dim_numbers = [b, f, 0, 1]x[i, o, 0, 1]->[b, f, 0, 1],
    window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x16x8x6xf32>, tensor<16x4x3x3xf32>) -> tensor<2x4x8x6xf32>
  return %0 : tensor<2x4x8x6xf32>
}

// CHECK-LABEL: @patches_features_first
// CHECK-NOT: stablehlo.transpose %arg0
// CHECK: stablehlo.reshape %arg0 : (tensor<2x3x8x6xf32>) -> tensor<2x3x4x2x3x2xf32>
func.func @patches_features_first(%x: tensor<2x3x8x6xf32>, %w: tensor<16x3x2x2xf32>) -> tensor<2x16x4x3xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
    window = {stride = [2, 2], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x3x8x6xf32>, tensor<16x3x2x2xf32>) -> tensor<2x16x4x3xf32>
  return %0 : tensor<2x16x4x3xf32>
}

// A kernel that is reversed twice is read as it was, and so is one that is reversed
// for a window over all of the image.
// CHECK-LABEL: @reversed_twice
// CHECK-NOT: stablehlo.reverse
// CHECK: fp8.windows %arg0 {{.*}} reversed = [false] : tensor<2x8x3xf32> -> tensor<2x6x3x3xf32>
// CHECK: fp8.windows %arg2 {{.*}} sizes = [3] {{.*}} reversed = [true] : tensor<2x3x3xf32> -> tensor<2x1x3x3xf32>
func.func @reversed_twice(%x: tensor<2x8x3xf32>, %w: tensor<3x3x16xf32>, %y: tensor<2x3x3xf32>) -> (tensor<2x6x16xf32>, tensor<2x1x16xf32>) {
  %r = stablehlo.reverse %w, dims = [0] : tensor<3x3x16xf32>
  %rr = stablehlo.reverse %r, dims = [0] : tensor<3x3x16xf32>
  %0 = stablehlo.convolution(%x, %rr) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {stride = [1], pad = [[0, 0]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x8x3xf32>, tensor<3x3x16xf32>) -> tensor<2x6x16xf32>
  %1 = stablehlo.convolution(%y, %r) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {stride = [1], pad = [[0, 0]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x3x3xf32>, tensor<3x3x16xf32>) -> tensor<2x1x16xf32>
  return %0, %1 : tensor<2x6x16xf32>, tensor<2x1x16xf32>
}

// The gradient of a kernel over an image of one pixel is the dot itself, without a
// pad behind it.
// CHECK-LABEL: @one_pixel_of_kernel
// CHECK: fp8.windows %arg0 dims = [1] sizes = [1] {{.*}} low = [1] high = [1] {{.*}} -> tensor<2x3x1x3xf32>
// CHECK: stablehlo.dot_general {{.*}} -> tensor<3x3x16xf32>
// CHECK-NOT: stablehlo.pad
func.func @one_pixel_of_kernel(%x: tensor<2x1x3xf32>, %dy: tensor<2x1x16xf32>) -> tensor<3x3x16xf32> {
  %0 = stablehlo.convolution(%x, %dy) dim_numbers = [f, 0, b]x[i, 0, o]->[0, b, f],
    window = {stride = [1], pad = [[1, 1]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x1x3xf32>, tensor<2x1x16xf32>) -> tensor<3x3x16xf32>
  return %0 : tensor<3x3x16xf32>
}
