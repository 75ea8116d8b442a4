// RUN: fp8-opt %s --fp8-save-payloads --stablehlo-canonicalize-loops --cse --fp8-verify-quantized --split-input-file | FileCheck %s

// Both loops scale the tensor of a layer by the layer's slot of a state, which
// the second one walks backwards: the first one's payload is stacked, and
// nothing is quantized twice.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while({{.*}}) : tensor<i32>, tensor<4x32xf32>, tensor<3x4x32xf8E4M3FN>, tensor<3xf32>
// CHECK: %[[X:.*]] = fp8.quantize
// CHECK-NOT: fp8.quantize
// CHECK: %[[PAYLOAD:.*]], %[[SCALE:.*]] = fp8.unpack %[[X]]
// CHECK: %[[SLOT:.*]] = stablehlo.reshape %[[PAYLOAD]]
// CHECK: stablehlo.dynamic_update_slice %{{.*}}, %[[SLOT]]
// CHECK: stablehlo.while
// CHECK-NOT: fp8.quantize
// CHECK: fp8.pack
// CHECK: fp8.dot_general
func.func @main(%x: tensor<4x32xf32>, %w: !fp8.scaled<32x32xf8E4M3FN, tile = [*, *], scale = f32>, %state: tensor<3xf32>) -> tensor<4x32xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %never = stablehlo.constant dense<0.0> : tensor<f32>
  %unit = stablehlo.constant dense<1.0> : tensor<f32>
  %empty = stablehlo.constant dense<0.0> : tensor<3x4x32xf32>
  %sum = stablehlo.constant dense<0.0> : tensor<4x32xf32>
  %0:3 = stablehlo.while(%i = %zero, %y = %x, %stack = %empty) : tensor<i32>, tensor<4x32xf32>, tensor<3x4x32xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %amax = fp8.amax %y : tensor<4x32xf32> -> tensor<f32>
    %own_scale, %own = fp8.compute_scale %amax {rule = #fp8.scale_rule<exact>, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
    %part = stablehlo.dynamic_slice %state, %i, sizes = [1] : (tensor<3xf32>, tensor<i32>) -> tensor<1xf32>
    %kept = stablehlo.reshape %part : (tensor<1xf32>) -> tensor<f32>
    %unset = stablehlo.compare EQ, %kept, %never : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %q = stablehlo.select %unset, %own, %kept : tensor<i1>, tensor<f32>
    %inverse = stablehlo.divide %unit, %kept : tensor<f32>
    %s = stablehlo.select %unset, %own_scale, %inverse : tensor<i1>, tensor<f32>
    %p = fp8.quantize %y, %s, %q rounding = nearest_even, overflow = saturate
        : tensor<4x32xf32> -> !fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>
    %d = fp8.dot_general %p, %w, contracting_dims = [1] x [0] {accumulator = f32}
        : (!fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>, !fp8.scaled<32x32xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<4x32xf32>
    %1 = stablehlo.reshape %y : (tensor<4x32xf32>) -> tensor<1x4x32xf32>
    %2 = stablehlo.dynamic_update_slice %stack, %1, %i, %zero, %zero
        : (tensor<3x4x32xf32>, tensor<1x4x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x4x32xf32>
    %3 = stablehlo.sine %d : tensor<4x32xf32>
    %4 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %4, %3, %2 : tensor<i32>, tensor<4x32xf32>, tensor<3x4x32xf32>
  }
  %5:2 = stablehlo.while(%i = %zero, %acc = %sum) : tensor<i32>, tensor<4x32xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %two = stablehlo.constant dense<2> : tensor<i32>
    %minus = stablehlo.constant dense<-1> : tensor<i32>
    %j = stablehlo.subtract %two, %i : tensor<i32>
    %1 = stablehlo.dynamic_slice %0#2, %j, %zero, %zero, sizes = [1, 4, 32]
        : (tensor<3x4x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x32xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x4x32xf32>) -> tensor<4x32xf32>
    %amax = fp8.amax %2 : tensor<4x32xf32> -> tensor<f32>
    %own_scale, %own = fp8.compute_scale %amax {rule = #fp8.scale_rule<exact>, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
    %down = stablehlo.multiply %i, %minus : tensor<i32>
    %slot = stablehlo.add %down, %two : tensor<i32>
    %part = stablehlo.dynamic_slice %state, %slot, sizes = [1] : (tensor<3xf32>, tensor<i32>) -> tensor<1xf32>
    %kept = stablehlo.reshape %part : (tensor<1xf32>) -> tensor<f32>
    %unset = stablehlo.compare EQ, %kept, %never : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %q = stablehlo.select %unset, %own, %kept : tensor<i1>, tensor<f32>
    %inverse = stablehlo.divide %unit, %kept : tensor<f32>
    %s = stablehlo.select %unset, %own_scale, %inverse : tensor<i1>, tensor<f32>
    %3 = fp8.quantize %2, %s, %q rounding = nearest_even, overflow = saturate
        : tensor<4x32xf32> -> !fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>
    %4 = fp8.dot_general %3, %w, contracting_dims = [1] x [0] {accumulator = f32}
        : (!fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>, !fp8.scaled<32x32xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<4x32xf32>
    %6 = stablehlo.add %acc, %4 : tensor<4x32xf32>
    %7 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %7, %6 : tensor<i32>, tensor<4x32xf32>
  }
  return %5#1 : tensor<4x32xf32>
}

// -----

// The state of another layer: the f32 stack stays.
// CHECK-LABEL: func.func @another_slot
// CHECK: stablehlo.while({{.*}}) : tensor<i32>, tensor<4x32xf32>, tensor<3x4x32xf32>
// CHECK: stablehlo.while
// CHECK: fp8.quantize
func.func @another_slot(%x: tensor<4x32xf32>, %w: !fp8.scaled<32x32xf8E4M3FN, tile = [*, *], scale = f32>, %state: tensor<3xf32>) -> tensor<4x32xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %unit = stablehlo.constant dense<1.0> : tensor<f32>
  %empty = stablehlo.constant dense<0.0> : tensor<3x4x32xf32>
  %sum = stablehlo.constant dense<0.0> : tensor<4x32xf32>
  %0:3 = stablehlo.while(%i = %zero, %y = %x, %stack = %empty) : tensor<i32>, tensor<4x32xf32>, tensor<3x4x32xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.reshape %y : (tensor<4x32xf32>) -> tensor<1x4x32xf32>
    %2 = stablehlo.dynamic_update_slice %stack, %1, %i, %zero, %zero
        : (tensor<3x4x32xf32>, tensor<1x4x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x4x32xf32>
    %3 = stablehlo.sine %y : tensor<4x32xf32>
    %4 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %4, %3, %2 : tensor<i32>, tensor<4x32xf32>, tensor<3x4x32xf32>
  }
  %5:2 = stablehlo.while(%i = %zero, %acc = %sum) : tensor<i32>, tensor<4x32xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %two = stablehlo.constant dense<2> : tensor<i32>
    %j = stablehlo.subtract %two, %i : tensor<i32>
    %1 = stablehlo.dynamic_slice %0#2, %j, %zero, %zero, sizes = [1, 4, 32]
        : (tensor<3x4x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x32xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x4x32xf32>) -> tensor<4x32xf32>
    %part = stablehlo.dynamic_slice %state, %i, sizes = [1] : (tensor<3xf32>, tensor<i32>) -> tensor<1xf32>
    %q = stablehlo.reshape %part : (tensor<1xf32>) -> tensor<f32>
    %s = stablehlo.divide %unit, %q : tensor<f32>
    %3 = fp8.quantize %2, %s, %q rounding = nearest_even, overflow = saturate
        : tensor<4x32xf32> -> !fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>
    %4 = fp8.dot_general %3, %w, contracting_dims = [1] x [0] {accumulator = f32}
        : (!fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>, !fp8.scaled<32x32xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<4x32xf32>
    %6 = stablehlo.add %acc, %4 : tensor<4x32xf32>
    %7 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %7, %6 : tensor<i32>, tensor<4x32xf32>
  }
  return %5#1 : tensor<4x32xf32>
}
