// The label of an internal error is an error without a location, and a test can
// expect it. There is no label if the verifier does not run after the pass.
// RUN: fp8-opt %s -test-fp8-break-function -verify-diagnostics
// RUN: fp8-opt %s -test-fp8-break-function -verify-each=false -o /dev/null 2>&1 | FileCheck %s --allow-empty
// RUN: not fp8-opt %s -mlir-very-unsafe-disable-verifier-on-parsing -test-fp8-break-function 2>&1 | FileCheck %s
// CHECK-NOT: error: internal error

// expected-error@unknown {{internal error: pass 'test-fp8-break-function' made this}}
// expected-error@below {{empty block: expect at least a terminator}}
func.func @terminator() attributes {break} {
  return
}
