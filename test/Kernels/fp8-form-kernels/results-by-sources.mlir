// RUN: fp8-opt %s --fp8-form-kernels | FileCheck %s

// Two moments, the maximum of a row of the first one, and the payloads of both. The second payload needs no maximum, so it stands
// where its moment is computed, and shares the nest of the moments.

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>

// CHECK-LABEL: fp8.kernel @kernel_0
// CHECK: iterator_types = ["parallel", "parallel"]
// CHECK: arith.addf
// CHECK: iterator_types = ["parallel", "parallel"]
// CHECK: arith.mulf
// CHECK: iterator_types = ["parallel", "parallel"]
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK: arith.maximumf
// CHECK: iterator_types = ["parallel", "parallel"]
// CHECK: arith.divf
// CHECK: arith.truncf %{{.*}} : f32 to f16
func.func @moments(%g: tensor<64x128xf32>, %m: tensor<64x128xf32>) -> (tensor<64x128xf16>, tensor<64x128xbf16>, tensor<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %first = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%g, %m : tensor<64x128xf32>, tensor<64x128xf32>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  %e2 = tensor.empty() : tensor<64x128xf32>
  %second = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%g, %first : tensor<64x128xf32>, tensor<64x128xf32>) outs(%e2 : tensor<64x128xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.mulf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  %e3 = tensor.empty() : tensor<64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e3 : tensor<64xf32>) -> tensor<64xf32>
  %amax = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%first : tensor<64x128xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%x: f32, %z: f32):
    %a = math.absf %x : f32
    %s = arith.maximumf %z, %a : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %e4 = tensor.empty() : tensor<64x128xf16>
  %p1 = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%first, %amax : tensor<64x128xf32>, tensor<64xf32>) outs(%e4 : tensor<64x128xf16>) {
  ^bb0(%x: f32, %y: f32, %z: f16):
    %q = arith.divf %x, %y : f32
    %t = arith.truncf %q : f32 to f16
    linalg.yield %t : f16
  } -> tensor<64x128xf16>
  %e5 = tensor.empty() : tensor<64x128xbf16>
  %p2 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%second : tensor<64x128xf32>) outs(%e5 : tensor<64x128xbf16>) {
  ^bb0(%x: f32, %z: bf16):
    %t = arith.truncf %x : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<64x128xbf16>
  return %p1, %p2, %amax : tensor<64x128xf16>, tensor<64x128xbf16>, tensor<64xf32>
}
