// RUN: fp8-opt %s --fp8-kernels --split-input-file | FileCheck %s

#id = affine_map<(i) -> (i)>

// The old state is returned too, reshaped: the new one cannot take its buffer.
// CHECK-LABEL: fp8.schedule @main
// CHECK-SAME: %[[P:[^:]*]]: memref<64xf32> {fp8.path = "p"}, %[[OLD:[^:]*]]: memref<8x8xf32>
// CHECK: %[[VIEW:.*]] = memref.expand_shape %[[P]]
// CHECK: fp8.launch @kernel_{{[0-9a-f]+}}(read %[[P]], write %[[NEW:[^)]*]])
// CHECK: fp8.launch @kernel_{{[0-9a-f]+}}(read %[[VIEW]], write %[[OLD]]) label = "copy{{.*}}"
// CHECK: fp8.launch @kernel_{{[0-9a-f]+}}(read %[[NEW]], write %[[P]]) label = "copy{{.*}}"
func.func @main(%p: tensor<64xf32> {fp8.path = "p"})
    -> (tensor<64xf32> {fp8.path = "q", fp8.state = "p"}, tensor<8x8xf32> {fp8.path = "old"}) {
  %e = tensor.empty() : tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%p : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  %old = tensor.expand_shape %p [[0, 1]] output_shape [8, 8] : tensor<64xf32> into tensor<8x8xf32>
  return %0, %old : tensor<64xf32>, tensor<8x8xf32>
}

// -----

// States of two shapes that change places pass through a temporary.
// CHECK-LABEL: fp8.schedule @main
// CHECK-SAME: %[[A:[^:]*]]: memref<64xf32> {fp8.path = "a"}, %[[B:[^:]*]]: memref<8x8xf32> {fp8.path = "b"}
// CHECK: fp8.launch @kernel_{{[0-9a-f]+}}(read %{{[^,]*}}, write %[[FLAT:[^)]*]]) label = "copy{{.*}}"
// CHECK: fp8.launch @kernel_{{[0-9a-f]+}}(read %{{[^,]*}}, write %[[B]]) label = "copy{{.*}}"
// CHECK: fp8.launch @kernel_{{[0-9a-f]+}}(read %[[FLAT]], write %[[A]]) label = "copy{{.*}}"
func.func @main(%a: tensor<64xf32> {fp8.path = "a"}, %b: tensor<8x8xf32> {fp8.path = "b"})
    -> (tensor<64xf32> {fp8.path = "r0", fp8.state = "a"}, tensor<8x8xf32> {fp8.path = "r1", fp8.state = "b"}) {
  %flat = tensor.collapse_shape %b [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>
  %square = tensor.expand_shape %a [[0, 1]] output_shape [8, 8] : tensor<64xf32> into tensor<8x8xf32>
  return %flat, %square : tensor<64xf32>, tensor<8x8xf32>
}
