// RUN: fp8-opt %s --fp8-lower-schedule --verify-diagnostics

fp8.schedule @a(%arena: memref<0xi8>, %x: memref<8xf32>) arena_bytes = 0 {
  fp8.return
}

// expected-error @+1 {{expected one schedule for the step, and one for each entry 'store' and 'load', but got another}}
fp8.schedule @b(%arena: memref<0xi8>, %x: memref<8xf32>) arena_bytes = 0 {
  fp8.return
}
