// RUN: fp8-opt %s --fp8-bufferize-kernels | FileCheck %s

// A kernel completes a concatenation that another one began, and which others
// read, too: the rest of it is copied.
// CHECK-LABEL: fp8.kernel @complete
// CHECK: %[[ALL:.*]] = memref.alloc() {{.*}}: memref<2xf32>
// CHECK: linalg.generic {{.*}} ins(%arg1 : memref<2xf32>) outs(%[[ALL]] : memref<2xf32>)
// CHECK: linalg.generic {{.*}} ins(%arg0 : memref<f32>) outs(%{{.*}}, %[[ALL]] :
// CHECK: linalg.generic {{.*}} ins(%[[ALL]] : memref<2xf32>) outs(%arg2 : memref<f32>)
#one = affine_map<(i) -> (1)>
#scalar = affine_map<(i) -> ()>
#id = affine_map<(i) -> (i)>
fp8.kernel @complete(read %x: tensor<f32>, read %begun: tensor<2xf32>, write %y: tensor<f32>) -> tensor<f32> domain = [] {
  %zero = arith.constant 0.0 : f32
  %line = tensor.empty() : tensor<1xf32>
  %parts:2 = linalg.generic {indexing_maps = [#scalar, #id, #one], iterator_types = ["parallel"]}
      ins(%x : tensor<f32>) outs(%line, %begun : tensor<1xf32>, tensor<2xf32>) attrs = {fp8.task_dims = array<i64>} {
  ^bb0(%a: f32, %o: f32, %p: f32):
    linalg.yield %a, %a : f32, f32
  } -> (tensor<1xf32>, tensor<2xf32>)
  %first = linalg.fill ins(%zero : f32) outs(%y : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [#id, #scalar], iterator_types = ["reduction"]}
      ins(%parts#1 : tensor<2xf32>) outs(%first : tensor<f32>) attrs = {fp8.task_dims = array<i64>} {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  fp8.return %sum : tensor<f32>
}
