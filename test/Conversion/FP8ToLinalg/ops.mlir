// RUN: fp8-opt %s --convert-fp8-to-linalg --split-input-file | FileCheck %s

// CHECK-LABEL: func @amax(
// CHECK-SAME: %[[X:.*]]: tensor<8x16xbf16>
// CHECK: %[[ZERO:.*]] = arith.constant 0.0
// CHECK: %[[INIT:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%{{.*}} : tensor<f32>)
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["reduction", "reduction"]
// CHECK-SAME: ins(%[[X]] : tensor<8x16xbf16>) outs(%[[INIT]] : tensor<f32>)
// CHECK-NEXT: ^bb0(%[[IN:.*]]: bf16, %[[OUT:.*]]: f32):
// CHECK-NEXT: %[[EXT:.*]] = arith.extf %[[IN]] : bf16 to f32
// CHECK-NEXT: %[[ABS:.*]] = math.absf %[[EXT]]
// CHECK-NEXT: %[[MAX:.*]] = arith.maximumf %[[OUT]], %[[ABS]]
// CHECK-NEXT: linalg.yield %[[MAX]]
func.func @amax(%x: tensor<8x16xbf16>) -> tensor<f32> {
  %0 = fp8.amax %x : tensor<8x16xbf16> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// CHECK-LABEL: func @exact(
// CHECK-SAME: %[[AMAX:.*]]: tensor<f32>
// CHECK: %[[G:.*]]:2 = linalg.generic
// CHECK-SAME: iterator_types = []
// CHECK-SAME: ins(%[[AMAX]]
// CHECK: ^bb0(%[[A:.*]]: f32, %{{.*}}: f32, %{{.*}}: f32):
// CHECK-DAG: %[[MAX:.*]] = arith.constant 4.480000e+02
// CHECK: %[[Q:.*]] = arith.divf %[[MAX]], %[[A]]
// CHECK: %[[HALF:.*]] = arith.constant 5.000000e-01
// CHECK: %[[QM:.*]] = arith.mulf %[[Q]], %[[HALF]]
// CHECK: %[[LARGEST:.*]] = arith.constant 3.40282347E+38
// CHECK: %[[OVER:.*]] = arith.cmpf ogt, %[[QM]], %[[LARGEST]]
// CHECK: %[[CLAMPED:.*]] = arith.select %[[OVER]], %[[LARGEST]], %[[QM]]
// CHECK: %[[VALID:.*]] = arith.andi
// CHECK: %[[ONE:.*]] = arith.constant 1.0
// CHECK: %[[R:.*]] = arith.select %[[VALID]], %[[CLAMPED]], %[[ONE]]
// CHECK: %[[S:.*]] = arith.divf %[[ONE]], %[[R]]
// CHECK: linalg.yield %[[S]], %[[R]]
// CHECK: return %[[G]]#0, %[[G]]#1
func.func @exact(%a: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %s, %q = fp8.compute_scale %a {rule = #fp8.scale_rule<exact>, margin = 1, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
  return %s, %q : tensor<f32>, tensor<f32>
}

// -----

// CHECK-LABEL: func @quantize(
// CHECK-SAME: %[[X:.*]]: tensor<8x16xf32>, %[[S:.*]]: tensor<f32>, %[[Q:.*]]: tensor<f32>
// CHECK: %[[G:.*]] = linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel"]
// CHECK-SAME: ins(%[[X]], %[[Q]] : tensor<8x16xf32>, tensor<f32>) outs(%{{.*}} : tensor<8x16xf8E5M2>)
// CHECK-NEXT: ^bb0(%[[IN:.*]]: f32, %[[QIN:.*]]: f32,
// CHECK: %[[Y:.*]] = arith.mulf %[[IN]], %[[QIN]]
// CHECK: %[[ABS:.*]] = math.absf %[[IN]]
// CHECK: %[[FINITE:.*]] = arith.cmpf olt, %[[ABS]]
// CHECK-DAG: %[[MAX:.*]] = arith.constant 5.734400e+04
// CHECK-DAG: %[[MIN:.*]] = arith.constant -5.734400e+04
// CHECK: %[[C0:.*]] = arith.cmpf ogt, %[[Y]], %[[MAX]]
// CHECK: %[[Y0:.*]] = arith.select %[[C0]], %[[MAX]], %[[Y]]
// CHECK: %[[C1:.*]] = arith.cmpf olt, %[[Y0]], %[[MIN]]
// CHECK: %[[Y1:.*]] = arith.select %[[C1]], %[[MIN]], %[[Y0]]
// CHECK: %[[NAN:.*]] = arith.constant 0x7FC00000
// CHECK: %[[R:.*]] = arith.select %[[FINITE]], %[[Y1]], %[[NAN]]
// CHECK: arith.truncf %[[R]] : f32 to f8E5M2
// CHECK: return %[[G]], %[[S]]
func.func @quantize(%x: tensor<8x16xf32>, %s: tensor<f32>, %q: tensor<f32>)
    -> !fp8.scaled<8x16xf8E5M2, tile = [*, *], scale = f32> {
  %0 = fp8.quantize %x, %s, %q rounding = nearest_even, overflow = saturate
      : tensor<8x16xf32> -> !fp8.scaled<8x16xf8E5M2, tile = [*, *], scale = f32>
  return %0 : !fp8.scaled<8x16xf8E5M2, tile = [*, *], scale = f32>
}

// -----

// Without saturation nothing is clamped: the cast overflows.
// CHECK-LABEL: func @quantize_nan(
// CHECK-NOT: 4.480000e+02
// CHECK: arith.truncf
func.func @quantize_nan(%x: tensor<8x16xf32>, %s: tensor<f32>, %q: tensor<f32>)
    -> !fp8.scaled<8x16xf8E4M3FN, tile = [*, *], scale = f32> {
  %0 = fp8.quantize %x, %s, %q rounding = nearest_even, overflow = nan
      : tensor<8x16xf32> -> !fp8.scaled<8x16xf8E4M3FN, tile = [*, *], scale = f32>
  return %0 : !fp8.scaled<8x16xf8E4M3FN, tile = [*, *], scale = f32>
}

// -----

// CHECK-LABEL: func @dequantize(
// CHECK-SAME: %[[P:.*]]: tensor<8x16xf8E4M3FN>, %[[S:.*]]: tensor<f32>
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[P]], %[[S]]
// CHECK: %[[E:.*]] = arith.extf %{{.*}} : f8E4M3FN to f32
// CHECK: %[[M:.*]] = arith.mulf %[[E]]
// CHECK: arith.truncf %[[M]] : f32 to bf16
func.func @dequantize(%x: !fp8.scaled<8x16xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<8x16xbf16> {
  %0 = fp8.dequantize %x : !fp8.scaled<8x16xf8E4M3FN, tile = [*, *], scale = f32> -> tensor<8x16xbf16>
  return %0 : tensor<8x16xbf16>
}

// -----

// Loops: batch, m, n, k; the operands stay in their own layouts.
// CHECK-DAG: #[[LHS:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1)>
// CHECK-DAG: #[[RHS:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d0, d3)>
// CHECK-DAG: #[[OUT:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-LABEL: func @dot_general(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<8x32x64xf8E5M2>, %[[XS:[a-z0-9]*]]: tensor<f32>,
// CHECK-SAME: %[[W:[a-z0-9]*]]: tensor<16x8x32xf8E4M3FN>, %[[WS:[a-z0-9]*]]: tensor<f32>
// CHECK: %[[INIT:.*]] = linalg.fill
// CHECK: %[[SUM:.*]] = linalg.generic {indexing_maps = [#[[LHS]], #[[RHS]], #[[OUT]]], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
// CHECK-SAME: ins(%[[X]], %[[W]] : tensor<8x32x64xf8E5M2>, tensor<16x8x32xf8E4M3FN>) outs(%[[INIT]] : tensor<8x64x16xf32>)
// CHECK-NEXT: ^bb0(%[[A:.*]]: f8E5M2, %[[B:.*]]: f8E4M3FN, %[[C:.*]]: f32):
// CHECK-NEXT: %[[AE:.*]] = arith.extf %[[A]]
// CHECK-NEXT: %[[BE:.*]] = arith.extf %[[B]]
// CHECK-NEXT: %[[MUL:.*]] = arith.mulf %[[AE]], %[[BE]]
// CHECK-NEXT: %[[ADD:.*]] = arith.addf %[[C]], %[[MUL]]
// CHECK-NEXT: linalg.yield %[[ADD]]
// CHECK: %[[Y:.*]] = linalg.generic
// CHECK-SAME: ins(%[[SUM]], %[[XS]], %[[WS]] : tensor<8x64x16xf32>, tensor<f32>, tensor<f32>)
// CHECK: %[[SCALE:.*]] = arith.mulf
// CHECK: arith.mulf %{{.*}}, %[[SCALE]]
// CHECK: return %[[Y]]
func.func @dot_general(%x: !fp8.scaled<8x32x64xf8E5M2, tile = [*, *, *], scale = f32>,
                       %w: !fp8.scaled<16x8x32xf8E4M3FN, tile = [*, *, *], scale = f32>) -> tensor<8x64x16xf32> {
  %0 = fp8.dot_general %x, %w, batching_dims = [0] x [1], contracting_dims = [1] x [2] {accumulator = f32}
      : (!fp8.scaled<8x32x64xf8E5M2, tile = [*, *, *], scale = f32>,
         !fp8.scaled<16x8x32xf8E4M3FN, tile = [*, *, *], scale = f32>) -> tensor<8x64x16xf32>
  return %0 : tensor<8x64x16xf32>
}

// -----

// CHECK: #[[ONE:.*]] = affine_map<(d0) -> ()>
// CHECK-LABEL: func @dot_to_scalar(
// CHECK: linalg.generic
// CHECK-SAME: indexing_maps = [#[[K:.*]], #[[K]], #[[ONE]]]
// CHECK-SAME: iterator_types = ["reduction"]
func.func @dot_to_scalar(%x: !fp8.scaled<32xf8E4M3FN, tile = [*], scale = f32>,
                         %y: !fp8.scaled<32xf8E4M3FN, tile = [*], scale = f32>) -> tensor<f32> {
  %0 = fp8.dot_general %x, %y, contracting_dims = [0] x [0] {accumulator = f32}
      : (!fp8.scaled<32xf8E4M3FN, tile = [*], scale = f32>, !fp8.scaled<32xf8E4M3FN, tile = [*], scale = f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Blocks of 128 along rows of 300: the whole ones and the partial one at the
// edge are reductions of their own, both into one tensor.
// CHECK-DAG: #[[WHOLE:.*]] = affine_map<(d0, d1, d2) -> (d0, d1 * 128 + d2)>
// CHECK-DAG: #[[FIRST:.*]] = affine_map<(d0, d1, d2) -> (d0, d1 mod 3)>
// CHECK-DAG: #[[EDGE:.*]] = affine_map<(d0, d1) -> (d0, d1 + 256)>
// CHECK-DAG: #[[LAST:.*]] = affine_map<(d0, d1) -> (d0, 2)>
// CHECK-LABEL: func @amax_blocks(
// CHECK: linalg.generic
// CHECK-SAME: indexing_maps = [#[[WHOLE]], {{.*}}, #[[FIRST]]]
// CHECK-SAME: iterator_types = ["parallel", "parallel", "reduction"]
// CHECK: linalg.generic
// CHECK-SAME: indexing_maps = [#[[EDGE]], {{.*}}, #[[LAST]]]
// CHECK-SAME: iterator_types = ["parallel", "reduction"]
func.func @amax_blocks(%x: tensor<8x300xf32>) -> tensor<8x3xf32> {
  %0 = fp8.amax %x tile = [1, 128] : tensor<8x300xf32> -> tensor<8x3xf32>
  return %0 : tensor<8x3xf32>
}

// -----

// An E8M0 scale is the exponent of the power of two.
// CHECK-LABEL: func @e8m0(
// CHECK: %[[CODE:.*]] = arith.trunci %{{.*}} : i32 to i8
// CHECK: %[[SCALE:.*]] = arith.bitcast %[[CODE]] : i8 to f8E8M0FNU
// CHECK: linalg.yield %[[SCALE]], %{{.*}} : f8E8M0FNU, f32
func.func @e8m0(%a: tensor<8x2xf32>) -> tensor<8x2xf8E8M0FNU> {
  %s, %q = fp8.compute_scale %a {rule = #fp8.scale_rule<pow2>, format = f8E4M3FN} : tensor<8x2xf32> -> tensor<8x2xf8E8M0FNU>
  return %s : tensor<8x2xf8E8M0FNU>
}

// -----

// Every element finds its tile's quantizer.
// CHECK: #[[TILE:.*]] = affine_map<(d0, d1) -> (d0, d1 floordiv 128)>
// CHECK-LABEL: func @quantize_blocks(
// CHECK: linalg.generic
// CHECK-SAME: indexing_maps = [#{{.*}}, #[[TILE]], #{{.*}}]
func.func @quantize_blocks(%x: tensor<8x300xf32>, %s: tensor<8x3xf32>)
    -> !fp8.scaled<8x300xf8E4M3FN, tile = [1, 128], scale = f32> {
  %0 = fp8.quantize %x, %s, %s rounding = nearest_even, overflow = saturate
      : tensor<8x300xf32> -> !fp8.scaled<8x300xf8E4M3FN, tile = [1, 128], scale = f32>
  return %0 : !fp8.scaled<8x300xf8E4M3FN, tile = [1, 128], scale = f32>
}

// -----

// The random number depends on the seed and the element's place only.
// CHECK-LABEL: func @stochastic(
// CHECK: linalg.generic
// CHECK-SAME: tensor<i64>
// CHECK: linalg.index 0
// CHECK: linalg.index 1
// Codes of normal numbers and of subnormals.
// CHECK: arith.minui
// CHECK: math.ceil
// CHECK: arith.select
// CHECK: arith.bitcast %{{.*}} : i8 to f8E5M2
func.func @stochastic(%x: tensor<8x16xf32>, %s: tensor<f32>, %seed: tensor<i64>)
    -> !fp8.scaled<8x16xf8E5M2, tile = [*, *], scale = f32> {
  %0 = fp8.quantize %x, %s, %s seed = %seed rounding = stochastic, overflow = saturate {tensor = 2}
      : tensor<8x16xf32> -> !fp8.scaled<8x16xf8E5M2, tile = [*, *], scale = f32>
  return %0 : !fp8.scaled<8x16xf8E5M2, tile = [*, *], scale = f32>
}

// -----

// Rows and columns of scales multiply the sums.
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-DAG: #[[COLUMN:.*]] = affine_map<(d0, d1) -> (0, d1)>
// CHECK-LABEL: func @dot_rows(
// CHECK: %[[SUM:.*]] = linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel", "reduction"]
// CHECK: linalg.generic
// CHECK-SAME: indexing_maps = [#{{.*}}, #[[ROW]], #[[COLUMN]], #{{.*}}]
// CHECK-SAME: ins(%[[SUM]],
!x = !fp8.scaled<8x64xf8E4M3FN, tile = [1, *], scale = f32>
!w = !fp8.scaled<64x16xf8E4M3FN, tile = [*, 1], scale = f32>
func.func @dot_rows(%x: !x, %w: !w) -> tensor<8x16xf32> {
  %0 = fp8.dot_general %x, %w, contracting_dims = [1] x [0] {accumulator = f32} : (!x, !w) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

// Scales that vary along the contraction are inputs of it.
// CHECK-DAG: #[[XS:.*]] = affine_map<(d0, d1, d2) -> (d0, d2 floordiv 128)>
// CHECK-DAG: #[[WS:.*]] = affine_map<(d0, d1, d2) -> (d2 floordiv 128, d1 floordiv 128)>
// CHECK-LABEL: func @dot_blocks(
// CHECK: %[[SUM:.*]] = linalg.generic
// CHECK-SAME: indexing_maps = [#{{.*}}, #{{.*}}, #[[XS]], #[[WS]], #{{.*}}]
// CHECK-NEXT: ^bb0(%[[X:.*]]: f8E4M3FN, %[[W:.*]]: f8E4M3FN, %[[S:.*]]: f32, %[[T:.*]]: f32, %[[ACC:.*]]: f32):
// CHECK: %[[XF:.*]] = arith.extf %[[X]]
// CHECK: %[[WF:.*]] = arith.extf %[[W]]
// CHECK: %[[XR:.*]] = arith.mulf %[[XF]], %[[S]]
// CHECK: %[[WR:.*]] = arith.mulf %[[WF]], %[[T]]
// CHECK: %[[P:.*]] = arith.mulf %[[XR]], %[[WR]]
// CHECK: arith.addf %[[ACC]], %[[P]]
// CHECK: return %[[SUM]]
!x = !fp8.scaled<8x352xf8E4M3FN, tile = [1, 128], scale = f32>
!w = !fp8.scaled<352x256xf8E4M3FN, tile = [128, 128], scale = f32>
func.func @dot_blocks(%x: !x, %w: !w) -> tensor<8x256xf32> {
  %0 = fp8.dot_general %x, %w, contracting_dims = [1] x [0] {accumulator = f32} : (!x, !w) -> tensor<8x256xf32>
  return %0 : tensor<8x256xf32>
}

// -----

// Payload and scale move together.
!x = !fp8.scaled<64x300xf8E4M3FN, tile = [1, 128], scale = f32>
// CHECK-LABEL: func @layouts(
// CHECK-SAME: %[[P:[a-z0-9]*]]: tensor<64x300xf8E4M3FN>, %[[S:[a-z0-9]*]]: tensor<64x3xf32>
// CHECK: %[[PS:.*]] = stablehlo.slice %[[P]] [16:48, 128:300] : (tensor<64x300xf8E4M3FN>) -> tensor<32x172xf8E4M3FN>
// CHECK: %[[SS:.*]] = stablehlo.slice %[[S]] [16:48, 1:3] : (tensor<64x3xf32>) -> tensor<32x2xf32>
// CHECK: %[[PT:.*]] = stablehlo.transpose %[[PS]], dims = [1, 0]
// CHECK: %[[ST:.*]] = stablehlo.transpose %[[SS]], dims = [1, 0] : (tensor<32x2xf32>) -> tensor<2x32xf32>
// CHECK: %[[PR:.*]] = stablehlo.reshape %[[PT]] : (tensor<172x32xf8E4M3FN>) -> tensor<172x4x8xf8E4M3FN>
// CHECK: %[[SR:.*]] = stablehlo.reshape %[[ST]] : (tensor<2x32xf32>) -> tensor<2x4x8xf32>
// CHECK: return %[[PR]], %[[SR]]
func.func @layouts(%x: !x) -> !fp8.scaled<172x4x8xf8E4M3FN, tile = [128, 1, 1], scale = f32> {
  %0 = fp8.slice %x, [16, 128] to [48, 300] : !x -> !fp8.scaled<32x172xf8E4M3FN, tile = [1, 128], scale = f32>
  %1 = fp8.transpose %0, [1, 0] : !fp8.scaled<32x172xf8E4M3FN, tile = [1, 128], scale = f32>
      -> !fp8.scaled<172x32xf8E4M3FN, tile = [128, 1], scale = f32>
  %2 = fp8.reshape %1 : !fp8.scaled<172x32xf8E4M3FN, tile = [128, 1], scale = f32>
      -> !fp8.scaled<172x4x8xf8E4M3FN, tile = [128, 1, 1], scale = f32>
  return %2 : !fp8.scaled<172x4x8xf8E4M3FN, tile = [128, 1, 1], scale = f32>
}

// -----

// Nothing has an amax of zero, and no blocks.
// CHECK-LABEL: func @empty(
// CHECK: linalg.fill
// CHECK-NOT: arith.maximumf
// CHECK: linalg.generic
func.func @empty(%x: tensor<4x0xf32>, %s: tensor<4x0xf32>)
    -> (tensor<4x0xf32>, !fp8.scaled<4x0xf8E4M3FN, tile = [1, 128], scale = f32>) {
  %0 = fp8.amax %x tile = [1, 128] : tensor<4x0xf32> -> tensor<4x0xf32>
  %1 = fp8.quantize %x, %s, %s rounding = nearest_even, overflow = saturate
      : tensor<4x0xf32> -> !fp8.scaled<4x0xf8E4M3FN, tile = [1, 128], scale = f32>
  return %0, %1 : tensor<4x0xf32>, !fp8.scaled<4x0xf8E4M3FN, tile = [1, 128], scale = f32>
}

// The product is an f32 product.
// CHECK-LABEL: func @rescale
func.func @rescale(%x: tensor<8x64x32xbf16>, %s: tensor<64x8xf32>) -> tensor<8x64x32xbf16> {
  // CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel"]
  // CHECK-SAME: ins(%{{.*}}, %{{.*}} : tensor<8x64x32xbf16>, tensor<64x8xf32>)
  // CHECK: arith.extf {{.*}} : bf16 to f32
  // CHECK: arith.mulf {{.*}} : f32
  // CHECK: arith.truncf {{.*}} : f32 to bf16
  %0 = fp8.rescale %x, %s dims = [1, 0] : tensor<8x64x32xbf16>, tensor<64x8xf32>
  return %0 : tensor<8x64x32xbf16>
}
