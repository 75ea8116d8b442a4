// RUN: fp8-opt %s --fp8-lower-blocks --verify-diagnostics --split-input-file

// expected-error @+1 {{expected a module with the attribute 'fp8.target': run --fp8-target first}}
module {}

// -----

module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
  // expected-error @+1 {{expected a body and a plan: run --fp8-plan-blocks first}}
  fp8.kernel @k(update %x: memref<8xf32>) domain = [] {
    fp8.return
  }
}

// -----

module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
  fp8.kernel @k(read %x: memref<32x64xf32>, read %w: memref<64x64xf32>, write %y: memref<32x64xf32>) domain = []
      plan = #fp8.gpu_plan<tile = [], sum_tile = [], threads = 64> {
    // expected-error @+1 {{expected a plan with 128 threads for a dot but got 64}}
    linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<32x64xf32>, memref<64x64xf32>) outs(%y : memref<32x64xf32>)
        attrs = {fp8.task_dims = array<i64>} {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %2 = arith.mulf %a, %b : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }
}

// -----

// Without a loop over columns, no rows can be dealt to blocks.
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
  // expected-error @+1 {{expected one scatter, because its plan says how many rows a block owns}}
  fp8.kernel @k(update %y: memref<64xf32>) domain = []
      plan = #fp8.gpu_plan<tile = [], sum_tile = [], threads = 32, rows = 4> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c63 = arith.constant 63 : index
    scf.for %r = %c0 to %c63 step %c1 {
      %next = arith.addi %r, %c1 : index
      %a = memref.load %y[%r] : memref<64xf32>
      memref.store %a, %y[%next] : memref<64xf32>
    } {fp8.irregular, fp8.task_dims = array<i64>}
    fp8.return
  }
}

// -----

module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
  fp8.kernel @k(read %x: memref<8x8xf32>, write %y: memref<8x8xf32>) domain = [] plan = #fp8.gpu_plan<tile = [], sum_tile = [], threads = 64> {
    // expected-error @+1 {{is not part of a kernel: expected linalg.generic, linalg.fill, scf.for, memref.alloc or arith ops}}
    memref.copy %x, %y : memref<8x8xf32> to memref<8x8xf32>
    fp8.return
  }
}
