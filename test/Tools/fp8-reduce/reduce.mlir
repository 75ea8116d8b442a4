// What matters is in the middle: all around it goes, the call too.
// RUN: fp8-reduce %s --test=%S/Inputs/has-cbrt -o %t 2> %t.log
// RUN: FileCheck %s --input-file=%t
// RUN: FileCheck %s --input-file=%t.log --check-prefix=PROGRESS
// RUN: fp8-reduce %s --test=%S/Inputs/has-cbrt --quiet 2>&1 | FileCheck %s

// CHECK:      module
// CHECK-NEXT:   func.func public @main() -> tensor<8x4xf32> {
// CHECK-NEXT:     %[[X:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<8x4xf32>
// CHECK-NEXT:     %[[Y:.*]] = stablehlo.cbrt %[[X]] : tensor<8x4xf32>
// CHECK-NEXT:     return %[[Y]] : tensor<8x4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }

// PROGRESS: fp8-reduce: results: 1 left, {{[0-9]+}} checks

// An error of the compiler, with a loop and a branch around it.
// RUN: env PATH=%fp8_obj_root/bin:$PATH fp8-reduce %s --test=%S/Inputs/cannot-import --test-arg=callback --quiet | FileCheck %s --check-prefix=ERROR
// ERROR:      func.func public @main
// ERROR-NOT:  stablehlo.dot_general
// ERROR-NOT:  stablehlo.cbrt
// ERROR:      stablehlo.custom_call @callback
// ERROR-NOT:  stablehlo.add

// Names of arguments are in locations, which stay where the module has some.
// RUN: sed 's/tensor<16x4xf32>, %%c/tensor<16x4xf32> loc("weights"), %%c/' %s > %t.named
// RUN: fp8-reduce %t.named --test=grep --test-arg=-q --test-arg=weights --quiet | FileCheck %s --check-prefix=NAMED
// NAMED: loc("weights")

// A percent sign in TMPDIR is a character like others, and no temporary file stays.
// RUN: rm -rf %t.%%dir && mkdir %t.%%dir
// RUN: env TMPDIR=%t.%%dir fp8-reduce %t --test=%S/Inputs/has-cbrt --quiet | FileCheck %s
// RUN: ls -A %t.%%dir | count 0

// Mistakes are told.
// RUN: not env TMPDIR=%t.nowhere fp8-reduce %s --test=true 2>&1 | FileCheck %s --check-prefix=NOWHERE
// NOWHERE: fp8-reduce: error: cannot make a temporary directory in '{{.*}}nowhere' (set TMPDIR): No such file or directory
// RUN: not fp8-reduce %s --test=false 2>&1 | FileCheck %s --check-prefix=NO
// NO: fp8-reduce: error: expected a module that 'false' ends with status 0 for but got another status
// RUN: not fp8-reduce %s --test=%t/none 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: fp8-reduce: error: cannot run '{{.*}}/none': {{.*}}(expected an executable, a script with its #! line)
// RUN: not fp8-reduce %t/none --test=true 2>&1 | FileCheck %s --check-prefix=FILE
// FILE: error: could not open input file {{.*}}none
// RUN: not fp8-reduce %s 2>&1 | FileCheck %s --check-prefix=TEST
// TEST: for the --test option: must be specified at least once!

module @jit_f {
  func.func public @main(%a: tensor<8x16xf32>, %b: tensor<16x4xf32>, %c: tensor<8x4xf32>, %unused: tensor<3xi32>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>, tensor<8x4xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.add %0, %c : tensor<8x4xf32>
    %2 = func.call @gate(%1) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %3 = stablehlo.multiply %2, %c : tensor<8x4xf32>
    %4 = stablehlo.cbrt %3 : tensor<8x4xf32>
    %5 = stablehlo.subtract %4, %1 : tensor<8x4xf32>
    %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
    %7 = stablehlo.compare LT, %6, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %8 = "stablehlo.if"(%7) ({
      %10 = stablehlo.custom_call @callback(%5, %1) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
      %11 = stablehlo.add %10, %c : tensor<8x4xf32>
      stablehlo.return %11 : tensor<8x4xf32>
    }, {
      stablehlo.return %4 : tensor<8x4xf32>
    }) : (tensor<i1>) -> tensor<8x4xf32>
    return %5, %3, %6, %8 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>, tensor<8x4xf32>
  }
  func.func private @gate(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = stablehlo.logistic %x : tensor<8x4xf32>
    %1 = stablehlo.multiply %x, %0 : tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}
