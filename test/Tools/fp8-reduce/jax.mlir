// REQUIRES: jax
// tanh differs from JAX's in the last bit. The check that comes
// with the program finds the difference behind a dot, and the reduced module
// still shows it.
// RUN: not env PATH=%fp8_obj_root/bin:$PATH %fp8_python %fp8_src_root/tools/fp8-reduce/differs-from-jax.py %s
// RUN: env PATH=%fp8_obj_root/bin:$PATH fp8-reduce %s --test=%fp8_python --test-arg=%fp8_src_root/tools/fp8-reduce/differs-from-jax.py --test-arg=--tolerance=0 --quiet -o %t
// RUN: env PATH=%fp8_obj_root/bin:$PATH %fp8_python %fp8_src_root/tools/fp8-reduce/differs-from-jax.py %t --tolerance=0
// RUN: FileCheck %s --input-file=%t

// CHECK-NOT: stablehlo.maximum
// CHECK-NOT: stablehlo.reverse
// CHECK:     stablehlo.tanh
// CHECK-NOT: stablehlo.maximum
// CHECK-NOT: stablehlo.reverse
// CHECK:     return

module @jit_f {
  func.func public @main(%a: tensor<8x16xf32>, %b: tensor<8x16xf32>, %n: tensor<4xi32>) -> (tensor<8x16xf32>, tensor<4xi32>) {
    %0 = stablehlo.maximum %a, %b : tensor<8x16xf32>
    %1 = stablehlo.reverse %0, dims = [1] : tensor<8x16xf32>
    %2 = stablehlo.tanh %1 : tensor<8x16xf32>
    %3 = stablehlo.multiply %2, %a : tensor<8x16xf32>
    %4 = stablehlo.maximum %3, %b : tensor<8x16xf32>
    return %4, %n : tensor<8x16xf32>, tensor<4xi32>
  }
}
