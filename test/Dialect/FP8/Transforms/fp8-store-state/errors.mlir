// RUN: fp8-opt %s --fp8-resolve-recipe="set=optimizer.master.format=bf16 set=optimizer.master.rounding=stochastic set=optimizer.min_elements=1" --fp8-store-state --verify-diagnostics

func.func @main(%p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
                %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "p"}) {
  %limit = stablehlo.constant dense<1.0> : tensor<f32>
  // expected-error@+1 {{rounding: stochastic draws other numbers each iteration, but this loop has no counter}}
  %0:2 = stablehlo.while(%own = %p, %size = %limit) : tensor<64x32xf32>, tensor<f32>
  cond {
    %1 = stablehlo.compare LT, %size, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.subtract %own, %g : tensor<64x32xf32>
    %2 = stablehlo.add %size, %size : tensor<f32>
    stablehlo.return %1, %2 : tensor<64x32xf32>, tensor<f32>
  }
  return %0#0 : tensor<64x32xf32>
}
