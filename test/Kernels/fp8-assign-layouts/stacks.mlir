// RUN: fp8-opt %s --fp8-assign-layouts --split-input-file | FileCheck %s
// RUN: fp8-opt %s --fp8-kernels=layouts=along-k --split-input-file | FileCheck %s --check-prefix=KERNELS

#id = affine_map<(i, j) -> (i, j)>
#id3 = affine_map<(l, i, j) -> (l, i, j)>
#mk = affine_map<(i, j, k) -> (i, k)>
#kn = affine_map<(i, j, k) -> (k, j)>
#km = affine_map<(i, j, k) -> (k, i)>
#mn = affine_map<(i, j, k) -> (i, j)>

// A loop over layers. The stack of weights is quantized before it, in both
// orders if both are read. The stack of payloads that the loop fills holds the
// order that the wgrads read, and the slot is written where it is quantized.

// CHECK-LABEL: func.func @layers
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<3x64x32xf8E4M3FN>) {
// CHECK: %[[W:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<3x32x64xf8E4M3FN>) {
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<3x64x16xf8E4M3FN>
// CHECK: %[[LOOP:.*]]:2 = scf.for %[[I:.*]] = {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[STACK:.*]] = %[[EMPTY]]) -> (tensor<16x32xf32>, tensor<3x64x16xf8E4M3FN>) {
// CHECK: %[[X:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<16x64xf8E4M3FN>) {
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%[[X]] : {{.*}} outs(%{{.*}} : tensor<64x16xf8E4M3FN>) {
// CHECK: %[[SLICE:.*]] = tensor.extract_slice %[[W]][%[[I]], 0, 0] [1, 32, 64] [1, 1, 1] : tensor<3x32x64xf8E4M3FN> to tensor<32x64xf8E4M3FN>
// CHECK: ins(%[[X]], %[[SLICE]] : tensor<16x64xf8E4M3FN>, tensor<32x64xf8E4M3FN>)
// CHECK: tensor.insert_slice %[[T]] into %[[STACK]][%[[I]], 0, 0] [1, 64, 16] [1, 1, 1]
// CHECK: scf.for
// CHECK: tensor.extract_slice %[[LOOP]]#1[%{{.*}}, 0, 0] [1, 64, 16] [1, 1, 1]
// CHECK: ins(%{{.*}}, %{{.*}} : tensor<64x16xf8E4M3FN>, tensor<16x32xf8E5M2>)

// KERNELS: scf.for
// KERNELS: %[[SLOT:.*]] = fp8.subbuffer {{.*}} to memref<64x16xf8E4M3FN>
// KERNELS: fp8.launch @{{.*}}(read %{{.*}}, write %{{.*}}, write %[[SLOT]])
func.func @layers(%x: tensor<16x64xf32>, %w: tensor<3x64x32xf32>, %dy: tensor<16x32xf8E5M2>) -> (tensor<16x32xf32>, tensor<64x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x64x32xf8E4M3FN>
  %weights = linalg.generic {indexing_maps = [#id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%w : tensor<3x64x32xf32>) outs(%e : tensor<3x64x32xf8E4M3FN>) {
  ^bb0(%a: f32, %o: f8E4M3FN):
    %q = arith.truncf %a : f32 to f8E4M3FN
    linalg.yield %q : f8E4M3FN
  } -> tensor<3x64x32xf8E4M3FN>
  %e0 = tensor.empty() : tensor<16x32xf32>
  %sum0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<16x32xf32>) -> tensor<16x32xf32>
  %e1 = tensor.empty() : tensor<3x16x64xf8E4M3FN>
  %forward:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%sum = %sum0, %stack = %e1) -> (tensor<16x32xf32>, tensor<3x16x64xf8E4M3FN>) {
    %e2 = tensor.empty() : tensor<16x64xf8E4M3FN>
    %payload = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%x : tensor<16x64xf32>) outs(%e2 : tensor<16x64xf8E4M3FN>) {
    ^bb0(%a: f32, %o: f8E4M3FN):
      %q = arith.truncf %a : f32 to f8E4M3FN
      linalg.yield %q : f8E4M3FN
    } -> tensor<16x64xf8E4M3FN>
    %weight = tensor.extract_slice %weights[%i, 0, 0] [1, 64, 32] [1, 1, 1] : tensor<3x64x32xf8E4M3FN> to tensor<64x32xf8E4M3FN>
    %y = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%payload, %weight : tensor<16x64xf8E4M3FN>, tensor<64x32xf8E4M3FN>) outs(%sum : tensor<16x32xf32>) {
    ^bb0(%a: f8E4M3FN, %b: f8E4M3FN, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.extf %b : f8E4M3FN to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    } -> tensor<16x32xf32>
    %next = tensor.insert_slice %payload into %stack[%i, 0, 0] [1, 16, 64] [1, 1, 1] : tensor<16x64xf8E4M3FN> into tensor<3x16x64xf8E4M3FN>
    scf.yield %y, %next : tensor<16x32xf32>, tensor<3x16x64xf8E4M3FN>
  }
  %e3 = tensor.empty() : tensor<64x32xf32>
  %dw0 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<64x32xf32>) -> tensor<64x32xf32>
  %backward = scf.for %i = %c0 to %c3 step %c1 iter_args(%sum = %dw0) -> (tensor<64x32xf32>) {
    %payload = tensor.extract_slice %forward#1[%i, 0, 0] [1, 16, 64] [1, 1, 1] : tensor<3x16x64xf8E4M3FN> to tensor<16x64xf8E4M3FN>
    %dw = linalg.generic {indexing_maps = [#km, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%payload, %dy : tensor<16x64xf8E4M3FN>, tensor<16x32xf8E5M2>) outs(%sum : tensor<64x32xf32>) {
    ^bb0(%a: f8E4M3FN, %b: f8E5M2, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.extf %b : f8E5M2 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    } -> tensor<64x32xf32>
    scf.yield %dw : tensor<64x32xf32>
  }
  return %forward#0, %backward : tensor<16x32xf32>, tensor<64x32xf32>
}

// -----

// A stack of which something else is read keeps its order.

#id = affine_map<(i, j) -> (i, j)>
#km = affine_map<(i, j, k) -> (k, i)>
#kn = affine_map<(i, j, k) -> (k, j)>
#mn = affine_map<(i, j, k) -> (i, j)>

// CHECK-LABEL: func.func @returned
// CHECK-NOT: 64x16xf8E4M3FN
func.func @returned(%x: tensor<16x64xf32>, %dy: tensor<16x32xf8E5M2>) -> (tensor<3x16x64xf8E4M3FN>, tensor<64x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<3x16x64xf8E4M3FN>
  %forward = scf.for %i = %c0 to %c3 step %c1 iter_args(%stack = %e1) -> (tensor<3x16x64xf8E4M3FN>) {
    %e2 = tensor.empty() : tensor<16x64xf8E4M3FN>
    %payload = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%x : tensor<16x64xf32>) outs(%e2 : tensor<16x64xf8E4M3FN>) {
    ^bb0(%a: f32, %o: f8E4M3FN):
      %q = arith.truncf %a : f32 to f8E4M3FN
      linalg.yield %q : f8E4M3FN
    } -> tensor<16x64xf8E4M3FN>
    %next = tensor.insert_slice %payload into %stack[%i, 0, 0] [1, 16, 64] [1, 1, 1] : tensor<16x64xf8E4M3FN> into tensor<3x16x64xf8E4M3FN>
    scf.yield %next : tensor<3x16x64xf8E4M3FN>
  }
  %payload = tensor.extract_slice %forward[2, 0, 0] [1, 16, 64] [1, 1, 1] : tensor<3x16x64xf8E4M3FN> to tensor<16x64xf8E4M3FN>
  %e3 = tensor.empty() : tensor<64x32xf32>
  %dw0 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<64x32xf32>) -> tensor<64x32xf32>
  %dw = linalg.generic {indexing_maps = [#km, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%payload, %dy : tensor<16x64xf8E4M3FN>, tensor<16x32xf8E5M2>) outs(%dw0 : tensor<64x32xf32>) {
  ^bb0(%a: f8E4M3FN, %b: f8E5M2, %o: f32):
    %0 = arith.extf %a : f8E4M3FN to f32
    %1 = arith.extf %b : f8E5M2 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %o, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<64x32xf32>
  return %forward, %dw : tensor<3x16x64xf8E4M3FN>, tensor<64x32xf32>
}
