// RUN: fp8-opt %S/../Inputs/mlp.mlir --fp8-quantize="recipe=tensorwise set=compute.saved=bf16" | FileCheck %s
// RUN: fp8-opt %S/../Inputs/mlp.mlir --fp8-quantize="recipe=none set=compute.saved=bf16" | FileCheck %s --check-prefix=NONE

// What the backward pass reads is the bf16 form of what the forward pass
// computed; the forward pass goes on with the f32 one. A quantized dot reads a
// payload, which is made of the f32 tensor.
// CHECK: %[[A1:.*]] = stablehlo.tanh {{.*}} : tensor<2x128x384xf32>
// CHECK-DAG: %[[B1:.*]] = stablehlo.convert %[[A1]] : (tensor<2x128x384xf32>) -> tensor<2x128x384xbf16>
// CHECK-DAG: %[[K1:.*]] = stablehlo.optimization_barrier %[[B1]]
// CHECK-DAG: fp8.quantize %[[A1]],
// CHECK: %[[A2:.*]] = stablehlo.tanh {{.*}} : tensor<2x128x256xf32>
// CHECK: %[[B2:.*]] = stablehlo.convert %[[A2]] : (tensor<2x128x256xf32>) -> tensor<2x128x256xbf16>
// CHECK: %[[K2:.*]] = stablehlo.optimization_barrier %[[B2]]
// The head's own dots read bf16 in any case.
// CHECK: stablehlo.dot_general %[[B2]],
// CHECK: %[[R2:.*]] = stablehlo.convert %[[K2]] : (tensor<2x128x256xbf16>) -> tensor<2x128x256xf32>
// CHECK: stablehlo.multiply {{.*}}, %[[R2]] : tensor<2x128x256xf32>
// CHECK: %[[R1:.*]] = stablehlo.convert %[[K1]] : (tensor<2x128x384xbf16>) -> tensor<2x128x384xf32>
// CHECK: stablehlo.multiply {{.*}}, %[[R1]] : tensor<2x128x384xf32>

// NONE: %[[B1:.*]] = stablehlo.convert {{.*}} -> tensor<2x128x384xbf16>
// NONE: %[[K1:.*]] = stablehlo.optimization_barrier %[[B1]]
// NONE: stablehlo.dot_general {{.*}} : (tensor<2x128x384xf32>, tensor<384x256xf32>) -> tensor<2x128x256xf32>
// The weight gradient's dot is in high precision, and reads what was saved.
// NONE: %[[R1:.*]] = stablehlo.convert %[[K1]] : (tensor<2x128x384xbf16>) -> tensor<2x128x384xf32>
// NONE: stablehlo.dot_general %[[R1]], {{.*}} contracting_dims = [0, 1] x [0, 1]
