// RUN: fp8-opt %s --fp8-trace-alignment --split-input-file | FileCheck %s

// The cosine of the two weight vectors of each channel: their largest, their
// number and their sum.
// CHECK-LABEL: func.func @swiglu(
// CHECK-SAME: %[[GATE:[^:]*]]: tensor<16x32xf32>
// CHECK-SAME: %[[UP:[^:]*]]: tensor<16x32xf32>
// CHECK-SAME: tensor<3xf64> {fp8.kind = "trace_alignment", fp8.path = "trace.alignment.p['gate']"}
// CHECK: %[[A:.*]] = stablehlo.convert %[[GATE]] : (tensor<16x32xf32>) -> tensor<16x32xf64>
// CHECK: %[[B:.*]] = stablehlo.convert %[[UP]] : (tensor<16x32xf32>) -> tensor<16x32xf64>
// CHECK: stablehlo.reduce({{.*}}dimensions = [0]
// CHECK: stablehlo.sqrt
// CHECK: stablehlo.divide
// CHECK: stablehlo.reduce({{.*}}dimensions = [0]
// CHECK: stablehlo.concatenate {{.*}} -> tensor<3xf64>
func.func @swiglu(%gate: tensor<16x32xf32> {fp8.role = "frozen", fp8.path = "p['gate']"},
                  %up: tensor<16x32xf32> {fp8.role = "frozen", fp8.path = "p['up']"},
                  %down: tensor<32x16xf32> {fp8.role = "frozen", fp8.path = "p['down']"},
                  %x: tensor<8x16xf32> {fp8.role = "batch", fp8.path = "x"}) -> tensor<8x16xf32> {
  %0 = stablehlo.dot_general %x, %gate, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %1 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %2 = stablehlo.logistic %0 : tensor<8x32xf32>
  %3 = stablehlo.multiply %0, %2 : tensor<8x32xf32>
  %4 = stablehlo.multiply %3, %1 : tensor<8x32xf32>
  %5 = stablehlo.dot_general %4, %down, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  return %5 : tensor<8x16xf32>
}

// -----

// A fused projection: both halves of one parameter.
// CHECK-LABEL: func.func @fused(
// CHECK-SAME: tensor<3xf64> {fp8.kind = "trace_alignment", fp8.path = "trace.alignment.p['both']"}
// CHECK-DAG: stablehlo.slice {{.*}}[0:16, 0:32]
// CHECK-DAG: stablehlo.slice {{.*}}[0:16, 32:64]
func.func @fused(%both: tensor<16x64xf32> {fp8.role = "frozen", fp8.path = "p['both']"},
                 %down: tensor<32x16xf32> {fp8.role = "frozen", fp8.path = "p['down']"},
                 %x: tensor<8x16xf32> {fp8.role = "batch", fp8.path = "x"}) -> tensor<8x16xf32> {
  %0 = stablehlo.dot_general %x, %both, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x64xf32>) -> tensor<8x64xf32>
  %1 = stablehlo.slice %0 [0:8, 0:32] : (tensor<8x64xf32>) -> tensor<8x32xf32>
  %2 = stablehlo.slice %0 [0:8, 32:64] : (tensor<8x64xf32>) -> tensor<8x32xf32>
  %3 = stablehlo.logistic %1 : tensor<8x32xf32>
  %4 = stablehlo.multiply %1, %3 : tensor<8x32xf32>
  %5 = stablehlo.multiply %4, %2 : tensor<8x32xf32>
  %6 = stablehlo.dot_general %5, %down, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  return %6 : tensor<8x16xf32>
}

// -----

// No gated unit.
// CHECK-LABEL: func.func @plain(
// CHECK-NOT: trace
func.func @plain(%w: tensor<16x32xf32> {fp8.role = "frozen", fp8.path = "p['w']"},
                 %x: tensor<8x16xf32> {fp8.role = "batch", fp8.path = "x"}) -> tensor<8x32xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}
