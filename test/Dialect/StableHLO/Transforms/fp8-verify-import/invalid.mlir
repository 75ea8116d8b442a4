// RUN: fp8-opt %s --fp8-verify-import --split-input-file --verify-diagnostics

// expected-error @+1 {{expected argument 0 of 'main' to have the attribute 'fp8.path'; run fp8-analyze-signature first}}
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
// expected-error @+1 {{'func.func' is left beside '@main' after the import: expected one function}}
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

// expected-error @+1 {{expected one public function '@main' with a body of one block after the import}}
module {
  func.func public @step(%x: tensor<f32>) -> tensor<f32> {
    return %x : tensor<f32>
  }
}

// -----

func.func public @main(%x: tensor<f32> {fp8.path = "x", fp8.role = "frozen"}) -> (tensor<f32> {fp8.path = "result", fp8.kind = "output"}) {
  // expected-error @+1 {{'stablehlo.custom_call' op has the target 'my_kernel', which does not run here: expected only annotations of sharding; see docs/StableHLOSubset.md}}
  %0 = stablehlo.custom_call @my_kernel(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func public @main(%x: f32 {fp8.path = "x", fp8.role = "frozen"}) -> (f32 {fp8.path = "result", fp8.kind = "output"}) {
  // expected-error @+1 {{'arith.addf' is not accepted after the import: expected stablehlo and chlo ops; see docs/StableHLOSubset.md}}
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}

// -----

// expected-error @+1 {{expected 'fp8.role' of argument 0 to be state, frozen, batch, key or constant but got 'weight'}}
func.func public @main(%x: tensor<f32> {fp8.path = "x", fp8.role = "weight"}) -> (tensor<f32> {fp8.path = "result", fp8.kind = "output"}) {
  return %x : tensor<f32>
}

// -----

// expected-error @+1 {{expected unique argument paths but 'x' is there twice}}
func.func public @main(%x: tensor<f32> {fp8.path = "x", fp8.role = "frozen"}, %y: tensor<f32> {fp8.path = "x", fp8.role = "frozen"}) -> (tensor<f32> {fp8.path = "result", fp8.kind = "output"}) {
  return %x : tensor<f32>
}

// -----

// expected-error @+1 {{expected a result that replaces the state 'x'}}
func.func public @main(%x: tensor<f32> {fp8.path = "x", fp8.role = "state", fp8.kind = "other"}) -> (tensor<f32> {fp8.path = "result", fp8.kind = "output"}) {
  return %x : tensor<f32>
}

// -----

// expected-error @+1 {{expected result 'result' to replace a state argument but got 'y'}}
func.func public @main(%x: tensor<f32> {fp8.path = "x", fp8.role = "state", fp8.kind = "other"}) -> (tensor<f32> {fp8.path = "result", fp8.state = "y"}) {
  return %x : tensor<f32>
}

// -----

// expected-error @below {{expected argument 0 to be a statically shaped tensor of boolean, integer or floating-point values but got 'tensor<2xcomplex<f32>>'}}
func.func @main(%arg0: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
  return %arg0 : tensor<2xcomplex<f32>>
}

// -----

// expected-error @below {{expected argument 0 to be a statically shaped tensor of boolean, integer or floating-point values but got 'tensor<?xf32>'}}
func.func @main(%arg0: tensor<?xf32>) -> tensor<?xf32> {
  return %arg0 : tensor<?xf32>
}
