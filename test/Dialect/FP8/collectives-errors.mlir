// RUN: fp8-opt %s --verify-diagnostics --split-input-file

func.func @mean(%n: tensor<i32>) -> tensor<i32> {
  // expected-error @+1 {{expected floats where a mean is taken but got 'i32'}}
  %0 = fp8.all_reduce mean %n : tensor<i32>
  return %0 : tensor<i32>
}

// -----

func.func @flags(%n: tensor<4xi1>) -> tensor<4xi1> {
  // expected-error @+1 {{expected floats of 16 or more bits, or integers, but got 'i1'}}
  %0 = fp8.all_reduce max %n : tensor<4xi1>
  return %0 : tensor<4xi1>
}

// -----

func.func @wire(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected wire 'none' for anything but sums and means of floats but got 'bf16'}}
  %0 = fp8.all_reduce max %x wire = bf16 : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @mu(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected mu where the wire is f8 but got none}}
  %0 = fp8.all_reduce sum %x wire = f8E4M3FN : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @block(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected no block where the wire is not f8}}
  %0 = fp8.all_reduce sum %x block = 128 : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @shape(%x: tensor<4xf32>, %mu: tensor<3xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected mu to be two numbers of f32 but got 'tensor<3xf32>'}}
  %0, %1 = fp8.all_reduce sum %x mu %mu wire = f8E4M3FN : tensor<4xf32>, tensor<3xf32> -> tensor<3xf32>
  return %0 : tensor<4xf32>
}

// -----

fp8.schedule @never(%g: memref<64xf32>) {
  // expected-error @+1 {{expected one fp8.wait for its handle}}
  %0 = fp8.start_all_reduce mean %g into %g : memref<64xf32>
  fp8.return
}

// -----

fp8.schedule @others(%g: memref<64xf32>, %h: memref<64xf32>) {
  %0 = fp8.start_all_reduce mean %g into %g : memref<64xf32>
  // expected-error @+1 {{expected the buffers of the collective, in its order}}
  fp8.wait %0 (%h, %h) : memref<64xf32>, memref<64xf32>
  fp8.return
}

// -----

func.func @no_shard(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{expected the shard whose owner has the values}}
  %0 = fp8.all_reduce owner %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @shard_zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{expected shards to be counted from 1 but got 0}}
  %0 = fp8.all_reduce sum %x shard = 0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @parts(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  // expected-error @+1 {{expected a part for each of 2 ranks along dimension 0 but got 'tensor<3x4xf32>'}}
  %0 = fp8.exchange all_to_all %x ranks = dense<[[0, 1]]> : tensor<1x2xi64> : tensor<3x4xf32> -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

func.func @gathered(%x: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{expected a result of shape [2, 4] and type 'f32' but got 'tensor<8xf32>'}}
  %0 = fp8.exchange gather %x ranks = dense<[[0, 1]]> : tensor<1x2xi64> : tensor<4xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @groups(%x: tensor<4xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{expected a rank in one group but got 1 twice}}
  %0 = fp8.exchange gather %x ranks = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64> : tensor<4xf32> -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @targets(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected a rank to be a target once but got 1 twice}}
  %0 = fp8.exchange permute %x ranks = dense<[[0, 1], [2, 1]]> : tensor<2x2xi64> : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @pairs(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected ranks to be pairs of a source and a target but got 'tensor<1x3xi64>'}}
  %0 = fp8.exchange permute %x ranks = dense<[[0, 1, 2]]> : tensor<1x3xi64> : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @negative(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected ranks from 0 up but got -1}}
  %0 = fp8.exchange permute %x ranks = dense<[[0, -1]]> : tensor<1x2xi64> : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @bits(%x: tensor<4xi4>) -> tensor<4xi4> {
  // expected-error @+1 {{expected elements of whole bytes but got 'i4'}}
  %0 = fp8.exchange permute %x ranks = dense<[[0, 1]]> : tensor<1x2xi64> : tensor<4xi4> -> tensor<4xi4>
  return %0 : tensor<4xi4>
}

// -----

fp8.schedule @in_place(%x: memref<4xf32>) {
  // expected-error @+1 {{expected another buffer for what comes in}}
  %0 = fp8.start_exchange permute %x into %x ranks = dense<[[0, 1]]> : tensor<1x2xi64> : memref<4xf32> -> memref<4xf32>
  fp8.wait %0 (%x, %x) : memref<4xf32>, memref<4xf32>
  fp8.return
}

// -----

func.func @row_dimension() -> tensor<4xui64> {
  // expected-error @+1 {{expected a dimension below 1 but got 1}}
  %0 = fp8.row_iota dim = 1 : tensor<4xui64>
  return %0 : tensor<4xui64>
}

// -----

func.func @row_state(%s: tensor<2xui32>) -> tensor<2xui32> {
  // expected-error @+1 {{expected a state of two or more ui64 but got 'tensor<2xui32>'}}
  %0 = fp8.row_state %s blocks = 1 : tensor<2xui32>
  return %0 : tensor<2xui32>
}

// -----

func.func @row_blocks(%s: tensor<2xui64>) -> tensor<2xui64> {
  // expected-error @+1 {{expected blocks that are not negative but got -1}}
  %0 = fp8.row_state %s blocks = -1 : tensor<2xui64>
  return %0 : tensor<2xui64>
}

// -----

func.func @slices(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error@+1 {{expected slices of size 1 along the leading dimension of 'tensor<4x8xf32>' but got 8 slices}}
  %0 = fp8.all_reduce sum %x slices = 8 : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @mu_of_slices(%x: tensor<4x8xf32>, %mu: tensor<2xf32>) -> tensor<4x8xf32> {
  // expected-error@+1 {{expected mu to be two numbers of f32 for each slice but got 'tensor<2xf32>'}}
  %0, %1 = fp8.all_reduce sum %x mu %mu wire = f8E5M2 slices = 4 : tensor<4x8xf32>, tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<4x8xf32>
}

// -----

fp8.schedule @one_or_several(%x: memref<4x8xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{expected one slice but got several}}
  %0 = fp8.start_all_reduce sum %x into %x slice %c0 slices = 4 : memref<4x8xf32>
  fp8.wait %0 (%x, %x) : memref<4x8xf32>, memref<4x8xf32>
  fp8.return
}

// -----

fp8.schedule @no_collectives(%x: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{expected the handle of fp8.collectives}}
  %0 = fp8.start_all_reduce sum %x into %x slice %c0 of %c0 : memref<8xf32>
  fp8.return
}

// -----

fp8.schedule @no_slice(%x: memref<8xf32>) {
  %all = fp8.collectives
  // expected-error@+1 {{expected the index of a slice}}
  %0 = fp8.start_all_reduce sum %x into %x of %all : memref<8xf32>
  fp8.wait %all (%x, %x) : memref<8xf32>, memref<8xf32>
  fp8.return
}

// -----

fp8.schedule @two_numbers(%x: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %all = fp8.collectives
  // expected-error@+1 {{expected one number for all of its collectives}}
  %0 = fp8.start_all_reduce sum %x into %x slice %c0 of %all number = 0 : memref<8xf32>
  %1 = fp8.start_all_reduce sum %x into %x slice %c0 of %all number = 1 : memref<8xf32>
  fp8.wait %all (%x, %x) : memref<8xf32>, memref<8xf32>
  fp8.return
}

// -----

fp8.schedule @own_wait(%x: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %all = fp8.collectives
  // expected-error@+1 {{expected the wait to have the handle of fp8.collectives}}
  %0 = fp8.start_all_reduce sum %x into %x slice %c0 of %all : memref<8xf32>
  fp8.wait %0 (%x, %x) : memref<8xf32>, memref<8xf32>
  fp8.return
}
