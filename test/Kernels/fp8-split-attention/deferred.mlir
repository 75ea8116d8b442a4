// An output that is divided by the sums of its rows: the quotient follows the
// attention, whose ops then sum over keys at their end only.
// RUN: fp8-opt %s --fp8-split-attention | FileCheck %s

#qk = affine_map<(b, q, k) -> (b, q, k)>
#row = affine_map<(b, q, k) -> (b, q)>
#query = affine_map<(b, q, k, d) -> (b, q, d)>
#key = affine_map<(b, q, k, d) -> (b, k, d)>
#score = affine_map<(b, q, k, d) -> (b, q, k)>
#weight = affine_map<(b, d, q, k) -> (b, q, k)>
#value = affine_map<(b, d, q, k) -> (b, k, d)>
#out = affine_map<(b, d, q, k) -> (b, d, q)>
#turned = affine_map<(b, q, d) -> (b, d, q)>
#of = affine_map<(b, q, d) -> (b, q)>
#bqd = affine_map<(b, q, d) -> (b, q, d)>

// The sums are laid out as the quotient is, and the backward pass reads the
// maxima and sums of rows of the forward pass.
// CHECK-DAG: #[[$OUT:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1)>
// CHECK-DAG: #[[$ID:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[$ROW:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func @divided(
// CHECK-SAME: %[[Q:.*]]: tensor<2x320x8xf32>, %[[K:.*]]: tensor<2x320x8xf32>, %[[V:.*]]: tensor<2x320x8xf32>, %[[DO:.*]]: tensor<2x320x8xf32>)
// CHECK: %[[MAX:.*]] = fp8.attention %[[Q]], %[[K]] : {{.*}} -> tensor<2x320xf32>
// CHECK: %[[SUMS:.*]]:2 = fp8.attention %[[Q]], %[[K]], %[[V]], %[[MAX]] : {{.*}} -> (tensor<2x320x8xf32>, tensor<2x320xf32>)
// CHECK: linalg.generic {indexing_maps = [{{.*}}, {{.*}}, #[[$OUT]]]
// CHECK: fp8.yield
// CHECK: %[[QUOTIENT:.*]] = linalg.generic {indexing_maps = [#[[$ID]], #[[$ROW]], #[[$ID]]]
// CHECK-SAME: ins(%[[SUMS]]#0, %[[SUMS]]#1
// CHECK: arith.divf
// CHECK: %[[DV:.*]] = fp8.attention_backward %[[Q]], %[[K]], %[[DO]], %[[MAX]], %[[SUMS]]#1 :
// CHECK: return %[[QUOTIENT]], %[[DV]]
func.func @divided(%q: tensor<2x320x8xf32>, %k: tensor<2x320x8xf32>, %v: tensor<2x320x8xf32>, %do: tensor<2x320x8xf32>) -> (tensor<2x320x8xf32>, tensor<2x320x8xf32>) {
  %0 = fp8.attention %q, %k, %v : (tensor<2x320x8xf32>, tensor<2x320x8xf32>, tensor<2x320x8xf32>) -> tensor<2x320x8xf32> {
  ^bb0(%a: tensor<2x320x8xf32>, %b: tensor<2x320x8xf32>, %c: tensor<2x320x8xf32>):
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %es = tensor.empty() : tensor<2x320x320xf32>
    %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<2x320x320xf32>) -> tensor<2x320x320xf32>
    %s = linalg.generic {indexing_maps = [#query, #key, #score], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<2x320x8xf32>, tensor<2x320x8xf32>) outs(%fs : tensor<2x320x320xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %m = arith.mulf %x, %y : f32
      %t = arith.addf %o, %m : f32
      linalg.yield %t : f32
    } -> tensor<2x320x320xf32>
    %er = tensor.empty() : tensor<2x320xf32>
    %fm = linalg.fill ins(%lowest : f32) outs(%er : tensor<2x320xf32>) -> tensor<2x320xf32>
    %max = linalg.generic {indexing_maps = [#qk, #row], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%s : tensor<2x320x320xf32>) outs(%fm : tensor<2x320xf32>) {
    ^bb0(%x: f32, %o: f32):
      %t = arith.maximumf %o, %x : f32
      linalg.yield %t : f32
    } -> tensor<2x320xf32>
    %e = linalg.generic {indexing_maps = [#qk, #row, #qk], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%s, %max : tensor<2x320x320xf32>, tensor<2x320xf32>) outs(%es : tensor<2x320x320xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %d = arith.subf %x, %y : f32
      %t = math.exp %d : f32
      linalg.yield %t : f32
    } -> tensor<2x320x320xf32>
    %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<2x320xf32>) -> tensor<2x320xf32>
    %sum = linalg.generic {indexing_maps = [#qk, #row], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%e : tensor<2x320x320xf32>) outs(%fr : tensor<2x320xf32>) {
    ^bb0(%x: f32, %o: f32):
      %t = arith.addf %o, %x : f32
      linalg.yield %t : f32
    } -> tensor<2x320xf32>
    %eo = tensor.empty() : tensor<2x8x320xf32>
    %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x8x320xf32>) -> tensor<2x8x320xf32>
    %out = linalg.generic {indexing_maps = [#weight, #value, #out], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%e, %c : tensor<2x320x320xf32>, tensor<2x320x8xf32>) outs(%fo : tensor<2x8x320xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %m = arith.mulf %x, %y : f32
      %t = arith.addf %o, %m : f32
      linalg.yield %t : f32
    } -> tensor<2x8x320xf32>
    %eq = tensor.empty() : tensor<2x320x8xf32>
    %quotient = linalg.generic {indexing_maps = [#turned, #of, #bqd], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%out, %sum : tensor<2x8x320xf32>, tensor<2x320xf32>) outs(%eq : tensor<2x320x8xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %t = arith.divf %x, %y : f32
      linalg.yield %t : f32
    } -> tensor<2x320x8xf32>
    fp8.yield %quotient : tensor<2x320x8xf32>
  }
  %1 = fp8.attention_backward %q, %k, %do : (tensor<2x320x8xf32>, tensor<2x320x8xf32>, tensor<2x320x8xf32>) -> tensor<2x320x8xf32> {
  ^bb0(%a: tensor<2x320x8xf32>, %b: tensor<2x320x8xf32>, %g: tensor<2x320x8xf32>):
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %es = tensor.empty() : tensor<2x320x320xf32>
    %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<2x320x320xf32>) -> tensor<2x320x320xf32>
    %s = linalg.generic {indexing_maps = [#query, #key, #score], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<2x320x8xf32>, tensor<2x320x8xf32>) outs(%fs : tensor<2x320x320xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %m = arith.mulf %x, %y : f32
      %t = arith.addf %o, %m : f32
      linalg.yield %t : f32
    } -> tensor<2x320x320xf32>
    %er = tensor.empty() : tensor<2x320xf32>
    %fm = linalg.fill ins(%lowest : f32) outs(%er : tensor<2x320xf32>) -> tensor<2x320xf32>
    %max = linalg.generic {indexing_maps = [#qk, #row], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%s : tensor<2x320x320xf32>) outs(%fm : tensor<2x320xf32>) {
    ^bb0(%x: f32, %o: f32):
      %t = arith.maximumf %o, %x : f32
      linalg.yield %t : f32
    } -> tensor<2x320xf32>
    %e = linalg.generic {indexing_maps = [#qk, #row, #qk], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%s, %max : tensor<2x320x320xf32>, tensor<2x320xf32>) outs(%es : tensor<2x320x320xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %d = arith.subf %x, %y : f32
      %t = math.exp %d : f32
      linalg.yield %t : f32
    } -> tensor<2x320x320xf32>
    %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<2x320xf32>) -> tensor<2x320xf32>
    %sum = linalg.generic {indexing_maps = [#qk, #row], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%e : tensor<2x320x320xf32>) outs(%fr : tensor<2x320xf32>) {
    ^bb0(%x: f32, %o: f32):
      %t = arith.addf %o, %x : f32
      linalg.yield %t : f32
    } -> tensor<2x320xf32>
    %p = linalg.generic {indexing_maps = [#qk, #row, #qk], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%e, %sum : tensor<2x320x320xf32>, tensor<2x320xf32>) outs(%es : tensor<2x320x320xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %t = arith.divf %x, %y : f32
      linalg.yield %t : f32
    } -> tensor<2x320x320xf32>
    %ev = tensor.empty() : tensor<2x320x8xf32>
    %fv = linalg.fill ins(%zero : f32) outs(%ev : tensor<2x320x8xf32>) -> tensor<2x320x8xf32>
    %dv = linalg.generic {
        indexing_maps = [affine_map<(b, k, d, q) -> (b, q, k)>, affine_map<(b, k, d, q) -> (b, q, d)>, affine_map<(b, k, d, q) -> (b, k, d)>],
        iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%p, %g : tensor<2x320x320xf32>, tensor<2x320x8xf32>) outs(%fv : tensor<2x320x8xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %m = arith.mulf %x, %y : f32
      %t = arith.addf %o, %m : f32
      linalg.yield %t : f32
    } -> tensor<2x320x8xf32>
    fp8.yield %dv : tensor<2x320x8xf32>
  }
  return %0, %1 : tensor<2x320x8xf32>, tensor<2x320x8xf32>
}
