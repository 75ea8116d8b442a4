// RUN: fp8-opt %S/../Inputs/mlp.mlir --fp8-quantize=recipe=rowwise | FileCheck %s --check-prefix=ROW
// RUN: fp8-opt %S/../Inputs/mlp.mlir --fp8-quantize=recipe=blockwise | FileCheck %s --check-prefix=BLOCK
// RUN: fp8-opt %S/../Inputs/mlp.mlir --fp8-quantize=recipe=mxfp8 | FileCheck %s --check-prefix=MX
// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=blockwise --fp8-decide --fp8-quantize-dots --fp8-compute-types --fp8-drop-verdicts | FileCheck %s --check-prefix=MERGE

// Rows lie along the contraction of the dot: one scale for every token and for
// every output, in the weight gradient one for every input and every output.
// ROW: fp8.dot_general {{.*}} contracting_dims = [2] x [0] {{.*}}<2x128x256xf8E4M3FN, tile = [1, 1, *], scale = f32>, !fp8.scaled<256x384xf8E4M3FN, tile = [*, 1], scale = f32>)
// ROW: fp8.dot_general {{.*}} contracting_dims = [0, 1] x [0, 1] {{.*}}<2x128x384xf8E4M3FN, tile = [*, *, 1], scale = f32>, !fp8.scaled<2x128x256xf8E4M3FN, tile = [*, *, 1], scale = f32>)
// The weight's other payload is made from the weight.
// ROW: fp8.dot_general {{.*}} contracting_dims = [2] x [1] {{.*}}<384x256xf8E4M3FN, tile = [1, *], scale = f32>)
// ROW-NOT: fp8.dequantize

// Blocks of weights are the same for forward and dgrad: one payload. The tokens
// of a batch are one dimension to a block.
// BLOCK: fp8.quantize %arg1, {{.*}} -> !fp8.scaled<384x256xf8E4M3FN, tile = [128, 128], scale = f32>
// BLOCK-NOT: fp8.quantize %arg1
// BLOCK: fp8.dot_general {{.*}} contracting_dims = [0] x [0] {accumulator = f32, promote_every = 128 : i64}
// BLOCK-SAME: (!fp8.scaled<256x384xf8E4M3FN, tile = [128, 1], scale = f32>, !fp8.scaled<256x256xf8E4M3FN, tile = [128, 1], scale = f32>) -> tensor<384x256xf32>
// BLOCK: fp8.dot_general {{.*}} contracting_dims = [2] x [1] {{.*}}<2x128x256xf8E4M3FN, tile = [1, 1, 128], scale = f32>, !fp8.scaled<384x256xf8E4M3FN, tile = [128, 128], scale = f32>)

// MX: fp8.compute_scale {{.*}} {format = f8E4M3FN, rule = #fp8.scale_rule<pow2>} : tensor<{{.*}}xf32> -> tensor<{{.*}}xf8E8M0FNU>
// MX: fp8.dot_general {{.*}}<2x128x256xf8E4M3FN, tile = [1, 1, 32], scale = f8E8M0FNU>, !fp8.scaled<256x384xf8E4M3FN, tile = [32, 1], scale = f8E8M0FNU>)

// Heads and their depth are one dimension to a block of a weight, also in the
// result.
// MERGE: %[[W:.*]] = stablehlo.reshape %arg0 : (tensor<256x4x64xf32>) -> tensor<256x256xf32>
// MERGE: fp8.quantize %[[W]], {{.*}} -> !fp8.scaled<256x256xf8E4M3FN, tile = [128, 128], scale = f32>
// MERGE: %[[DOT:.*]] = fp8.dot_general {{.*}}<8x256xf8E4M3FN, tile = [1, 128], scale = f32>, {{.*}} -> tensor<8x256xf32>
// MERGE: stablehlo.reshape %[[DOT]] : (tensor<8x256xf32>) -> tensor<8x4x64xf32>
func.func @main(
    %w: tensor<256x4x64xf32> {fp8.role = "frozen", fp8.path = "p['w']"},
    %head: tensor<4x64x16xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %x: tensor<8x256xf32> {fp8.role = "batch", fp8.path = "x"}) -> tensor<8x16xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x256xf32>, tensor<256x4x64xf32>) -> tensor<8x4x64xf32>
  %1 = stablehlo.dot_general %0, %head, contracting_dims = [1, 2] x [0, 1]
      : (tensor<8x4x64xf32>, tensor<4x64x16xf32>) -> tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}
