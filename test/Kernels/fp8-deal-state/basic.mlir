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

// -----

#id = affine_map<(i) -> (i)>

// A rank reads its part of the parameter, where a number that it was sent says:
// nobody is the parameter's owner. What all gather is the same on all of them.
// CHECK-LABEL: func.func @parts
// CHECK-SAME: %[[W:arg0]]: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"}
// CHECK-NOT: fp8.shard
// CHECK: return
module attributes {fp8.zero = 1 : i64} {
  func.func @parts(
      %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"})
      -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"}) {
    %numbers = arith.constant dense<[0, 4]> : tensor<2xi32>
    %c0 = arith.constant 0 : index
    %sent = fp8.exchange all_to_all %numbers ranks = dense<[[0, 1]]> : tensor<1x2xi64> : tensor<2xi32> -> tensor<2xi32>
    %number = tensor.extract %sent[%c0] : tensor<2xi32>
    %begin = arith.index_cast %number : i32 to index
    %part = tensor.extract_slice %w[%begin] [4] [1] : tensor<8xf32> to tensor<4xf32>
    %e = tensor.empty() : tensor<4xf32>
    %new = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%part : tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %0 = arith.addf %a, %a : f32
      linalg.yield %0 : f32
    } -> tensor<4xf32>
    %all = fp8.exchange gather %new ranks = dense<[[0, 1]]> : tensor<1x2xi64> : tensor<4xf32> -> tensor<2x4xf32>
    %joined = tensor.collapse_shape %all [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>
    return %joined : tensor<8xf32>
  }
}

// -----

#id = affine_map<(i) -> (i)>

// A metric of the step reads the new average of the weights, so all ranks have
// it: the average is nobody's own, and the moment is.
// CHECK-LABEL: func.func @average
// CHECK-SAME: %[[M:arg0]]: tensor<512xf32> {{{.*}}fp8.shard = 1 : i64}
// CHECK-SAME: %[[E:arg1]]: tensor<512xf32> {fp8.kind = "average", fp8.parameter = "w", fp8.path = "e", fp8.role = "state"}
// CHECK: %[[S:.*]] = fp8.all_reduce sum %{{.*}} shard = 1
// CHECK: %[[NEW:.*]] = linalg.generic {{.*}} ins(%[[M]], %[[S]]
// CHECK-SAME: attrs = {fp8.shard = 1 : i64}
// CHECK: %[[AVERAGE:.*]] = linalg.generic {{.*}} ins(%[[E]], %[[NEW]]
// CHECK-SAME: attrs = {fp8.shard = 1 : i64}
// CHECK: %[[ALL:.*]] = fp8.all_reduce owner %[[AVERAGE]] shard = 1
// CHECK: %[[METRIC:.*]] = linalg.generic {{.*}} ins(%[[ALL]], %arg2
// CHECK: return %[[NEW]], %[[ALL]], %[[METRIC]]
module attributes {fp8.zero = 1 : i64} {
  func.func @average(
      %m: tensor<512xf32> {fp8.kind = "moment1", fp8.parameter = "w", fp8.path = "m", fp8.role = "state"},
      %e: tensor<512xf32> {fp8.kind = "average", fp8.parameter = "w", fp8.path = "e", fp8.role = "state"},
      %x: tensor<512xf32> {fp8.path = "x", fp8.role = "batch"})
      -> (tensor<512xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "m"},
          tensor<512xf32> {fp8.kind = "state", fp8.path = "[1]", fp8.state = "e"},
          tensor<512xf32> {fp8.kind = "output", fp8.path = "[2]"}) {
    %empty = tensor.empty() : tensor<512xf32>
    %s = fp8.all_reduce sum %x : tensor<512xf32>
    %new = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
        ins(%m, %s : tensor<512xf32>, tensor<512xf32>) outs(%empty : tensor<512xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %0 = arith.addf %a, %b : f32
      linalg.yield %0 : f32
    } -> tensor<512xf32>
    %average = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
        ins(%e, %new : tensor<512xf32>, tensor<512xf32>) outs(%empty : tensor<512xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %0 = arith.addf %a, %b : f32
      linalg.yield %0 : f32
    } -> tensor<512xf32>
    %metric = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
        ins(%average, %x : tensor<512xf32>, tensor<512xf32>) outs(%empty : tensor<512xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %0 = arith.mulf %a, %b : f32
      linalg.yield %0 : f32
    } -> tensor<512xf32>
    return %new, %average, %metric : tensor<512xf32>, tensor<512xf32>, tensor<512xf32>
  }
}
