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
