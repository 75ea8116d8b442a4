// RUN: fp8-opt %s --fp8-target=cpu=x86-64-v2 --fp8-lower-kernels --canonicalize | FileCheck %s
// RUN: fp8-opt %s --fp8-target=cpu=x86-64-v3 --fp8-lower-kernels --canonicalize | FileCheck %s
// RUN: fp8-opt %s --fp8-target=cpu=x86-64-v4 --fp8-lower-kernels --canonicalize | FileCheck %s
// RUN: fp8-opt %s --fp8-target=cpu=neoverse-v2 --fp8-lower-kernels --canonicalize | FileCheck %s

// Each block of k has sums of its own, which are part of the bits of a dot, so
// blocks do not depend on how long vectors are.

// CHECK-LABEL: func.func private @dot
// CHECK: scf.for %{{.*}} = %c0 to %c600 step %c256 {
#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>
fp8.kernel @dot(read %a: memref<64x600xf32>, read %b: memref<600x96xf32>, write %c: memref<64x96xf32>) domain = [64] plan = #fp8.cpu_plan<tile = [64]> {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<64x96xf32>)
  linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<64x600xf32>, memref<600x96xf32>) outs(%c : memref<64x96xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  }
  fp8.return
}
