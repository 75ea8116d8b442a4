// RUN: fp8-opt %s --fp8-lower-schedule --verify-diagnostics --split-input-file

// expected-error @+1 {{expected a planned schedule but got none}}
module {
  func.func @main(%x: memref<64xf32>) {
    return
  }
}

// -----

// expected-error @+1 {{expected a planned schedule: run --fp8-plan-memory first}}
fp8.schedule @main(%x: memref<64xf32>) {
  fp8.return
}

// -----

fp8.kernel @k(update %x: memref<64xf32>) domain = []
fp8.schedule @main(%arena: memref<0xi8>, %x: memref<64xf32>) arena_bytes = 0 {
  // expected-error @+1 {{expected a kernel lowered by fp8-lower-kernels}}
  fp8.launch @k(update %x) number = 0 : (memref<64xf32>) -> ()
  fp8.return
}
