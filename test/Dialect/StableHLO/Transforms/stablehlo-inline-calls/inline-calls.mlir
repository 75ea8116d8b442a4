// RUN: fp8-opt %s --stablehlo-inline-calls | FileCheck %s
// RUN: fp8-opt %s --stablehlo-inline-calls=entry=twice | FileCheck %s --check-prefix=ENTRY

// CHECK: func.func public @main(%[[X:.*]]: tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[A:.*]] = stablehlo.add %[[X]], %[[X]]
// CHECK-NEXT: %[[B:.*]] = stablehlo.add %[[A]], %[[A]]
// CHECK-NEXT: %[[C:.*]] = stablehlo.tanh %[[B]]
// CHECK-NEXT: return %[[C]]
// CHECK-NOT: func.func
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.composite "my.tanh" %0 {decomposition = @tanh, version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// ENTRY: func.func @main(%[[X:.*]]: tensor<4xf32>) -> tensor<4xf32>
// ENTRY-NEXT: stablehlo.add
// ENTRY-NEXT: stablehlo.add
// ENTRY-NEXT: return
// ENTRY-NOT: func.func
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @double(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @double(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

func.func private @double(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func private @tanh(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
