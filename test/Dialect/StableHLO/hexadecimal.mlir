// RUN: fp8-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// Booleans in hexadecimal digits: one byte for each, as JAX prints them, or one
// bit, as MLIR 22 does.

// CHECK: stablehlo.constant dense<"0x050000000000000000000000000080"> : tensor<120xi1>
func.func @bytes() -> tensor<120xi1> {
  %0 = stablehlo.constant dense<"0x010001000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001"> : tensor<120xi1>
  return %0 : tensor<120xi1>
}

// -----

// CHECK: stablehlo.constant dense<"0x050000000000000000000000000080"> : tensor<120xi1>
func.func @bits() -> tensor<120xi1> {
  %0 = stablehlo.constant dense<"0x050000000000000000000000000080"> : tensor<120xi1>
  return %0 : tensor<120xi1>
}

// -----

// CHECK: stablehlo.constant dense<[1, 2]> : tensor<2xi32>
func.func @integers() -> tensor<2xi32> {
  %0 = stablehlo.constant dense<"0x0100000002000000"> : tensor<2xi32>
  return %0 : tensor<2xi32>
}

// -----

func.func @too_few() -> tensor<120xi1> {
  // expected-error @+1 {{expected the bytes of 120 elements of 'i1' but got 2 bytes}}
  %0 = stablehlo.constant dense<"0x0100"> : tensor<120xi1>
  return %0 : tensor<120xi1>
}

// -----

func.func @dynamic() -> tensor<?xi32> {
  // expected-error @+1 {{expected hexadecimal digits and a static shape but got 'tensor<?xi32>'}}
  %0 = stablehlo.constant dense<"0x01000000"> : tensor<?xi32>
  return %0 : tensor<?xi32>
}
