// RUN: fp8-opt %s --convert-stablehlo-to-linalg --split-input-file --verify-diagnostics

func.func @unknown_target(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.custom_call' op has no lowering to linalg; docs/StableHLOSubset.md lists the ops that have}}
  %0 = stablehlo.custom_call @something(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @state_of_one(%s: tensor<1xui64>) -> tensor<4xui32> {
  // expected-error @+2 {{failed to legalize operation 'stablehlo.rng_bit_generator'}}
  // expected-error @+1 {{'stablehlo.rng_bit_generator' op expected a state of 2 or 3 elements but got 'tensor<1xui64>'}}
  %0, %1 = stablehlo.rng_bit_generator %s, algorithm = DEFAULT : (tensor<1xui64>) -> (tensor<1xui64>, tensor<4xui32>)
  return %1 : tensor<4xui32>
}
