// RUN: fp8-opt %s --fp8-form-kernels | FileCheck %s

// What is computed again (the exponential behind a barrier) does not join the
// kernel that computed its operand: it runs after the dot that comes between,
// not before it, so that its result is not kept meanwhile.
// CHECK-LABEL: fp8.kernel @kernel_0
// CHECK: math.tanh
// CHECK-NOT: math.exp
// CHECK-LABEL: fp8.kernel @kernel_1
// CHECK-NOT: math.exp
// CHECK-LABEL: fp8.kernel @kernel_2
// CHECK-NOT: fp8.recompute
// CHECK: math.exp
#id = affine_map<(d0, d1) -> (d0, d1)>
#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func public @main(%in: tensor<64x64xf32> {fp8.path = "x", fp8.role = "frozen"}, %w: tensor<64x64xf32> {fp8.path = "w", fp8.role = "frozen"}) -> (tensor<64x64xf32> {fp8.path = "y", fp8.kind = "output"}) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<64x64xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%in : tensor<64x64xf32>) outs(%e0 : tensor<64x64xf32>) {
  ^bb0(%i: f32, %o: f32):
    %t = math.tanh %i : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  %e1 = tensor.empty() : tensor<64x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %d = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%f : tensor<64x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %p = arith.mulf %i, %j : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  %e2 = tensor.empty() : tensor<64x64xf32>
  %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x64xf32>) outs(%e2 : tensor<64x64xf32>) attrs = {fp8.recompute} {
  ^bb0(%i: f32, %o: f32):
    %t = math.exp %i : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  %e3 = tensor.empty() : tensor<64x64xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%d, %g : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e3 : tensor<64x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %t = arith.mulf %i, %j : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
