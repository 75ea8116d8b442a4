// RUN: fp8-opt %S/Inputs/nested-index.mlir --fp8-import --fp8-quantize=recipe=tensorwise | FileCheck %s

// Two nested loops cut their weights from one stack at w[2 * i + j], so that the
// forward loops stack up the weights as well and the backward loops read slices
// of slices: their dots are those of the same layer, with gradients in E5M2, and
// the head is the head.
// CHECK: fp8.dot_general {{.*}} : (!fp8.scaled<16x32xf8E4M3FN, {{.*}}, !fp8.scaled<32x32xf8E4M3FN
// CHECK: stablehlo.dot_general {{.*}} : (tensor<16x32xbf16>, tensor<32x8xbf16>)
// CHECK: stablehlo.while
// CHECK: fp8.dot_general {{.*}} : (!fp8.scaled<16x32xf8E5M2, {{.*}}, !fp8.scaled<16x32xf8E4M3FN
// CHECK: fp8.dot_general {{.*}} : (!fp8.scaled<16x32xf8E5M2, {{.*}}, !fp8.scaled<32x32xf8E4M3FN
