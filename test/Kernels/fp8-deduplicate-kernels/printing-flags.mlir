// What is equal does not depend on how IR is printed.
// RUN: fp8-opt %s --fp8-deduplicate-kernels | grep -c 'fp8.kernel' | FileCheck %s
// RUN: fp8-opt %s --fp8-deduplicate-kernels --mlir-print-debuginfo | grep -c 'fp8.kernel' | FileCheck %s
// RUN: fp8-opt %s --fp8-deduplicate-kernels --mlir-elide-elementsattrs-if-larger=1 | grep -c 'fp8.kernel' | FileCheck %s
// RUN: fp8-opt %s --fp8-deduplicate-kernels --mlir-print-op-generic --mlir-print-local-scope | grep -c '"fp8.kernel"' | FileCheck %s
// CHECK: {{^2$}}

// @a and @b differ in locations alone, @c in the last element of a constant.
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = fp8.launch @a(update %x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = fp8.launch @b(update %x) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = fp8.launch @c(update %x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
fp8.kernel @a(update %x: tensor<4xf32>) -> tensor<4xf32> domain = [] {
  %c = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32> loc("here")
  %0 = arith.addf %x, %c : tensor<4xf32> loc("here")
  fp8.return %0 : tensor<4xf32>
}
fp8.kernel @b(update %arg: tensor<4xf32>) -> tensor<4xf32> domain = [] {
  %c = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32> loc("there")
  %0 = arith.addf %arg, %c : tensor<4xf32> loc("there")
  fp8.return %0 : tensor<4xf32>
}
fp8.kernel @c(update %x: tensor<4xf32>) -> tensor<4xf32> domain = [] {
  %c = arith.constant dense<[1.0, 2.0, 3.0, 5.0]> : tensor<4xf32>
  %0 = arith.addf %x, %c : tensor<4xf32>
  fp8.return %0 : tensor<4xf32>
}
