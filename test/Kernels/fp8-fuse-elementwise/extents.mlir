// RUN: fp8-opt %s --fp8-fuse-elementwise | FileCheck %s
// RUN: fp8-opt %s --fp8-kernels --fp8-target=cpu=x86-64-v3 --fp8-codegen -o /dev/null

// One-hot labels times a scalar, summed over the words: the number of words is
// that of the indices and of the scalars, which are both computed inside. The one
// that stays tells how far the loop runs: an input, and no second result.

#all = affine_map<(d0, d1) -> (d0, d1)>
#rows = affine_map<(d0, d1) -> (d0)>
#scalar = affine_map<(d0, d1) -> ()>

// CHECK-LABEL: func.func @one_hot
// CHECK: linalg.generic {{.*}}"reduction"]} ins({{.*}}, %{{.*}} : tensor<4xi32>, tensor<4x32xf32>) outs(%{{[^,]*}} : tensor<4xf32>)
// CHECK: linalg.index 1
// CHECK: linalg.yield %{{[^,]*}} : f32
// CHECK: linalg.generic {{.*}}"reduction"]} ins({{.*}}, %{{.*}} : tensor<4xi32>, tensor<4x32xf32>) outs(%{{[^,]*}} : tensor<4xf32>)
// CHECK: linalg.index 1
// CHECK: linalg.yield %{{[^,]*}} : f32
func.func @one_hot(%x: tensor<f32>, %a: tensor<4xi32>, %b: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %words = tensor.empty() : tensor<4x32xi32>
  %index = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]} outs(%words : tensor<4x32xi32>) {
  ^bb0(%out: i32):
    %i = linalg.index 1 : index
    %c = arith.index_cast %i : index to i32
    linalg.yield %c : i32
  } -> tensor<4x32xi32>
  %floats = tensor.empty() : tensor<4x32xf32>
  %negated = linalg.generic {indexing_maps = [#scalar, #all], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<f32>) outs(%floats : tensor<4x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %n = arith.negf %in : f32
    linalg.yield %n : f32
  } -> tensor<4x32xf32>
  %sums = tensor.empty() : tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%sums : tensor<4xf32>) -> tensor<4xf32>
  %first = linalg.generic {indexing_maps = [#rows, #all, #all, #rows], iterator_types = ["parallel", "reduction"]} ins(%a, %index, %negated : tensor<4xi32>, tensor<4x32xi32>, tensor<4x32xf32>) outs(%zeros : tensor<4xf32>) {
  ^bb0(%label: i32, %word: i32, %value: f32, %out: f32):
    %is = arith.cmpi eq, %label, %word : i32
    %one = arith.uitofp %is : i1 to f32
    %p = arith.mulf %one, %value : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %second = linalg.generic {indexing_maps = [#rows, #all, #all, #rows], iterator_types = ["parallel", "reduction"]} ins(%b, %index, %negated : tensor<4xi32>, tensor<4x32xi32>, tensor<4x32xf32>) outs(%zeros : tensor<4xf32>) {
  ^bb0(%label: i32, %word: i32, %value: f32, %out: f32):
    %is = arith.cmpi eq, %label, %word : i32
    %one = arith.uitofp %is : i1 to f32
    %p = arith.mulf %one, %value : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %first, %second : tensor<4xf32>, tensor<4xf32>
}
