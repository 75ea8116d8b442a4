// RUN: fp8-opt %s --fp8-resolve-recipe="set=optimizer.clip_update=true" --fp8-store-state=emit-remarks --fp8-drop-verdicts --verify-diagnostics --cse | FileCheck %s

// StableAdamW: the update m / (sqrt(v) + eps) is divided by max(1, RMS(g / sqrt(v))).

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[G:[a-z0-9]+]]: tensor<64x32xf32> {fp8.path = "g"
// CHECK: %[[GG:.*]] = stablehlo.multiply %[[G]], %[[G]]
// CHECK: %[[V:.*]] = stablehlo.add %{{.*}}, %[[GG]]
// CHECK: %[[U:.*]] = stablehlo.divide
// CHECK: %[[FLOOR:.*]] = stablehlo.maximum %[[V]],
// CHECK: %[[RATIO:.*]] = stablehlo.divide %[[GG]], %[[FLOOR]]
// CHECK: stablehlo.reduce(%[[RATIO]]
// CHECK: %[[RMS:.*]] = stablehlo.sqrt
// CHECK: %[[D:.*]] = stablehlo.maximum %{{.*}}, %[[RMS]] : tensor<f32>
// CHECK: %[[SPREAD:.*]] = stablehlo.broadcast_in_dim %[[D]]
// CHECK: %[[CLIPPED:.*]] = stablehlo.divide %[[U]], %[[SPREAD]]
// CHECK: stablehlo.subtract %{{.*}}, %[[CLIPPED]]
func.func @main(
    // expected-remark@+1 {{its update is divided by max(1, RMS(g / sqrt(v)))}}
    %p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
    // expected-remark@+1 {{moment1 m of p}}
    %m: tensor<64x32xf32> {fp8.kind = "moment1", fp8.parameter = "p", fp8.path = "m", fp8.role = "state"},
    // expected-remark@+1 {{moment2 v of p}}
    %v: tensor<64x32xf32> {fp8.kind = "moment2", fp8.parameter = "p", fp8.path = "v", fp8.role = "state"},
    // expected-remark@+1 {{its update is not clipped: no division by the root of a second moment was found}}
    %q: tensor<4x4xf32> {fp8.kind = "parameter", fp8.path = "q", fp8.role = "state"},
    %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"})
    -> (tensor<64x32xf32> {fp8.path = "r0", fp8.state = "p"}, tensor<64x32xf32> {fp8.path = "r1", fp8.state = "m"},
        tensor<64x32xf32> {fp8.path = "r2", fp8.state = "v"}, tensor<4x4xf32> {fp8.path = "r3", fp8.state = "q"}) {
  %eps = stablehlo.constant dense<1.0e-8> : tensor<64x32xf32>
  %0 = stablehlo.add %m, %g : tensor<64x32xf32>
  %1 = stablehlo.multiply %g, %g : tensor<64x32xf32>
  %2 = stablehlo.add %v, %1 : tensor<64x32xf32>
  %3 = stablehlo.sqrt %2 : tensor<64x32xf32>
  %4 = stablehlo.add %3, %eps : tensor<64x32xf32>
  %5 = stablehlo.divide %0, %4 : tensor<64x32xf32>
  %6 = stablehlo.subtract %p, %5 : tensor<64x32xf32>
  %7 = stablehlo.add %q, %q : tensor<4x4xf32>
  return %6, %0, %2, %7 : tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x32xf32>, tensor<4x4xf32>
}
