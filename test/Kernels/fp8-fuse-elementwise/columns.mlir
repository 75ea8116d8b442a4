// RUN: fp8-opt %s --fp8-fuse-elementwise --split-input-file | FileCheck %s

#in = affine_map<(c, b, r) -> (b, r, c)>
#out = affine_map<(c, b, r) -> (c)>

// A long sum of columns is one partial for each index of the outermost dimension and their sum. The extents alone decide.
// CHECK-DAG: #[[IN:.*]] = affine_map<(d0, d1, d2) -> (d1, d2, d0)>
// CHECK-DAG: #[[PARTIAL:.*]] = affine_map<(d0, d1, d2) -> (d1, d0)>
// CHECK-DAG: #[[COLUMN:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @sum
// CHECK: %[[PARTS:.*]] = linalg.generic {indexing_maps = [#[[IN]], #[[PARTIAL]]], iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK: arith.addf
// CHECK: -> tensor<8x96xf32>
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[COLUMN]]], iterator_types = ["reduction", "parallel"]} ins(%[[PARTS]]
// CHECK: arith.addf
// CHECK: -> tensor<96xf32>
func.func @sum(%x: tensor<8x256x96xf32>) -> tensor<96xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<96xf32>) -> tensor<96xf32>
  %0 = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x : tensor<8x256x96xf32>) outs(%f : tensor<96xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<96xf32>
  return %0 : tensor<96xf32>
}

// -----

#in = affine_map<(b, r, c) -> (b, r, c)>
#out = affine_map<(b, r, c) -> (0, 0, c)>

// So is the amax of each channel, whose result keeps its dimensions.
// CHECK-DAG: #[[RESULT:.*]] = affine_map<(d0, d1) -> (0, 0, d1)>
// CHECK-LABEL: func.func @amax
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction", "parallel"]
// CHECK: math.absf
// CHECK: -> tensor<2x64xf32>
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[RESULT]]], iterator_types = ["reduction", "parallel"]}
// CHECK-NOT: math.absf
// CHECK: -> tensor<1x1x64xf32>
func.func @amax(%x: tensor<2x512x64xf32>) -> tensor<1x1x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x1x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1x64xf32>) -> tensor<1x1x64xf32>
  %0 = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["reduction", "reduction", "parallel"]}
      ins(%x : tensor<2x512x64xf32>) outs(%f : tensor<1x1x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = math.absf %a : f32
    %s = arith.maximumf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x1x64xf32>
  return %0 : tensor<1x1x64xf32>
}

// -----

#in = affine_map<(c, b, r) -> (b, r, c)>
#few = affine_map<(c, b, r) -> (r, b, c)>
#rows = affine_map<(c, b, r) -> (c, b, r)>
#out = affine_map<(c, b, r) -> (c)>

// These stay: few rows, partials of few rows, sums along rows, and sums in a narrow type.
// CHECK-LABEL: func.func @stays
// CHECK-COUNT-4: linalg.generic
// CHECK-NOT: linalg.generic
func.func @stays(%x: tensor<4x128x96xf32>, %y: tensor<256x8x96xf32>, %z: tensor<96x8x256xf32>, %n: tensor<8x256x96xbf16>)
    -> (tensor<96xf32>, tensor<96xf32>, tensor<96xf32>, tensor<96xbf16>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<96xf32>) -> tensor<96xf32>
  %0 = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x : tensor<4x128x96xf32>) outs(%f : tensor<96xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<96xf32>
  %1 = linalg.generic {indexing_maps = [#few, #out], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%y : tensor<256x8x96xf32>) outs(%f : tensor<96xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<96xf32>
  %2 = linalg.generic {indexing_maps = [#rows, #out], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%z : tensor<96x8x256xf32>) outs(%f : tensor<96xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<96xf32>
  %narrow = arith.constant 0.0 : bf16
  %en = tensor.empty() : tensor<96xbf16>
  %fn = linalg.fill ins(%narrow : bf16) outs(%en : tensor<96xbf16>) -> tensor<96xbf16>
  %3 = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%n : tensor<8x256x96xbf16>) outs(%fn : tensor<96xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %s = arith.addf %o, %a : bf16
    linalg.yield %s : bf16
  } -> tensor<96xbf16>
  return %0, %1, %2, %3 : tensor<96xf32>, tensor<96xf32>, tensor<96xf32>, tensor<96xbf16>
}

// -----

#in = affine_map<(c, b, r) -> (b, r, c)>
#out = affine_map<(c, b, r) -> (c)>

// An attention sums block by block.
// CHECK-LABEL: func.func @attention
// CHECK: fp8.attention
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT: linalg.generic
func.func @attention(%x: tensor<8x256x96xf32>) -> tensor<96xf32> {
  %r = fp8.attention %x : (tensor<8x256x96xf32>) -> tensor<96xf32> {
  ^bb0(%y: tensor<8x256x96xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<96xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<96xf32>) -> tensor<96xf32>
    %0 = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction", "reduction"]}
        ins(%y : tensor<8x256x96xf32>) outs(%f : tensor<96xf32>) {
    ^bb1(%a: f32, %o: f32):
      %s = arith.addf %o, %a : f32
      linalg.yield %s : f32
    } -> tensor<96xf32>
    fp8.yield %0 : tensor<96xf32>
  }
  return %r : tensor<96xf32>
}
