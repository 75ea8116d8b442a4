// RUN: fp8-opt %s --fp8-fuse-elementwise --split-input-file | FileCheck %s

// Producers of one op are inlined together. A value that several of them read,
// or that the op itself reads behind them, becomes one input, at the first
// place.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func @shared_inputs
//  CHECK-SAME:   (%[[A:.*]]: tensor<64xf32>, %[[B:.*]]: tensor<64xf32>, %[[C:.*]]: tensor<64xf32>)
//       CHECK:   linalg.generic
//  CHECK-SAME:     ins(%[[A]], %[[B]], %[[C]] :
//  CHECK-NEXT:   ^bb0(%[[X:.*]]: f32, %[[Y:.*]]: f32, %[[Z:.*]]: f32, %{{.*}}: f32):
//  CHECK-NEXT:     %[[E:.*]] = math.exp %[[Z]]
//  CHECK-NEXT:     %[[Q:.*]] = arith.divf %[[E]], %[[Y]]
//  CHECK-NEXT:     %[[S:.*]] = math.sqrt %[[X]]
//  CHECK-NEXT:     %[[P:.*]] = arith.divf %[[S]], %[[Y]]
//  CHECK-NEXT:     %[[T:.*]] = arith.addf %[[P]], %[[Y]]
//  CHECK-NEXT:     %[[U:.*]] = arith.addf %[[T]], %[[Q]]
//  CHECK-NEXT:     linalg.yield %[[U]]
//   CHECK-NOT:   linalg.generic
func.func @shared_inputs(%a: tensor<64xf32>, %b: tensor<64xf32>, %c: tensor<64xf32>) -> tensor<64xf32> {
  %empty = tensor.empty() : tensor<64xf32>
  %p = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<64xf32>, tensor<64xf32>) outs(%empty : tensor<64xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %0 = math.sqrt %x : f32
    %1 = arith.divf %0, %y : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  %q = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%c, %b : tensor<64xf32>, tensor<64xf32>) outs(%empty : tensor<64xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %0 = math.exp %x : f32
    %1 = arith.divf %0, %y : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%p, %b, %q : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) outs(%empty : tensor<64xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32, %out: f32):
    %0 = arith.addf %x, %y : f32
    %1 = arith.addf %0, %z : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  return %r : tensor<64xf32>
}

// -----

// A costly op with a second result that is read stays, so that it is computed
// once, even if each result has one reader.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func @two_results
//       CHECK:   %[[P:.*]]:2 = linalg.generic
//       CHECK:   linalg.generic
//  CHECK-SAME:     ins(%[[P]]#0 :
//       CHECK:   return %{{.*}}, %[[P]]#1
func.func @two_results(%a: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %empty = tensor.empty() : tensor<64xf32>
  %p:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%a : tensor<64xf32>) outs(%empty, %empty : tensor<64xf32>, tensor<64xf32>) {
  ^bb0(%x: f32, %out0: f32, %out1: f32):
    %0 = math.sqrt %x : f32
    %1 = math.exp %0 : f32
    linalg.yield %0, %1 : f32, f32
  } -> (tensor<64xf32>, tensor<64xf32>)
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%p#0 : tensor<64xf32>) outs(%empty : tensor<64xf32>) {
  ^bb0(%x: f32, %out: f32):
    %0 = arith.negf %x : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  return %r, %p#1 : tensor<64xf32>, tensor<64xf32>
}

// -----

// A payload with scales of rows is dequantized by each of its readers, which
// would else keep four times its bytes.
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i, 0)>
#column = affine_map<(i, j) -> (j)>
// CHECK-LABEL: func.func @payload
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} ins(%{{.*}} : tensor<32x64xf8E4M3FN>, tensor<32x1xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<32x64xf8E4M3FN>, tensor<32x1xf32>, tensor<64xf32>)
func.func @payload(%payload: tensor<32x64xf8E4M3FN>, %scale: tensor<32x1xf32>) -> (tensor<64xf32>, tensor<32x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %values = tensor.empty() : tensor<32x64xf32>
  %x = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%payload, %scale : tensor<32x64xf8E4M3FN>, tensor<32x1xf32>) outs(%values : tensor<32x64xf32>) {
  ^bb0(%p: f8E4M3FN, %s: f32, %o: f32):
    %v = arith.extf %p : f8E4M3FN to f32
    %y = arith.mulf %v, %s : f32
    linalg.yield %y : f32
  } -> tensor<32x64xf32>
  %maxima = tensor.empty() : tensor<64xf32>
  %least = linalg.fill ins(%zero : f32) outs(%maxima : tensor<64xf32>) -> tensor<64xf32>
  %amax = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<32x64xf32>) outs(%least : tensor<64xf32>) {
  ^bb0(%v: f32, %m: f32):
    %a = math.absf %v : f32
    %y = arith.maximumf %m, %a : f32
    linalg.yield %y : f32
  } -> tensor<64xf32>
  %scaled = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %amax : tensor<32x64xf32>, tensor<64xf32>) outs(%values : tensor<32x64xf32>) {
  ^bb0(%v: f32, %m: f32, %o: f32):
    %y = arith.divf %v, %m : f32
    linalg.yield %y : f32
  } -> tensor<32x64xf32>
  return %amax, %scaled : tensor<64xf32>, tensor<32x64xf32>
}
