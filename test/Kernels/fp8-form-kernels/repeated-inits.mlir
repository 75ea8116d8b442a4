// RUN: fp8-opt %s --fp8-structure --fp8-kernels | FileCheck %s

// A sort moves the places of its elements as signed and as unsigned numbers,
// which are one value: the loop starts from a copy of it for one of them.
// CHECK: fp8.kernel @{{.*}} domain = [] {
// CHECK: memref.alloc() {{.*}} : memref<10x30xi32>
// CHECK: scf.for
func.func public @main(%x: tensor<10x30xf32>) -> (tensor<10x30xf32>, tensor<10x30xi32>) {
  %i = stablehlo.iota dim = 1 : tensor<10x30xi32>
  %u = stablehlo.iota dim = 1 : tensor<10x30xui32>
  %n = stablehlo.negate %x : tensor<10x30xf32>
  %0:3 = "stablehlo.sort"(%n, %i, %u) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>, %e: tensor<ui32>, %f: tensor<ui32>):
    %less = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<10x30xf32>, tensor<10x30xi32>, tensor<10x30xui32>) -> (tensor<10x30xf32>, tensor<10x30xi32>, tensor<10x30xui32>)
  return %0#0, %0#1 : tensor<10x30xf32>, tensor<10x30xi32>
}
