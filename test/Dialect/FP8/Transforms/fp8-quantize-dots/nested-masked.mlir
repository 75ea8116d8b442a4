// RUN: fp8-opt %S/Inputs/nested-masked.mlir --fp8-import --fp8-quantize='recipe=delayed set=rules=[]' | FileCheck %s

// The forward loops save the weights that a mask made, as stacks of stacks. The
// backward pass quantizes two layers at once in front of its inner loop, with
// delayed scales of their own. It records an amax of each layer, not the amax of
// both that the forward pass would give.
// CHECK: fp8.dot_general {{.*}} : (!fp8.scaled<16x32xf8E4M3FN, {{.*}}, !fp8.scaled<32x32xf8E4M3FN
// CHECK: fp8.amax {{.*}} tile = [1, *, *] : tensor<2x32x32xf32> -> tensor<2x1x1xf32>
// CHECK: fp8.dot_general {{.*}} : (!fp8.scaled<16x32xf8E5M2, {{.*}}, !fp8.scaled<32x32xf8E4M3FN
