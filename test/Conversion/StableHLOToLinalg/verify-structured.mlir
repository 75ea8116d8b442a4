// RUN: fp8-opt %s --fp8-verify-structured --split-input-file --verify-diagnostics

func.func @left(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.add' op is not structured; expected arith.constant, tensor.empty, tensor.expand_shape, tensor.collapse_shape, linalg.generic, linalg.fill or scf.for in a function}}
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @scalar(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{'tensor.extract' op is not structured}}
  %0 = tensor.extract %x[] : tensor<f32>
  %1 = tensor.from_elements %0 : tensor<f32>
  return %1 : tensor<f32>
}

// -----

func.func @loop(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %0 = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %x) -> tensor<4xf32> {
    // expected-error @+1 {{'tensor.empty' op is not structured; expected arith and math ops on scalars, tensor.extract, tensor.insert or scf.for in a loop}}
    %1 = tensor.empty() : tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @sign() -> tensor<4xui32> {
  // expected-error @+1 {{expected signless integers but got 'tensor<4xui32>'}}
  %0 = tensor.empty() : tensor<4xui32>
  return %0 : tensor<4xui32>
}
