// TMA brings the operands of a dot by wgmma if it can. Otherwise a remark says
// why not, if it is asked for.
// RUN: fp8-opt %s --fp8-plan-blocks=explain -verify-diagnostics | FileCheck %s

module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">} {
  // CHECK: fp8.kernel @good({{.*}} threads = 128, wgmma = true, stages = 4, tma = true>
  fp8.kernel @good(read %x: memref<64x512xf8E4M3FN>, read %w: memref<32x512xf8E5M2>, write %y: memref<64x32xf32>) domain = [64, 32] {
    linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<64x512xf8E4M3FN>, memref<32x512xf8E5M2>) outs(%y : memref<64x32xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E4M3FN, %b: f8E5M2, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.extf %b : f8E5M2 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }
  // 256 columns where that leaves blocks enough, without partial sums.
  // CHECK: fp8.kernel @wide({{.*}}<tile = [128, 256], {{.*}} threads = 256, wgmma = true, stages = 4, tma = true>
  fp8.kernel @wide(read %x: memref<4096x512xf8E4M3FN>, read %w: memref<4096x512xf8E5M2>, write %y: memref<4096x4096xf32>) domain = [4096, 4096] {
    linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<4096x512xf8E4M3FN>, memref<4096x512xf8E5M2>) outs(%y : memref<4096x4096xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E4M3FN, %b: f8E5M2, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.extf %b : f8E5M2 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }
  // CHECK: fp8.kernel @parts({{.*}}<tile = [128, 128], {{.*}} threads = 256, wgmma = true, stages = 4, tma = true>
  fp8.kernel @parts(read %x: memref<4096x512xf8E4M3FN>, read %w: memref<4096x512xf8E5M2>, write %y: memref<4096x4096xf32>) domain = [4096, 4096] {
    linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<4096x512xf8E4M3FN>, memref<4096x512xf8E5M2>) outs(%y : memref<4096x4096xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>, fp8.promote_every = 128 : i64} {
    ^bb0(%a: f8E4M3FN, %b: f8E5M2, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.extf %b : f8E5M2 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }
  // CHECK: fp8.kernel @turned({{.*}} threads = 128, wgmma = true{{(, stages = .)?}}>
  fp8.kernel @turned(read %x: memref<64x512xf8E4M3FN>, read %w: memref<512x32xf8E4M3FN>, write %y: memref<64x32xf32>) domain = [64, 32] {
    // expected-remark@+1 {{TMA does not bring the operands: the rhs: it is not contiguous along k}}
    linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<64x512xf8E4M3FN>, memref<512x32xf8E4M3FN>) outs(%y : memref<64x32xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E4M3FN, %b: f8E4M3FN, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.extf %b : f8E4M3FN to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }
  // The last tile has five rows, fewer than a warpgroup multiplies.
  // CHECK: fp8.kernel @rest({{.*}}<tile = [64, 128], {{.*}} threads = 128, wgmma = true{{(, stages = .)?}}>
  fp8.kernel @rest(read %x: memref<8197x512xf8E4M3FN>, read %w: memref<512x4096xf8E4M3FN>, write %y: memref<8197x4096xf32>) domain = [8197, 4096] {
    // expected-remark@+1 {{TMA does not bring the operands: the rhs: it is not contiguous along k}}
    linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<8197x512xf8E4M3FN>, memref<512x4096xf8E4M3FN>) outs(%y : memref<8197x4096xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E4M3FN, %b: f8E4M3FN, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.extf %b : f8E4M3FN to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }
  // CHECK: fp8.kernel @converted({{.*}} threads = 128, wgmma = true{{(, stages = .)?}}>
  fp8.kernel @converted(read %x: memref<64x512xf8E4M3FN>, read %w: memref<32x512xbf16>, write %y: memref<64x32xf32>) domain = [64, 32] {
    // expected-remark@+1 {{TMA does not bring the operands: the lhs: it is converted}}
    linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<64x512xf8E4M3FN>, memref<32x512xbf16>) outs(%y : memref<64x32xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E4M3FN, %b: bf16, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.extf %b : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }
  // CHECK: fp8.kernel @strides({{.*}} threads = 128, wgmma = true{{(, stages = .)?}}>
  fp8.kernel @strides(read %x: memref<64x72xf8E4M3FN>, read %w: memref<32x72xf8E4M3FN>, write %y: memref<64x32xf32>) domain = [64, 32] {
    // expected-remark@+1 {{TMA does not bring the operands: the lhs: expected a stride that is a multiple of 16 bytes below 2^40 but got 72}}
    linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<64x72xf8E4M3FN>, memref<32x72xf8E4M3FN>) outs(%y : memref<64x32xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E4M3FN, %b: f8E4M3FN, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.extf %b : f8E4M3FN to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }
  // CHECK: fp8.kernel @runs({{.*}} threads = 128, wgmma = true{{(, stages = .)?}}>
  fp8.kernel @runs(read %x: memref<64x192xf8E4M3FN>, read %w: memref<32x192xf8E4M3FN>, write %y: memref<64x32xf32>) domain = [64, 32] {
    // expected-remark@+1 {{TMA does not bring the operands: its runs of 96 elements do not consist of whole stages}}
    linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<64x192xf8E4M3FN>, memref<32x192xf8E4M3FN>) outs(%y : memref<64x32xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>, fp8.promote_every = 96 : i64} {
    ^bb0(%a: f8E4M3FN, %b: f8E4M3FN, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.extf %b : f8E4M3FN to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }

  // A part of a stack, which begins at a multiple of 8 bytes.
  // CHECK: fp8.kernel @part({{.*}} threads = 128, wgmma = true{{(, stages = .)?}}>
  fp8.kernel @part(read %x: memref<64x64xf8E4M3FN>, read %w: memref<32x64xf8E4M3FN>, write %y: memref<64x32xf32>) domain = [64, 32] {
    // expected-remark@+1 {{TMA does not bring the operands: the rhs: it may begin at an address that is no multiple of 16 bytes}}
    linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<64x64xf8E4M3FN>, memref<32x64xf8E4M3FN>) outs(%y : memref<64x32xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%a: f8E4M3FN, %b: f8E4M3FN, %o: f32):
      %0 = arith.extf %a : f8E4M3FN to f32
      %1 = arith.extf %b : f8E4M3FN to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }
  fp8.schedule @main(%arena: memref<64xi8>, %x: memref<64x64xf8E4M3FN>, %w: memref<4096xf8E4M3FN>, %y: memref<64x32xf32>) arena_bytes = 64 {
    %c8 = arith.constant 8 : index
    %p = fp8.subbuffer %w[%c8] : memref<4096xf8E4M3FN> to memref<32x64xf8E4M3FN>
    fp8.launch @part(read %x, read %p, write %y) number = 0 : (memref<64x64xf8E4M3FN>, memref<32x64xf8E4M3FN>, memref<64x32xf32>) -> ()
    fp8.return
  }
}
