// RUN: fp8-opt %s --fp8-resolve-recipe="set=optimizer.master.format=bf16 set=optimizer.master.rounding=stochastic set=optimizer.min_elements=1" --fp8-store-state | FileCheck %s

// A loop that ends on another condition than its count, as a line search does,
// counts all the same: the seed of an iteration follows from that.
// CHECK: stablehlo.while({{[^ ]+}} = {{[^ ]+}}, {{[^ ]+}} = {{[^ ]+}}, %[[COUNT:[^ ]+]] = %
// CHECK: do {
// CHECK: fp8.mix_seed %{{[^ ]+}}, %[[COUNT]] :
func.func @main(%p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
                %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "p"}) {
  %limit = stablehlo.constant dense<1.0> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:3 = stablehlo.while(%own = %p, %size = %limit, %count = %zero) : tensor<64x32xf32>, tensor<f32>, tensor<i32>
  cond {
    %1 = stablehlo.compare LT, %size, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.subtract %own, %g : tensor<64x32xf32>
    %2 = stablehlo.add %size, %size : tensor<f32>
    %3 = stablehlo.add %count, %one : tensor<i32>
    stablehlo.return %1, %2, %3 : tensor<64x32xf32>, tensor<f32>, tensor<i32>
  }
  return %0#0 : tensor<64x32xf32>
}
