// RUN: fp8-opt %s --fp8-split-attention | FileCheck %s

#qk = affine_map<(b, q, k) -> (b, q, k)>
#row = affine_map<(b, q, k) -> (b, q)>
#query = affine_map<(b, q, k, d) -> (b, q, d)>
#key = affine_map<(b, q, k, d) -> (b, k, d)>
#score = affine_map<(b, q, k, d) -> (b, q, k)>

// Without a reduction over keys, keys can be divided as it is.
// CHECK-LABEL: func @no_rows(
// CHECK: fp8.attention_backward
// CHECK-NOT: fp8.attention_backward
// CHECK: return
func.func @no_rows(%q: tensor<2x96x8xf32>, %k: tensor<2x128x8xf32>, %do: tensor<2x96x8xf32>) -> tensor<2x128x8xf32> {
  %0 = fp8.attention_backward %q, %k, %do : (tensor<2x96x8xf32>, tensor<2x128x8xf32>, tensor<2x96x8xf32>) -> tensor<2x128x8xf32> {
  ^bb0(%a: tensor<2x96x8xf32>, %b: tensor<2x128x8xf32>, %d: tensor<2x96x8xf32>):
    %zero = arith.constant 0.0 : f32
    %es = tensor.empty() : tensor<2x96x128xf32>
    %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<2x96x128xf32>) -> tensor<2x96x128xf32>
    %ek = tensor.empty() : tensor<2x128x8xf32>
    %fk = linalg.fill ins(%zero : f32) outs(%ek : tensor<2x128x8xf32>) -> tensor<2x128x8xf32>
    %s = linalg.generic {indexing_maps = [#query, #key, #score], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<2x96x8xf32>, tensor<2x128x8xf32>) outs(%fs : tensor<2x96x128xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %m = arith.mulf %x, %y : f32
      %t = arith.addf %o, %m : f32
      linalg.yield %t : f32
    } -> tensor<2x96x128xf32>
    %dv = linalg.generic {
        indexing_maps = [affine_map<(b, k, d, q) -> (b, q, k)>, affine_map<(b, k, d, q) -> (b, q, d)>, affine_map<(b, k, d, q) -> (b, k, d)>],
        iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%s, %d : tensor<2x96x128xf32>, tensor<2x96x8xf32>) outs(%fk : tensor<2x128x8xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %m = arith.mulf %x, %y : f32
      %t = arith.addf %o, %m : f32
      linalg.yield %t : f32
    } -> tensor<2x128x8xf32>
    fp8.yield %dv : tensor<2x128x8xf32>
  }
  return %0 : tensor<2x128x8xf32>
}

// One block has 64 keys anyway.
// CHECK-LABEL: func @few_keys(
// CHECK: fp8.attention_backward
// CHECK-NOT: fp8.attention_backward
// CHECK: return
func.func @few_keys(%q: tensor<2x64x8xf32>, %k: tensor<2x64x8xf32>, %v: tensor<2x64x8xf32>, %do: tensor<2x64x8xf32>)
    -> (tensor<2x64x8xf32>, tensor<2x64x8xf32>, tensor<2x64x8xf32>) {
  %0:3 = fp8.attention_backward %q, %k, %v, %do {test.kept} : (tensor<2x64x8xf32>, tensor<2x64x8xf32>, tensor<2x64x8xf32>, tensor<2x64x8xf32>)
      -> (tensor<2x64x8xf32>, tensor<2x64x8xf32>, tensor<2x64x8xf32>) {
  ^bb0(%a: tensor<2x64x8xf32>, %b: tensor<2x64x8xf32>, %c: tensor<2x64x8xf32>, %d: tensor<2x64x8xf32>):
    %zero = arith.constant 0.0 : f32
    %es = tensor.empty() : tensor<2x64x64xf32>
    %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
    %er = tensor.empty() : tensor<2x64xf32>
    %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<2x64xf32>) -> tensor<2x64xf32>
    %ek = tensor.empty() : tensor<2x64x8xf32>
    %fk = linalg.fill ins(%zero : f32) outs(%ek : tensor<2x64x8xf32>) -> tensor<2x64x8xf32>
    %eq = tensor.empty() : tensor<2x64x8xf32>
    %fq = linalg.fill ins(%zero : f32) outs(%eq : tensor<2x64x8xf32>) -> tensor<2x64x8xf32>
    // Numbers that are read along queries and along keys connect nothing.
    %en = tensor.empty() : tensor<64xf32>
    %numbers = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%en : tensor<64xf32>) {
    ^bb0(%o: f32):
      %i = linalg.index 0 : index
      %n = arith.index_cast %i : index to i32
      %x = arith.sitofp %n : i32 to f32
      linalg.yield %x : f32
    } -> tensor<64xf32>
    %dots = linalg.generic {indexing_maps = [#query, #key, #score], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<2x64x8xf32>, tensor<2x64x8xf32>) outs(%fs : tensor<2x64x64xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %m = arith.mulf %x, %y : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    } -> tensor<2x64x64xf32>
    %e = linalg.generic {
        indexing_maps = [#qk, affine_map<(b, q, k) -> (q)>, affine_map<(b, q, k) -> (k)>, #qk],
        iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%dots, %numbers, %numbers : tensor<2x64x64xf32>, tensor<64xf32>, tensor<64xf32>) outs(%es : tensor<2x64x64xf32>) {
    ^bb0(%x: f32, %i: f32, %j: f32, %o: f32):
      %s = arith.addf %x, %i : f32
      %t = arith.subf %s, %j : f32
      %u = math.exp %t : f32
      linalg.yield %u : f32
    } -> tensor<2x64x64xf32>
    %sum = linalg.generic {indexing_maps = [#qk, #row], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%e : tensor<2x64x64xf32>) outs(%fr : tensor<2x64xf32>) {
    ^bb0(%x: f32, %o: f32):
      %s = arith.addf %o, %x : f32
      linalg.yield %s : f32
    } -> tensor<2x64xf32>
    %p = linalg.generic {indexing_maps = [#qk, #row, #qk], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%e, %sum : tensor<2x64x64xf32>, tensor<2x64xf32>) outs(%es : tensor<2x64x64xf32>) {
    ^bb0(%x: f32, %l: f32, %o: f32):
      %s = arith.divf %x, %l : f32
      linalg.yield %s : f32
    } -> tensor<2x64x64xf32>
    %dv = linalg.generic {
        indexing_maps = [affine_map<(b, k, d, q) -> (b, q, k)>, affine_map<(b, k, d, q) -> (b, q, d)>, affine_map<(b, k, d, q) -> (b, k, d)>],
        iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%p, %d : tensor<2x64x64xf32>, tensor<2x64x8xf32>) outs(%fk : tensor<2x64x8xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %m = arith.mulf %x, %y : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    } -> tensor<2x64x8xf32>
    %dp = linalg.generic {indexing_maps = [#query, #key, #score], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%d, %c : tensor<2x64x8xf32>, tensor<2x64x8xf32>) outs(%fs : tensor<2x64x64xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %m = arith.mulf %x, %y : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    } -> tensor<2x64x64xf32>
    %mean = linalg.generic {indexing_maps = [#qk, #qk, #row], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%p, %dp : tensor<2x64x64xf32>, tensor<2x64x64xf32>) outs(%fr : tensor<2x64xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %m = arith.mulf %x, %y : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    } -> tensor<2x64xf32>
    %ds = linalg.generic {indexing_maps = [#qk, #qk, #row, #qk], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%p, %dp, %mean : tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64xf32>) outs(%es : tensor<2x64x64xf32>) {
    ^bb0(%x: f32, %y: f32, %l: f32, %o: f32):
      %m = arith.subf %y, %l : f32
      %s = arith.mulf %x, %m : f32
      linalg.yield %s : f32
    } -> tensor<2x64x64xf32>
    %dq = linalg.generic {
        indexing_maps = [affine_map<(b, q, d, k) -> (b, q, k)>, affine_map<(b, q, d, k) -> (b, k, d)>, affine_map<(b, q, d, k) -> (b, q, d)>],
        iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%ds, %b : tensor<2x64x64xf32>, tensor<2x64x8xf32>) outs(%fq : tensor<2x64x8xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %m = arith.mulf %x, %y : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    } -> tensor<2x64x8xf32>
    %dk = linalg.generic {
        indexing_maps = [affine_map<(b, k, d, q) -> (b, q, k)>, affine_map<(b, k, d, q) -> (b, q, d)>, affine_map<(b, k, d, q) -> (b, k, d)>],
        iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%ds, %a : tensor<2x64x64xf32>, tensor<2x64x8xf32>) outs(%fk : tensor<2x64x8xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %m = arith.mulf %x, %y : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    } -> tensor<2x64x8xf32>
    fp8.yield %dv, %dq, %dk : tensor<2x64x8xf32>, tensor<2x64x8xf32>, tensor<2x64x8xf32>
  }
  return %0#0, %0#1, %0#2 : tensor<2x64x8xf32>, tensor<2x64x8xf32>, tensor<2x64x8xf32>
}
