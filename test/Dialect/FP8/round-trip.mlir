// RUN: fp8-opt %s | fp8-opt | FileCheck %s
// RUN: fp8-opt %s --mlir-print-op-generic | fp8-opt | FileCheck %s
// RUN: fp8-opt %s --emit-bytecode | fp8-opt | FileCheck %s
// RUN: fp8-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: func private @types
// CHECK-SAME: !fp8.scaled<4096x1024xf8E4M3FN, tile = [*, *], scale = f32>
// CHECK-SAME: !fp8.scaled<4096x1024xf8E5M2, tile = [1, *], scale = f32>
// CHECK-SAME: !fp8.scaled<688x352xf8E4M3, tile = [1, 128], scale = f32>
// CHECK-SAME: !fp8.scaled<4096x1024xf8E4M3FNUZ, tile = [128, 128], scale = f32>
// CHECK-SAME: !fp8.scaled<4096x1024xf8E5M2FNUZ, tile = [*, 1], scale = f32>
// CHECK-SAME: !fp8.scaled<4096x1024xf8E4M3FN, tile = [1, 32], scale = f8E8M0FNU>
// CHECK-SAME: !fp8.scaled<f8E4M3FN, tile = [], scale = f32>
func.func private @types(
    !fp8.scaled<4096x1024xf8E4M3FN, tile = [*, *], scale = f32>,
    !fp8.scaled<4096x1024xf8E5M2, tile = [1, *], scale = f32>,
    !fp8.scaled<688x352xf8E4M3, tile = [1, 128], scale = f32>,
    !fp8.scaled<4096x1024xf8E4M3FNUZ, tile = [128, 128], scale = f32>,
    !fp8.scaled<4096x1024xf8E5M2FNUZ, tile = [*, 1], scale = f32>,
    !fp8.scaled<4096x1024xf8E4M3FN, tile = [1, 32], scale = f8E8M0FNU>,
    !fp8.scaled<f8E4M3FN, tile = [], scale = f32>)

// CHECK-LABEL: func @amax
func.func @amax(%x: tensor<688x352xf32>) -> (tensor<f32>, tensor<688x3xf32>, tensor<1x352xf32>) {
  // CHECK: fp8.amax %{{.*}} : tensor<688x352xf32> -> tensor<f32>
  %0 = fp8.amax %x : tensor<688x352xf32> -> tensor<f32>
  // CHECK: fp8.amax %{{.*}} tile = [1, 128] : tensor<688x352xf32> -> tensor<688x3xf32>
  %1 = fp8.amax %x tile = [1, 128] : tensor<688x352xf32> -> tensor<688x3xf32>
  // CHECK: fp8.amax %{{.*}} tile = [*, 1] : tensor<688x352xf32> -> tensor<1x352xf32>
  %2 = fp8.amax %x tile = [*, 1] : tensor<688x352xf32> -> tensor<1x352xf32>
  return %0, %1, %2 : tensor<f32>, tensor<688x3xf32>, tensor<1x352xf32>
}

// CHECK-LABEL: func @compute_scale
func.func @compute_scale(%a: tensor<f32>, %b: tensor<64x2xf32>) {
  // CHECK: fp8.compute_scale %{{.*}} {format = f8E4M3FN, rule = #fp8.scale_rule<exact>} : tensor<f32> -> tensor<f32>
  %s0, %q0 = fp8.compute_scale %a {rule = #fp8.scale_rule<exact>, margin = 0, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
  // CHECK: fp8.compute_scale %{{.*}} {format = f8E5M2, margin = -2 : i64, rule = #fp8.scale_rule<pow2>} : tensor<64x2xf32> -> tensor<64x2xf32>
  %s1, %q1 = fp8.compute_scale %b {rule = #fp8.scale_rule<pow2>, margin = -2, format = f8E5M2} : tensor<64x2xf32> -> tensor<64x2xf32>
  // CHECK: rule = #fp8.scale_rule<ocp_floor>} : tensor<64x2xf32> -> tensor<64x2xf8E8M0FNU>
  %s2, %q2 = fp8.compute_scale %b {rule = #fp8.scale_rule<ocp_floor>, format = f8E4M3FN} : tensor<64x2xf32> -> tensor<64x2xf8E8M0FNU>
  return
}

// CHECK-LABEL: func @quantize
func.func @quantize(%x: tensor<64x64xf32>, %y: tensor<64x64xbf16>, %s: tensor<f32>, %q: tensor<f32>,
                    %ms: tensor<64x2xf8E8M0FNU>, %mq: tensor<64x2xf32>, %seed: tensor<i64>, %step: tensor<i32>)
    -> tensor<64x64xf32> {
  // CHECK: fp8.quantize %{{.*}}, %{{.*}}, %{{.*}} rounding = nearest_even, overflow = saturate : tensor<64x64xf32> -> !fp8.scaled<64x64xf8E4M3FN, tile = [*, *], scale = f32>
  %0 = fp8.quantize %x, %s, %q rounding = nearest_even, overflow = saturate
      : tensor<64x64xf32> -> !fp8.scaled<64x64xf8E4M3FN, tile = [*, *], scale = f32>
  // CHECK: %[[SEED:.*]] = fp8.mix_seed %{{.*}}, %{{.*}} : tensor<i32>
  %mixed = fp8.mix_seed %seed, %step : tensor<i32>
  // CHECK: fp8.quantize %{{.*}}, %{{.*}}, %{{.*}} seed = %[[SEED]] rounding = stochastic, overflow = nan {tensor = 3 : i64} : tensor<64x64xbf16> -> !fp8.scaled<64x64xf8E4M3FN, tile = [1, 32], scale = f8E8M0FNU>
  %1 = fp8.quantize %y, %ms, %mq seed = %mixed rounding = stochastic, overflow = nan {tensor = 3}
      : tensor<64x64xbf16> -> !fp8.scaled<64x64xf8E4M3FN, tile = [1, 32], scale = f8E8M0FNU>
  // CHECK: fp8.dequantize %{{.*}} : !fp8.scaled<64x64xf8E4M3FN, tile = [*, *], scale = f32> -> tensor<64x64xf32>
  %2 = fp8.dequantize %0 : !fp8.scaled<64x64xf8E4M3FN, tile = [*, *], scale = f32> -> tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
}

// CHECK-LABEL: func @pack
func.func @pack(%p: tensor<64x64xf8E5M2>, %s: tensor<64x1xf32>) {
  // CHECK: %[[X:.*]] = fp8.pack %{{.*}}, %{{.*}} : !fp8.scaled<64x64xf8E5M2, tile = [1, *], scale = f32>
  %0 = fp8.pack %p, %s : !fp8.scaled<64x64xf8E5M2, tile = [1, *], scale = f32>
  // CHECK: %{{.*}}, %{{.*}} = fp8.unpack %[[X]] : !fp8.scaled<64x64xf8E5M2, tile = [1, *], scale = f32>
  %1, %2 = fp8.unpack %0 : !fp8.scaled<64x64xf8E5M2, tile = [1, *], scale = f32>
  return
}

!x = !fp8.scaled<8x64x256xf8E5M2, tile = [1, 1, 128], scale = f32>
!w = !fp8.scaled<8x256x16xf8E4M3FN, tile = [1, 128, 128], scale = f32>
// CHECK-LABEL: func @dot_general
func.func @dot_general(%x: !x, %w: !w, %y: !fp8.scaled<64x32xf8E4M3FN, tile = [1, *], scale = f32>) {
  // CHECK: fp8.dot_general %{{.*}}, %{{.*}}, batching_dims = [0] x [0], contracting_dims = [2] x [1] {accumulator = f32} : (!fp8.scaled<8x64x256xf8E5M2, tile = [1, 1, 128], scale = f32>, !fp8.scaled<8x256x16xf8E4M3FN, tile = [1, 128, 128], scale = f32>) -> tensor<8x64x16xf32>
  %0 = fp8.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1] {accumulator = f32}
      : (!x, !w) -> tensor<8x64x16xf32>
  // CHECK: fp8.dot_general %{{.*}}, %{{.*}}, contracting_dims = [1] x [1] {accumulator = f32}
  %1 = fp8.dot_general %y, %y, contracting_dims = [1] x [1] {accumulator = f32}
      : (!fp8.scaled<64x32xf8E4M3FN, tile = [1, *], scale = f32>, !fp8.scaled<64x32xf8E4M3FN, tile = [1, *], scale = f32>)
      -> tensor<64x64xf32>
  return
}

// CHECK-LABEL: func @layouts
func.func @layouts(%x: !fp8.scaled<8x64x300xf8E4M3FN, tile = [1, 1, 128], scale = f32>) {
  // CHECK: fp8.transpose %{{.*}}, [2, 0, 1] : !fp8.scaled<8x64x300xf8E4M3FN, tile = [1, 1, 128], scale = f32> -> !fp8.scaled<300x8x64xf8E4M3FN, tile = [128, 1, 1], scale = f32>
  %0 = fp8.transpose %x, [2, 0, 1] : !fp8.scaled<8x64x300xf8E4M3FN, tile = [1, 1, 128], scale = f32>
      -> !fp8.scaled<300x8x64xf8E4M3FN, tile = [128, 1, 1], scale = f32>
  // CHECK: fp8.reshape
  %1 = fp8.reshape %0 : !fp8.scaled<300x8x64xf8E4M3FN, tile = [128, 1, 1], scale = f32>
      -> !fp8.scaled<300x512xf8E4M3FN, tile = [128, 1], scale = f32>
  // A whole inner dimension, and one whose tile divides it.
  %2 = fp8.reshape %x : !fp8.scaled<8x64x300xf8E4M3FN, tile = [1, 1, 128], scale = f32>
      -> !fp8.scaled<2x4x64x300xf8E4M3FN, tile = [1, 1, 1, 128], scale = f32>
  // CHECK: fp8.slice %{{.*}}, [128, 0] to [300, 10] :
  %3 = fp8.slice %1, [128, 0] to [300, 10] : !fp8.scaled<300x512xf8E4M3FN, tile = [128, 1], scale = f32>
      -> !fp8.scaled<172x10xf8E4M3FN, tile = [128, 1], scale = f32>
  return
}

// CHECK-LABEL: func @storage
func.func @storage(%x: tensor<64x200xf32>, %seed: tensor<i64>, %s: tensor<f32>) {
  // CHECK: fp8.round %{{.*}} rounding = nearest_even : tensor<64x200xf32> -> tensor<64x200xf16>
  %0 = fp8.round %x rounding = nearest_even : tensor<64x200xf32> -> tensor<64x200xf16>
  // CHECK: fp8.round %{{.*}} seed = %{{.*}} rounding = stochastic {tensor = 3 : i64} : tensor<64x200xf32> -> tensor<64x200xbf16>
  %1 = fp8.round %x seed = %seed rounding = stochastic {tensor = 3} : tensor<64x200xf32> -> tensor<64x200xbf16>
  // CHECK: %[[H:.*]] = fp8.amax
  %h = fp8.amax %x tile = [1, 128] : tensor<64x200xf32> -> tensor<64x2xf32>
  // CHECK: %[[L:.*]] = fp8.amin %{{.*}} tile = [1, 128] : tensor<64x200xf32> -> tensor<64x2xf32>
  %l = fp8.amin %x tile = [1, 128] : tensor<64x200xf32> -> tensor<64x2xf32>
  // CHECK: %[[C:.*]], %[[K:.*]] = fp8.compute_expansion %[[H]], %[[L]] {format = f8E4M3FN} : tensor<64x2xf32>
  %c, %k = fp8.compute_expansion %h, %l {format = f8E4M3FN} : tensor<64x2xf32>
  // CHECK: %[[W:.*]] = fp8.expand_range %{{.*}}, %[[C]], %[[K]] tile = [1, 128] : tensor<64x200xf32>, tensor<64x2xf32> -> tensor<64x200xf32>
  %w = fp8.expand_range %x, %c, %k tile = [1, 128] : tensor<64x200xf32>, tensor<64x2xf32> -> tensor<64x200xf32>
  // CHECK: fp8.restore_range %[[W]], %[[C]], %[[K]] tile = [1, 128] : tensor<64x200xf32>, tensor<64x2xf32> -> tensor<64x200xf32>
  %r = fp8.restore_range %w, %c, %k tile = [1, 128] : tensor<64x200xf32>, tensor<64x2xf32> -> tensor<64x200xf32>
  // CHECK: fp8.expand_range %{{.*}}, %{{.*}}, %{{.*}} : tensor<64x200xf32>, tensor<f32> -> tensor<64x200xf32>
  %v = fp8.expand_range %x, %s, %s : tensor<64x200xf32>, tensor<f32> -> tensor<64x200xf32>
  // CHECK: fp8.quantize {{.*}} -> !fp8.scaled<64x200xf16, tile = [*, *], scale = f32>
  %q = fp8.quantize %x, %s, %s rounding = nearest_even, overflow = saturate
      : tensor<64x200xf32> -> !fp8.scaled<64x200xf16, tile = [*, *], scale = f32>
  return
}

// CHECK-LABEL: func @rescale
func.func @rescale(%x: tensor<8x64x32xbf16>, %rows: tensor<64x8xf32>, %columns: tensor<32xf32>) -> tensor<8x64x32xbf16> {
  // CHECK: fp8.rescale %{{.*}}, %{{.*}} dims = [1, 0] : tensor<8x64x32xbf16>, tensor<64x8xf32>
  %0 = fp8.rescale %x, %rows dims = [1, 0] : tensor<8x64x32xbf16>, tensor<64x8xf32>
  // CHECK: fp8.rescale %{{.*}}, %{{.*}} dims = [2] : tensor<8x64x32xbf16>, tensor<32xf32>
  %1 = fp8.rescale %0, %columns dims = [2] : tensor<8x64x32xbf16>, tensor<32xf32>
  return %1 : tensor<8x64x32xbf16>
}

// CHECK-LABEL: @attention
// CHECK: %[[A:.*]] = fp8.attention %{{.*}}, %{{.*}} : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32> {
// CHECK: ^bb0(%[[Q:.*]]: tensor<16x8xf32>, %[[K:.*]]: tensor<16x8xf32>):
// CHECK: %[[S:.*]] = stablehlo.dot_general %[[Q]], %[[K]]
// CHECK: fp8.yield %[[S]] : tensor<16x16xf32>
// CHECK: fp8.attention_backward
// CHECK: fp8.yield{{$}}
func.func @attention(%q: tensor<16x8xf32>, %k: tensor<16x8xf32>) -> tensor<16x16xf32> {
  %0 = fp8.attention %q, %k : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32> {
  ^bb0(%a: tensor<16x8xf32>, %b: tensor<16x8xf32>):
    %s = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
    fp8.yield %s : tensor<16x16xf32>
  }
  fp8.attention_backward : () -> () {
    fp8.yield
  }
  return %0 : tensor<16x16xf32>
}

// CHECK-LABEL: func @windows
func.func @windows(%x: tensor<2x8x8x4xf8E5M2>) {
  // CHECK: fp8.windows %{{.*}} dims = [1, 2] sizes = [3, 2] strides = [2, 1] dilations = [1, 3] low = [1, 0] high = [0, -1] interior = [0, 1] reversed = [false, true] : tensor<2x8x8x4xf8E5M2> -> tensor<2x4x3x11x2x4xf8E5M2>
  %0 = fp8.windows %x dims = [1, 2] sizes = [3, 2] strides = [2, 1] dilations = [1, 3]
      low = [1, 0] high = [0, -1] interior = [0, 1] reversed = [false, true]
      : tensor<2x8x8x4xf8E5M2> -> tensor<2x4x3x11x2x4xf8E5M2>
  return
}
