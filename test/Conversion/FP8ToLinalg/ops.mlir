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
