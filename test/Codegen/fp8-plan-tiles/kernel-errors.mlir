// RUN: fp8-opt %s --fp8-plan-tiles --verify-diagnostics --split-input-file
// RUN: fp8-opt %s --fp8-target=nvptx=sm_90a --fp8-plan-blocks --verify-diagnostics --split-input-file

#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>
fp8.kernel @no_task_dims(read %a: memref<64x64xf8E4M3FN>, read %b: memref<64x64xf8E4M3FN>, write %c: memref<64x64xf32>) domain = [64, 64] {
  // expected-error @+1 {{expected attribute 'fp8.task_dims'}}
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<64x64xf8E4M3FN>, memref<64x64xf8E4M3FN>) outs(%c : memref<64x64xf32>) {
  ^bb0(%x: f8E4M3FN, %y: f8E4M3FN, %z: f32):
    %0 = arith.extf %x : f8E4M3FN to f32
    %1 = arith.extf %y : f8E4M3FN to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %z, %2 : f32
    linalg.yield %3 : f32
  }
  fp8.return
}

// -----

// expected-error @+1 {{'fp8.slices' to be a positive integer but got 0}}
fp8.kernel @no_slices(read %a: memref<64xf32>) domain = [64] attributes {fp8.slices = 0 : i64} {
  fp8.return
}

// -----

// expected-error @+1 {{expected attribute 'fp8.slices' to divide the leading dimension 4 of the domain but got 8}}
fp8.kernel @more_slices_than_points(read %a: memref<4xf32>) domain = [4] attributes {fp8.slices = 8 : i64} {
  fp8.return
}

// -----

// expected-error @+1 {{expected attribute 'fp8.slices' to divide the leading dimension 6 of the domain but got 4}}
fp8.kernel @slices_of_unequal_size(read %a: memref<6xf32>) domain = [6] attributes {fp8.slices = 4 : i64} {
  fp8.return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
fp8.kernel @no_reduction(read %x: memref<8x64xf32>, write %y: memref<8x64xf32>) domain = [8] {
  // expected-error @+1 {{expected an output without an index of loop 1, a reduction}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8x64xf32>) outs(%y : memref<8x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    linalg.yield %0 : f32
  }
  fp8.return
}
