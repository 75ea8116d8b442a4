// RUN: fp8-opt %s --fp8-save-payloads --stablehlo-canonicalize-loops --cse --fp8-verify-quantized --split-input-file | FileCheck %s

// The payload and the scale are stacked; the f32 stack and the second
// quantization are gone.
// CHECK: func.func @main
// CHECK: stablehlo.while({{.*}}) : tensor<i32>, tensor<4x32xf32>, tensor<3x4x32xf8E4M3FN>, tensor<3xf32>
// CHECK: %[[X:.*]] = fp8.quantize
// CHECK: %[[PAYLOAD:.*]], %[[SCALE:.*]] = fp8.unpack %[[X]]
// CHECK: %[[SLOT:.*]] = stablehlo.reshape %[[PAYLOAD]]
// CHECK: stablehlo.dynamic_update_slice %{{.*}}, %[[SLOT]]
// CHECK: stablehlo.while
// CHECK-NOT: fp8.quantize
// CHECK: fp8.pack
// CHECK: fp8.dot_general
func.func @main(%x: tensor<4x32xf32>, %w: !fp8.scaled<32x16xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<4x16xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %empty = stablehlo.constant dense<0.0> : tensor<3x4x32xf32>
  %sum = stablehlo.constant dense<0.0> : tensor<4x16xf32>
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
  %5:2 = stablehlo.while(%i = %zero, %acc = %sum) : tensor<i32>, tensor<4x16xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %0#2, %i, %zero, %zero, sizes = [1, 4, 32]
        : (tensor<3x4x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x32xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x4x32xf32>) -> tensor<4x32xf32>
    %amax = fp8.amax %2 : tensor<4x32xf32> -> tensor<f32>
    %scale, %quantizer = fp8.compute_scale %amax {rule = #fp8.scale_rule<exact>, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
    %3 = fp8.quantize %2, %scale, %quantizer rounding = nearest_even, overflow = saturate
        : tensor<4x32xf32> -> !fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>
    %4 = fp8.dot_general %3, %w, contracting_dims = [1] x [0] {accumulator = f32}
        : (!fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>, !fp8.scaled<32x16xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<4x16xf32>
    %6 = stablehlo.add %acc, %4 : tensor<4x16xf32>
    %7 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %7, %6 : tensor<i32>, tensor<4x16xf32>
  }
  return %5#1 : tensor<4x16xf32>
}

// -----

// Read in high precision too: it stays.
// CHECK: func.func @read_too
// CHECK: stablehlo.while({{.*}}) : tensor<i32>, tensor<4x32xf32>, tensor<3x4x32xf32>
func.func @read_too(%x: tensor<4x32xf32>, %w: !fp8.scaled<32x16xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<4x16xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %empty = stablehlo.constant dense<0.0> : tensor<3x4x32xf32>
  %sum = stablehlo.constant dense<0.0> : tensor<4x16xf32>
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
  %r:2 = stablehlo.while(%i = %zero, %acc = %sum) : tensor<i32>, tensor<4x16xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %0#2, %i, %zero, %zero, sizes = [1, 4, 32]
        : (tensor<3x4x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x32xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x4x32xf32>) -> tensor<4x32xf32>
    %amax = fp8.amax %2 : tensor<4x32xf32> -> tensor<f32>
    %scale, %quantizer = fp8.compute_scale %amax {rule = #fp8.scale_rule<exact>, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
    %3 = fp8.quantize %2, %scale, %quantizer rounding = nearest_even, overflow = saturate
        : tensor<4x32xf32> -> !fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>
    %4 = fp8.dot_general %3, %w, contracting_dims = [1] x [0] {accumulator = f32}
        : (!fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>, !fp8.scaled<32x16xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<4x16xf32>
    %cos = stablehlo.cosine %2 : tensor<4x32xf32>
    %part = stablehlo.slice %cos [0:4, 0:16] : (tensor<4x32xf32>) -> tensor<4x16xf32>
    %5 = stablehlo.add %part, %4 : tensor<4x16xf32>
    %6 = stablehlo.add %acc, %5 : tensor<4x16xf32>
    %7 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %7, %6 : tensor<i32>, tensor<4x16xf32>
  }
  return %r#1 : tensor<4x16xf32>
}

// -----

// A slot that is not written holds what no payload stands for.
// CHECK: func.func @not_empty
// CHECK: stablehlo.while({{.*}}) : tensor<i32>, tensor<4x32xf32>, tensor<3x4x32xf32>
func.func @not_empty(%x: tensor<4x32xf32>, %w: !fp8.scaled<32x16xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<4x16xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %empty = stablehlo.constant dense<1.0> : tensor<3x4x32xf32>
  %sum = stablehlo.constant dense<0.0> : tensor<4x16xf32>
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
  %5:2 = stablehlo.while(%i = %zero, %acc = %sum) : tensor<i32>, tensor<4x16xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %0#2, %i, %zero, %zero, sizes = [1, 4, 32]
        : (tensor<3x4x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x32xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x4x32xf32>) -> tensor<4x32xf32>
    %amax = fp8.amax %2 : tensor<4x32xf32> -> tensor<f32>
    %scale, %quantizer = fp8.compute_scale %amax {rule = #fp8.scale_rule<exact>, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
    %3 = fp8.quantize %2, %scale, %quantizer rounding = nearest_even, overflow = saturate
        : tensor<4x32xf32> -> !fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>
    %4 = fp8.dot_general %3, %w, contracting_dims = [1] x [0] {accumulator = f32}
        : (!fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>, !fp8.scaled<32x16xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<4x16xf32>
    %6 = stablehlo.add %acc, %4 : tensor<4x16xf32>
    %7 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %7, %6 : tensor<i32>, tensor<4x16xf32>
  }
  return %5#1 : tensor<4x16xf32>
}

// -----

// A broadcast that transposes is no reshape: the stack stays.
// CHECK-LABEL: func.func @transposed
// CHECK: stablehlo.while({{.*}}) : tensor<i32>, tensor<4x4xf32>, tensor<3x4x4xf32>
// CHECK: stablehlo.broadcast_in_dim {{.*}}, dims = [2, 1]
func.func @transposed(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %empty = stablehlo.constant dense<0.0> : tensor<3x4x4xf32>
  %sum = stablehlo.constant dense<0.0> : tensor<4x4xf32>
  %0:3 = stablehlo.while(%i = %zero, %y = %x, %stack = %empty) : tensor<i32>, tensor<4x4xf32>, tensor<3x4x4xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %n = stablehlo.convert %y : (tensor<4x4xf32>) -> tensor<4x4xbf16>
    %w = stablehlo.convert %n : (tensor<4x4xbf16>) -> tensor<4x4xf32>
    %1 = stablehlo.broadcast_in_dim %w, dims = [2, 1] : (tensor<4x4xf32>) -> tensor<1x4x4xf32>
    %2 = stablehlo.dynamic_update_slice %stack, %1, %i, %zero, %zero
        : (tensor<3x4x4xf32>, tensor<1x4x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x4x4xf32>
    %3 = stablehlo.sine %y : tensor<4x4xf32>
    %4 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %4, %3, %2 : tensor<i32>, tensor<4x4xf32>, tensor<3x4x4xf32>
  }
  %5:2 = stablehlo.while(%i = %zero, %acc = %sum) : tensor<i32>, tensor<4x4xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %0#2, %i, %zero, %zero, sizes = [1, 4, 4]
        : (tensor<3x4x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x4xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x4x4xf32>) -> tensor<4x4xf32>
    %6 = stablehlo.add %acc, %2 : tensor<4x4xf32>
    %7 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %7, %6 : tensor<i32>, tensor<4x4xf32>
  }
  return %5#1 : tensor<4x4xf32>
}
