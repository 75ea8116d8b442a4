// What the file format and the kernels have no type for is an error that says
// where.
// RUN: not fp8-run %s --entry main --inputs /dev/null --outputs %t 2>&1 | FileCheck %s

// CHECK: conformance-types.mlir:[[@LINE+1]]:17: element type of 'arg0' is not supported at run time: 'tensor<4xi4>'
func.func @main(%x: tensor<4xi4>) -> tensor<4xi4> {
  %0 = stablehlo.add %x, %x : tensor<4xi4>
  return %0 : tensor<4xi4>
}
