// RUN: fp8-opt %s --fp8-lower-kernels --verify-diagnostics --split-input-file

// expected-error @+1 {{expected a module with the attribute 'fp8.target': run --fp8-target first}}
module {}

// -----

// expected-error @+1 {{expected kernels and a schedule but got none; run fp8-kernels first}}
module attributes {fp8.target = #fp8.cpu_target<triple = "x86_64-unknown-linux-gnu", cpu = "x86-64-v3", features = "", vector_bits = 256>} {
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    return %x : tensor<8xf32>
  }
}

// -----

module attributes {fp8.target = #fp8.cpu_target<triple = "x86_64-unknown-linux-gnu", cpu = "x86-64-v3", features = "", vector_bits = 256>} {
  // expected-error @+1 {{expected a body and a plan: run --fp8-plan-tiles first}}
  fp8.kernel @k(update %x: memref<8xf32>) domain = [] {
    fp8.return
  }
}

// -----

module attributes {fp8.target = #fp8.cpu_target<triple = "x86_64-unknown-linux-gnu", cpu = "x86-64-v3", features = "", vector_bits = 256>} {
  // expected-error @+1 {{expected a plan with keys to be that of an attention with a causal mask or a window, and its keys to be all, or a multiple of 32 that covers the window}}
  fp8.kernel @k(update %x: memref<8xf32>) domain = [] plan = #fp8.cpu_plan<tile = [], keys = 8> {
    fp8.return
  }
}

// -----

module attributes {fp8.target = #fp8.cpu_target<triple = "x86_64-unknown-linux-gnu", cpu = "x86-64-v3", features = "", vector_bits = 256>} {
  fp8.kernel @k(read %x: memref<8x8xf32>, update %y: memref<8x8xf32>) domain = [] plan = #fp8.cpu_plan<tile = []> {
    // expected-error @+1 {{is not part of a kernel: expected linalg.generic, linalg.fill, scf.for, memref.alloc or arith ops}}
    linalg.matmul ins(%x, %x : memref<8x8xf32>, memref<8x8xf32>) outs(%y : memref<8x8xf32>)
    fp8.return
  }
}
