// RUN: fp8-opt %s --verify-diagnostics --split-input-file

// expected-error @+1 {{expected 'read', 'write' or 'update' but got 'reads'}}
fp8.kernel @k(reads memref<8xf32>) domain = []

// -----

// expected-error @+1 {{expected argument 0 to be a static tensor or a static memref with identity layout but got 'memref<?xf32>'}}
fp8.kernel @k(read memref<?xf32>) domain = []

// -----

// expected-error @+1 {{expected argument 0 to be a static tensor or a static memref with identity layout but got 'f32'}}
fp8.kernel @k(read f32) domain = []

// -----

// expected-error @+1 {{expected one result for each tensor that it writes ('tensor<8xf32>') but got ()}}
fp8.kernel @k(read tensor<8xf32>, write tensor<8xf32>) domain = []

// -----

// expected-error @+1 {{expected a domain of positive extents but got 0}}
fp8.kernel @k(read memref<8xf32>) domain = [8, 0]

// -----

// expected-error @+1 {{expected a tile of 2 extents but got 1}}
fp8.kernel @k(read memref<8xf32>) domain = [8, 4] plan = #fp8.cpu_plan<tile = [4]>

// -----

// expected-error @+1 {{expected a tile of positive extents but got 0}}
fp8.kernel @k(read memref<8xf32>) domain = [8] plan = #fp8.cpu_plan<tile = [0]>

// -----

// expected-error @+1 {{expected a positive number of keys but got 0}}
fp8.kernel @k(read memref<8xf32>) domain = [8] plan = #fp8.cpu_plan<tile = [8], keys = 0>

// -----

// expected-error @+1 {{expected a copy to read its first argument and to write its second, of the same type}}
fp8.kernel @k(read memref<8xf32>, write memref<4xf32>) domain = [] copy

// -----

// expected-error @+1 {{expected the body to end with fp8.return of ('tensor<8xf32>')}}
fp8.kernel @k(read %x: tensor<8xf32>, write %y: tensor<8xf32>) -> tensor<8xf32> domain = [] {
  fp8.return
}

// -----

fp8.kernel @k(read %x: memref<8xf32>) domain = [] {
  %zero = arith.constant 0.0 : f32
  // expected-error @+1 {{expected argument 0 of kernel 'k' not to be written: its access is 'read'}}
  linalg.fill ins(%zero : f32) outs(%x : memref<8xf32>)
  fp8.return
}

// -----

fp8.schedule @step(%x: memref<8xf32>) {
  // expected-error @+1 {{expected 'k' to be a kernel of the module}}
  fp8.launch @k(read %x) : (memref<8xf32>) -> ()
  fp8.return
}

// -----

fp8.kernel @k(read memref<8xf32>) domain = []
fp8.schedule @step(%x: memref<4xf32>) {
  // expected-error @+1 {{expected operands and results of kernel 'k', '(memref<8xf32>) -> ()', but got '(memref<4xf32>) -> ()'}}
  fp8.launch @k(read %x) : (memref<4xf32>) -> ()
  fp8.return
}

// -----

fp8.kernel @k(read memref<8xf32>) domain = []
fp8.schedule @step(%x: memref<8xf32>) {
  // expected-error @+1 {{expected the accesses of kernel 'k'}}
  fp8.launch @k(write %x) : (memref<8xf32>) -> ()
  fp8.return
}

// -----

// expected-error @+1 {{expected the arena, memref<64xi8>, as first argument}}
fp8.schedule @step(%x: memref<8xf32>) arena_bytes = 64 {
  fp8.return
}

// -----

// expected-error @+1 {{expected vector_bits to be 128, 256 or 512 but got 100}}
module attributes {fp8.target = #fp8.cpu_target<triple = "x86_64", cpu = "x86-64", features = "", vector_bits = 100>} {}

// -----

// expected-error @+1 {{expected a block of 1 to all iterations of the last loop of the domain but got 64}}
fp8.kernel @block(read %x: memref<16x32xf32>) domain = [16, 32] block = 64

// -----

// expected-error @+1 {{expected a block of 1 to all iterations of the last loop of the domain but got 1}}
fp8.kernel @no_loop(read %x: memref<16x32xf32>) domain = [] block = 1

// -----

fp8.kernel @k(read memref<8xf32>, write memref<8xf32>) domain = []
fp8.schedule @step(%x: memref<8xf32>, %y: memref<8xf32>, %z: memref<8xf32>) {
  // expected-error @+1 {{expected no set of operands to access what another set writes but got operand 2}}
  fp8.launch @k(read %x, write %y)(read %y, write %z) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// -----

fp8.kernel @k(read memref<8xf32>, write memref<8xf32>) domain = []
fp8.schedule @step(%x: memref<8xf32>, %y: memref<8xf32>, %z: memref<8xf32>) {
  // expected-error @+1 {{expected no set of operands to access what another set writes but got operand 3}}
  fp8.launch @k(read %x, write %y)(read %z, write %y) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// -----

fp8.kernel @k(read memref<8xf32>, write memref<8xf32>) domain = []
fp8.schedule @step(%x: memref<8xf32>, %y: memref<8xf32>, %z: memref<8xf32>) {
  // expected-error @+1 {{expected the accesses of the first set of operands}}
  fp8.launch @k(read %x, write %y)(write %x, read %z) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// -----

fp8.kernel @k(read memref<8xf32>, write memref<8xf32>) domain = []
fp8.schedule @step(%x: memref<8xf32>, %y: memref<8xf32>) {
  // expected-error @+1 {{expected one or more sets of 2 operands, one for each access, but got 3 operands}}
  "fp8.launch"(%x, %y, %x) {kernel = @k, accesses = [#fp8.access<read>, #fp8.access<write>]} : (memref<8xf32>, memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// -----

fp8.kernel @k(read tensor<8xf32>, write tensor<8xf32>) -> tensor<8xf32> domain = []
func.func @tensors(%x: tensor<8xf32>, %y: tensor<8xf32>, %z: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{expected one set of operands on tensors but got 2}}
  %0 = fp8.launch @k(read %x, write %y)(read %x, write %z) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

fp8.kernel @k(read %x: memref<8x4xf32>, write %y: memref<8x4xf32>) domain = [8] {
  // expected-error @+1 {{expected 'fp8.task_dims' to name one of its 2 loops or to be -1 but got 2}}
  linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x4xf32>) outs(%y : memref<8x4xf32>)
      attrs = {fp8.task_dims = array<i64: 2>} {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  fp8.return
}

// -----

fp8.kernel @k(read %x: memref<8x4xf32>, write %y: memref<8x4xf32>) domain = [8] {
  // expected-error @+1 {{expected 'fp8.task_dims' to name one of its 2 loops or to be -1 but got -2}}
  linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x4xf32>) outs(%y : memref<8x4xf32>)
      attrs = {fp8.task_dims = array<i64: -2>} {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  fp8.return
}

// -----

fp8.kernel @k(read %x: memref<8x4xf32>, write %y: memref<8x4xf32>) domain = [8, 8] {
  // expected-error @+1 {{expected 'fp8.task_dims' to name each loop once but got 0 again}}
  linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x4xf32>) outs(%y : memref<8x4xf32>)
      attrs = {fp8.task_dims = array<i64: 0, 0>} {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  fp8.return
}

// -----

fp8.kernel @k(read %x: memref<8x4xf32>, write %y: memref<8x4xf32>) domain = [16] {
  // expected-error @+1 {{expected 'fp8.task_dims' to name a loop of 16 iterations, as the domain has, but got loop 0 of 8}}
  linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x4xf32>) outs(%y : memref<8x4xf32>)
      attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  fp8.return
}

// -----

fp8.kernel @k(read %x: memref<8x4xf32>, write %y: memref<8x4xf32>) domain = [8] {
  // expected-error @+1 {{expected 'fp8.task_dims' to name a loop of 8 iterations, as the domain has, but got loop 1 of 4}}
  linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x4xf32>) outs(%y : memref<8x4xf32>)
      attrs = {fp8.task_dims = array<i64: 1>} {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  fp8.return
}

// -----

fp8.kernel @k(read %x: memref<8x4xf32>, write %y: memref<8x4xf32>) domain = [8] {
  // expected-error @+1 {{expected a parallel loop for loop 0 of the domain, since it writes an argument}}
  linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x4xf32>) outs(%y : memref<8x4xf32>)
      attrs = {fp8.task_dims = array<i64: -1>} {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  fp8.return
}

// -----

fp8.kernel @k(read %x: memref<8x4xf32>, write %y: memref<8x4xf32>) domain = [8] {
  // expected-error @+1 {{expected a parallel loop for loop 0 of the domain, since it writes an argument}}
  linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x4xf32>) outs(%y : memref<8x4xf32>)
      attrs = {fp8.task_dims = array<i64>} {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  fp8.return
}

// -----

fp8.kernel @k(read %x: memref<8x4xf32>, write %y: memref<8xf32>) domain = [8, 4] {
  // expected-error @+1 {{expected a parallel loop for loop 1 of the domain, since it writes an argument}}
  linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8x4xf32>) outs(%y : memref<8xf32>)
      attrs = {fp8.task_dims = array<i64: 0, 1>} {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  fp8.return
}

// -----

fp8.kernel @k(read %x: memref<8xf32>, write %y: memref<8xf32>) domain = [8] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  // expected-error @+1 {{expected 'fp8.task_dims' to name one of its 1 loops or to be -1 but got 1}}
  scf.for %i = %c0 to %c8 step %c1 {
    %a = memref.load %x[%i] : memref<8xf32>
    memref.store %a, %y[%i] : memref<8xf32>
  } {fp8.task_dims = array<i64: 1>}
  fp8.return
}

// -----

fp8.kernel @k(read %x: memref<8xf32>, write %y: memref<8xf32>) domain = [8] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  // expected-error @+1 {{expected a parallel loop for loop 0 of the domain, since it writes an argument}}
  scf.for %i = %c0 to %c8 step %c1 {
    %a = memref.load %x[%i] : memref<8xf32>
    memref.store %a, %y[%i] : memref<8xf32>
  } {fp8.task_dims = array<i64: -1>}
  fp8.return
}
