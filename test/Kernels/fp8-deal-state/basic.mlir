// RUN: fp8-opt %s --split-input-file --fp8-deal-state | FileCheck %s

#id = affine_map<(i) -> (i)>

// The gradient goes to the owner, which updates the moment; the parameter, which
// the layer reads as it is, is everybody's, and its new value is sent.
// CHECK-LABEL: func.func @moments
// CHECK-SAME: %[[W:arg0]]: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"}
// CHECK-SAME: %[[M:arg1]]: tensor<8xf32> {{{.*}}fp8.shard = 1 : i64}
// CHECK: %[[G:.*]] = linalg.generic
// CHECK-NOT: fp8.shard
// CHECK: %[[S:.*]] = fp8.all_reduce sum %[[G]] shard = 1
// CHECK: %[[NEW:.*]] = linalg.generic {{.*}} ins(%[[M]], %[[S]]
// CHECK-SAME: attrs = {fp8.shard = 1 : i64}
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%[[W]], %[[NEW]]
// CHECK-SAME: attrs = {fp8.shard = 1 : i64}
// CHECK: %[[ALL:.*]] = fp8.all_reduce owner %[[P]] shard = 1 label = "owner of w"
// CHECK: return %[[ALL]], %[[NEW]]
module attributes {fp8.zero = 1 : i64} {
  func.func @moments(
      %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
      %m: tensor<8xf32> {fp8.kind = "moment1", fp8.parameter = "w", fp8.path = "m", fp8.role = "state"},
      %x: tensor<8xf32> {fp8.path = "x", fp8.role = "batch"})
      -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
          tensor<8xf32> {fp8.kind = "state", fp8.path = "[1]", fp8.state = "m"}) {
    %e = tensor.empty() : tensor<8xf32>
    %g = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
        ins(%w, %x : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %0 = arith.mulf %a, %b : f32
      linalg.yield %0 : f32
    } -> tensor<8xf32>
    %s = fp8.all_reduce sum %g : tensor<8xf32>
    %new = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
        ins(%m, %s : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %0 = arith.addf %a, %b : f32
      linalg.yield %0 : f32
    } -> tensor<8xf32>
    %p = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
        ins(%w, %new : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %0 = arith.subf %a, %b : f32
      linalg.yield %0 : f32
    } -> tensor<8xf32>
    return %p, %new : tensor<8xf32>, tensor<8xf32>
  }
}

// -----

#id = affine_map<(i) -> (i)>

// What is read is the payload: it is sent, and the master stays with its owner.
// The gradient of a layer without moments goes there too.
// CHECK-LABEL: func.func @master
// CHECK-SAME: %[[W:arg0]]: tensor<512xf32> {{{.*}}fp8.shard = 1 : i64}
// CHECK: %[[Q:.*]] = linalg.generic {{.*}} ins(%[[W]] :
// CHECK-SAME: attrs = {fp8.shard = 1 : i64}
// CHECK: %[[ALL:.*]] = fp8.all_reduce owner %[[Q]] shard = 1 label = "owner of w" : tensor<512xf8E4M3FN>
// CHECK: linalg.generic {{.*}} ins(%[[ALL]], %arg1
// CHECK: %[[S:.*]] = fp8.all_reduce sum %{{.*}} shard = 1
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%[[W]], %[[S]]
// CHECK: return %[[P]]
module attributes {fp8.zero = 1 : i64} {
  func.func @master(
      %w: tensor<512xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
      %x: tensor<512xf32> {fp8.path = "x", fp8.role = "batch"})
      -> (tensor<512xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"}) {
    %e = tensor.empty() : tensor<512xf32>
    %e8 = tensor.empty() : tensor<512xf8E4M3FN>
    %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%w : tensor<512xf32>) outs(%e8 : tensor<512xf8E4M3FN>) {
    ^bb0(%a: f32, %o: f8E4M3FN):
      %0 = arith.truncf %a : f32 to f8E4M3FN
      linalg.yield %0 : f8E4M3FN
    } -> tensor<512xf8E4M3FN>
    %g = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
        ins(%q, %x : tensor<512xf8E4M3FN>, tensor<512xf32>) outs(%e : tensor<512xf32>) {
    ^bb0(%a: f8E4M3FN, %b: f32, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.mulf %0, %b : f32
      linalg.yield %1 : f32
    } -> tensor<512xf32>
    %s = fp8.all_reduce sum %g : tensor<512xf32>
    %p = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
        ins(%w, %s : tensor<512xf32>, tensor<512xf32>) outs(%e : tensor<512xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %0 = arith.subf %a, %b : f32
      linalg.yield %0 : f32
    } -> tensor<512xf32>
    return %p : tensor<512xf32>
  }
}

// -----

// Without fp8.zero nothing is dealt.
// CHECK-LABEL: func.func @plain
// CHECK-NOT: fp8.shard
func.func @plain(%w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"}) {
  return %w : tensor<8xf32>
}
