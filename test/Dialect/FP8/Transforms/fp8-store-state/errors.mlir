// RUN: fp8-opt %s --fp8-store-state="set=optimizer.master.format=bf16 set=optimizer.master.rounding=stochastic set=optimizer.min_elements=1" --verify-diagnostics

// expected-error@+1 {{rounding: stochastic draws other numbers each step, but no argument counts the steps; expected one of kind 'step', such as the count in an optimizer's state}}
func.func @main(%p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
                %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "p"}) {
  %0 = stablehlo.subtract %p, %g : tensor<64x32xf32>
  return %0 : tensor<64x32xf32>
}
