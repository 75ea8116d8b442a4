// Private functions are inlined, into regions too, and removed.
// RUN: fp8-opt %s --inline --symbol-dce | FileCheck %s

// CHECK: func.func @main(%[[N:.*]]: tensor<i32>, %[[X:.*]]: tensor<4xf32>)
// CHECK: stablehlo.while
// CHECK: stablehlo.compare LT
// CHECK: } do {
// CHECK: %[[SQUARE:.*]] = chlo.square
// CHECK: stablehlo.reduce(%[[SQUARE]] init: %{{.*}}) applies stablehlo.maximum across dimensions = [0]
// CHECK-NOT: call @
// CHECK-NOT: func.func private
func.func @main(%n: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %acc = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %1 = func.call @less(%i, %n) : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = func.call @norm(%acc) : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %1, %2 : tensor<i32>, tensor<4xf32>
  }
  return %0#1 : tensor<4xf32>
}

func.func private @less(%a: tensor<i32>, %b: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  return %0 : tensor<i1>
}

func.func private @norm(%x: tensor<4xf32>) -> tensor<4xf32> {
  %init = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = chlo.square %x : tensor<4xf32> -> tensor<4xf32>
  %1 = stablehlo.reduce(%0 init: %init) applies stablehlo.maximum across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %3 = stablehlo.divide %x, %2 : tensor<4xf32>
  return %3 : tensor<4xf32>
}
