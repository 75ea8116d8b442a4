// RUN: fp8-opt %s --fp8-form-kernels --split-input-file --verify-diagnostics

func.func @main(%x: tensor<8xf32>, %y: tensor<4xf32>) -> tensor<12xf32> {
  // expected-error @+1 {{expected structured ops, reshapes, slices, control flow and constants before kernels are formed}}
  %0 = tensor.concat dim(0) %x, %y : (tensor<8xf32>, tensor<4xf32>) -> tensor<12xf32>
  return %0 : tensor<12xf32>
}

// -----

func.func @dynamic_shape(%x: tensor<?xf32>, %init: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @below {{'linalg.generic' op expected a tensor of a static shape but got 'tensor<?xf32>'}}
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = arith.addf %in, %in : f32
    linalg.yield %1 : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func @buffers(%x: memref<8xf32>, %y: memref<8xf32>) {
  // expected-error @below {{'linalg.generic' op expected a tensor of a static shape but got 'memref<8xf32>'}}
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %in : f32
    linalg.yield %0 : f32
  }
  return
}
