// RUN: fp8-opt %s --fp8-elide-copies --verify-diagnostics
// RUN: fp8-opt %s --fp8-bufferize-kernels --verify-diagnostics

// After fp8-codegen kernels are functions.
func.func private @kernel(%task: index, %scratch: memref<0xi8>, %x: memref<8xf32>) attributes {fp8.tasks = 1 : i64}
fp8.schedule @main(%x: memref<8xf32>) {
  // expected-error @below {{'fp8.launch' op expected '@kernel' to be a fp8.kernel: the pass runs before fp8-codegen}}
  fp8.launch @kernel(write %x) : (memref<8xf32>) -> ()
  fp8.return
}
