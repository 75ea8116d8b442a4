// RUN: fp8-opt %s --fp8-split-windows --split-input-file --verify-each | FileCheck %s

// A transposed convolution with a stride of 2 and three taps: even windows have
// taps 0 and 2, odd ones have tap 1.
// CHECK-LABEL: func.func @transposed
// CHECK-SAME: %[[X:.*]]: tensor<1x8x128xf32>, %[[W:.*]]: tensor<3x128x16xf32>
// CHECK: %[[EVEN:.*]] = fp8.windows %[[X]] dims = [1] sizes = [2] {{.*}} low = [1] high = [0] interior = [0]
// CHECK: %[[TAPS:.*]] = stablehlo.slice %[[W]] [0:3:2, 0:128, 0:16]
// CHECK: %[[DOT:.*]] = stablehlo.dot_general %[[EVEN]], %[[TAPS]], contracting_dims = [2, 3] x [0, 1]
// CHECK: %[[PADDED:.*]] = stablehlo.pad %[[DOT]], {{.*}} low = [0, 0, 0], high = [0, 1, 0], interior = [0, 1, 0]
// CHECK: %[[ODD:.*]] = fp8.windows %[[X]] dims = [1] sizes = [1] {{.*}} low = [0] high = [0] interior = [0]
// CHECK: %[[TAP:.*]] = stablehlo.slice %[[W]] [1:2:2, 0:128, 0:16]
// CHECK: %[[DOT1:.*]] = stablehlo.dot_general %[[ODD]], %[[TAP]], contracting_dims = [2, 3] x [0, 1]
// CHECK: %[[PADDED1:.*]] = stablehlo.pad %[[DOT1]], {{.*}} low = [0, 1, 0], high = [0, 0, 0], interior = [0, 1, 0]
// CHECK: %[[SUM:.*]] = stablehlo.add %[[PADDED]], %[[PADDED1]]
// CHECK: return %[[SUM]]
func.func @transposed(%x: tensor<1x8x128xf32>, %w: tensor<3x128x16xf32>) -> tensor<1x16x16xf32> {
  %0 = fp8.windows %x dims = [1] sizes = [3] strides = [1] dilations = [1] low = [2] high = [1] interior = [1] reversed = [false]
    : tensor<1x8x128xf32> -> tensor<1x16x3x128xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [2, 3] x [0, 1]
    : (tensor<1x16x3x128xf32>, tensor<3x128x16xf32>) -> tensor<1x16x16xf32>
  return %1 : tensor<1x16x16xf32>
}

// -----

// Payloads are split, and scales stay. Taps are reversed: the first window has
// the last and the first tap of the kernel. A stride of 3 is more than the two
// taps of the columns: there a phase has none.
// CHECK-LABEL: func.func @scaled
// CHECK: %[[PART:.*]] = fp8.windows %{{.*}} sizes = [2, 1] {{.*}} low = [1, 0] high = [0, 0] interior = [0, 0] reversed = [true, false]
// CHECK: %[[LHS:.*]] = fp8.pack %[[PART]], %arg1
// CHECK: %[[PAYLOAD:.*]], %[[SCALE:.*]] = fp8.unpack %arg2
// CHECK: %[[TAPS:.*]] = stablehlo.slice %[[PAYLOAD]] [0:3:2, 0:1:3, 0:16, 0:64]
// CHECK: %[[RHS:.*]] = fp8.pack %[[TAPS]], %[[SCALE]] : !fp8.scaled<2x1x16x64xf8E4M3FN, tile = [*, *, 1, *], scale = f32>
// CHECK: fp8.dot_general %[[LHS]], %[[RHS]], contracting_dims = [2, 4, 5] x [0, 1, 3] {accumulator = f32, promote_every = 64 : i64}
// CHECK-SAME: -> tensor<1x4x3x16xf32>
// CHECK-COUNT-3: fp8.dot_general
// CHECK-NOT: fp8.dot_general
func.func @scaled(%x: tensor<1x4x3x64xf8E5M2>, %s: tensor<f32>,
                  %w: !fp8.scaled<3x2x16x64xf8E4M3FN, tile = [*, *, 1, *], scale = f32>) -> tensor<1x8x8x16xf32> {
  %0 = fp8.windows %x dims = [1, 2] sizes = [3, 2] strides = [1, 1] dilations = [1, 1]
    low = [2, 0] high = [1, 2] interior = [1, 2] reversed = [true, false] : tensor<1x4x3x64xf8E5M2> -> tensor<1x8x3x8x2x64xf8E5M2>
  %1 = fp8.pack %0, %s : !fp8.scaled<1x8x3x8x2x64xf8E5M2, tile = [*, *, *, *, *, *], scale = f32>
  %2 = fp8.dot_general %1, %w, contracting_dims = [2, 4, 5] x [0, 1, 3] {accumulator = f32, promote_every = 64 : i64}
    : (!fp8.scaled<1x8x3x8x2x64xf8E5M2, tile = [*, *, *, *, *, *], scale = f32>,
       !fp8.scaled<3x2x16x64xf8E4M3FN, tile = [*, *, 1, *], scale = f32>) -> tensor<1x8x8x16xf32>
  return %2 : tensor<1x8x8x16xf32>
}

// -----

// The gradient of the kernel: windows are the right operand, and what is
// contracted with their taps, the gradient of the result, is sliced.
// CHECK-LABEL: func.func @wgrad
// CHECK: %[[X:.*]] = fp8.windows %arg1 dims = [1] sizes = [8] {{.*}} low = [1] high = [0] interior = [0]
// CHECK: %[[DY:.*]] = stablehlo.slice %arg0 [0:32, 0:16, 0:15:2]
// CHECK: stablehlo.dot_general %[[DY]], %[[X]], contracting_dims = [1, 2] x [0, 2] {{.*}} -> tensor<32x2x128xf32>
// CHECK: stablehlo.pad {{.*}} low = [0, 0, 0], high = [0, 0, 0], interior = [0, 1, 0]
// CHECK: %[[X1:.*]] = fp8.windows %arg1 dims = [1] sizes = [8] {{.*}} low = [0] high = [0] interior = [0]
// CHECK: %[[DY1:.*]] = stablehlo.slice %arg0 [0:32, 0:16, 1:16:2]
// CHECK: stablehlo.dot_general %[[DY1]], %[[X1]]
// CHECK: stablehlo.pad {{.*}} low = [0, 1, 0], high = [0, 1, 0], interior = [0, 1, 0]
// CHECK: stablehlo.add
func.func @wgrad(%dy: tensor<32x16x16xf32>, %x: tensor<16x8x128xf32>) -> tensor<32x3x128xf32> {
  %0 = fp8.windows %x dims = [1] sizes = [16] strides = [1] dilations = [1] low = [2] high = [1] interior = [1] reversed = [false]
    : tensor<16x8x128xf32> -> tensor<16x3x16x128xf32>
  %1 = stablehlo.dot_general %dy, %0, contracting_dims = [1, 2] x [0, 2]
    : (tensor<32x16x16xf32>, tensor<16x3x16x128xf32>) -> tensor<32x3x128xf32>
  return %1 : tensor<32x3x128xf32>
}

// -----

// These stay: few products, windows along the last dimension of the result, a
// stride besides, scales that vary from tap to tap, and too many phases.
// CHECK-LABEL: func.func @stay
// CHECK-NOT: interior = [0]
// CHECK-COUNT-5: dot_general
// CHECK-NOT: dot_general
func.func @stay(%x: tensor<1x8x4xf32>, %y: tensor<8x128xf32>, %z: tensor<1x8x8x128xf32>, %p: tensor<1x8x128xf8E5M2>, %s: tensor<f32>,
                %w: tensor<3x4x16xf32>, %v: tensor<3x128x16xf32>, %u: tensor<8x8x128x16xf32>,
                %t: !fp8.scaled<3x128x16xf8E4M3FN, tile = [1, *, 1], scale = f32>) {
  %0 = fp8.windows %x dims = [1] sizes = [3] strides = [1] dilations = [1] low = [2] high = [1] interior = [1] reversed = [false]
    : tensor<1x8x4xf32> -> tensor<1x16x3x4xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [2, 3] x [0, 1] : (tensor<1x16x3x4xf32>, tensor<3x4x16xf32>) -> tensor<1x16x16xf32>
  %2 = fp8.windows %y dims = [0] sizes = [3] strides = [1] dilations = [1] low = [2] high = [1] interior = [1] reversed = [false]
    : tensor<8x128xf32> -> tensor<16x3x128xf32>
  %3 = stablehlo.dot_general %v, %2, contracting_dims = [0, 1] x [1, 2] : (tensor<3x128x16xf32>, tensor<16x3x128xf32>) -> tensor<16x16xf32>
  %4 = fp8.windows %y dims = [0] sizes = [3] strides = [2] dilations = [1] low = [2] high = [1] interior = [1] reversed = [false]
    : tensor<8x128xf32> -> tensor<8x3x128xf32>
  %5 = stablehlo.dot_general %4, %v, contracting_dims = [1, 2] x [0, 1] : (tensor<8x3x128xf32>, tensor<3x128x16xf32>) -> tensor<8x16xf32>
  %6 = fp8.windows %p dims = [1] sizes = [3] strides = [1] dilations = [1] low = [2] high = [1] interior = [1] reversed = [false]
    : tensor<1x8x128xf8E5M2> -> tensor<1x16x3x128xf8E5M2>
  %7 = fp8.pack %6, %s : !fp8.scaled<1x16x3x128xf8E5M2, tile = [*, *, *, *], scale = f32>
  %8 = fp8.dot_general %7, %t, contracting_dims = [2, 3] x [0, 1] {accumulator = f32}
    : (!fp8.scaled<1x16x3x128xf8E5M2, tile = [*, *, *, *], scale = f32>, !fp8.scaled<3x128x16xf8E4M3FN, tile = [1, *, 1], scale = f32>) -> tensor<1x16x16xf32>
  %9 = fp8.windows %z dims = [1, 2] sizes = [8, 8] strides = [1, 1] dilations = [1, 1] low = [7, 7] high = [7, 7] interior = [4, 4] reversed = [false, false]
    : tensor<1x8x8x128xf32> -> tensor<1x43x8x43x8x128xf32>
  %10 = stablehlo.dot_general %9, %u, contracting_dims = [2, 4, 5] x [0, 1, 2] : (tensor<1x43x8x43x8x128xf32>, tensor<8x8x128x16xf32>) -> tensor<1x43x43x16xf32>
  return
}
