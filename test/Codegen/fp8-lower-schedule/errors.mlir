// RUN: fp8-opt %s --fp8-lower-schedule --verify-diagnostics

// expected-error @+1 {{expected one planned schedule but got 0}}
module {
  func.func @main(%x: memref<64xf32>) {
    return
  }
}
