// RUN: fp8-opt %s --fp8-form-kernels --verify-diagnostics

func.func @main(%x: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected linalg.generic, linalg.fill, scf.for, a reshape, a constant or return before kernels are formed}}
  %0 = tensor.extract_slice %x[0] [4] [1] : tensor<8xf32> to tensor<4xf32>
  return %0 : tensor<4xf32>
}
