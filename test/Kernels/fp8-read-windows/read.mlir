// RUN: fp8-opt %s --fp8-read-windows --split-input-file | FileCheck %s

#copy = affine_map<(o, k, c) -> (o * 2 + k, c)>
#all = affine_map<(o, k, c) -> (o, k, c)>
#image = affine_map<(o, f, k, c) -> (o, k, c)>
#kernel = affine_map<(o, f, k, c) -> (k, c, f)>
#result = affine_map<(o, f, k, c) -> (o, f)>

// The dot reads the image at sums of loops, on either side; no copy is left.
// CHECK: #[[IMAGE:.*]] = affine_map<(d0, d1, d2, d3) -> (d0 * 2 + d2, d3)>
// CHECK-LABEL: func @dot(
// CHECK-NOT: linalg.yield %{{.*}} : f8E4M3FN
// CHECK: linalg.generic {indexing_maps = [#[[IMAGE]], #{{.*}}, #{{.*}}], {{.*}} ins(%arg0, %arg1 : tensor<16x16xf8E4M3FN>, tensor<2x16x32xf32>)
func.func @dot(%x: tensor<16x16xf8E4M3FN>, %w: tensor<2x16x32xf32>, %zero: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %e = tensor.empty() : tensor<8x2x16xf8E4M3FN>
  %0 = linalg.generic {indexing_maps = [#copy, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<16x16xf8E4M3FN>) outs(%e : tensor<8x2x16xf8E4M3FN>) {
  ^bb0(%a: f8E4M3FN, %b: f8E4M3FN):
    linalg.yield %a : f8E4M3FN
  } -> tensor<8x2x16xf8E4M3FN>
  %1 = linalg.generic {indexing_maps = [#image, #kernel, #result], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%0, %w : tensor<8x2x16xf8E4M3FN>, tensor<2x16x32xf32>) outs(%zero : tensor<8x32xf32>) {
  ^bb0(%a: f8E4M3FN, %b: f32, %s: f32):
    %y = arith.extf %a : f8E4M3FN to f32
    %p = arith.mulf %y, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<8x32xf32>
  return %1 : tensor<8x32xf32>
}

// -----

#copy = affine_map<(o, k, c) -> (o * 2 + k, c)>
#all = affine_map<(o, k, c) -> (o, k, c)>
#image = affine_map<(o, f, k, c) -> (o, k, c)>
#kernel = affine_map<(o, f, k, c) -> (k, c, f)>
#result = affine_map<(o, f, k, c) -> (o, f)>

// For four columns the elements are decoded before the dot, once and not for each
// of their windows.
// CHECK-LABEL: func @few_columns(
// CHECK: %[[X:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<16x16xf8E4M3FN>) outs(%{{.*}} : tensor<16x16xf32>)
// CHECK: arith.extf %{{.*}} : f8E4M3FN to f32
// CHECK: %[[W:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<2x16x4xbf16>) outs(%{{.*}} : tensor<2x16x4xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[W]] : tensor<16x16xf32>, tensor<2x16x4xf32>)
// CHECK-NOT: arith.extf
func.func @few_columns(%x: tensor<16x16xf8E4M3FN>, %w: tensor<2x16x4xbf16>, %zero: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<8x2x16xf8E4M3FN>
  %0 = linalg.generic {indexing_maps = [#copy, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<16x16xf8E4M3FN>) outs(%e : tensor<8x2x16xf8E4M3FN>) {
  ^bb0(%a: f8E4M3FN, %b: f8E4M3FN):
    linalg.yield %a : f8E4M3FN
  } -> tensor<8x2x16xf8E4M3FN>
  %1 = linalg.generic {indexing_maps = [#image, #kernel, #result], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%0, %w : tensor<8x2x16xf8E4M3FN>, tensor<2x16x4xbf16>) outs(%zero : tensor<8x4xf32>) {
  ^bb0(%a: f8E4M3FN, %b: bf16, %s: f32):
    %y = arith.extf %a : f8E4M3FN to f32
    %z = arith.extf %b : bf16 to f32
    %p = arith.mulf %y, %z : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// -----

#copy = affine_map<(o, k, c) -> (o + k, c)>
#all = affine_map<(o, k, c) -> (o, k, c)>
#image = affine_map<(o, f, k, c) -> (o, k, c)>
#kernel = affine_map<(o, f, k, c) -> (k, c, f)>
#result = affine_map<(o, f, k, c) -> (o, f)>

// Windows that are computed on, and those that others read, too.
// CHECK-LABEL: func @others(
// CHECK: %[[COPY:.*]] = linalg.generic
// CHECK: arith.negf
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %arg1 : tensor<8x2x16xf32>
// CHECK: return %{{.*}}, %[[COPY]]
func.func @others(%x: tensor<9x16xf32>, %w: tensor<2x16x4xf32>, %zero: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x2x16xf32>) {
  %e = tensor.empty() : tensor<8x2x16xf32>
  %0 = linalg.generic {indexing_maps = [#copy, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<9x16xf32>) outs(%e : tensor<8x2x16xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<8x2x16xf32>
  %1 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0 : tensor<8x2x16xf32>) outs(%e : tensor<8x2x16xf32>) {
  ^bb0(%a: f32, %b: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<8x2x16xf32>
  %2 = linalg.generic {indexing_maps = [#image, #kernel, #result], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%1, %w : tensor<8x2x16xf32>, tensor<2x16x4xf32>) outs(%zero : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<8x4xf32>
  return %2, %0 : tensor<8x4xf32>, tensor<8x2x16xf32>
}

// -----

#copy = affine_map<(o, k, c) -> (o + k, c)>
#all = affine_map<(o, k, c) -> (o, k, c)>
#image = affine_map<(o, f, k, c) -> (o, k, c)>
#kernel = affine_map<(o, f, k, c) -> (f, k, c)>
#result = affine_map<(o, f, k, c) -> (o, f)>

// Windows of both operands: one of them is copied, or no operand would say how far
// the taps run.
// CHECK-LABEL: func @both(
// CHECK: %[[COPY:.*]] = linalg.generic {{.*}} ins(%arg1
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[COPY]] : tensor<9x16xf32>, tensor<4x2x16xf32>)
func.func @both(%x: tensor<9x16xf32>, %y: tensor<5x16xf32>, %zero: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<8x2x16xf32>
  %0 = linalg.generic {indexing_maps = [#copy, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<9x16xf32>) outs(%e : tensor<8x2x16xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<8x2x16xf32>
  %f = tensor.empty() : tensor<4x2x16xf32>
  %1 = linalg.generic {indexing_maps = [#copy, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y : tensor<5x16xf32>) outs(%f : tensor<4x2x16xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<4x2x16xf32>
  %2 = linalg.generic {indexing_maps = [#image, #kernel, #result], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%0, %1 : tensor<8x2x16xf32>, tensor<4x2x16xf32>) outs(%zero : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}

// -----

#reverse = affine_map<(i, j) -> (i, 15 - j)>
#all = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(o, f, k) -> (o, k)>
#columns = affine_map<(o, f, k) -> (f, k)>
#result = affine_map<(o, f, k) -> (o, f)>

// Other copies are no windows.
// CHECK-LABEL: func @reversed(
// CHECK: %[[COPY:.*]] = linalg.generic {{.*}} ins(%arg0
// CHECK: linalg.generic {{.*}} ins(%[[COPY]], %arg1
func.func @reversed(%x: tensor<8x16xf32>, %w: tensor<4x16xf32>, %zero: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<8x16xf32>
  %0 = linalg.generic {indexing_maps = [#reverse, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<8x16xf32>
  %1 = linalg.generic {indexing_maps = [#rows, #columns, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%0, %w : tensor<8x16xf32>, tensor<4x16xf32>) outs(%zero : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
