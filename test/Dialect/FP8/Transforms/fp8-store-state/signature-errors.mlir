// RUN: fp8-opt %s --fp8-resolve-recipe="set=optimizer.master.format=bf16 set=optimizer.min_elements=1" --fp8-store-state --verify-diagnostics

// expected-error@+1 {{expected a result that replaces 'p' but got none}}
func.func @main(%p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
                %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "other"}) {
  %0 = stablehlo.subtract %p, %g : tensor<64x32xf32>
  return %0 : tensor<64x32xf32>
}
