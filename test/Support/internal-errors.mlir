// An error of the verifier after a pass of ours is called ours; one that a pass
// has about its input is not, nor one of the input itself.
// RUN: not fp8-opt %s -split-input-file -test-fp8-break-function 2>&1 | FileCheck %s --implicit-check-not="internal error"

// CHECK: :[[#@LINE+3]]:1: error: empty block: expect at least a terminator
// CHECK: error: internal error: pass 'test-fp8-break-function' made this; the mistake is fp8's, not the input's.
// CHECK-SAME: Please report it with the input and the command line (docs/Debugging.md)
func.func @terminator() attributes {break} {
  return
}

func.func @sound() {
  return
}

// -----

// CHECK: :[[#@LINE+4]]:8: error: operand #0 does not dominate this use
// CHECK: error: internal error: pass 'test-fp8-break-function' made this
func.func @dominance(%x: f32) -> f32 attributes {swap} {
  %0 = arith.addf %x, %x : f32
  %1 = arith.addf %0, %x : f32
  return %1 : f32
}

// -----

// CHECK: :[[#@LINE+1]]:1: error: 'func.func' op expected another function
func.func @refused() attributes {refuse} {
  return
}

// -----

// CHECK: :[[#@LINE+1]]:1: error: 'func.func' op expected another function
func.func @refused_and_broken() attributes {break, refuse} {
  return
}

// -----

func.func @input(%x: f32) -> f32 {
  // CHECK: :[[#@LINE+1]]:8: error: operand #0 does not dominate this use
  %1 = arith.addf %0, %x : f32
  %0 = arith.addf %x, %x : f32
  return %1 : f32
}
