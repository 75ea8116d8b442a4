// RUN: fp8-opt %s --fp8-split-attention | FileCheck %s

#qk = affine_map<(q, k) -> (q, k)>
#row = affine_map<(q, k) -> (q)>
#query = affine_map<(q, k, d) -> (q, d)>
#key = affine_map<(q, k, d) -> (k, d)>
#score = affine_map<(q, k, d) -> (q, k)>

// The backward pass reads the sums of rows that the forward pass has computed. It
// computes those of other queries itself.
// CHECK-LABEL: func @softmax(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<300x8xf32>, %[[OTHER:[^:]*]]: tensor<300x8xf32>, %[[K:[^:]*]]: tensor<300x8xf32>
// CHECK: %[[SUM:.*]] = fp8.attention %[[Q]], %[[K]] : {{.*}} -> tensor<300xf32>
// CHECK: fp8.attention %[[Q]], %[[K]], %{{.*}}, %[[SUM]] : {{.*}} -> tensor<300x8xf32>
// CHECK-NOT: -> tensor<300xf32> {
// CHECK: fp8.attention_backward %[[Q]], %[[K]], %{{.*}}, %[[SUM]] : {{.*}} -> tensor<300x8xf32>
// CHECK: %[[OWN:.*]] = fp8.attention_backward %[[OTHER]], %[[K]] : {{.*}} -> tensor<300xf32>
// CHECK: fp8.attention_backward %[[OTHER]], %[[K]], %{{.*}}, %[[OWN]] : {{.*}} -> tensor<300x8xf32>
func.func @softmax(%q: tensor<300x8xf32>, %other: tensor<300x8xf32>, %k: tensor<300x8xf32>, %v: tensor<300x8xf32>, %do: tensor<300x8xf32>)
    -> (tensor<300x8xf32>, tensor<300x8xf32>, tensor<300x8xf32>) {
  %out = fp8.attention %q, %k, %v : (tensor<300x8xf32>, tensor<300x8xf32>, tensor<300x8xf32>) -> tensor<300x8xf32> {
  ^bb0(%a: tensor<300x8xf32>, %b: tensor<300x8xf32>, %c: tensor<300x8xf32>):
    %zero = arith.constant 0.0 : f32
    %es = tensor.empty() : tensor<300x300xf32>
    %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<300x300xf32>) -> tensor<300x300xf32>
    %er = tensor.empty() : tensor<300xf32>
    %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<300xf32>) -> tensor<300xf32>
    %eo = tensor.empty() : tensor<300x8xf32>
    %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<300x8xf32>) -> tensor<300x8xf32>
    %s = linalg.generic {indexing_maps = [#query, #key, #score], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<300x8xf32>, tensor<300x8xf32>) outs(%fs : tensor<300x300xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %m = arith.mulf %x, %y : f32
      %t = arith.addf %o, %m : f32
      linalg.yield %t : f32
    } -> tensor<300x300xf32>
    %e = linalg.generic {indexing_maps = [#qk, #qk], iterator_types = ["parallel", "parallel"]}
        ins(%s : tensor<300x300xf32>) outs(%es : tensor<300x300xf32>) {
    ^bb0(%x: f32, %o: f32):
      %t = math.exp %x : f32
      linalg.yield %t : f32
    } -> tensor<300x300xf32>
    %sum = linalg.generic {indexing_maps = [#qk, #row], iterator_types = ["parallel", "reduction"]}
        ins(%e : tensor<300x300xf32>) outs(%fr : tensor<300xf32>) {
    ^bb0(%x: f32, %o: f32):
      %t = arith.addf %o, %x : f32
      linalg.yield %t : f32
    } -> tensor<300xf32>
    %w = linalg.generic {indexing_maps = [#qk, #row, #qk], iterator_types = ["parallel", "parallel"]}
        ins(%e, %sum : tensor<300x300xf32>, tensor<300xf32>) outs(%es : tensor<300x300xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %t = arith.divf %x, %y : f32
      linalg.yield %t : f32
    } -> tensor<300x300xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(q, d, k) -> (q, k)>, affine_map<(q, d, k) -> (k, d)>, affine_map<(q, d, k) -> (q, d)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%w, %c : tensor<300x300xf32>, tensor<300x8xf32>) outs(%fo : tensor<300x8xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %m = arith.mulf %x, %y : f32
      %t = arith.addf %o, %m : f32
      linalg.yield %t : f32
    } -> tensor<300x8xf32>
    fp8.yield %r : tensor<300x8xf32>
  }
  %dv = fp8.attention_backward %q, %k, %do : (tensor<300x8xf32>, tensor<300x8xf32>, tensor<300x8xf32>) -> tensor<300x8xf32> {
  ^bb0(%a: tensor<300x8xf32>, %b: tensor<300x8xf32>, %c: tensor<300x8xf32>):
    %zero = arith.constant 0.0 : f32
    %es = tensor.empty() : tensor<300x300xf32>
    %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<300x300xf32>) -> tensor<300x300xf32>
    %er = tensor.empty() : tensor<300xf32>
    %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<300xf32>) -> tensor<300xf32>
    %eo = tensor.empty() : tensor<300x8xf32>
    %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<300x8xf32>) -> tensor<300x8xf32>
    %s = linalg.generic {indexing_maps = [#query, #key, #score], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<300x8xf32>, tensor<300x8xf32>) outs(%fs : tensor<300x300xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %m = arith.mulf %x, %y : f32
      %t = arith.addf %o, %m : f32
      linalg.yield %t : f32
    } -> tensor<300x300xf32>
    %e = linalg.generic {indexing_maps = [#qk, #qk], iterator_types = ["parallel", "parallel"]}
        ins(%s : tensor<300x300xf32>) outs(%es : tensor<300x300xf32>) {
    ^bb0(%x: f32, %o: f32):
      %t = math.exp %x : f32
      linalg.yield %t : f32
    } -> tensor<300x300xf32>
    %sum = linalg.generic {indexing_maps = [#qk, #row], iterator_types = ["parallel", "reduction"]}
        ins(%e : tensor<300x300xf32>) outs(%fr : tensor<300xf32>) {
    ^bb0(%x: f32, %o: f32):
      %t = arith.addf %o, %x : f32
      linalg.yield %t : f32
    } -> tensor<300xf32>
    %w = linalg.generic {indexing_maps = [#qk, #row, #qk], iterator_types = ["parallel", "parallel"]}
        ins(%e, %sum : tensor<300x300xf32>, tensor<300xf32>) outs(%es : tensor<300x300xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %t = arith.divf %x, %y : f32
      linalg.yield %t : f32
    } -> tensor<300x300xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(k, d, q) -> (q, k)>, affine_map<(k, d, q) -> (q, d)>, affine_map<(k, d, q) -> (k, d)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%w, %c : tensor<300x300xf32>, tensor<300x8xf32>) outs(%fo : tensor<300x8xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %m = arith.mulf %x, %y : f32
      %t = arith.addf %o, %m : f32
      linalg.yield %t : f32
    } -> tensor<300x8xf32>
    fp8.yield %r : tensor<300x8xf32>
  }
  %dw = fp8.attention_backward %other, %k, %do : (tensor<300x8xf32>, tensor<300x8xf32>, tensor<300x8xf32>) -> tensor<300x8xf32> {
  ^bb0(%a: tensor<300x8xf32>, %b: tensor<300x8xf32>, %c: tensor<300x8xf32>):
    %zero = arith.constant 0.0 : f32
    %es = tensor.empty() : tensor<300x300xf32>
    %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<300x300xf32>) -> tensor<300x300xf32>
    %er = tensor.empty() : tensor<300xf32>
    %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<300xf32>) -> tensor<300xf32>
    %eo = tensor.empty() : tensor<300x8xf32>
    %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<300x8xf32>) -> tensor<300x8xf32>
    %s = linalg.generic {indexing_maps = [#query, #key, #score], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<300x8xf32>, tensor<300x8xf32>) outs(%fs : tensor<300x300xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %m = arith.mulf %x, %y : f32
      %t = arith.addf %o, %m : f32
      linalg.yield %t : f32
    } -> tensor<300x300xf32>
    %e = linalg.generic {indexing_maps = [#qk, #qk], iterator_types = ["parallel", "parallel"]}
        ins(%s : tensor<300x300xf32>) outs(%es : tensor<300x300xf32>) {
    ^bb0(%x: f32, %o: f32):
      %t = math.exp %x : f32
      linalg.yield %t : f32
    } -> tensor<300x300xf32>
    %sum = linalg.generic {indexing_maps = [#qk, #row], iterator_types = ["parallel", "reduction"]}
        ins(%e : tensor<300x300xf32>) outs(%fr : tensor<300xf32>) {
    ^bb0(%x: f32, %o: f32):
      %t = arith.addf %o, %x : f32
      linalg.yield %t : f32
    } -> tensor<300xf32>
    %w = linalg.generic {indexing_maps = [#qk, #row, #qk], iterator_types = ["parallel", "parallel"]}
        ins(%e, %sum : tensor<300x300xf32>, tensor<300xf32>) outs(%es : tensor<300x300xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %t = arith.divf %x, %y : f32
      linalg.yield %t : f32
    } -> tensor<300x300xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(k, d, q) -> (q, k)>, affine_map<(k, d, q) -> (q, d)>, affine_map<(k, d, q) -> (k, d)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%w, %c : tensor<300x300xf32>, tensor<300x8xf32>) outs(%fo : tensor<300x8xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %m = arith.mulf %x, %y : f32
      %t = arith.addf %o, %m : f32
      linalg.yield %t : f32
    } -> tensor<300x8xf32>
    fp8.yield %r : tensor<300x8xf32>
  }
  return %out, %dv, %dw : tensor<300x8xf32>, tensor<300x8xf32>, tensor<300x8xf32>
}
