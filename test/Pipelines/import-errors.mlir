// RUN: not fp8-opt %s --fp8-import="entry=step" 2>&1 | FileCheck %s

// CHECK: error: expected the name of a function but got 'step'; public functions are: main
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
