// RUN: fp8-opt %s --stablehlo-canonicalize-loops --split-input-file | FileCheck %s

// An index out of range takes the last branch.
// CHECK-LABEL: @constant
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
// CHECK-NOT: stablehlo.if
// CHECK-NOT: stablehlo.case
// CHECK: %[[A:.*]] = stablehlo.sine %[[X]]
// CHECK: %[[B:.*]] = stablehlo.abs %[[X]]
// CHECK: return %[[A]], %[[B]]
func.func @constant(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %false = stablehlo.constant dense<false> : tensor<i1>
  %minus = stablehlo.constant dense<-1> : tensor<i32>
  %0 = "stablehlo.if"(%false) ({
    %2 = stablehlo.cosine %x : tensor<4xf32>
    stablehlo.return %2 : tensor<4xf32>
  }, {
    %2 = stablehlo.sine %x : tensor<4xf32>
    stablehlo.return %2 : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  %1 = "stablehlo.case"(%minus) ({
    %2 = stablehlo.cosine %x : tensor<4xf32>
    stablehlo.return %2 : tensor<4xf32>
  }, {
    %2 = stablehlo.abs %x : tensor<4xf32>
    stablehlo.return %2 : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// As JAX writes `lax.cond`. Results that no branch computes are selected, those
// that nobody reads are dropped.
// CHECK-LABEL: @cond
// CHECK-SAME: (%[[P:.*]]: tensor<i1>, %[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>)
// CHECK: %[[S:.*]] = stablehlo.select %[[P]], %[[Y]], %[[X]]
// CHECK: %[[R:.*]] = "stablehlo.if"(%[[P]]) ({
// CHECK-NEXT: stablehlo.cosine
// CHECK: }, {
// CHECK-NEXT: stablehlo.sine
// CHECK: (tensor<i1>) -> tensor<4xf32>
// CHECK: return %[[R]], %[[S]], %[[X]]
func.func @cond(%p: tensor<i1>, %x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %i = stablehlo.convert %p : (tensor<i1>) -> tensor<i32>
  %0:4 = "stablehlo.case"(%i) ({
    %1 = stablehlo.sine %x : tensor<4xf32>
    %2 = stablehlo.exponential %x : tensor<4xf32>
    stablehlo.return %1, %2, %x, %x : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }, {
    %1 = stablehlo.cosine %x : tensor<4xf32>
    %2 = stablehlo.abs %x : tensor<4xf32>
    stablehlo.return %1, %2, %y, %x : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }) : (tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#2, %0#3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
