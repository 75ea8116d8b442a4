// RUN: fp8-opt %s --fp8-resolve-recipe="recipe=tensorwise set=smooth_swiglu.granularity=channel" --fp8-smooth-swiglu=emit-remarks \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s

// The gate is exp(-x) spelled out and everything is bf16 but the product; the
// weights of both branches are one array.
// CHECK-LABEL: func.func @fused
// CHECK-SAME: activation = "silu", channels = 4 : i64
// CHECK-SAME: down = {dimensions = array<i64: 0>, layers = array<i64>, path = "p['down']", start = array<i64: 0, 0>, stride = 1 : i64}
// CHECK-SAME: gate = {dimensions = array<i64: 1>, layers = array<i64>, path = "p['in']", start = array<i64: 0, 4>, stride = 1 : i64}
// CHECK-SAME: linear = {dimensions = array<i64: 1>, layers = array<i64>, path = "p['in']", start = array<i64: 0, 0>, stride = 1 : i64}
func.func @fused(%in: tensor<2x8xf32> {fp8.role = "frozen", fp8.path = "p['in']"},
                 %down: tensor<4x2xf32> {fp8.role = "frozen", fp8.path = "p['down']"},
                 %head: tensor<2x3xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
                 %x: tensor<3x2xf32> {fp8.role = "batch"}) -> tensor<3x3xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %ones = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
  %xb = stablehlo.convert %x : (tensor<3x2xf32>) -> tensor<3x2xbf16>
  %inb = stablehlo.convert %in : (tensor<2x8xf32>) -> tensor<2x8xbf16>
  %downb = stablehlo.convert %down : (tensor<4x2xf32>) -> tensor<4x2xbf16>
  %both = stablehlo.dot_general %xb, %inb, contracting_dims = [1] x [0]
      : (tensor<3x2xbf16>, tensor<2x8xbf16>) -> tensor<3x8xbf16>
  %b = stablehlo.slice %both [0:3, 0:4] : (tensor<3x8xbf16>) -> tensor<3x4xbf16>
  %a = stablehlo.slice %both [0:3, 4:8] : (tensor<3x8xbf16>) -> tensor<3x4xbf16>
  %a32 = stablehlo.convert %a : (tensor<3x4xbf16>) -> tensor<3x4xf32>
  %b32 = stablehlo.convert %b : (tensor<3x4xbf16>) -> tensor<3x4xf32>
  %0 = stablehlo.negate %a32 : tensor<3x4xf32>
  %1 = stablehlo.exponential %0 : tensor<3x4xf32>
  %2 = stablehlo.add %1, %ones : tensor<3x4xf32>
  %3 = stablehlo.divide %b32, %2 : tensor<3x4xf32>
  %4 = stablehlo.multiply %3, %a32 : tensor<3x4xf32>
  %5 = stablehlo.convert %4 : (tensor<3x4xf32>) -> tensor<3x4xbf16>
  // CHECK: %[[H:.*]] = stablehlo.convert {{.*}} : (tensor<3x4xf32>) -> tensor<3x4xbf16>
  // CHECK: %[[AMAX:.*]] = fp8.amax %[[H]] tile = [*, 1] : tensor<3x4xbf16> -> tensor<1x4xf32>
  // CHECK: %[[RESHAPED:.*]] = stablehlo.reshape %[[AMAX]] : (tensor<1x4xf32>) -> tensor<4xf32>
  // CHECK: %[[LIMITED:.*]] = stablehlo.maximum %[[RESHAPED]]
  // CHECK: %[[S:.*]], %[[Q:.*]] = fp8.compute_scale %[[LIMITED]] {format = f8E4M3FN, {{.*}}pow2
  // CHECK-DAG: %[[SMALL:.*]] = fp8.rescale %[[H]], %[[Q]] dims = [1] : tensor<3x4xbf16>, tensor<4xf32>
  // CHECK-DAG: %[[LARGE:.*]] = fp8.rescale %{{.*}}, %[[S]] dims = [0] : tensor<4x2xbf16>, tensor<4xf32>
  // CHECK: stablehlo.dot_general %[[SMALL]], %[[LARGE]]
  // expected-remark @below {{gated unit of silu: smoothed per channel, pow2, current}}
  %6 = stablehlo.dot_general %5, %downb, contracting_dims = [1] x [0]
      : (tensor<3x4xbf16>, tensor<4x2xbf16>) -> tensor<3x2xbf16>
  %7 = stablehlo.convert %6 : (tensor<3x2xbf16>) -> tensor<3x2xf32>
  %8 = stablehlo.dot_general %7, %head, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>
  return %8 : tensor<3x3xf32>
}

// -----

// Channels of both branches alternate, the weight lies across, and the linear
// branch has a bias. relu is a select.
// CHECK-LABEL: func.func @interleaved
// CHECK-SAME: activation = "relu", channels = 4 : i64
// CHECK-SAME: gate = {dimensions = array<i64: 0>, layers = array<i64>, path = "p['in']", start = array<i64: 0, 0>, stride = 2 : i64}
// CHECK-SAME: linear = {dimensions = array<i64: 0>, layers = array<i64>, path = "p['in']", start = array<i64: 1, 0>, stride = 2 : i64}
// CHECK-SAME: linear_bias = {dimensions = array<i64: 0>, layers = array<i64>, path = "p['bias']", start = array<i64: 1>, stride = 2 : i64}
func.func @interleaved(%in: tensor<8x2xf32> {fp8.role = "frozen", fp8.path = "p['in']"},
                       %bias: tensor<8xf32> {fp8.role = "frozen", fp8.path = "p['bias']"},
                       %down: tensor<2x4xf32> {fp8.role = "frozen", fp8.path = "p['down']"},
                       %head: tensor<2x3xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
                       %x: tensor<3x2xf32> {fp8.role = "batch"}) -> tensor<2x3xf32> {
  %zeros = stablehlo.constant dense<0.0> : tensor<3x4xf32>
  %0 = stablehlo.dot_general %x, %in, contracting_dims = [1] x [1]
      : (tensor<3x2xf32>, tensor<8x2xf32>) -> tensor<3x8xf32>
  %1 = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<8xf32>) -> tensor<3x8xf32>
  %2 = stablehlo.add %0, %1 : tensor<3x8xf32>
  %3 = stablehlo.reshape %2 : (tensor<3x8xf32>) -> tensor<3x4x2xf32>
  %4 = stablehlo.slice %3 [0:3, 0:4, 0:1] : (tensor<3x4x2xf32>) -> tensor<3x4x1xf32>
  %5 = stablehlo.slice %3 [0:3, 0:4, 1:2] : (tensor<3x4x2xf32>) -> tensor<3x4x1xf32>
  %a = stablehlo.reshape %4 : (tensor<3x4x1xf32>) -> tensor<3x4xf32>
  %b = stablehlo.reshape %5 : (tensor<3x4x1xf32>) -> tensor<3x4xf32>
  %6 = stablehlo.compare GT, %a, %zeros : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>
  %7 = stablehlo.select %6, %a, %zeros : tensor<3x4xi1>, tensor<3x4xf32>
  %h = stablehlo.multiply %b, %7 : tensor<3x4xf32>
  %ht = stablehlo.transpose %h, dims = [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>
  // The factor is applied before the transpose.
  // CHECK: %[[H:.*]] = stablehlo.multiply
  // CHECK: fp8.amax %[[H]] tile = [*, 1]
  // CHECK-DAG: %[[LARGE:.*]] = fp8.rescale %arg2, %{{.*}} dims = [1] : tensor<2x4xf32>, tensor<4xf32>
  // CHECK-DAG: %[[SMALL:.*]] = fp8.rescale %[[H]], %{{.*}} dims = [1] : tensor<3x4xf32>, tensor<4xf32>
  // CHECK: %[[TURNED:.*]] = stablehlo.transpose %[[SMALL]]
  // CHECK: stablehlo.dot_general %[[LARGE]], %[[TURNED]]
  // expected-remark @below {{gated unit of relu: smoothed per channel}}
  %8 = stablehlo.dot_general %down, %ht, contracting_dims = [1] x [0]
      : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %9 = stablehlo.dot_general %head, %8, contracting_dims = [0] x [0]
      : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>
  %10 = stablehlo.slice %9 [0:2, 0:3] : (tensor<3x3xf32>) -> tensor<2x3xf32>
  return %10 : tensor<2x3xf32>
}

// -----

// gelu by erf; which of its two forms is meant is told apart.
func.func @gelu(%gate: tensor<2x4xf32> {fp8.role = "frozen", fp8.path = "p['gate']"},
                %up: tensor<2x4xf32> {fp8.role = "frozen", fp8.path = "p['up']"},
                %down: tensor<4x2xf32> {fp8.role = "frozen", fp8.path = "p['down']"},
                %head: tensor<2x3xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
                %x: tensor<3x2xf32> {fp8.role = "batch"}) -> tensor<3x3xf32> {
  %half = stablehlo.constant dense<0.5> : tensor<3x4xf32>
  %root = stablehlo.constant dense<-0.707106769> : tensor<3x4xf32>
  %a = stablehlo.dot_general %x, %gate, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %b = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %0 = stablehlo.multiply %a, %root : tensor<3x4xf32>
  %1 = chlo.erfc %0 : tensor<3x4xf32> -> tensor<3x4xf32>
  %2 = stablehlo.multiply %a, %1 : tensor<3x4xf32>
  %3 = stablehlo.multiply %2, %half : tensor<3x4xf32>
  %4 = stablehlo.multiply %3, %b : tensor<3x4xf32>
  // expected-remark @below {{gated unit of gelu: smoothed per channel}}
  %5 = stablehlo.dot_general %4, %down, contracting_dims = [1] x [0]
      : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %6 = stablehlo.dot_general %5, %head, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>
  return %6 : tensor<3x3xf32>
}

// -----

// gelu by tanh with constants as bf16 has them.
func.func @gelu_tanh(%gate: tensor<2x4xf32> {fp8.role = "frozen", fp8.path = "p['gate']"},
                     %up: tensor<2x4xf32> {fp8.role = "frozen", fp8.path = "p['up']"},
                     %down: tensor<4x2xf32> {fp8.role = "frozen", fp8.path = "p['down']"},
                     %head: tensor<2x3xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
                     %x: tensor<3x2xf32> {fp8.role = "batch"}) -> tensor<3x3xf32> {
  %half = stablehlo.constant dense<0.5> : tensor<3x4xf32>
  %one = stablehlo.constant dense<1.0> : tensor<3x4xf32>
  %c = stablehlo.constant dense<0.0446777344> : tensor<3x4xf32>
  %r = stablehlo.constant dense<0.796875> : tensor<3x4xf32>
  %a = stablehlo.dot_general %x, %gate, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %b = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %0 = chlo.square %a : tensor<3x4xf32> -> tensor<3x4xf32>
  %1 = stablehlo.multiply %0, %a : tensor<3x4xf32>
  %2 = stablehlo.multiply %c, %1 : tensor<3x4xf32>
  %3 = stablehlo.add %a, %2 : tensor<3x4xf32>
  %4 = stablehlo.multiply %r, %3 : tensor<3x4xf32>
  %5 = stablehlo.tanh %4 : tensor<3x4xf32>
  %6 = stablehlo.add %5, %one : tensor<3x4xf32>
  %7 = stablehlo.multiply %6, %half : tensor<3x4xf32>
  %8 = stablehlo.multiply %a, %7 : tensor<3x4xf32>
  %9 = stablehlo.multiply %8, %b : tensor<3x4xf32>
  // expected-remark @below {{gated unit of gelu_tanh: smoothed per channel}}
  %10 = stablehlo.dot_general %9, %down, contracting_dims = [1] x [0]
      : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %11 = stablehlo.dot_general %10, %head, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>
  return %11 : tensor<3x3xf32>
}
