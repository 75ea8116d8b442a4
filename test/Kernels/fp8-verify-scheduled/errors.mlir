// RUN: fp8-opt %s --fp8-verify-scheduled --verify-diagnostics --split-input-file

fp8.schedule @main(%x: memref<64xf32>) {
  // expected-error @+1 {{is not part of a planned schedule: expected launches of kernels, collectives, control flow, scalars and views of the arena}}
  %a = memref.alloc() : memref<64xf32>
  fp8.return
}

// -----

// expected-error @+1 {{is not part of the result of stage 4: expected schedules, kernels and constants}}
func.func @main(%x: memref<64xf32>) {
  return
}

// -----

fp8.kernel @k(update %x: memref<8xf32>) domain = []
fp8.schedule @main(%x: memref<8xf32>) {
  // expected-error @+1 {{expected a number}}
  fp8.launch @k(update %x) : (memref<8xf32>) -> ()
  fp8.return
}

// -----

fp8.kernel @k(update %x: memref<8xf32>) domain = []
fp8.schedule @main(%x: memref<8xf32>) {
  fp8.launch @k(update %x) number = 3 : (memref<8xf32>) -> ()
  // expected-error @+1 {{expected a number of its own but got 3 again}}
  fp8.launch @k(update %x) number = 3 : (memref<8xf32>) -> ()
  fp8.return
}

// -----

// expected-error @+1 {{expected argument 0 of a kernel to be a buffer but got 'tensor<8xf32>'}}
fp8.kernel @k(update %x: tensor<8xf32>) -> tensor<8xf32> domain = [] {
  fp8.return %x : tensor<8xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// What it adds to is read too.
// expected-error @+1 {{expected argument 1 to be 'update', as the body does, but got 'write'}}
fp8.kernel @k(read %x: memref<8xf32>, write %y: memref<8xf32>) domain = [] {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) attrs = {fp8.task_dims = array<i64>} {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }
  fp8.return
}

// -----

// The kernel must divide into slices along its leading dimension.
fp8.kernel @k(update %x: memref<4x8xf32>) domain = [8]
fp8.schedule @main(%x: memref<4x8xf32> {fp8.shard = 1 : i64, fp8.slices = 4 : i64}) {
  // expected-error @+1 {{expected a kernel that divides into 4 slices along its leading dimension}}
  fp8.launch @k(update %x) number = 0 {fp8.shard = 1 : i64} : (memref<4x8xf32>) -> ()
  fp8.return
}
