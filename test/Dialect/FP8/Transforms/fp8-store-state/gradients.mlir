// RUN: fp8-opt %S/Inputs/micro_batches.mlir --fp8-import --fp8-quantize="recipe=none set=gradients.format=f8E4M3FN" | FileCheck %s
// RUN: fp8-opt %S/Inputs/micro_batches.mlir --fp8-import --fp8-quantize="recipe=none set=gradients.format=bf16" | FileCheck %s --check-prefix=BF16

// Four micro-batches add up their gradients in a loop. Each gradient is stored,
// and so is the sum after each addition: the loop carries payload and scale. The
// addition itself and the update are in f32.
// CHECK: %[[LOOP:.*]]:4 = stablehlo.while
// CHECK-SAME: tensor<i32>, tensor<4xf32>, tensor<128x64xf8E4M3FN>, tensor<f32>
// CHECK: %[[DOT:.*]] = stablehlo.dot_general {{.*}} -> tensor<64x128xf32>
// CHECK: %[[GRADIENT:.*]] = stablehlo.transpose %[[DOT]]
// CHECK: %[[STORED:.*]] = fp8.quantize %[[GRADIENT]],
// CHECK: %[[READ:.*]] = fp8.dequantize %[[STORED]]
// CHECK: %[[CARRY:.*]] = fp8.pack %{{.*}}, %{{.*}}
// CHECK: %[[BEFORE:.*]] = fp8.dequantize %[[CARRY]]
// CHECK: %[[SUM:.*]] = stablehlo.add %[[BEFORE]], %[[READ]]
// CHECK: %[[AMAX:.*]] = fp8.amax %[[SUM]]
// CHECK: %[[SCALE:.*]], %[[QUANTIZER:.*]] = fp8.compute_scale %[[AMAX]]
// CHECK: %[[NEXT:.*]] = fp8.quantize %[[SUM]], %[[SCALE]], %[[QUANTIZER]]
// CHECK: %[[PAYLOAD:.*]], %[[PART:.*]] = fp8.unpack %[[NEXT]]
// CHECK: stablehlo.return %{{.*}}, %{{.*}}, %[[PAYLOAD]], %[[PART]]
// CHECK: %[[TOTAL:.*]] = fp8.pack %[[LOOP]]#2, %[[LOOP]]#3
// CHECK: %[[F32:.*]] = fp8.dequantize %[[TOTAL]]
// CHECK: stablehlo.multiply %[[F32]],

// Without a scale it is rounded.
// BF16: stablehlo.while
// BF16-SAME: tensor<i32>, tensor<4xf32>, tensor<128x64xbf16>
// BF16: %[[ROUNDED:.*]] = fp8.round %{{.*}} rounding = nearest_even : tensor<128x64xf32> -> tensor<128x64xbf16>
// BF16: %[[SUM:.*]] = stablehlo.add
// BF16: %[[NEXT:.*]] = fp8.round %[[SUM]]
// BF16: stablehlo.return %{{.*}}, %{{.*}}, %[[NEXT]]
