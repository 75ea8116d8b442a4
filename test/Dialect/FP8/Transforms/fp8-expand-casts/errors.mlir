// RUN: fp8-opt %s --fp8-expand-casts --split-input-file --verify-diagnostics

func.func @add(%x: f8E4M3FN) -> f8E4M3FN {
  // expected-error@+1 {{expected f8 only in casts, comparisons and copies but got f8 arithmetic}}
  %0 = arith.addf %x, %x : f8E4M3FN
  return %0 : f8E4M3FN
}

// -----

func.func @upward(%x: f32) -> f8E4M3FN {
  // expected-error@+1 {{expected f8 only in casts, comparisons and copies but got f8 arithmetic}}
  %0 = arith.truncf %x upward : f32 to f8E4M3FN
  return %0 : f8E4M3FN
}
