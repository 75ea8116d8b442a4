// RUN: fp8-opt %s --split-input-file --fp8-use-cublaslt | FileCheck %s

// What the library does not compute stays as it is, and the table says why.

#ik = affine_map<(i, j, k) -> (i, k)>
#jk = affine_map<(i, j, k) -> (j, k)>
#ij = affine_map<(i, j, k) -> (i, j)>
#bik = affine_map<(b, i, j, k) -> (b, i, k)>
#bjk = affine_map<(b, i, j, k) -> (b, j, k)>
#bij = affine_map<(b, i, j, k) -> (b, i, j)>
// CHECK: by = "kernel", dot = "formats"
// CHECK-SAME: reason = "both operands are f8E5M2"
// CHECK: fp8.launch @dot
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84", cublaslt = "all">} {
  fp8.schedule @step(%arena: memref<64xi8>, %a: memref<32x64xf8E5M2>, %b: memref<16x64xf8E5M2>, %c: memref<32x16xf32>) arena_bytes = 64 {
    fp8.launch @dot(read %a, read %b, write %c) label = "formats" number = 0 : (memref<32x64xf8E5M2>, memref<16x64xf8E5M2>, memref<32x16xf32>) -> ()
    fp8.return
  }
  fp8.kernel @dot(read %a: memref<32x64xf8E5M2>, read %b: memref<16x64xf8E5M2>, write %c: memref<32x16xf32>) domain = [32, 16] {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%c : memref<32x16xf32>)
    linalg.generic {indexing_maps = [#ik, #jk, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<32x64xf8E5M2>, memref<16x64xf8E5M2>) outs(%c : memref<32x16xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: f8E5M2, %y: f8E5M2, %z: f32):
      %0 = arith.extf %x : f8E5M2 to f32
      %1 = arith.extf %y : f8E5M2 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %z, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }
}

// -----

#ik = affine_map<(i, j, k) -> (i, k)>
#jk = affine_map<(i, j, k) -> (j, k)>
#ij = affine_map<(i, j, k) -> (i, j)>
#bik = affine_map<(b, i, j, k) -> (b, i, k)>
#bjk = affine_map<(b, i, j, k) -> (b, j, k)>
#bij = affine_map<(b, i, j, k) -> (b, i, j)>
// CHECK: by = "kernel", dot = "mixed"
// CHECK-SAME: reason = "operands are bf16 and f8E4M3FN"
// CHECK: fp8.launch @dot
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84", cublaslt = "all">} {
  fp8.schedule @step(%arena: memref<64xi8>, %a: memref<32x64xbf16>, %b: memref<16x64xf8E4M3FN>, %c: memref<32x16xf32>) arena_bytes = 64 {
    fp8.launch @dot(read %a, read %b, write %c) label = "mixed" number = 0 : (memref<32x64xbf16>, memref<16x64xf8E4M3FN>, memref<32x16xf32>) -> ()
    fp8.return
  }
  fp8.kernel @dot(read %a: memref<32x64xbf16>, read %b: memref<16x64xf8E4M3FN>, write %c: memref<32x16xf32>) domain = [32, 16] {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%c : memref<32x16xf32>)
    linalg.generic {indexing_maps = [#ik, #jk, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<32x64xbf16>, memref<16x64xf8E4M3FN>) outs(%c : memref<32x16xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: bf16, %y: f8E4M3FN, %z: f32):
      %0 = arith.extf %x : bf16 to f32
      %1 = arith.extf %y : f8E4M3FN to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %z, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }
}

// -----

#ik = affine_map<(i, j, k) -> (i, k)>
#jk = affine_map<(i, j, k) -> (j, k)>
#ij = affine_map<(i, j, k) -> (i, j)>
#bik = affine_map<(b, i, j, k) -> (b, i, k)>
#bjk = affine_map<(b, i, j, k) -> (b, j, k)>
#bij = affine_map<(b, i, j, k) -> (b, i, j)>
// CHECK: by = "kernel", dot = "sizes"
// CHECK-SAME: reason = "sizes are no multiples of 16"
// CHECK: fp8.launch @dot
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84", cublaslt = "all">} {
  fp8.schedule @step(%arena: memref<64xi8>, %a: memref<32x40xf8E4M3FN>, %b: memref<16x40xf8E4M3FN>, %c: memref<32x16xf32>) arena_bytes = 64 {
    fp8.launch @dot(read %a, read %b, write %c) label = "sizes" number = 0 : (memref<32x40xf8E4M3FN>, memref<16x40xf8E4M3FN>, memref<32x16xf32>) -> ()
    fp8.return
  }
  fp8.kernel @dot(read %a: memref<32x40xf8E4M3FN>, read %b: memref<16x40xf8E4M3FN>, write %c: memref<32x16xf32>) domain = [32, 16] {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%c : memref<32x16xf32>)
    linalg.generic {indexing_maps = [#ik, #jk, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<32x40xf8E4M3FN>, memref<16x40xf8E4M3FN>) outs(%c : memref<32x16xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: f8E4M3FN, %y: f8E4M3FN, %z: f32):
      %0 = arith.extf %x : f8E4M3FN to f32
      %1 = arith.extf %y : f8E4M3FN to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %z, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }
}

// -----

#ik = affine_map<(i, j, k) -> (i, k)>
#jk = affine_map<(i, j, k) -> (j, k)>
#ij = affine_map<(i, j, k) -> (i, j)>
#bik = affine_map<(b, i, j, k) -> (b, i, k)>
#bjk = affine_map<(b, i, j, k) -> (b, j, k)>
#bij = affine_map<(b, i, j, k) -> (b, i, j)>
// CHECK: by = "kernel", dot = "promoted"
// CHECK-SAME: reason = "its sums are promoted to f32 by the recipe"
// CHECK: fp8.launch @dot
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84", cublaslt = "all">} {
  fp8.schedule @step(%arena: memref<64xi8>, %a: memref<32x256xf8E4M3FN>, %b: memref<16x256xf8E4M3FN>, %c: memref<32x16xf32>) arena_bytes = 64 {
    fp8.launch @dot(read %a, read %b, write %c) label = "promoted" number = 0 : (memref<32x256xf8E4M3FN>, memref<16x256xf8E4M3FN>, memref<32x16xf32>) -> ()
    fp8.return
  }
  fp8.kernel @dot(read %a: memref<32x256xf8E4M3FN>, read %b: memref<16x256xf8E4M3FN>, write %c: memref<32x16xf32>) domain = [32, 16] {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%c : memref<32x16xf32>)
    linalg.generic {indexing_maps = [#ik, #jk, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<32x256xf8E4M3FN>, memref<16x256xf8E4M3FN>) outs(%c : memref<32x16xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>, fp8.promote_every = 128 : i64} {
    ^bb0(%x: f8E4M3FN, %y: f8E4M3FN, %z: f32):
      %0 = arith.extf %x : f8E4M3FN to f32
      %1 = arith.extf %y : f8E4M3FN to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %z, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }
}

// -----

#ik = affine_map<(i, j, k) -> (i, k)>
#jk = affine_map<(i, j, k) -> (j, k)>
#ij = affine_map<(i, j, k) -> (i, j)>
#bik = affine_map<(b, i, j, k) -> (b, i, k)>
#bjk = affine_map<(b, i, j, k) -> (b, j, k)>
#bij = affine_map<(b, i, j, k) -> (b, i, j)>
// CHECK: by = "kernel", dot = "batches"
// CHECK-SAME: reason = "it has batches"
// CHECK: fp8.launch @dot
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84", cublaslt = "all">} {
  fp8.schedule @step(%arena: memref<64xi8>, %a: memref<4x32x64xbf16>, %b: memref<4x16x64xbf16>, %c: memref<4x32x16xf32>) arena_bytes = 64 {
    fp8.launch @dot(read %a, read %b, write %c) label = "batches" number = 0 : (memref<4x32x64xbf16>, memref<4x16x64xbf16>, memref<4x32x16xf32>) -> ()
    fp8.return
  }
  fp8.kernel @dot(read %a: memref<4x32x64xbf16>, read %b: memref<4x16x64xbf16>, write %c: memref<4x32x16xf32>) domain = [4, 32, 16] {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%c : memref<4x32x16xf32>)
    linalg.generic {indexing_maps = [#bik, #bjk, #bij], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<4x32x64xbf16>, memref<4x16x64xbf16>) outs(%c : memref<4x32x16xf32>) attrs = {fp8.task_dims = array<i64: 0, 1, 2>} {
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

// -----

#ik = affine_map<(i, j, k) -> (i, k)>
#jk = affine_map<(i, j, k) -> (j, k)>
#ij = affine_map<(i, j, k) -> (i, j)>
#bik = affine_map<(b, i, j, k) -> (b, i, k)>
#bjk = affine_map<(b, i, j, k) -> (b, j, k)>
#bij = affine_map<(b, i, j, k) -> (b, i, j)>
// CHECK: by = "kernel", dot = "part"
// CHECK-SAME: reason = "an operand does not begin at a multiple of 16 bytes"
// CHECK: fp8.launch @dot
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84", cublaslt = "all">} {
  fp8.schedule @step(%arena: memref<64xi8>, %stack: memref<8192xf8E4M3FN>, %b: memref<16x64xf8E4M3FN>, %c: memref<32x16xf32>) arena_bytes = 64 {
    %eight = arith.constant 8 : index
    %part = fp8.subbuffer %stack[%eight] : memref<8192xf8E4M3FN> to memref<2048xf8E4M3FN>
    %a2 = memref.expand_shape %part [[0, 1]] output_shape [32, 64] : memref<2048xf8E4M3FN> into memref<32x64xf8E4M3FN>
    fp8.launch @dot(read %a2, read %b, write %c) label = "part" number = 0 : (memref<32x64xf8E4M3FN>, memref<16x64xf8E4M3FN>, memref<32x16xf32>) -> ()
    fp8.return
  }
  fp8.kernel @dot(read %a: memref<32x64xf8E4M3FN>, read %b: memref<16x64xf8E4M3FN>, write %c: memref<32x16xf32>) domain = [32, 16] {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%c : memref<32x16xf32>)
    linalg.generic {indexing_maps = [#ik, #jk, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<32x64xf8E4M3FN>, memref<16x64xf8E4M3FN>) outs(%c : memref<32x16xf32>) attrs = {fp8.task_dims = array<i64: 0, 1>} {
    ^bb0(%x: f8E4M3FN, %y: f8E4M3FN, %z: f32):
      %0 = arith.extf %x : f8E4M3FN to f32
      %1 = arith.extf %y : f8E4M3FN to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %z, %2 : f32
      linalg.yield %3 : f32
    }
    fp8.return
  }
}
