// RUN: fp8-opt %s --fp8-verify-scheduled --verify-diagnostics --split-input-file

func.func @main(%x: memref<64xf32>) {
  // expected-error @+1 {{is not part of a planned schedule: expected calls of kernels, control flow, scalars and views of the arena}}
  %a = memref.alloc() : memref<64xf32>
  return
}

// -----

// expected-error @+1 {{expected argument 0 of a kernel to be a static memref with identity layout but got 'memref<?xf32>'}}
func.func private @k(%x: memref<?xf32>) attributes {fp8.domain = array<i64>} {
  return
}
