// RUN: fp8-opt %s --fp8-analyze-signature --split-input-file | FileCheck %s

// No names anywhere; nothing trains, so that an elementwise result of an
// argument's type is no state.
// CHECK: %{{.*}}: tensor<4xf32> {fp8.path = "arg0", fp8.role = "frozen"}
// CHECK-SAME: (tensor<4xf32> {fp8.kind = "output", fp8.path = "result0"})
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Equal names are told apart.
// CHECK: fp8.path = "x", fp8.role = "frozen"
// CHECK-SAME: fp8.path = "x#2", fp8.role = "frozen"
func.func public @main(%x: tensor<4xf32> loc("x"), %y: tensor<4xf32> loc("x")) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %y : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A key is never batch.
// CHECK: fp8.path = "key", fp8.role = "key"
func.func public @main(%key: tensor<2xui32> loc("key")) -> tensor<2xui32> {
  %0 = stablehlo.xor %key, %key : tensor<2xui32>
  return %0 : tensor<2xui32>
}
