// RUN: fp8-opt %s --fp8-resolve-recipe="set=optimizer.master.format=f16 set=optimizer.master.tile=tensor set=optimizer.min_elements=1" --fp8-store-state | FileCheck %s

// What a clamp does to zeros follows from its bounds; a splat has one element,
// whatever its type.
// CHECK-LABEL: func.func @lower_clamp
// CHECK: stablehlo.clamp
func.func @lower_clamp(%p: tensor<4294967296x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
                       %g: tensor<4294967296x32xf32> {fp8.path = "g", fp8.role = "batch"}, %c: tensor<i1> {fp8.path = "c", fp8.role = "constant"})
    -> (tensor<4294967296x32xf32> {fp8.path = "result[0]", fp8.state = "p"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<4294967296x32xf32>
  %low = stablehlo.constant dense<1.0e-3> : tensor<4294967296x32xf32>
  %one = stablehlo.constant dense<1.0> : tensor<4294967296x32xf32>
  %0 = stablehlo.select %c, %g, %zero : tensor<i1>, tensor<4294967296x32xf32>
  %1 = stablehlo.clamp %low, %0, %one : tensor<4294967296x32xf32>
  %2 = stablehlo.add %p, %1 : tensor<4294967296x32xf32>
  return %2 : tensor<4294967296x32xf32>
}
