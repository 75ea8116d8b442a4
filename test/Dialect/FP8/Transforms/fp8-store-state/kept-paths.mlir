// RUN: fp8-opt %s --fp8-resolve-recipe="set=optimizer.moment1.format=bf16 set=optimizer.min_elements=1 set=optimizer.keep=[\"p*\"]" --fp8-store-state -o /dev/null
// RUN: fp8-opt %s --fp8-resolve-recipe="set=optimizer.moment1.format=bf16 set=optimizer.min_elements=1 set=optimizer.keep=[\"q*\"]" --fp8-store-state --verify-diagnostics

// expected-error@+1 {{expected the path 'q*' of optimizer.keep to match a parameter of the step, but it matches none}}
func.func @main(%p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
                %m: tensor<64x32xf32> {fp8.kind = "moment1", fp8.parameter = "p", fp8.path = "m", fp8.role = "state"},
                %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "p"}, tensor<64x32xf32> {fp8.path = "result[1]", fp8.state = "m"}) {
  %0 = stablehlo.add %m, %g : tensor<64x32xf32>
  %1 = stablehlo.subtract %p, %0 : tensor<64x32xf32>
  return %1, %0 : tensor<64x32xf32>, tensor<64x32xf32>
}
