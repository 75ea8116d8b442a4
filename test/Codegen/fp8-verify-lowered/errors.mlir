// RUN: fp8-opt %s --fp8-verify-lowered --verify-diagnostics

// An f8 cast that nothing lowered.
llvm.func @f(%x: f32) {
  // expected-error @+1 {{was not lowered: expected only ops of the llvm dialect at the end of codegen}}
  %0 = arith.truncf %x : f32 to f8E4M3FN
  llvm.return
}
