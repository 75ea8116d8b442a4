// Attributes of Shardy are kept as text, without the comments in and behind it.
// RUN: fp8-opt %s --mlir-print-op-generic | fp8-opt | FileCheck %s --implicit-check-not=//

// CHECK: sdy.mesh @behind = <["x"=2]>
sdy.mesh @behind = <["x"=2]>  // a comment

// CHECK: sdy.mesh @between = <["x"=2,
// CHECK-NEXT: "y"=4]>
sdy.mesh @between = <["x"=2, // "z"=8
                      "y"=4]>

// CHECK: sdy.mesh @name = <["a:\"b"=4]>
sdy.mesh @name = <["a:\"b"=4]>
