// RUN: fp8-opt %s --split-input-file --fp8-form-kernels | FileCheck %s

// The sum of each column after a value of many rows. Together they could only be
// divided by columns, and tasks that are less than a line of the cache wide read
// each line several times.

#rows = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// Too few columns for tasks of whole lines.
// CHECK-LABEL: func.func @narrow
// CHECK-COUNT-2: fp8.launch
// CHECK: fp8.kernel {{.*}} domain = [512, 64]
// CHECK: fp8.kernel {{.*}} domain = [64]
func.func @narrow(%x: tensor<512x64xf32>, %zero: tensor<64xf32>) -> (tensor<512x64xf32>, tensor<64xf32>) {
  %e = tensor.empty() : tensor<512x64xf32>
  %0 = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<512x64xf32>) outs(%e : tensor<512x64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %n = math.exp %a : f32
    linalg.yield %n : f32
  } -> tensor<512x64xf32>
  %1 = linalg.generic {indexing_maps = [#rows, #column], iterator_types = ["reduction", "parallel"]}
      ins(%0 : tensor<512x64xf32>) outs(%zero : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %0, %1 : tensor<512x64xf32>, tensor<64xf32>
}

// -----

#rows = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// Sixteen lines are enough.
// CHECK-LABEL: func.func @wide
// CHECK-COUNT-1: fp8.launch
// CHECK: fp8.kernel {{.*}} domain = [256]
// CHECK-NOT: fp8.kernel
func.func @wide(%x: tensor<512x256xf32>, %zero: tensor<256xf32>) -> (tensor<512x256xf32>, tensor<256xf32>) {
  %e = tensor.empty() : tensor<512x256xf32>
  %0 = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<512x256xf32>) outs(%e : tensor<512x256xf32>) {
  ^bb0(%a: f32, %b: f32):
    %n = math.exp %a : f32
    linalg.yield %n : f32
  } -> tensor<512x256xf32>
  %1 = linalg.generic {indexing_maps = [#rows, #column], iterator_types = ["reduction", "parallel"]}
      ins(%0 : tensor<512x256xf32>) outs(%zero : tensor<256xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<256xf32>
  return %0, %1 : tensor<512x256xf32>, tensor<256xf32>
}

// -----

#all = affine_map<(b, t, d, n) -> (b, t, d, n)>
#decay = affine_map<(b, t, d, n) -> (d, n)>
#id = affine_map<(i, j) -> (i, j)>

// A few values that are the same for all rows: with them, tasks would be columns.
// CHECK-LABEL: func.func @few_values
// CHECK-COUNT-2: fp8.launch
// CHECK: fp8.kernel {{.*}} domain = [256, 16]
// CHECK: fp8.kernel {{.*}} domain = [4, 256, 256, 16]
func.func @few_values(%a: tensor<256x16xf32>, %x: tensor<4x256x256x16xf32>) -> tensor<4x256x256x16xf32> {
  %e0 = tensor.empty() : tensor<256x16xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<256x16xf32>) outs(%e0 : tensor<256x16xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = math.exp %v : f32
    linalg.yield %n : f32
  } -> tensor<256x16xf32>
  %e1 = tensor.empty() : tensor<4x256x256x16xf32>
  %1 = linalg.generic {indexing_maps = [#all, #decay, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %0 : tensor<4x256x256x16xf32>, tensor<256x16xf32>) outs(%e1 : tensor<4x256x256x16xf32>) {
  ^bb0(%v: f32, %d: f32, %o: f32):
    %p = arith.mulf %v, %d : f32
    linalg.yield %p : f32
  } -> tensor<4x256x256x16xf32>
  return %1 : tensor<4x256x256x16xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#one = affine_map<(i) -> (i)>

// A value for each row leaves whole rows.
// CHECK-LABEL: func.func @rows
// CHECK-COUNT-1: fp8.launch
// CHECK: fp8.kernel {{.*}} domain = [1024]
// CHECK-NOT: fp8.kernel
func.func @rows(%a: tensor<1024xf32>, %x: tensor<1024x256xf32>) -> tensor<1024x256xf32> {
  %e0 = tensor.empty() : tensor<1024xf32>
  %0 = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%a : tensor<1024xf32>) outs(%e0 : tensor<1024xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = math.exp %v : f32
    linalg.yield %n : f32
  } -> tensor<1024xf32>
  %e1 = tensor.empty() : tensor<1024x256xf32>
  %1 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %0 : tensor<1024x256xf32>, tensor<1024xf32>) outs(%e1 : tensor<1024x256xf32>) {
  ^bb0(%v: f32, %d: f32, %o: f32):
    %p = arith.mulf %v, %d : f32
    linalg.yield %p : f32
  } -> tensor<1024x256xf32>
  return %1 : tensor<1024x256xf32>
}
