// RUN: fp8-opt %s --convert-fp8-to-linalg | FileCheck %s

// CHECK-LABEL: func @places(
// CHECK: %[[OWN:.*]] = stablehlo.iota dim = 0 : tensor<4x8xui32>
// CHECK: %[[RANK:.*]] = fp8.rank
// CHECK: %[[NUMBER:.*]] = tensor.from_elements %[[RANK]] : tensor<i64>
// CHECK: %[[FOUR:.*]] = stablehlo.constant dense<4> : tensor<i64>
// CHECK: %[[ROWS:.*]] = stablehlo.multiply %[[NUMBER]], %[[FOUR]]
// CHECK: %[[NARROW:.*]] = stablehlo.convert %[[ROWS]] : (tensor<i64>) -> tensor<ui32>
// CHECK: %[[BEFORE:.*]] = stablehlo.broadcast_in_dim %[[NARROW]]
// CHECK: stablehlo.add %[[BEFORE]], %[[OWN]]
func.func @places() -> tensor<4x8xui32> {
  %0 = fp8.row_iota dim = 0 : tensor<4x8xui32>
  return %0 : tensor<4x8xui32>
}

// The counter, not the key.
// CHECK-LABEL: func @state(
// CHECK: %[[BLOCKS:.*]] = stablehlo.constant dense<8> : tensor<i64>
// CHECK: %[[SHIFT:.*]] = stablehlo.pad %{{.*}}, %{{.*}}, low = [1], high = [0], interior = [0]
// CHECK: stablehlo.add %arg0, %[[SHIFT]]
func.func @state(%s: tensor<2xui64>) -> tensor<2xui64> {
  %0 = fp8.row_state %s blocks = 8 : tensor<2xui64>
  return %0 : tensor<2xui64>
}
