// A reduction that begins with what others read too, and whose result stays in
// the kernel, goes on from a copy that is cut as it is.
//
// RUN: fp8-opt --fp8-form-kernels %s | FileCheck %s
// RUN: fp8-opt --fp8-kernels %s | fp8-opt --fp8-target=cpu=x86-64-v3 --fp8-codegen -o /dev/null

// CHECK-LABEL: fp8.kernel
// CHECK-SAME:    read %{{.*}}: tensor<8x16xf32>, read %[[START:.*]]: tensor<8xf32>
// CHECK:         %[[EMPTY:.*]] = tensor.empty() : tensor<8xf32>
// CHECK:         %[[COPY:.*]] = linalg.generic {{.*}} ins(%[[START]] : tensor<8xf32>) outs(%[[EMPTY]] : tensor<8xf32>)
// CHECK-SAME:      fp8.task_dims = array<i64: 0>
// CHECK:         linalg.generic {{.*}} outs(%[[COPY]] : tensor<8xf32>)
#row = affine_map<(d0, d1) -> (d0)>
#point = affine_map<(d0, d1) -> (d0, d1)>
func.func @f(%start: tensor<8xf32>, %x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %amax = linalg.generic {indexing_maps = [#point, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x16xf32>) outs(%start : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.absf %in : f32
    %1 = arith.maximumf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<8xf32>
  %empty = tensor.empty() : tensor<8x16xf32>
  %scaled = linalg.generic {indexing_maps = [#point, #row, #point], iterator_types = ["parallel", "parallel"]}
      ins(%x, %amax : tensor<8x16xf32>, tensor<8xf32>) outs(%empty : tensor<8x16xf32>) {
  ^bb0(%in: f32, %scale: f32, %out: f32):
    %0 = arith.divf %in, %scale : f32
    linalg.yield %0 : f32
  } -> tensor<8x16xf32>
  return %scaled : tensor<8x16xf32>
}
