// RUN: fp8-opt %s --fp8-bufferize-kernels --verify-diagnostics --split-input-file

// expected-error @+1 {{expected argument 1 to be a tensor of a static shape but got 'i1'}}
func.func @scalar(%x: tensor<8xf32>, %flag: i1) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// expected-error @+1 {{expected argument 0 to be a tensor of a static shape but got 'tensor<?xf32>'}}
func.func @dynamic(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}

// -----

// expected-error @+1 {{expected result 0 to be a tensor of a static shape but got 'f32'}}
func.func @result(%x: tensor<f32>) -> f32 {
  %0 = tensor.extract %x[] : tensor<f32>
  return %0 : f32
}
