// RUN: fp8-opt %s --fp8-drop-barriers | FileCheck %s
// RUN: fp8-opt %s --fp8-structure --cse | FileCheck %s --check-prefix=CSE

// CHECK-LABEL: @again
// CHECK-NOT: stablehlo.optimization_barrier
// CHECK: math.tanh
// CHECK: tensor.expand_shape
// CHECK: linalg.generic
// CHECK-SAME: attrs = {fp8.recompute}
// CHECK: math.tanh

// The second tanh is computed again although its operand is the same.
// CSE-LABEL: @again
// CSE-COUNT-2: math.tanh
#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @again(%x: tensor<4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>) {
  %e = tensor.empty() : tensor<1x4xf32>
  %v = tensor.expand_shape %x [[0, 1]] output_shape [1, 4] : tensor<4xf32> into tensor<1x4xf32>
  %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%v : tensor<1x4xf32>) outs(%e : tensor<1x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %t = math.tanh %in : f32
    linalg.yield %t : f32
  } -> tensor<1x4xf32>
  %b = stablehlo.optimization_barrier %x : tensor<4xf32>
  %w = tensor.expand_shape %b [[0, 1]] output_shape [1, 4] : tensor<4xf32> into tensor<1x4xf32>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<1x4xf32>) outs(%e : tensor<1x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %t = math.tanh %in : f32
    linalg.yield %t : f32
  } -> tensor<1x4xf32>
  return %0, %1 : tensor<1x4xf32>, tensor<1x4xf32>
}
