// RUN: fp8-opt %s --split-input-file --fp8-use-cublaslt | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#none = affine_map<(i, j) -> ()>
#ik = affine_map<(i, j, k) -> (i, k)>
#jk = affine_map<(i, j, k) -> (j, k)>
#kj = affine_map<(i, j, k) -> (k, j)>
#ij = affine_map<(i, j, k) -> (i, j)>

// The scales and the conversion are the library's: nothing is left of the
// kernel. The table of choices has its sizes.
// CHECK: module attributes {fp8.dot_choices = [{algorithm = "first of the heuristic", by = "cublaslt", dot = "dot x", launches = 1 : i64, operands = [f8E4M3FN, f8E5M2], sizes = array<i64: 32, 16, 64>}]
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84", cublaslt = "all">} {
  // CHECK: fp8.schedule @step(%[[ARENA:.*]]: memref<33554688xi8>, {{.*}} arena_bytes = 33554688
  // CHECK-NEXT: %[[AT:.*]] = arith.constant 256 : index
  // CHECK-NEXT: %[[WORKSPACE:.*]] = memref.view %[[ARENA]][%[[AT]]][]
  // CHECK-NEXT: fp8.launch @[[DOT:kernel_.*]](read %{{.*}}, read %{{.*}}, read %{{.*}}, read %{{.*}}, write %{{.*}}, write %[[WORKSPACE]]) label = "dot x" number = 7
  // CHECK-NEXT: fp8.return
  fp8.schedule @step(%arena: memref<64xi8>, %a: memref<32x64xf8E4M3FN>, %b: memref<16x64xf8E5M2>, %s: memref<f32>, %t: memref<f32>, %c: memref<32x16xbf16>) arena_bytes = 64 {
    fp8.launch @whole(read %a, read %b, read %s, read %t, write %c) label = "dot x" number = 7
        : (memref<32x64xf8E4M3FN>, memref<16x64xf8E5M2>, memref<f32>, memref<f32>, memref<32x16xbf16>) -> ()
    fp8.return
  }
  // CHECK-NOT: fp8.kernel @whole
  // CHECK: fp8.kernel @[[DOT]](read %{{.*}}: memref<32x64xf8E4M3FN>, read %{{.*}}: memref<16x64xf8E5M2>, read %{{.*}}: memref<f32>, read %{{.*}}: memref<f32>, write %{{.*}}: memref<32x16xbf16>, write %{{.*}}: memref<33554432xi8>) domain = [32, 16]
  // CHECK-SAME: plan = #fp8.cublaslt_plan<rows = 32, columns = 16, depth = 64, lhs_along_k = true, rhs_along_k = true, scaled = true, fast_accumulation = false, workspace = 33554432>
  // CHECK: arith.addf
  // CHECK: arith.mulf
  // CHECK: arith.truncf
  fp8.kernel @whole(read %a: memref<32x64xf8E4M3FN>, read %b: memref<16x64xf8E5M2>, read %s: memref<f32>, read %t: memref<f32>, write %c: memref<32x16xbf16>) domain = [32, 16] {
    %zero = arith.constant 0.0 : f32
    %sums = memref.alloc() : memref<32x16xf32>
    linalg.fill ins(%zero : f32) outs(%sums : memref<32x16xf32>)
    linalg.generic {indexing_maps = [#ik, #jk, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<32x64xf8E4M3FN>, memref<16x64xf8E5M2>) outs(%sums : memref<32x16xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: f8E4M3FN, %y: f8E5M2, %z: f32):
      %0 = arith.extf %x : f8E4M3FN to f32
      %1 = arith.extf %y : f8E5M2 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %z, %2 : f32
      linalg.yield %3 : f32
    }
    linalg.generic {indexing_maps = [#id, #none, #none, #id], iterator_types = ["parallel", "parallel"]}
        ins(%sums, %s, %t : memref<32x16xf32>, memref<f32>, memref<f32>) outs(%c : memref<32x16xbf16>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: f32, %u: f32, %v: f32, %o: bf16):
      %0 = arith.mulf %u, %v : f32
      %1 = arith.mulf %x, %0 : f32
      %2 = arith.truncf %1 : f32 to bf16
      linalg.yield %2 : bf16
    }
    fp8.return
  }
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#ik = affine_map<(i, j, k) -> (i, k)>
#kj = affine_map<(i, j, k) -> (k, j)>
#ij = affine_map<(i, j, k) -> (i, j)>

// An operand that does not lie along k is turned before, what is done with the
// sums comes after; all of it in one place at the end of the arena.
// CHECK: by = "cublaslt", dot = "dot y"
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_89", features = "+ptx84", cublaslt = "all">} {
  // CHECK: fp8.schedule @step(%[[ARENA:.*]]: memref<4197632xi8>
  // CHECK: %[[B:.*]] = memref.view %[[ARENA]][%{{.*}}][] : memref<4197632xi8> to memref<16x64xf8E4M3FN>
  // CHECK: fp8.launch @[[TURN:kernel_.*]](read %{{.*}}, write %[[B]]) label = "turn for dot y" number = 1
  // CHECK: %[[SUMS:.*]] = memref.view %[[ARENA]][%{{.*}}][] : memref<4197632xi8> to memref<32x16xf32>
  // CHECK: fp8.launch @[[DOT:kernel_.*]](read %{{.*}}, read %[[B]], write %[[SUMS]], write %{{.*}}) label = "dot y" number = 0
  // CHECK: fp8.launch @[[REST:kernel_.*]](read %{{.*}}, write %{{.*}}, read %{{.*}}) label = "rest of dot y" number = 2
  fp8.schedule @step(%arena: memref<64xi8>, %a: memref<32x64xf8E4M3FN>, %b: memref<64x16xf8E4M3FN>, %r: memref<32x16xf32>, %c: memref<32x16xf32>) arena_bytes = 64 {
    fp8.launch @residual(read %a, read %b, read %r, write %c) label = "dot y" number = 0
        : (memref<32x64xf8E4M3FN>, memref<64x16xf8E4M3FN>, memref<32x16xf32>, memref<32x16xf32>) -> ()
    fp8.return
  }
  // CHECK: fp8.kernel @[[TURN]](read %{{.*}}: memref<64x16xf8E4M3FN>, write %{{.*}}: memref<16x64xf8E4M3FN>) domain = [64, 16] plan = #fp8.gpu_plan<tile = [64, 16]
  // CHECK: fp8.kernel @[[DOT]]({{.*}}rhs_along_k = true, scaled = false
  // CHECK: fp8.kernel @[[REST]](read %{{.*}}: memref<32x16xf32>, write %{{.*}}: memref<32x16xf32>, read %{{.*}}: memref<32x16xf32>) domain = [32, 16]
  // CHECK-NOT: arith.mulf
  // CHECK: arith.addf
  fp8.kernel @residual(read %a: memref<32x64xf8E4M3FN>, read %b: memref<64x16xf8E4M3FN>, read %r: memref<32x16xf32>, write %c: memref<32x16xf32>) domain = [32, 16] {
    %zero = arith.constant 0.0 : f32
    %sums = memref.alloc() : memref<32x16xf32>
    linalg.fill ins(%zero : f32) outs(%sums : memref<32x16xf32>)
    linalg.generic {indexing_maps = [#ik, #kj, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<32x64xf8E4M3FN>, memref<64x16xf8E4M3FN>) outs(%sums : memref<32x16xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: f8E4M3FN, %y: f8E4M3FN, %z: f32):
      %0 = arith.extf %x : f8E4M3FN to f32
      %1 = arith.extf %y : f8E4M3FN to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %z, %2 : f32
      linalg.yield %3 : f32
    }
    linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%sums, %r : memref<32x16xf32>, memref<32x16xf32>) outs(%c : memref<32x16xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: f32, %u: f32, %o: f32):
      %0 = arith.addf %x, %u : f32
      linalg.yield %0 : f32
    }
    fp8.return
  }
}

// -----

#ik = affine_map<(i, j, k) -> (i, k)>
#jk = affine_map<(i, j, k) -> (j, k)>
#ij = affine_map<(i, j, k) -> (i, j)>
#ki = affine_map<(i, j, k) -> (k, i)>
#kj = affine_map<(i, j, k) -> (k, j)>

// bf16 operands lie as they like, and the table decides by size.
// CHECK: by = "kernel", dot = "small", launches = 1 : i64, operands = [bf16, bf16], reason = "the table has no dots as small as this", sizes = array<i64: 32, 16, 24>
// CHECK-SAME: by = "cublaslt", dot = "large"
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84", cublaslt = "table">} {
  // CHECK: fp8.launch @small
  // CHECK: label = "large" number = 1
  fp8.schedule @step(%arena: memref<64xi8>, %a: memref<32x24xbf16>, %b: memref<16x24xbf16>, %c: memref<32x16xf32>,
                     %d: memref<512x1024xbf16>, %e: memref<512x2048xbf16>, %f: memref<1024x2048xf32>) arena_bytes = 64 {
    fp8.launch @small(read %a, read %b, write %c) label = "small" number = 0
        : (memref<32x24xbf16>, memref<16x24xbf16>, memref<32x16xf32>) -> ()
    fp8.launch @large(read %d, read %e, write %f) label = "large" number = 1
        : (memref<512x1024xbf16>, memref<512x2048xbf16>, memref<1024x2048xf32>) -> ()
    fp8.return
  }
  fp8.kernel @small(read %a: memref<32x24xbf16>, read %b: memref<16x24xbf16>, write %c: memref<32x16xf32>) domain = [32, 16] {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%c : memref<32x16xf32>)
    linalg.generic {indexing_maps = [#ik, #jk, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<32x24xbf16>, memref<16x24xbf16>) outs(%c : memref<32x16xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %0 = arith.extf %x : bf16 to f32
      %1 = arith.extf %y : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %z, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }
  // CHECK: lhs_along_k = false, rhs_along_k = false
  fp8.kernel @large(read %a: memref<512x1024xbf16>, read %b: memref<512x2048xbf16>, write %c: memref<1024x2048xf32>) domain = [1024, 2048] {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%c : memref<1024x2048xf32>)
    linalg.generic {indexing_maps = [#ki, #kj, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<512x1024xbf16>, memref<512x2048xbf16>) outs(%c : memref<1024x2048xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %0 = arith.extf %x : bf16 to f32
      %1 = arith.extf %y : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %z, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }
}
