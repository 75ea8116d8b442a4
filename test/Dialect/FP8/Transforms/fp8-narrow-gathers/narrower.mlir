// RUN: fp8-opt %s --split-input-file --fp8-narrow-gathers | FileCheck %s

// One scale for all ranks: from the largest of their amaxes.
// CHECK-LABEL: @whole
// CHECK-SAME: (%[[X:.*]]: tensor<64x32xf32>)
// CHECK: %[[A:.*]] = fp8.amax %[[X]] : tensor<64x32xf32> -> tensor<f32>
// CHECK: %[[AS:.*]] = fp8.exchange gather %[[A]] ranks = dense<{{.*}}> : tensor<1x2xi64> label = "all_gather" {fp8.wire_reason = "the scale of a payload that is gathered"} : tensor<f32> -> tensor<2xf32>
// CHECK: %[[MAX:.*]] = stablehlo.reduce(%[[AS]] init: %{{.*}}) applies stablehlo.maximum across dimensions = [0]
// CHECK: %[[SCALE:.*]], %[[QUANTIZER:.*]] = fp8.compute_scale %[[MAX]]
// CHECK: %[[Q:.*]] = fp8.quantize %[[X]], %[[SCALE]], %[[QUANTIZER]] rounding = nearest_even, overflow = saturate : tensor<64x32xf32> -> !fp8.scaled<64x32xf8E4M3FN, tile = [*, *], scale = f32>
// CHECK: %[[P:.*]], %{{.*}} = fp8.unpack %[[Q]]
// CHECK: %[[ALL:.*]] = fp8.exchange gather %[[P]] {{.*}} {fp8.wire_reason = "only quantizations read what is gathered"} : tensor<64x32xf8E4M3FN> -> tensor<2x64x32xf8E4M3FN>
// CHECK: %[[R:.*]] = stablehlo.reshape %[[ALL]] : (tensor<2x64x32xf8E4M3FN>) -> tensor<128x32xf8E4M3FN>
// CHECK: %[[PACKED:.*]] = fp8.pack %[[R]], %[[SCALE]]
// CHECK: return %[[PACKED]], %[[MAX]]
func.func @whole(%x: tensor<64x32xf32>) -> (!fp8.scaled<128x32xf8E4M3FN, tile = [*, *], scale = f32>, tensor<f32>) {
    %0 = fp8.exchange gather %x ranks = dense<[[0, 1]]> : tensor<1x2xi64> label = "all_gather" : tensor<64x32xf32> -> tensor<2x64x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<2x64x32xf32>) -> tensor<128x32xf32>
    %a1 = fp8.amax %1 : tensor<128x32xf32> -> tensor<f32>
    %s1, %q1 = fp8.compute_scale %a1 {format = f8E4M3FN, rule = #fp8.scale_rule<pow2>} : tensor<f32> -> tensor<f32>
    %p1 = fp8.quantize %1, %s1, %q1 rounding = nearest_even, overflow = saturate : tensor<128x32xf32> -> !fp8.scaled<128x32xf8E4M3FN, tile = [*, *], scale = f32>
    return %p1, %a1 : !fp8.scaled<128x32xf8E4M3FN, tile = [*, *], scale = f32>, tensor<f32>
}

// -----

// Scales of rows, which each rank has for its own, and of columns, which are those of all.
// CHECK-LABEL: @rows_and_columns
// CHECK-SAME: (%[[X:.*]]: tensor<64x32xf32>)
// CHECK: %[[ROWS:.*]] = fp8.amax %[[X]] tile = [1, *] : tensor<64x32xf32> -> tensor<64x1xf32>
// CHECK: %[[ALL:.*]] = fp8.exchange gather %[[ROWS]] {{.*}} : tensor<64x1xf32> -> tensor<2x64x1xf32>
// CHECK: %[[WHOLE:.*]] = stablehlo.reshape %[[ALL]] : (tensor<2x64x1xf32>) -> tensor<128x1xf32>
// CHECK: %[[SCALES:.*]], %{{.*}} = fp8.compute_scale %[[WHOLE]]
// CHECK: %[[AGAIN:.*]] = fp8.amax %[[X]] tile = [1, *] : tensor<64x32xf32> -> tensor<64x1xf32>
// CHECK: %[[OWN:.*]], %[[OWNQ:.*]] = fp8.compute_scale %[[AGAIN]] {{.*}} : tensor<64x1xf32> -> tensor<64x1xf32>
// CHECK: fp8.quantize %[[X]], %[[OWN]], %[[OWNQ]]
// CHECK: fp8.exchange gather {{.*}} : tensor<64x32xf8E4M3FN> -> tensor<2x64x32xf8E4M3FN>
// CHECK: fp8.pack %{{.*}}, %[[SCALES]]
// CHECK: %[[COLUMNS:.*]] = fp8.amax %[[X]] tile = [*, 1] : tensor<64x32xf32> -> tensor<1x32xf32>
// CHECK: fp8.exchange gather %[[COLUMNS]] {{.*}} : tensor<1x32xf32> -> tensor<2x1x32xf32>
// CHECK: stablehlo.reduce({{.*}}) applies stablehlo.maximum across dimensions = [0] : (tensor<2x1x32xf32>, tensor<f32>) -> tensor<1x32xf32>
// CHECK: fp8.exchange gather {{.*}} : tensor<64x32xf8E4M3FN> -> tensor<2x64x32xf8E4M3FN>
func.func @rows_and_columns(%x: tensor<64x32xf32>) -> (!fp8.scaled<128x32xf8E4M3FN, tile = [1, *], scale = f32>, !fp8.scaled<128x32xf8E4M3FN, tile = [*, 1], scale = f32>) {
    %0 = fp8.exchange gather %x ranks = dense<[[0, 1]]> : tensor<1x2xi64> label = "all_gather" : tensor<64x32xf32> -> tensor<2x64x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<2x64x32xf32>) -> tensor<128x32xf32>
    %a1 = fp8.amax %1 tile = [1, *] : tensor<128x32xf32> -> tensor<128x1xf32>
    %s1, %q1 = fp8.compute_scale %a1 {format = f8E4M3FN, rule = #fp8.scale_rule<pow2>} : tensor<128x1xf32> -> tensor<128x1xf32>
    %p1 = fp8.quantize %1, %s1, %q1 rounding = nearest_even, overflow = saturate : tensor<128x32xf32> -> !fp8.scaled<128x32xf8E4M3FN, tile = [1, *], scale = f32>
    %a2 = fp8.amax %1 tile = [*, 1] : tensor<128x32xf32> -> tensor<1x32xf32>
    %s2, %q2 = fp8.compute_scale %a2 {format = f8E4M3FN, rule = #fp8.scale_rule<pow2>} : tensor<1x32xf32> -> tensor<1x32xf32>
    %p2 = fp8.quantize %1, %s2, %q2 rounding = nearest_even, overflow = saturate : tensor<128x32xf32> -> !fp8.scaled<128x32xf8E4M3FN, tile = [*, 1], scale = f32>
    return %p1, %p2 : !fp8.scaled<128x32xf8E4M3FN, tile = [1, *], scale = f32>, !fp8.scaled<128x32xf8E4M3FN, tile = [*, 1], scale = f32>
}

// -----

// Along another dimension: parts are moved to their places as payloads.
// CHECK-LABEL: @features
// CHECK: %[[ALL:.*]] = fp8.exchange gather %{{.*}} : tensor<64x32xf8E4M3FN> -> tensor<2x64x32xf8E4M3FN>
// CHECK: %[[T:.*]] = stablehlo.transpose %[[ALL]], dims = [1, 0, 2]
// CHECK: stablehlo.reshape %[[T]] : (tensor<64x2x32xf8E4M3FN>) -> tensor<64x64xf8E4M3FN>
func.func @features(%x: tensor<64x32xf32>) -> !fp8.scaled<64x64xf8E4M3FN, tile = [*, *], scale = f32> {
    %0 = fp8.exchange gather %x ranks = dense<[[0, 1]]> : tensor<1x2xi64> label = "all_gather" : tensor<64x32xf32> -> tensor<2x64x32xf32>
    %t = stablehlo.transpose %0, dims = [1, 0, 2] : (tensor<2x64x32xf32>) -> tensor<64x2x32xf32>
    %1 = stablehlo.reshape %t : (tensor<64x2x32xf32>) -> tensor<64x64xf32>
    %a1 = fp8.amax %1 : tensor<64x64xf32> -> tensor<f32>
    %s1, %q1 = fp8.compute_scale %a1 {format = f8E4M3FN, rule = #fp8.scale_rule<pow2>} : tensor<f32> -> tensor<f32>
    %p1 = fp8.quantize %1, %s1, %q1 rounding = nearest_even, overflow = saturate : tensor<64x64xf32> -> !fp8.scaled<64x64xf8E4M3FN, tile = [*, *], scale = f32>
    return %p1 : !fp8.scaled<64x64xf8E4M3FN, tile = [*, *], scale = f32>
}

// -----

// CHECK-LABEL: @rounded
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>)
// CHECK: %[[N:.*]] = stablehlo.convert %[[X]] : (tensor<4x8xf32>) -> tensor<4x8xbf16>
// CHECK: fp8.exchange gather %[[N]] {{.*}} {fp8.wire_reason = "only a rounding reads what is gathered"} : tensor<4x8xbf16> -> tensor<2x4x8xbf16>
func.func @rounded(%x: tensor<4x8xf32>) -> tensor<8x8xbf16> {
    %0 = fp8.exchange gather %x ranks = dense<[[0, 1]]> : tensor<1x2xi64> label = "all_gather" : tensor<4x8xf32> -> tensor<2x4x8xf32>
    %1 = stablehlo.reshape %0 : (tensor<2x4x8xf32>) -> tensor<8x8xf32>
    %2 = stablehlo.convert %1 : (tensor<8x8xf32>) -> tensor<8x8xbf16>
    return %2 : tensor<8x8xbf16>
}
