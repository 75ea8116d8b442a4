// Sums over many rows, which several threads share for each column, and large
// scatters, whose rows blocks own, have the CPU's bits, in the emulator.
// RUN: fp8-opt --fp8-import --fp8-quantize=recipe=none --fp8-structure --fp8-kernels %s -o %t.mlir
// RUN: fp8-opt --fp8-target=nvptx=sm_90a --fp8-gpu-codegen %t.mlir | FileCheck %s --check-prefix=CODE
// RUN: fp8-check-gpu-kernels --seeds=3 %t.mlir | FileCheck %s

// CODE-COUNT-2: gpu_launch<blocks = 6, threads = 1024, shared = 32768,
// CODE: gpu_launch<blocks = 4, threads = 1024, shared = 4096,
// CODE-COUNT-2: gpu_launch<blocks = 234, threads = 128, shared = 16,
// CHECK-NOT: FAIL
// CHECK: 6 kernels, 0 failed

func.func @main(%x: tensor<10000x72xf32>, %y: tensor<8x50x40xf32>, %table: tensor<700x128xf32>, %rows: tensor<300x1xi32>, %u: tensor<300x128xf32>, %base: tensor<700x128xf32>)
    -> (tensor<72xf32>, tensor<72xf32>, tensor<40xf32>, tensor<700x128xf32>, tensor<700x128xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.multiply %x, %x : tensor<10000x72xf32>
  %sum = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<10000x72xf32>, tensor<f32>) -> tensor<72xf32>
  %max = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [0] : (tensor<10000x72xf32>, tensor<f32>) -> tensor<72xf32>
  %both = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x50x40xf32>, tensor<f32>) -> tensor<40xf32>
  %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<700x128xf32>
  %a = "stablehlo.scatter"(%zeros, %rows, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %r = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<700x128xf32>, tensor<300x1xi32>, tensor<300x128xf32>) -> tensor<700x128xf32>
  %b = "stablehlo.scatter"(%base, %rows, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %r = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<700x128xf32>, tensor<300x1xi32>, tensor<300x128xf32>) -> tensor<700x128xf32>
  return %sum, %max, %both, %a, %b : tensor<72xf32>, tensor<72xf32>, tensor<40xf32>, tensor<700x128xf32>, tensor<700x128xf32>
}
