// RUN: fp8-opt %s --fp8-verify-gpu --verify-diagnostics --split-input-file

gpu.module @k {
  llvm.func @k(%x: f32) {
    // expected-error @+1 {{was not lowered: expected only ops of the llvm and nvvm dialects in a GPU module at the end of codegen}}
    %0 = arith.truncf %x : f32 to f8E4M3FN
    llvm.return
  }
}

// -----

gpu.module @k {
  // expected-error @+1 {{has no body: kernels call no library}}
  llvm.func @__nv_expf(f32) -> f32
}

// -----

gpu.module @k {
  llvm.func @k(%x: f64) {
    // expected-error @+1 {{has no instruction on a GPU in f64: supported are f32, and in f64 what is made of sums, products, quotients and roots}}
    %0 = llvm.intr.sin(%x) : (f64) -> f64
    llvm.return
  }
}
