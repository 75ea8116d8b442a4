// RUN: fp8-opt %s --fp8-verify-structured --split-input-file --verify-diagnostics

func.func @left(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.add' op is not structured: expected arith.constant, tensor.empty, tensor.expand_shape, tensor.collapse_shape, tensor.extract_slice, tensor.insert_slice, linalg.generic, linalg.fill, fp8.all_reduce, fp8.exchange, fp8.rank, scf control flow or the index arithmetic of loops in a function}}
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @scalar(%x: tensor<f32>) -> tensor<f32> {
  %0 = tensor.extract %x[] : tensor<f32>
  // expected-error @+1 {{'arith.addf' op is not structured}}
  %1 = arith.addf %0, %0 : f32
  %2 = tensor.from_elements %1 : tensor<f32>
  return %2 : tensor<f32>
}

// -----

func.func @loop(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %0 = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %x) -> tensor<4xf32> {
    // expected-error @+1 {{'tensor.empty' op is not structured: expected arith and math ops on scalars, tensor.extract, tensor.insert or scf loops in a loop of a kernel}}
    %1 = tensor.empty() : tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } {fp8.irregular}
  return %0 : tensor<4xf32>
}

// -----

func.func @sign() -> tensor<4xui32> {
  // expected-error @+1 {{expected signless integers but got 'tensor<4xui32>'}}
  %0 = tensor.empty() : tensor<4xui32>
  return %0 : tensor<4xui32>
}

// -----

func.func @captured(%x: tensor<4xi32>, %i: tensor<i32>) -> tensor<4xi32> {
  %n = tensor.extract %i[] : tensor<i32>
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%x : tensor<4xi32>) {
  ^bb0(%out: i32):
    // expected-error @+1 {{expected scalars from outside to be constants but got}}
    %1 = arith.addi %out, %n : i32
    linalg.yield %1 : i32
  } -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// -----

func.func @strided(%x: tensor<4x6xf32>, %i: index) -> tensor<1x3xf32> {
  // expected-error @+1 {{expected a contiguous part of the stack but got sizes [1, 3] of 'tensor<4x6xf32>'}}
  %0 = tensor.extract_slice %x[0, 0] [1, 3] [1, 2] : tensor<4x6xf32> to tensor<1x3xf32>
  return %0 : tensor<1x3xf32>
}

// -----

func.func @order(%x: tensor<i1>, %y: tensor<i1>) -> tensor<i1> {
  // expected-error @+1 {{expected the condition to pass all carried values on, in order}}
  %0:2 = scf.while (%a = %x, %b = %y) : (tensor<i1>, tensor<i1>) -> (tensor<i1>, tensor<i1>) {
    %p = tensor.extract %a[] : tensor<i1>
    scf.condition(%p) %b, %a : tensor<i1>, tensor<i1>
  } do {
  ^bb0(%a: tensor<i1>, %b: tensor<i1>):
    scf.yield %a, %b : tensor<i1>, tensor<i1>
  }
  return %0#0 : tensor<i1>
}
