// RUN: fp8-opt %s --fp8-resolve-recipe="set=optimizer.moment1.format=f8E4M3FN set=optimizer.min_elements=1" --fp8-store-state=emit-remarks --fp8-drop-verdicts --cse --verify-diagnostics | FileCheck %s

// Momentum: payload and scale for the array, from the fresh value, which the
// update reads too.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[P:.*]]: tensor<64x32xf32> {fp8.kind = "parameter"
// CHECK-SAME: %[[M:.*]]: !fp8.scaled<64x32xf8E4M3FN, tile = [*, *], scale = f32> {fp8.kind = "moment1", fp8.parameter = "p", fp8.path = "m", fp8.role = "state"}
// CHECK-SAME: %[[G:.*]]: tensor<64x32xf32> {
// CHECK-SAME: !fp8.scaled<64x32xf8E4M3FN, tile = [*, *], scale = f32> {fp8.path = "result[1]", fp8.state = "m"}
// CHECK: %[[OLD:.*]] = fp8.dequantize %[[M]]
// CHECK: %[[DECAYED:.*]] = stablehlo.multiply %[[OLD]]
// CHECK: %[[NEW:.*]] = stablehlo.add %[[DECAYED]], %[[G]]
// CHECK: %[[W:.*]] = stablehlo.subtract %[[P]], %[[NEW]]
// CHECK: %[[A:.*]] = fp8.amax %[[NEW]]
// CHECK: %[[S:.*]], %[[Q:.*]] = fp8.compute_scale %[[A]] {format = f8E4M3FN, rule = #fp8.scale_rule<exact>}
// CHECK: %[[STORED:.*]] = fp8.quantize %[[NEW]], %[[S]], %[[Q]] rounding = nearest_even, overflow = saturate
// CHECK: return %[[W]], %[[STORED]]

// What the user has, and what is stored.
// CHECK-LABEL: func.func private @fp8_store(
// CHECK-SAME: %[[X:.*]]: tensor<64x32xf32> {fp8.path = "m", fp8.role = "frozen"})
// CHECK-SAME: -> (!fp8.scaled<64x32xf8E4M3FN, tile = [*, *], scale = f32> {fp8.kind = "output", fp8.path = "m"}) attributes {fp8.entry = "store"}
// CHECK: %[[Y:.*]] = fp8.quantize %[[X]]
// CHECK: return %[[Y]]
// CHECK-LABEL: func.func private @fp8_load(
// CHECK-SAME: %[[X:.*]]: !fp8.scaled<64x32xf8E4M3FN, tile = [*, *], scale = f32> {fp8.path = "m", fp8.role = "frozen"})
// CHECK-SAME: -> (tensor<64x32xf32> {fp8.kind = "output", fp8.path = "m"}) attributes {fp8.entry = "load"}
// CHECK: %[[Y:.*]] = fp8.dequantize %[[X]]
// CHECK: return %[[Y]]
func.func @main(
    // expected-remark@+1 {{stays f32: parameter p, 2048 elements of f32: the recipe stores it as it is}}
    %p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
    // expected-remark@+1 {{stored as f8E4M3FN (scales: tensor): moment1 m of p, 2048 elements of f32: as the recipe says}}
    %m: tensor<64x32xf32> {fp8.kind = "moment1", fp8.parameter = "p", fp8.path = "m", fp8.role = "state"},
    %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "p"},
        tensor<64x32xf32> {fp8.path = "result[1]", fp8.state = "m"}) {
  %beta = stablehlo.constant dense<0.9> : tensor<64x32xf32>
  %0 = stablehlo.multiply %m, %beta : tensor<64x32xf32>
  %1 = stablehlo.add %0, %g : tensor<64x32xf32>
  %2 = stablehlo.subtract %p, %1 : tensor<64x32xf32>
  return %2, %1 : tensor<64x32xf32>, tensor<64x32xf32>
}
