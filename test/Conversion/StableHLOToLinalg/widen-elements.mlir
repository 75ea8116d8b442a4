// RUN: fp8-opt %s --split-input-file --fp8-widen-elements | FileCheck %s
// RUN: fp8-opt %s --split-input-file --fp8-widen-elements --fp8-verify-structured -o /dev/null

// Kernels compute in the type of the step; what they read and write are bytes.
// CHECK-LABEL: func.func @sum(%{{.*}}: tensor<4xi8>, %{{.*}}: tensor<4xi1>) -> tensor<4xi8>
// CHECK: linalg.fill ins(%{{.*}} : i8) outs(%{{.*}} : tensor<4xi8>)
// CHECK: arith.constant dense<[1, 2, 15, 8]> : tensor<4xi8>
// CHECK: linalg.generic
// CHECK: ^bb0(%[[A:.*]]: i8, %[[B:.*]]: i8, %[[M:.*]]: i1, %[[C:.*]]: i8):
// CHECK-DAG: %[[X:.*]] = arith.trunci %[[A]] : i8 to i4
// CHECK-DAG: %[[Y:.*]] = arith.trunci %[[B]] : i8 to i4
// CHECK: %[[S:.*]] = arith.addi %[[X]], %[[Y]] : i4
// CHECK: %[[R:.*]] = arith.extui %{{.*}} : i4 to i8
// CHECK: linalg.yield %[[R]] : i8
#id = affine_map<(d0) -> (d0)>
func.func @sum(%x: tensor<4xi4>, %mask: tensor<4xi1>) -> tensor<4xi4> {
  %zero = arith.constant 0 : i4
  %e = tensor.empty() : tensor<4xi4>
  %f = linalg.fill ins(%zero : i4) outs(%e : tensor<4xi4>) -> tensor<4xi4>
  %c = arith.constant dense<[1, 2, -1, -8]> : tensor<4xi4>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %c, %mask : tensor<4xi4>, tensor<4xi4>, tensor<4xi1>) outs(%f : tensor<4xi4>) {
  ^bb0(%a: i4, %b: i4, %m: i1, %out: i4):
    %1 = arith.addi %a, %b : i4
    %2 = arith.select %m, %1, %out : i4
    linalg.yield %2 : i4
  } -> tensor<4xi4>
  return %0 : tensor<4xi4>
}

// -----

// Floats, and elements that a loop moves.
// CHECK-LABEL: func.func @reversed(%{{.*}}: tensor<4xi8>) -> tensor<4xi8>
// An output that is only written is not read.
// CHECK: ^bb0(%[[IN:.*]]: i8, %{{.*}}: i8):
// CHECK-NEXT: %[[BITS:.*]] = arith.trunci %[[IN]] : i8 to i4
// CHECK-NEXT: arith.bitcast %[[BITS]] : i4 to f4E2M1FN
// CHECK: scf.for {{.*}} -> (tensor<4xi8>)
// CHECK: %[[E:.*]] = tensor.extract %{{.*}} : tensor<4xi8>
// CHECK: %[[T:.*]] = arith.trunci %[[E]] : i8 to i4
// CHECK: %[[F:.*]] = arith.bitcast %[[T]] : i4 to f4E2M1FN
// CHECK: %[[B:.*]] = arith.bitcast %[[F]] : f4E2M1FN to i4
// CHECK: %[[W:.*]] = arith.extui %[[B]] : i4 to i8
// CHECK: tensor.insert %[[W]] into %{{.*}} : tensor<4xi8>
#id = affine_map<(d0) -> (d0)>
func.func @reversed(%x: tensor<4xf4E2M1FN>) -> tensor<4xf4E2M1FN> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %e = tensor.empty() : tensor<4xf4E2M1FN>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf4E2M1FN>) outs(%e : tensor<4xf4E2M1FN>) {
  ^bb0(%a: f4E2M1FN, %out: f4E2M1FN):
    %1 = arith.extf %a : f4E2M1FN to f32
    %2 = arith.negf %1 : f32
    %3 = arith.truncf %2 : f32 to f4E2M1FN
    linalg.yield %3 : f4E2M1FN
  } -> tensor<4xf4E2M1FN>
  %0 = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %e) -> (tensor<4xf4E2M1FN>) {
    %j = arith.subi %c3, %i : index
    %v = tensor.extract %n[%j] : tensor<4xf4E2M1FN>
    %u = tensor.insert %v into %t[%i] : tensor<4xf4E2M1FN>
    scf.yield %u : tensor<4xf4E2M1FN>
  } {fp8.irregular}
  return %0 : tensor<4xf4E2M1FN>
}
