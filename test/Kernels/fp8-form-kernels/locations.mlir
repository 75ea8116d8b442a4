// RUN: not fp8-opt %s --fp8-form-kernels 2>&1 | FileCheck %s

// Constants that folding has merged have no location.
// CHECK: locations.mlir:[[# @LINE + 3]]:{{[0-9]+}}: error: 'stablehlo.constant' op expected structured ops
func.func @main() -> tensor<8xf32> {
  %0 = stablehlo.constant dense<1.0> : tensor<8xf32> loc(unknown)
  return %0 : tensor<8xf32>
}
