// RUN: fp8-opt %s --stablehlo-inline-calls --split-input-file --verify-diagnostics

func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// expected-error @+1 {{expected no recursion but 'f' calls itself, which StableHLO does not allow}}
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// expected-error @+1 {{expected one public function or one named 'main' but got 2: a, b}}
module {
  func.func public @a(%x: tensor<f32>) -> tensor<f32> {
    return %x : tensor<f32>
  }
  func.func public @b(%x: tensor<f32>) -> tensor<f32> {
    return %x : tensor<f32>
  }
}

// -----

func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{'func.call' op expected 'f' to have a body of one block}}
  %0 = call @f(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @f(%x: tensor<f32>) -> tensor<f32>
