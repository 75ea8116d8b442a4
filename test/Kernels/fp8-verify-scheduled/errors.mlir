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

// -----

// Two views of the same bytes of the arena.
fp8.kernel @k(read %x: memref<8xf32>, write %y: memref<8xf32>) domain = []
fp8.schedule @main(%arena: memref<128xi8>, %x: memref<8xf32>) arena_bytes = 128 {
  %c32 = arith.constant 32 : index
  %c48 = arith.constant 48 : index
  %c80 = arith.constant 80 : index
  %0 = memref.view %arena[%c32][] : memref<128xi8> to memref<8xf32>
  %1 = memref.view %arena[%c48][] : memref<128xi8> to memref<8xf32>
  %2 = memref.view %arena[%c80][] : memref<128xi8> to memref<8xf32>
  fp8.launch @k(read %x, write %0)(read %x, write %2) number = 0 : (memref<8xf32>, memref<8xf32>) -> ()
  // expected-error @+1 {{expected no set of operands to access what another set writes but got operand 1 in the memory of operand 3}}
  fp8.launch @k(read %x, write %0)(read %x, write %1) number = 1 : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// -----

// What one set reads, the other writes through another view.
fp8.kernel @k(read %x: memref<8xf32>, write %y: memref<8xf32>) domain = []
fp8.schedule @main(%x: memref<2x8xf32>, %y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %0 = fp8.subbuffer %x[%c0] : memref<2x8xf32> to memref<8xf32>
  %1 = fp8.subbuffer %x[%c8] : memref<2x8xf32> to memref<8xf32>
  %flat = memref.collapse_shape %x [[0, 1]] : memref<2x8xf32> into memref<16xf32>
  %2 = fp8.subbuffer %flat[%c8] : memref<16xf32> to memref<8xf32>
  // expected-error @+1 {{expected no set of operands to access what another set writes but got operand 2 in the memory of operand 1}}
  fp8.launch @k(read %0, write %1)(read %2, write %y) number = 0 : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// -----

fp8.schedule @main(%arena: memref<64xi8>) arena_bytes = 64 {
  %c48 = arith.constant 48 : index
  // expected-error @+1 {{expected a view inside of the 64 bytes of its source but got bytes 48 to 80}}
  %0 = memref.view %arena[%c48][] : memref<64xi8> to memref<8xf32>
  fp8.return
}

// -----

fp8.schedule @main(%x: memref<4x8xf32>) {
  %c25 = arith.constant 25 : index
  // expected-error @+1 {{expected a view inside of the 128 bytes of its source but got bytes 100 to 132}}
  %0 = fp8.subbuffer %x[%c25] : memref<4x8xf32> to memref<8xf32>
  fp8.return
}
