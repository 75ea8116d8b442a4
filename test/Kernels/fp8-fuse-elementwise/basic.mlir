// RUN: fp8-opt %s --fp8-fuse-elementwise --split-input-file | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#s = affine_map<(i, j) -> ()>

// A producer with one consumer is computed inside it.
// CHECK-LABEL: func.func @chain
// CHECK-COUNT-1: linalg.generic
// CHECK: math.exp
// CHECK: arith.negf
// CHECK-NOT: linalg.generic
func.func @chain(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %e = tensor.empty() : tensor<8x16xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = math.exp %a : f32
    linalg.yield %n : f32
  } -> tensor<8x16xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#s = affine_map<(i, j) -> ()>

// A reduction over everything is split into one partial a row and their sum.
// CHECK-LABEL: func.func @whole
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]
// CHECK: -> tensor<128xf32>
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction"]
// CHECK: -> tensor<f32>
func.func @whole(%x: tensor<128x256xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %0 = linalg.generic {indexing_maps = [#id, #s], iterator_types = ["reduction", "reduction"]} ins(%x : tensor<128x256xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.addf %a, %o : f32
    linalg.yield %n : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#low = affine_map<(i, j) -> (i, j + 4)>

// An op that writes a part keeps the destination with the rest.
// CHECK-LABEL: func.func @part
// CHECK: %[[FILL:.*]] = linalg.fill
// CHECK: linalg.generic {{.*}} outs(%[[FILL]]
func.func @part(%x: tensor<8x4xf32>) -> tensor<8x12xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x12xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x12xf32>) -> tensor<8x12xf32>
  %0 = linalg.generic {indexing_maps = [#id, #low], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x4xf32>) outs(%f : tensor<8x12xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<8x12xf32>
  return %0 : tensor<8x12xf32>
}

// -----

// The second half of a vector is read as a row of it; the first half is not:
// a loop that is an index alone would run over all of the vector.
// CHECK-LABEL: func.func @rows
// CHECK: %[[COS:.*]] = linalg.generic
// CHECK: %[[ROWS:.*]] = tensor.expand_shape %[[COS]]
// CHECK: %[[FIRST:.*]] = linalg.generic {{.*}} ins(%[[ROWS]] : tensor<2x8xf32>)
// CHECK: %[[SECOND:.*]] = linalg.generic {{.*}} ins(%[[COS]] : tensor<16xf32>)
// CHECK: return %[[FIRST]], %[[SECOND]]
#v = affine_map<(i) -> (i)>
#m = affine_map<(i, j) -> (i, j)>
#first = affine_map<(i, j) -> (0, j)>
#second = affine_map<(i, j) -> (1, j)>
func.func @rows(%x: tensor<16xf32>) -> (tensor<1x8xf32>, tensor<1x8xf32>) {
  %e = tensor.empty() : tensor<16xf32>
  %0 = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} ins(%x : tensor<16xf32>) outs(%e : tensor<16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = math.cos %a : f32
    linalg.yield %n : f32
  } -> tensor<16xf32>
  %rows = tensor.expand_shape %0 [[0, 1]] output_shape [2, 8] : tensor<16xf32> into tensor<2x8xf32>
  %r = tensor.empty() : tensor<1x8xf32>
  %1 = linalg.generic {indexing_maps = [#first, #m], iterator_types = ["parallel", "parallel"]} ins(%rows : tensor<2x8xf32>) outs(%r : tensor<1x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<1x8xf32>
  %2 = linalg.generic {indexing_maps = [#second, #m], iterator_types = ["parallel", "parallel"]} ins(%rows : tensor<2x8xf32>) outs(%r : tensor<1x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<1x8xf32>
  return %1, %2 : tensor<1x8xf32>, tensor<1x8xf32>
}

// -----

// A splat that alone tells how far a loop runs stays for that, as large as
// that loop, not as large as the tensor.
// CHECK-LABEL: func @uniform_tells_loop
// CHECK: %[[EXTENT:.*]] = arith.constant dense<2.000000e+00> : tensor<32xf32>
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #{{.*}}, #{{.*}}], iterator_types = ["parallel", "reduction"]}
// CHECK-SAME: ins(%{{.*}}, %[[EXTENT]] : tensor<8xf32>, tensor<32xf32>)
// CHECK: ^bb0(%[[IN:.*]]: f32, %{{.*}}: f32, %{{.*}}: f32)
// CHECK: arith.mulf %[[IN]], %
func.func @uniform_tells_loop(%x: tensor<8xf32>) -> tensor<8xf32> {
  %two = arith.constant dense<2.0> : tensor<8x32xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%x, %two : tensor<8xf32>, tensor<8x32xf32>) outs(%fill : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %product = arith.mulf %a, %b : f32
    %sum = arith.addf %c, %product : f32
    linalg.yield %sum : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Zeros that are returned are written, not kept as a constant.
// CHECK-LABEL: func @splat_result
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[EMPTY:.*]] = tensor.empty() : tensor<64x64xf32>
// CHECK: %[[FILL:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[EMPTY]] : tensor<64x64xf32>)
// CHECK: return %[[FILL]]
func.func @splat_result() -> tensor<64x64xf32> {
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  return %zeros : tensor<64x64xf32>
}

// -----

// A scale is a part of the body; the number that tells one tensor from another
// is an input, or else no two layers would have a kernel in common.
// CHECK-LABEL: func @tensor_number
// CHECK: %[[NUMBER:.*]] = arith.constant dense<3> : tensor<i64>
// CHECK: linalg.generic
// CHECK-SAME: ins(%{{.*}}, %[[NUMBER]] : tensor<8xi64>, tensor<i64>)
// CHECK: arith.muli %{{.*}}, %c2_i64
func.func @tensor_number(%x: tensor<8xi64>) -> tensor<8xi64> {
  %number = arith.constant dense<3> : tensor<i64>
  %two = arith.constant dense<2> : tensor<8xi64>
  %empty = tensor.empty() : tensor<8xi64>
  %0 = linalg.generic {
    indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>],
    iterator_types = ["parallel"]
  } ins(%x, %two, %number : tensor<8xi64>, tensor<8xi64>, tensor<i64>) outs(%empty : tensor<8xi64>) {
  ^bb0(%a: i64, %b: i64, %n: i64, %o: i64):
    %product = arith.muli %a, %b : i64
    %sum = arith.addi %product, %n : i64
    linalg.yield %sum : i64
  } -> tensor<8xi64>
  return %0 : tensor<8xi64>
}

// -----

// One task would do all of a long sum over a single dimension: it is made of
// the sums of rows.
// CHECK-LABEL: func.func @flat
// CHECK: %[[ROWS:.*]] = tensor.expand_shape %{{.*}} {{\[}}[0, 1]] output_shape [128, 4096]
// CHECK: %[[PARTS:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[ROWS]] : tensor<128x4096xf32>) outs(%{{.*}} : tensor<128xf32>)
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%[[PARTS]] : tensor<128xf32>)
// CHECK-LABEL: func.func @short
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%{{.*}} : tensor<131072xf32>)
func.func @flat(%x: tensor<524288xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<524288xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %sum : tensor<f32>
}
func.func @short(%x: tensor<131072xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<131072xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %sum : tensor<f32>
}

// -----

// A dimension of one element is no part of the index of a row, so that rows are
// a loop that kernels share, whether a tensor is read with it or written
// without it. What is recomputed stays apart from what was computed first.

#row = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// CHECK-DAG:   #[[PLAIN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG:   #[[ROWS:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-LABEL: func @one_sequence
// CHECK:         linalg.generic {indexing_maps = [#[[ROWS]], #[[PLAIN]], #[[ROWS]]]
// CHECK-SAME:      ins(%arg0, %arg1 : tensor<64x8xf32>, tensor<1x64x8xf32>) outs({{.*}} : tensor<64x8xf32>) attrs = {fp8.recompute}
// CHECK-NOT:     tensor.collapse_shape
func.func @one_sequence(%a: tensor<64x8xf32>, %b: tensor<1x64x8xf32>) -> tensor<64x8xf32> {
  %x = tensor.expand_shape %a [[0, 1], [2]] output_shape [1, 64, 8] : tensor<64x8xf32> into tensor<1x64x8xf32>
  %e = tensor.empty() : tensor<1x64x8xf32>
  %0 = linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %b : tensor<1x64x8xf32>, tensor<1x64x8xf32>) outs(%e : tensor<1x64x8xf32>) attrs = {fp8.recompute} {
  ^bb0(%in: f32, %in2: f32, %out: f32):
    %s = arith.addf %in, %in2 : f32
    linalg.yield %s : f32
  } -> tensor<1x64x8xf32>
  %rows = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<1x64x8xf32> into tensor<64x8xf32>
  return %rows : tensor<64x8xf32>
}

// -----

// A saved value that is extended and rounded to its own type again is no copy.

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// CHECK-LABEL: func @round_trip
// CHECK-NOT:     linalg.generic
// CHECK:         %[[ROWS:.*]] = tensor.collapse_shape %arg0
// CHECK:         return %[[ROWS]]
func.func @round_trip(%saved: tensor<1x64x8xbf16>) -> tensor<64x8xbf16> {
  %wide = tensor.empty() : tensor<1x64x8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%saved : tensor<1x64x8xbf16>) outs(%wide : tensor<1x64x8xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %x = arith.extf %in : bf16 to f32
    linalg.yield %x : f32
  } -> tensor<1x64x8xf32>
  %narrow = tensor.empty() : tensor<1x64x8xbf16>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0 : tensor<1x64x8xf32>) outs(%narrow : tensor<1x64x8xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %x = arith.truncf %in : f32 to bf16
    linalg.yield %x : bf16
  } -> tensor<1x64x8xbf16>
  %rows = tensor.collapse_shape %1 [[0, 1], [2]] : tensor<1x64x8xbf16> into tensor<64x8xbf16>
  return %rows : tensor<64x8xbf16>
}
