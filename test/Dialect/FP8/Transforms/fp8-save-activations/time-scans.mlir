// RUN: fp8-opt %S/Inputs/time_scan.mlir --fp8-import --fp8-quantize="recipe=tensorwise set=compute.saved=bf16" | FileCheck %s

// A recurrent layer reads one step of what was computed for all of them before.
// Its backward loop restores and recomputes no more than that step: here of
// tanh(x q), halved. Of what a reshape separates from the slice, all is
// recomputed in front of the loop.
// CHECK: stablehlo.while
// CHECK: contracting_dims = [2] x [1]
// CHECK: %[[WIDE:.*]] = stablehlo.convert %{{.*}} : (tensor<8x16x64xbf16>) -> tensor<8x16x64xf32>
// CHECK-NEXT: %[[HALF:.*]] = stablehlo.multiply %[[WIDE]],
// CHECK-NEXT: %[[HEADS:.*]] = stablehlo.reshape %[[HALF]] : (tensor<8x16x64xf32>) -> tensor<8x16x2x32xf32>
// CHECK-NEXT: %[[STEPS:.*]] = stablehlo.transpose %[[HEADS]], dims = [1, 0, 2, 3]
// CHECK: stablehlo.while
// CHECK: %[[NARROW:.*]] = stablehlo.dynamic_slice %{{.*}} : (tensor<16x8x2x32xbf16>, {{.*}}) -> tensor<1x8x2x32xbf16>
// CHECK-NEXT: %[[STEP:.*]] = stablehlo.convert %[[NARROW]]
// CHECK-NEXT: stablehlo.multiply %[[STEP]], %{{.*}} : tensor<1x8x2x32xf32>
// CHECK-NOT: tensor<16x8x2x32xbf16>
// CHECK: stablehlo.dynamic_slice %[[STEPS]],
