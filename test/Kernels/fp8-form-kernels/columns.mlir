// RUN: fp8-opt %s --fp8-fuse-elementwise --fp8-form-kernels | FileCheck %s

// The partial sums of columns are in the kernel of what is summed, whose tasks have rows. The sum of the partials needs all
// rows and is another kernel.
// CHECK: func.func @main
// CHECK: fp8.launch @kernel_0({{.*}}label = "dot_sum
// CHECK: fp8.launch @kernel_1({{.*}}label = "sum
// CHECK: fp8.kernel @kernel_0
// CHECK-SAME: domain = [8, 512]
// CHECK: fp8.kernel @kernel_1
// CHECK-SAME: domain = [512]

#lhs = affine_map<(b, r, c, k) -> (b, r, k)>
#rhs = affine_map<(b, r, c, k) -> (k, c)>
#acc = affine_map<(b, r, c, k) -> (b, r, c)>
#in = affine_map<(c, b, r) -> (b, r, c)>
#out = affine_map<(c, b, r) -> (c)>
func.func @main(%x: tensor<8x256x128xf32> {fp8.path = "x"}, %w: tensor<128x512xf32> {fp8.path = "w"})
    -> (tensor<8x256x512xf32> {fp8.path = "y"}, tensor<512xf32> {fp8.path = "sum"}) {
  %zero = arith.constant 0.0 : f32
  %ey = tensor.empty() : tensor<8x256x512xf32>
  %fy = linalg.fill ins(%zero : f32) outs(%ey : tensor<8x256x512xf32>) -> tensor<8x256x512xf32>
  %y = linalg.generic {indexing_maps = [#lhs, #rhs, #acc], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x256x128xf32>, tensor<128x512xf32>) outs(%fy : tensor<8x256x512xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x256x512xf32>
  %e = tensor.empty() : tensor<512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512xf32>) -> tensor<512xf32>
  %0 = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%y : tensor<8x256x512xf32>) outs(%f : tensor<512xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<512xf32>
  return %y, %0 : tensor<8x256x512xf32>, tensor<512xf32>
}
