// RUN: fp8-opt %s --split-input-file --fp8-narrow-gathers | FileCheck %s

// What stays as wide as it was, and why.

// CHECK-LABEL: @read
// CHECK: fp8.exchange gather %{{.*}} {{.*}} {fp8.wire_reason = "not narrower: read by stablehlo.add"}
func.func @read(%x: tensor<64x32xf32>) -> (!fp8.scaled<128x32xf8E4M3FN, tile = [*, *], scale = f32>, tensor<128x32xf32>) {
    %0 = fp8.exchange gather %x ranks = dense<[[0, 1]]> : tensor<1x2xi64> label = "all_gather" : tensor<64x32xf32> -> tensor<2x64x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<2x64x32xf32>) -> tensor<128x32xf32>
    %a1 = fp8.amax %1 : tensor<128x32xf32> -> tensor<f32>
    %s1, %q1 = fp8.compute_scale %a1 {format = f8E4M3FN, rule = #fp8.scale_rule<pow2>} : tensor<f32> -> tensor<f32>
    %p1 = fp8.quantize %1, %s1, %q1 rounding = nearest_even, overflow = saturate : tensor<128x32xf32> -> !fp8.scaled<128x32xf8E4M3FN, tile = [*, *], scale = f32>
    %2 = stablehlo.add %1, %1 : tensor<128x32xf32>
    return %p1, %2 : !fp8.scaled<128x32xf8E4M3FN, tile = [*, *], scale = f32>, tensor<128x32xf32>
}

// -----

// CHECK-LABEL: @not_quantized
// CHECK: fp8.exchange gather %{{.*}} {{.*}} {fp8.wire_reason = "not narrower: not quantized"}
func.func @not_quantized(%x: tensor<64x32xf32>) -> tensor<f32> {
    %0 = fp8.exchange gather %x ranks = dense<[[0, 1]]> : tensor<1x2xi64> label = "all_gather" : tensor<64x32xf32> -> tensor<2x64x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<2x64x32xf32>) -> tensor<128x32xf32>
    %2 = fp8.amax %1 : tensor<128x32xf32> -> tensor<f32>
    return %2 : tensor<f32>
}

// -----

// CHECK-LABEL: @tiles
// CHECK: fp8.exchange gather %{{.*}} {{.*}} {fp8.wire_reason = "not narrower: its tiles do not end where a rank's part does"}
func.func @tiles(%x: tensor<64x32xf32>) -> !fp8.scaled<128x32xf8E4M3FN, tile = [48, 1], scale = f32> {
    %0 = fp8.exchange gather %x ranks = dense<[[0, 1]]> : tensor<1x2xi64> label = "all_gather" : tensor<64x32xf32> -> tensor<2x64x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<2x64x32xf32>) -> tensor<128x32xf32>
    %a1 = fp8.amax %1 tile = [48, 1] : tensor<128x32xf32> -> tensor<3x32xf32>
    %s1, %q1 = fp8.compute_scale %a1 {format = f8E4M3FN, rule = #fp8.scale_rule<pow2>} : tensor<3x32xf32> -> tensor<3x32xf32>
    %p1 = fp8.quantize %1, %s1, %q1 rounding = nearest_even, overflow = saturate : tensor<128x32xf32> -> !fp8.scaled<128x32xf8E4M3FN, tile = [48, 1], scale = f32>
    return %p1 : !fp8.scaled<128x32xf8E4M3FN, tile = [48, 1], scale = f32>
}

// -----

// CHECK-LABEL: @four
// CHECK: fp8.exchange gather %{{.*}} {{.*}} {fp8.wire_reason = "not narrower: payloads for 4 tilings are no fewer bytes"}
func.func @four(%x: tensor<64x32xf32>) -> (!fp8.scaled<128x32xf8E4M3FN, tile = [*, *], scale = f32>, !fp8.scaled<128x32xf8E4M3FN, tile = [1, *], scale = f32>, !fp8.scaled<128x32xf8E4M3FN, tile = [*, 1], scale = f32>, !fp8.scaled<128x32xf8E4M3FN, tile = [1, 16], scale = f32>) {
    %0 = fp8.exchange gather %x ranks = dense<[[0, 1]]> : tensor<1x2xi64> label = "all_gather" : tensor<64x32xf32> -> tensor<2x64x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<2x64x32xf32>) -> tensor<128x32xf32>
    %a1 = fp8.amax %1 : tensor<128x32xf32> -> tensor<f32>
    %s1, %q1 = fp8.compute_scale %a1 {format = f8E4M3FN, rule = #fp8.scale_rule<pow2>} : tensor<f32> -> tensor<f32>
    %p1 = fp8.quantize %1, %s1, %q1 rounding = nearest_even, overflow = saturate : tensor<128x32xf32> -> !fp8.scaled<128x32xf8E4M3FN, tile = [*, *], scale = f32>
    %a2 = fp8.amax %1 tile = [1, *] : tensor<128x32xf32> -> tensor<128x1xf32>
    %s2, %q2 = fp8.compute_scale %a2 {format = f8E4M3FN, rule = #fp8.scale_rule<pow2>} : tensor<128x1xf32> -> tensor<128x1xf32>
    %p2 = fp8.quantize %1, %s2, %q2 rounding = nearest_even, overflow = saturate : tensor<128x32xf32> -> !fp8.scaled<128x32xf8E4M3FN, tile = [1, *], scale = f32>
    %a3 = fp8.amax %1 tile = [*, 1] : tensor<128x32xf32> -> tensor<1x32xf32>
    %s3, %q3 = fp8.compute_scale %a3 {format = f8E4M3FN, rule = #fp8.scale_rule<pow2>} : tensor<1x32xf32> -> tensor<1x32xf32>
    %p3 = fp8.quantize %1, %s3, %q3 rounding = nearest_even, overflow = saturate : tensor<128x32xf32> -> !fp8.scaled<128x32xf8E4M3FN, tile = [*, 1], scale = f32>
    %a4 = fp8.amax %1 tile = [1, 16] : tensor<128x32xf32> -> tensor<128x2xf32>
    %s4, %q4 = fp8.compute_scale %a4 {format = f8E4M3FN, rule = #fp8.scale_rule<pow2>} : tensor<128x2xf32> -> tensor<128x2xf32>
    %p4 = fp8.quantize %1, %s4, %q4 rounding = nearest_even, overflow = saturate : tensor<128x32xf32> -> !fp8.scaled<128x32xf8E4M3FN, tile = [1, 16], scale = f32>
    return %p1, %p2, %p3, %p4 : !fp8.scaled<128x32xf8E4M3FN, tile = [*, *], scale = f32>, !fp8.scaled<128x32xf8E4M3FN, tile = [1, *], scale = f32>, !fp8.scaled<128x32xf8E4M3FN, tile = [*, 1], scale = f32>, !fp8.scaled<128x32xf8E4M3FN, tile = [1, 16], scale = f32>
}

// -----

// CHECK-LABEL: @given_scales
// CHECK: fp8.exchange gather %{{.*}} {{.*}} {fp8.wire_reason = "not narrower: its scales do not follow from itself"}
func.func @given_scales(%x: tensor<64x32xf32>, %s: tensor<128x1xf32>, %q: tensor<128x1xf32>) -> !fp8.scaled<128x32xf8E4M3FN, tile = [1, *], scale = f32> {
    %0 = fp8.exchange gather %x ranks = dense<[[0, 1]]> : tensor<1x2xi64> label = "all_gather" : tensor<64x32xf32> -> tensor<2x64x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<2x64x32xf32>) -> tensor<128x32xf32>
    %p = fp8.quantize %1, %s, %q rounding = nearest_even, overflow = saturate : tensor<128x32xf32> -> !fp8.scaled<128x32xf8E4M3FN, tile = [1, *], scale = f32>
    return %p : !fp8.scaled<128x32xf8E4M3FN, tile = [1, *], scale = f32>
}

// -----

// CHECK-LABEL: @random
// CHECK: fp8.exchange gather %{{.*}} {{.*}} {fp8.wire_reason = "not narrower: it is rounded at random, by the place of an element"}
func.func @random(%x: tensor<64x32xf32>, %s: tensor<f32>, %q: tensor<f32>, %seed: tensor<i64>) -> !fp8.scaled<128x32xf8E4M3FN, tile = [*, *], scale = f32> {
    %0 = fp8.exchange gather %x ranks = dense<[[0, 1]]> : tensor<1x2xi64> label = "all_gather" : tensor<64x32xf32> -> tensor<2x64x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<2x64x32xf32>) -> tensor<128x32xf32>
    %p = fp8.quantize %1, %s, %q seed = %seed rounding = stochastic, overflow = saturate : tensor<128x32xf32> -> !fp8.scaled<128x32xf8E4M3FN, tile = [*, *], scale = f32>
    return %p : !fp8.scaled<128x32xf8E4M3FN, tile = [*, *], scale = f32>
}

// -----

// CHECK-LABEL: @small
// CHECK: fp8.exchange gather %{{.*}} {{.*}} {fp8.wire_reason = "not narrower: small"}
func.func @small(%x: tensor<8x32xf32>) -> !fp8.scaled<16x32xf8E4M3FN, tile = [*, *], scale = f32> {
    %0 = fp8.exchange gather %x ranks = dense<[[0, 1]]> : tensor<1x2xi64> label = "all_gather" : tensor<8x32xf32> -> tensor<2x8x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<2x8x32xf32>) -> tensor<16x32xf32>
    %a1 = fp8.amax %1 : tensor<16x32xf32> -> tensor<f32>
    %s1, %q1 = fp8.compute_scale %a1 {format = f8E4M3FN, rule = #fp8.scale_rule<pow2>} : tensor<f32> -> tensor<f32>
    %p1 = fp8.quantize %1, %s1, %q1 rounding = nearest_even, overflow = saturate : tensor<16x32xf32> -> !fp8.scaled<16x32xf8E4M3FN, tile = [*, *], scale = f32>
    return %p1 : !fp8.scaled<16x32xf8E4M3FN, tile = [*, *], scale = f32>
}

// -----

// CHECK-LABEL: @in_a_branch
// CHECK: fp8.exchange gather %{{.*}} {{.*}} {fp8.wire_reason = "not narrower: what is gathered is read in another block"}
func.func @in_a_branch(%x: tensor<64x32xf32>, %if: tensor<i1>) -> tensor<128x32xbf16> {
    %0 = fp8.exchange gather %x ranks = dense<[[0, 1]]> : tensor<1x2xi64> label = "all_gather" : tensor<64x32xf32> -> tensor<2x64x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<2x64x32xf32>) -> tensor<128x32xf32>
    %2 = "stablehlo.if"(%if) ({
      %3 = stablehlo.convert %1 : (tensor<128x32xf32>) -> tensor<128x32xbf16>
      stablehlo.return %3 : tensor<128x32xbf16>
    }, {
      %4 = stablehlo.constant dense<0.0> : tensor<128x32xbf16>
      stablehlo.return %4 : tensor<128x32xbf16>
    }) : (tensor<i1>) -> tensor<128x32xbf16>
    return %2 : tensor<128x32xbf16>
}
