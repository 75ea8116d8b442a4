// The tiles of a kernel, inner ones and those at the edge, share no registers of
// sums: wgmma would not overlap.
// REQUIRES: ptxas
// RUN: rm -rf %t && fp8-opt %s --fp8-structure --fp8-kernels=layouts=along-k --fp8-target=nvptx=sm_90a --fp8-gpu-codegen --fp8-to-nvvm --fp8-emit-gpu-code="image=cubin directory=%t" -o /dev/null
// RUN: FileCheck %s < %t/resources.csv
// CHECK: kernel,blocks,threads,registers,spilled
// CHECK: kernel_{{[0-9a-f]+}},3,128,{{[0-9]+}},0,

!x = !fp8.scaled<72x64xf8E4M3FN, tile = [*, *], scale = f32>
!dy = !fp8.scaled<72x288xf8E5M2, tile = [*, *], scale = f32>

func.func public @main(%xp: tensor<72x64xf8E4M3FN>, %xs: tensor<f32>, %dyp: tensor<72x288xf8E5M2>, %dys: tensor<f32>,
                       %m: tensor<64x288xf32>, %w: tensor<64x288xf32>) -> (tensor<64x288xf32>, tensor<64x288xf32>) {
  %decay = stablehlo.constant dense<0.9> : tensor<64x288xf32>
  %rate = stablehlo.constant dense<1.0e-3> : tensor<64x288xf32>
  %x = fp8.pack %xp, %xs : !x
  %dy = fp8.pack %dyp, %dys : !dy
  %dw = fp8.dot_general %x, %dy, contracting_dims = [0] x [0] {accumulator = f32} : (!x, !dy) -> tensor<64x288xf32>
  %0 = stablehlo.multiply %m, %decay : tensor<64x288xf32>
  %1 = stablehlo.add %0, %dw : tensor<64x288xf32>
  %2 = stablehlo.multiply %1, %rate : tensor<64x288xf32>
  %3 = stablehlo.subtract %w, %2 : tensor<64x288xf32>
  return %1, %3 : tensor<64x288xf32>, tensor<64x288xf32>
}
