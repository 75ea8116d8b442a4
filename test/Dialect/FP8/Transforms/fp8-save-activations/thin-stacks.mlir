// RUN: fp8-opt %S/Inputs/gated_scan.mlir --fp8-import --fp8-quantize="recipe=tensorwise set=compute.saved=bf16" | FileCheck %s
// RUN: fp8-opt %S/Inputs/gated_scan.mlir --fp8-import --fp8-quantize="recipe=tensorwise set=compute.saved=f32" | FileCheck %s --check-prefix=F32

// Autodiff stacks six tensors a layer: x, the gate, its sigmoid s and s(1-s), the
// gate times s, the linear branch and the product. With compute.saved the loop
// stacks the payloads of the two that dots read, gate and linear branch; the
// backward loop computes the rest from these.
// CHECK: %[[F:.*]]:8 = stablehlo.while
// CHECK-SAME: tensor<i32>, tensor<2x64x128xf32>, tensor<3x2x64x128xf8E4M3FN>, tensor<3xf32>, tensor<3x2x64x256xbf16>, tensor<3x2x64x256xbf16>, tensor<3x2x64x256xf8E4M3FN>, tensor<3xf32>
// CHECK: stablehlo.exponential
// CHECK: stablehlo.while
// CHECK: %[[SLOT:.*]] = stablehlo.dynamic_slice %[[F]]#4, %[[I:[^,]*]],
// CHECK: %[[NARROW:.*]] = stablehlo.reshape %[[SLOT]]
// CHECK: %[[GATE:.*]] = stablehlo.convert %[[NARROW]]
// CHECK: %[[NEG:.*]] = stablehlo.negate %[[GATE]]
// CHECK: %[[EXP:.*]] = stablehlo.exponential %[[NEG]]
// CHECK: %[[SUM:.*]] = stablehlo.add %[[EXP]],
// CHECK: %[[SIGMOID:.*]] = stablehlo.divide {{.*}}, %[[SUM]]
// CHECK: stablehlo.dynamic_slice %[[F]]#5, %[[I]],

// Without it nothing is computed twice.
// F32: stablehlo.exponential
// F32: stablehlo.while
// F32-NOT: stablehlo.exponential
