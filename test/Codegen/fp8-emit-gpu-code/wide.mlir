// A dot whose sums lie in global memory, of width 2048: the assembler would
// unroll the loop of its stages and spill.
// REQUIRES: ptxas
// RUN: rm -rf %t && fp8-opt %s --fp8-gpu-codegen --fp8-to-nvvm --fp8-emit-gpu-code="image=cubin directory=%t" -o /dev/null
// RUN: FileCheck %s < %t/resources.csv

// kernel, blocks, threads, registers, spilled, stack
// CHECK: dot,256,128,{{[0-9]+}},0,0,

#ik = affine_map<(b, i, j, k) -> (b, i, k)>
#jk = affine_map<(b, i, j, k) -> (j, k)>
#ij = affine_map<(b, i, j, k) -> (b, i, j)>
#sums = affine_map<(b, h, d, i) -> (b, i, h * 128 + d)>
#heads = affine_map<(b, h, d, i) -> (b, h, d, i)>
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_89", features = "+ptx84">} {
  fp8.kernel @dot(read %a: memref<4x2048x2048xbf16>, read %b: memref<2048x2048xbf16>, write %c: memref<4x16x128x2048xbf16>) domain = [4, 2048] {
    %zero = arith.constant 0.0 : f32
    %sums = memref.alloc() {alignment = 64 : i64} : memref<4x2048x2048xf32>
    linalg.fill ins(%zero : f32) outs(%sums : memref<4x2048x2048xf32>)
    linalg.generic {indexing_maps = [#ik, #jk, #ij], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<4x2048x2048xbf16>, memref<2048x2048xbf16>) outs(%sums : memref<4x2048x2048xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %0 = arith.extf %x : bf16 to f32
      %1 = arith.extf %y : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %z, %2 : f32
      linalg.yield %3 : f32
    }
    linalg.generic {indexing_maps = [#sums, #heads], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%sums : memref<4x2048x2048xf32>) outs(%c : memref<4x16x128x2048xbf16>) attrs = {fp8.task_dims = array<i64: 0, 3>} {
    ^bb0(%x: f32, %o: bf16):
      %0 = arith.truncf %x : f32 to bf16
      linalg.yield %0 : bf16
    }
    fp8.return
  }
}
