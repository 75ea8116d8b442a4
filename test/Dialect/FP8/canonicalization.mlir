// RUN: fp8-opt %s --canonicalize | FileCheck %s

!t = !fp8.scaled<64x32xf8E4M3FN, tile = [*, *], scale = f32>

// CHECK-LABEL: func @unpack_of_pack(
// CHECK-SAME: %[[P:.*]]: tensor<64x32xf8E4M3FN>, %[[S:.*]]: tensor<f32>
// CHECK-NEXT: return %[[P]], %[[S]]
func.func @unpack_of_pack(%p: tensor<64x32xf8E4M3FN>, %s: tensor<f32>) -> (tensor<64x32xf8E4M3FN>, tensor<f32>) {
  %0 = fp8.pack %p, %s : !t
  %1, %2 = fp8.unpack %0 : !t
  return %1, %2 : tensor<64x32xf8E4M3FN>, tensor<f32>
}

// CHECK-LABEL: func @pack_of_unpack(
// CHECK-SAME: %[[X:.*]]: !fp8.scaled
// CHECK-NEXT: return %[[X]]
func.func @pack_of_unpack(%x: !t) -> !t {
  %0, %1 = fp8.unpack %x : !t
  %2 = fp8.pack %0, %1 : !t
  return %2 : !t
}

// The same pair under another tile is another tensor.
// CHECK-LABEL: func @pack_under_another_tile(
// CHECK: fp8.unpack
// CHECK: fp8.pack
func.func @pack_under_another_tile(%x: !fp8.scaled<64x32xf8E4M3FN, tile = [64, 32], scale = f32>)
    -> !fp8.scaled<64x32xf8E4M3FN, tile = [64, *], scale = f32> {
  %0, %1 = fp8.unpack %x : !fp8.scaled<64x32xf8E4M3FN, tile = [64, 32], scale = f32>
  %2 = fp8.pack %0, %1 : !fp8.scaled<64x32xf8E4M3FN, tile = [64, *], scale = f32>
  return %2 : !fp8.scaled<64x32xf8E4M3FN, tile = [64, *], scale = f32>
}

// The rounding in between is the point.
// CHECK-LABEL: func @dequantize_of_quantize(
// CHECK: fp8.quantize
// CHECK: fp8.dequantize
func.func @dequantize_of_quantize(%x: tensor<64x32xf32>, %s: tensor<f32>, %q: tensor<f32>) -> tensor<64x32xf32> {
  %0 = fp8.quantize %x, %s, %q rounding = nearest_even, overflow = saturate : tensor<64x32xf32> -> !t
  %1 = fp8.dequantize %0 : !t -> tensor<64x32xf32>
  return %1 : tensor<64x32xf32>
}

!b = !fp8.scaled<64x256xf8E4M3FN, tile = [1, 128], scale = f32>
!bt = !fp8.scaled<256x64xf8E4M3FN, tile = [128, 1], scale = f32>

// CHECK-LABEL: func @layouts(
// CHECK-SAME: %[[X:.*]]: !fp8.scaled
// CHECK: %[[R:.*]] = fp8.reshape %[[X]] : {{.*}} -> !fp8.scaled<8x8x2x128xf8E4M3FN, tile = [1, 1, 1, *], scale = f32>
// CHECK: return %[[X]], %[[X]], %[[R]]
func.func @layouts(%x: !b) -> (!b, !b, !fp8.scaled<8x8x2x128xf8E4M3FN, tile = [1, 1, 1, *], scale = f32>) {
  %0 = fp8.transpose %x, [1, 0] : !b -> !bt
  %1 = fp8.transpose %0, [1, 0] : !bt -> !b
  %2 = fp8.slice %x, [0, 0] to [64, 256] : !b -> !b
  %3 = fp8.reshape %2 : !b -> !fp8.scaled<64x2x128xf8E4M3FN, tile = [1, 1, 128], scale = f32>
  %4 = fp8.reshape %3 : !fp8.scaled<64x2x128xf8E4M3FN, tile = [1, 1, 128], scale = f32>
      -> !fp8.scaled<8x8x2x128xf8E4M3FN, tile = [1, 1, 1, *], scale = f32>
  return %1, %2, %4 : !b, !b, !fp8.scaled<8x8x2x128xf8E4M3FN, tile = [1, 1, 1, *], scale = f32>
}
