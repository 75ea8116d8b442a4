// RUN: fp8-opt %s --fp8-split-prefix-sums --split-input-file --verify-each | FileCheck %s

// Four blocks of 16, whose totals are the sum of one block.
// CHECK-LABEL: @prefix
// CHECK-NOT: reduce_window
// CHECK: %[[BLOCKS:.*]] = stablehlo.reshape %{{.*}} : (tensor<3x64xf32>) -> tensor<3x4x16xf32>
// CHECK: compare GE
// CHECK: %[[SUMS:.*]] = stablehlo.reduce({{.*}}) applies stablehlo.add across dimensions = [3] : (tensor<3x4x16x16xf32>, tensor<f32>) -> tensor<3x4x16xf32>
// CHECK: %[[LAST:.*]] = stablehlo.slice %[[SUMS]] [0:3, 0:4, 15:16]
// CHECK: stablehlo.reshape %[[LAST]] : (tensor<3x4x1xf32>) -> tensor<3x4xf32>
// CHECK: stablehlo.pad {{.*}} low = [0, 0], high = [0, 12]
// CHECK: across dimensions = [3] : (tensor<3x1x16x16xf32>, tensor<f32>) -> tensor<3x1x16xf32>
// CHECK: stablehlo.pad {{.*}} low = [0, 1], high = [0, -1]
// CHECK: stablehlo.add %[[SUMS]],
func.func @prefix(%x: tensor<3x64xf32>) -> tensor<3x64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{padding = dense<[[0, 0], [63, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<3x64xf32>, tensor<f32>) -> tensor<3x64xf32>
  return %0 : tensor<3x64xf32>
}

// -----

// From the end, in f32, with zeros before the first element.
// CHECK-LABEL: @suffix_of_bf16
// CHECK-NOT: reduce_window
// CHECK: stablehlo.convert %{{.*}} : (tensor<50x8xbf16>) -> tensor<50x8xf32>
// CHECK: stablehlo.pad {{.*}} low = [14, 0], high = [0, 0]
// CHECK: compare LE
// CHECK: stablehlo.slice %{{.*}} [0:4, 0:1, 0:8]
// CHECK: stablehlo.pad {{.*}} low = [-14, 0], high = [0, 0]
// CHECK: stablehlo.convert %{{.*}} : (tensor<50x8xf32>) -> tensor<50x8xbf16>
func.func @suffix_of_bf16(%x: tensor<50x8xbf16>) -> tensor<50x8xbf16> {
  %zero = stablehlo.constant dense<0.0> : tensor<bf16>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{padding = dense<[[0, 49], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 50, 1>}> ({
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    %1 = stablehlo.add %a, %b : tensor<bf16>
    stablehlo.return %1 : tensor<bf16>
  }) : (tensor<50x8xbf16>, tensor<bf16>) -> tensor<50x8xbf16>
  return %0 : tensor<50x8xbf16>
}

// -----

// Neither short sums, nor sums of shorter windows, nor maxima.
// CHECK-LABEL: @others
// CHECK-COUNT-3: stablehlo.reduce_window
func.func @others(%x: tensor<32xf32>, %y: tensor<64xf32>) -> (tensor<32xf32>, tensor<64xf32>, tensor<64xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{padding = dense<[[31, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 32>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<32xf32>, tensor<f32>) -> tensor<32xf32>
  %1 = "stablehlo.reduce_window"(%y, %zero) <{padding = dense<[[62, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 63>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %2 = "stablehlo.reduce_window"(%y, %least) <{padding = dense<[[63, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  return %0, %1, %2 : tensor<32xf32>, tensor<64xf32>, tensor<64xf32>
}

// -----

// CHECK-LABEL: @scalar
// CHECK: stablehlo.reduce_window
func.func @scalar(%x: tensor<f32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
