// RUN: fp8-opt %s --stablehlo-inline-calls --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// What was inlined remembers the call; arguments keep their names.
// CHECK: func.func public @main(%{{.*}}: tensor<4xf32> loc("p['w']"))
// CHECK-NEXT: stablehlo.add {{.*}} loc(callsite("inner" at "outer"))
func.func public @main(%x: tensor<4xf32> loc("p['w']")) -> tensor<4xf32> {
  %0 = call @double(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("outer")
  return %0 : tensor<4xf32>
}
func.func private @double(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32> loc("inner")
  return %0 : tensor<4xf32>
}
