// RUN: fp8-opt %s --fp8-form-kernels --verify-diagnostics

func.func @main(%x: tensor<8xf32>, %y: tensor<4xf32>) -> tensor<12xf32> {
  // expected-error @+1 {{expected structured ops, reshapes, slices, control flow and constants before kernels are formed}}
  %0 = tensor.concat dim(0) %x, %y : (tensor<8xf32>, tensor<4xf32>) -> tensor<12xf32>
  return %0 : tensor<12xf32>
}
