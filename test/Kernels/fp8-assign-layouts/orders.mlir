// RUN: fp8-opt %s --fp8-assign-layouts --split-input-file | FileCheck %s
// RUN: fp8-opt %s --fp8-kernels --split-input-file | FileCheck %s --check-prefix=CPU
// RUN: fp8-opt %s --fp8-kernels=layouts=along-k --split-input-file | FileCheck %s --check-prefix=KERNELS

#id = affine_map<(i, j) -> (i, j)>
#mk = affine_map<(i, j, k) -> (i, k)>
#nk = affine_map<(i, j, k) -> (j, k)>
#km = affine_map<(i, j, k) -> (k, i)>
#kn = affine_map<(i, j, k) -> (k, j)>
#mn = affine_map<(i, j, k) -> (i, j)>

// The forward dot contracts the rows of the weight, dgrad its columns: one
// kernel writes both orders. Copies are not made for a step on a CPU.

// CHECK-DAG: #[[ROWS:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[COLUMNS:.*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-DAG: #[[LHS:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[RHS:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-LABEL: func.func @weight
// CHECK: %[[W:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<64x32xf8E4M3FN>) {
// CHECK: %[[T:.*]] = linalg.generic {indexing_maps = [#[[ROWS]], #[[COLUMNS]]]{{.*}} ins(%[[W]] : tensor<64x32xf8E4M3FN>) outs(%{{.*}} : tensor<32x64xf8E4M3FN>)
// CHECK: indexing_maps = [#[[LHS]], #[[RHS]], #{{.*}} ins(%{{.*}}, %[[T]] : tensor<16x64xf8E4M3FN>, tensor<32x64xf8E4M3FN>)
// CHECK: indexing_maps = [#[[LHS]], #[[RHS]], #{{.*}} ins(%{{.*}}, %[[W]] : tensor<16x32xf8E5M2>, tensor<64x32xf8E4M3FN>)

// KERNELS: fp8.kernel @{{.*}}(read %{{.*}}: memref<64x32xf32>, write %[[W:.*]]: memref<64x32xf8E4M3FN>, write %[[T:.*]]: memref<32x64xf8E4M3FN>) domain = [64, 32] {
// KERNELS: linalg.generic {{.*}} outs(%[[W]] :
// KERNELS: linalg.generic {{.*}} ins(%[[W]] : memref<64x32xf8E4M3FN>) outs(%[[T]] : memref<32x64xf8E4M3FN>)

// CPU-NOT: 32x64xf8E4M3FN
func.func @weight(%x: tensor<16x64xf8E4M3FN>, %dy: tensor<16x32xf8E5M2>, %w: tensor<64x32xf32>) -> (tensor<16x32xf32>, tensor<16x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x32xf8E4M3FN>
  %payload = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<64x32xf32>) outs(%e : tensor<64x32xf8E4M3FN>) {
  ^bb0(%a: f32, %o: f8E4M3FN):
    %q = arith.truncf %a : f32 to f8E4M3FN
    linalg.yield %q : f8E4M3FN
  } -> tensor<64x32xf8E4M3FN>
  %e0 = tensor.empty() : tensor<16x32xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<16x32xf32>) -> tensor<16x32xf32>
  %y = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %payload : tensor<16x64xf8E4M3FN>, tensor<64x32xf8E4M3FN>) outs(%f0 : tensor<16x32xf32>) {
  ^bb0(%a: f8E4M3FN, %b: f8E4M3FN, %o: f32):
    %0 = arith.extf %a : f8E4M3FN to f32
    %1 = arith.extf %b : f8E4M3FN to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %o, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<16x32xf32>
  %e1 = tensor.empty() : tensor<16x64xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<16x64xf32>) -> tensor<16x64xf32>
  %dx = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%dy, %payload : tensor<16x32xf8E5M2>, tensor<64x32xf8E4M3FN>) outs(%f1 : tensor<16x64xf32>) {
  ^bb0(%a: f8E5M2, %b: f8E4M3FN, %o: f32):
    %0 = arith.extf %a : f8E5M2 to f32
    %1 = arith.extf %b : f8E4M3FN to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %o, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<16x64xf32>
  return %y, %dx : tensor<16x32xf32>, tensor<16x64xf32>
}

// -----

// A wgrad contracts batches and tokens of both operands: they become one
// dimension, for scales in blocks, too. The kernel does not write the order
// that no dot reads.

#ikj = affine_map<(i, j, k, l) -> (k, l, i)>
#jkl = affine_map<(i, j, k, l) -> (k, l, j)>
#ij = affine_map<(i, j, k, l) -> (i, j)>
#scale = affine_map<(i, j, k, l) -> (k, l floordiv 8, i)>
#id = affine_map<(i, j, k) -> (i, j, k)>

// CHECK-DAG: #[[LHS:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
// CHECK-DAG: #[[RHS:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d2, d3)>
// CHECK-DAG: #[[SCALE:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d3 floordiv 8, d0)>
// CHECK-LABEL: func.func @wgrad
// CHECK: indexing_maps = [#[[LHS]], #[[RHS]], #[[SCALE]], #{{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<64x4x8xf8E4M3FN>, tensor<32x4x8xf8E5M2>, tensor<4x1x64xf32>)

// KERNELS: fp8.kernel @{{.*}}(read %{{.*}}: memref<4x8x64xf32>, write %[[T:.*]]: memref<64x4x8xf8E4M3FN>) domain = [4, 8, 64] {
// KERNELS: %[[W:.*]] = memref.alloc() {{.*}} : memref<4x8x64xf8E4M3FN>
// KERNELS: linalg.generic {{.*}} outs(%[[W]] :
// KERNELS: linalg.generic {{.*}} ins(%[[W]] : {{.*}} outs(%[[T]] :
func.func @wgrad(%x: tensor<4x8x64xf32>, %dy: tensor<4x8x32xf32>, %s: tensor<4x1x64xf32>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8x64xf8E4M3FN>
  %lhs = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x8x64xf32>) outs(%e : tensor<4x8x64xf8E4M3FN>) {
  ^bb0(%a: f32, %o: f8E4M3FN):
    %q = arith.truncf %a : f32 to f8E4M3FN
    linalg.yield %q : f8E4M3FN
  } -> tensor<4x8x64xf8E4M3FN>
  %e0 = tensor.empty() : tensor<4x8x32xf8E5M2>
  %rhs = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%dy : tensor<4x8x32xf32>) outs(%e0 : tensor<4x8x32xf8E5M2>) {
  ^bb0(%a: f32, %o: f8E5M2):
    %q = arith.truncf %a : f32 to f8E5M2
    linalg.yield %q : f8E5M2
  } -> tensor<4x8x32xf8E5M2>
  %e1 = tensor.empty() : tensor<64x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64x32xf32>) -> tensor<64x32xf32>
  %dw = linalg.generic {indexing_maps = [#ikj, #jkl, #scale, #ij], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%lhs, %rhs, %s : tensor<4x8x64xf8E4M3FN>, tensor<4x8x32xf8E5M2>, tensor<4x1x64xf32>) outs(%f : tensor<64x32xf32>) {
  ^bb0(%a: f8E4M3FN, %b: f8E5M2, %c: f32, %o: f32):
    %0 = arith.extf %a : f8E4M3FN to f32
    %1 = arith.extf %b : f8E5M2 to f32
    %2 = arith.mulf %0, %c : f32
    %3 = arith.mulf %2, %1 : f32
    %4 = arith.addf %o, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<64x32xf32>
  return %dw : tensor<64x32xf32>
}

// -----

// These stay as they are: an argument, 24 elements along k, and a format that
// is multiplied as bf16.

#id = affine_map<(i, j) -> (i, j)>
#mk = affine_map<(i, j, k) -> (i, k)>
#kn = affine_map<(i, j, k) -> (k, j)>
#mn = affine_map<(i, j, k) -> (i, j)>

// CHECK-LABEL: func.func @unchanged
// CHECK: ins(%{{.*}}, %arg1 : tensor<16x64xf8E4M3FN>, tensor<64x32xf8E4M3FN>)
// CHECK: ins(%{{.*}}, %{{.*}} : tensor<16x24xf8E4M3FN>, tensor<24x32xf8E4M3FN>)
// CHECK: ins(%{{.*}}, %{{.*}} : tensor<16x64xf8E4M3>, tensor<64x32xf8E4M3>)
func.func @unchanged(%x: tensor<16x64xf8E4M3FN>, %w: tensor<64x32xf8E4M3FN>, %short: tensor<16x24xf8E4M3FN>, %v: tensor<24x32xf32>, %u: tensor<64x32xf32>,
                     %other: tensor<16x64xf8E4M3>) -> (tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<16x32xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<16x32xf32>) -> tensor<16x32xf32>
  %y0 = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<16x64xf8E4M3FN>, tensor<64x32xf8E4M3FN>) outs(%f0 : tensor<16x32xf32>) {
  ^bb0(%a: f8E4M3FN, %b: f8E4M3FN, %o: f32):
    %0 = arith.extf %a : f8E4M3FN to f32
    %1 = arith.extf %b : f8E4M3FN to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %o, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<16x32xf32>
  %e1 = tensor.empty() : tensor<24x32xf8E4M3FN>
  %q1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%v : tensor<24x32xf32>) outs(%e1 : tensor<24x32xf8E4M3FN>) {
  ^bb0(%a: f32, %o: f8E4M3FN):
    %q = arith.truncf %a : f32 to f8E4M3FN
    linalg.yield %q : f8E4M3FN
  } -> tensor<24x32xf8E4M3FN>
  %y1 = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%short, %q1 : tensor<16x24xf8E4M3FN>, tensor<24x32xf8E4M3FN>) outs(%f0 : tensor<16x32xf32>) {
  ^bb0(%a: f8E4M3FN, %b: f8E4M3FN, %o: f32):
    %0 = arith.extf %a : f8E4M3FN to f32
    %1 = arith.extf %b : f8E4M3FN to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %o, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<16x32xf32>
  %e2 = tensor.empty() : tensor<64x32xf8E4M3>
  %q2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%u : tensor<64x32xf32>) outs(%e2 : tensor<64x32xf8E4M3>) {
  ^bb0(%a: f32, %o: f8E4M3):
    %q = arith.truncf %a : f32 to f8E4M3
    linalg.yield %q : f8E4M3
  } -> tensor<64x32xf8E4M3>
  %y2 = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%other, %q2 : tensor<16x64xf8E4M3>, tensor<64x32xf8E4M3>) outs(%f0 : tensor<16x32xf32>) {
  ^bb0(%a: f8E4M3, %b: f8E4M3, %o: f32):
    %0 = arith.extf %a : f8E4M3 to f32
    %1 = arith.extf %b : f8E4M3 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %o, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<16x32xf32>
  return %y0, %y1, %y2 : tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>
}
