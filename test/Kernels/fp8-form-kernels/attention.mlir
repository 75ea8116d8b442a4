// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-form-kernels | FileCheck %s

#row = affine_map<(b, q) -> (b, q)>
#qd = affine_map<(b, q, k, d) -> (b, q, d)>
#kd = affine_map<(b, q, k, d) -> (b, k, d)>
#s = affine_map<(b, q, k, d) -> (b, q, k)>
#p = affine_map<(b, q, d, k) -> (b, q, k)>
#v = affine_map<(b, q, d, k) -> (b, k, d)>
#o = affine_map<(b, q, d, k) -> (b, d, q)>
#ds = affine_map<(b, k, d, q) -> (b, q, k)>
#qs = affine_map<(b, k, d, q) -> (b, q, d)>
#dk = affine_map<(b, k, d, q) -> (b, k, d)>
#all = affine_map<(b, q, k) -> (b, q, k)>
#sum = affine_map<(b, q, k) -> (b, q)>
#from = affine_map<(b, q, d) -> (b, d, q)>
#to = affine_map<(b, q, d) -> (b, q, d)>

// The forward pass: each query of each batch is on its own, and the dot writes
// what is transposed at once.
// CHECK-LABEL: func.func @forward
// CHECK: fp8.launch @kernel_0(read %arg0, read %arg1, read %arg2, write %{{.*}}) label = "attention {{.*}}attention.mlir:{{.*}}"
// CHECK: fp8.kernel @kernel_0({{.*}}) -> tensor<4x32x8xf32> domain = [4, 32] {
// CHECK-COUNT-4: fp8.task_dims = array<i64: 0, 1>
// CHECK-NOT: linalg.generic
// CHECK: fp8.return
module {
  func.func @forward(%q: tensor<4x32x8xf32>, %k: tensor<4x16x8xf32>, %v: tensor<4x16x8xf32>) -> tensor<4x32x8xf32> {
    %0 = fp8.attention %q, %k, %v : (tensor<4x32x8xf32>, tensor<4x16x8xf32>, tensor<4x16x8xf32>) -> tensor<4x32x8xf32> {
    ^bb0(%a: tensor<4x32x8xf32>, %b: tensor<4x16x8xf32>, %c: tensor<4x16x8xf32>):
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<4x32x16xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x16xf32>) -> tensor<4x32x16xf32>
      %s = linalg.generic {indexing_maps = [#qd, #kd, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%a, %b : tensor<4x32x8xf32>, tensor<4x16x8xf32>) outs(%f : tensor<4x32x16xf32>) {
      ^bb1(%x: f32, %y: f32, %z: f32):
        %m = arith.mulf %x, %y : f32
        %n = arith.addf %z, %m : f32
        linalg.yield %n : f32
      } -> tensor<4x32x16xf32>
      %re = tensor.empty() : tensor<4x32xf32>
      %rf = linalg.fill ins(%zero : f32) outs(%re : tensor<4x32xf32>) -> tensor<4x32xf32>
      %r = linalg.generic {indexing_maps = [#all, #sum], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%s : tensor<4x32x16xf32>) outs(%rf : tensor<4x32xf32>) {
      ^bb1(%x: f32, %z: f32):
        %n = arith.addf %z, %x : f32
        linalg.yield %n : f32
      } -> tensor<4x32xf32>
      %p = linalg.generic {indexing_maps = [#all, #sum, #all], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%s, %r : tensor<4x32x16xf32>, tensor<4x32xf32>) outs(%e : tensor<4x32x16xf32>) {
      ^bb1(%x: f32, %y: f32, %z: f32):
        %n = arith.divf %x, %y : f32
        linalg.yield %n : f32
      } -> tensor<4x32x16xf32>
      %oe = tensor.empty() : tensor<4x8x32xf32>
      %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x8x32xf32>) -> tensor<4x8x32xf32>
      %o = linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%p, %c : tensor<4x32x16xf32>, tensor<4x16x8xf32>) outs(%of : tensor<4x8x32xf32>) {
      ^bb1(%x: f32, %y: f32, %z: f32):
        %m = arith.mulf %x, %y : f32
        %n = arith.addf %z, %m : f32
        linalg.yield %n : f32
      } -> tensor<4x8x32xf32>
      %te = tensor.empty() : tensor<4x32x8xf32>
      %t = linalg.generic {indexing_maps = [#from, #to], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%o : tensor<4x8x32xf32>) outs(%te : tensor<4x32x8xf32>) {
      ^bb1(%x: f32, %z: f32):
        linalg.yield %x : f32
      } -> tensor<4x32x8xf32>
      fp8.yield %t : tensor<4x32x8xf32>
    }
    return %0 : tensor<4x32x8xf32>
  }
}

// -----

#qd = affine_map<(b, q, k, d) -> (b, q, d)>
#kd = affine_map<(b, q, k, d) -> (b, k, d)>
#s = affine_map<(b, q, k, d) -> (b, q, k)>
#ds = affine_map<(b, k, d, q) -> (b, q, k)>
#qs = affine_map<(b, k, d, q) -> (b, q, d)>
#dk = affine_map<(b, k, d, q) -> (b, k, d)>

// A sum over queries has each task run over all of them, in blocks.
// CHECK-LABEL: func.func @backward
// CHECK: label = "attention_backward
// CHECK: fp8.kernel @kernel_0({{.*}}) -> tensor<4x16x8xf32> domain = [4, 16, 512] block = 128 {
// CHECK: fp8.task_dims = array<i64: 0, 2, 1>
// CHECK: fp8.task_dims = array<i64: 0, 1, 3>
module {
  func.func @backward(%q: tensor<4x512x8xf32>, %k: tensor<4x16x8xf32>) -> tensor<4x16x8xf32> {
    %0 = fp8.attention_backward %q, %k : (tensor<4x512x8xf32>, tensor<4x16x8xf32>) -> tensor<4x16x8xf32> {
    ^bb0(%a: tensor<4x512x8xf32>, %b: tensor<4x16x8xf32>):
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<4x512x16xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x512x16xf32>) -> tensor<4x512x16xf32>
      %s = linalg.generic {indexing_maps = [#qd, #kd, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%a, %b : tensor<4x512x8xf32>, tensor<4x16x8xf32>) outs(%f : tensor<4x512x16xf32>) {
      ^bb1(%x: f32, %y: f32, %z: f32):
        %m = arith.mulf %x, %y : f32
        %n = arith.addf %z, %m : f32
        linalg.yield %n : f32
      } -> tensor<4x512x16xf32>
      %ge = tensor.empty() : tensor<4x16x8xf32>
      %gf = linalg.fill ins(%zero : f32) outs(%ge : tensor<4x16x8xf32>) -> tensor<4x16x8xf32>
      %g = linalg.generic {indexing_maps = [#ds, #qs, #dk], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%s, %a : tensor<4x512x16xf32>, tensor<4x512x8xf32>) outs(%gf : tensor<4x16x8xf32>) {
      ^bb1(%x: f32, %y: f32, %z: f32):
        %m = arith.mulf %x, %y : f32
        %n = arith.addf %z, %m : f32
        linalg.yield %n : f32
      } -> tensor<4x16x8xf32>
      fp8.yield %g : tensor<4x16x8xf32>
    }
    return %0 : tensor<4x16x8xf32>
  }
}

// -----

#kd = affine_map<(b, q, k, d) -> (b, k, d)>
#qd = affine_map<(b, q, k, d) -> (b, q, d)>
#s = affine_map<(b, q, k, d) -> (b, q, k)>
#ds = affine_map<(b, k, d, q) -> (b, q, k)>
#qs = affine_map<(b, k, d, q) -> (b, q, d)>
#dk = affine_map<(b, k, d, q) -> (b, k, d)>
#all = affine_map<(b, k, d) -> (b, k, d)>

// What is computed of such a sum, a cast, is behind the kernel.
// CHECK-LABEL: func.func @cast_sum
// CHECK: %[[SUM:.*]] = fp8.launch @kernel_0({{.*}}) label = "attention_backward
// CHECK: fp8.launch @kernel_1(read %[[SUM]], {{.*}} tensor<4x16x8xbf16>
// CHECK: fp8.kernel @kernel_0({{.*}}) -> tensor<4x16x8xf32> domain = [4, 16, 512] block = 128 {
// CHECK: fp8.task_dims = array<i64: 0, 2, 1>
// CHECK: fp8.task_dims = array<i64: 0, 1, 3>
// CHECK-NOT: arith.truncf
// CHECK: fp8.kernel @kernel_1
// CHECK: arith.truncf
module {
  func.func @cast_sum(%q: tensor<4x512x8xf32>, %k: tensor<4x16x8xf32>) -> tensor<4x16x8xbf16> {
    %0 = fp8.attention_backward %q, %k : (tensor<4x512x8xf32>, tensor<4x16x8xf32>) -> tensor<4x16x8xbf16> {
    ^bb0(%a: tensor<4x512x8xf32>, %b: tensor<4x16x8xf32>):
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<4x512x16xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x512x16xf32>) -> tensor<4x512x16xf32>
      %s = linalg.generic {indexing_maps = [#qd, #kd, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%a, %b : tensor<4x512x8xf32>, tensor<4x16x8xf32>) outs(%f : tensor<4x512x16xf32>) {
      ^bb1(%x: f32, %y: f32, %z: f32):
        %m = arith.mulf %x, %y : f32
        %n = arith.addf %z, %m : f32
        linalg.yield %n : f32
      } -> tensor<4x512x16xf32>
      %ge = tensor.empty() : tensor<4x16x8xf32>
      %gf = linalg.fill ins(%zero : f32) outs(%ge : tensor<4x16x8xf32>) -> tensor<4x16x8xf32>
      %g = linalg.generic {indexing_maps = [#ds, #qs, #dk], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%s, %a : tensor<4x512x16xf32>, tensor<4x512x8xf32>) outs(%gf : tensor<4x16x8xf32>) {
      ^bb1(%x: f32, %y: f32, %z: f32):
        %m = arith.mulf %x, %y : f32
        %n = arith.addf %z, %m : f32
        linalg.yield %n : f32
      } -> tensor<4x16x8xf32>
      %ce = tensor.empty() : tensor<4x16x8xbf16>
      %c = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%g : tensor<4x16x8xf32>) outs(%ce : tensor<4x16x8xbf16>) {
      ^bb1(%x: f32, %z: bf16):
        %n = arith.truncf %x : f32 to bf16
        linalg.yield %n : bf16
      } -> tensor<4x16x8xbf16>
      fp8.yield %c : tensor<4x16x8xbf16>
    }
    return %0 : tensor<4x16x8xbf16>
  }
}

// -----

#kd = affine_map<(b, q, k, d) -> (b, k, d)>
#qd = affine_map<(b, q, k, d) -> (b, q, d)>
#s = affine_map<(b, q, k, d) -> (b, q, k)>
#ds = affine_map<(b, k, d, q) -> (b, q, k)>
#qs = affine_map<(b, k, d, q) -> (b, q, d)>
#dk = affine_map<(b, k, d, q) -> (b, k, d)>

// A cast that also turns the sum: the kernel writes it in that order, in f32, and
// the sum keeps what the recipe says of its products.
// CHECK-LABEL: func.func @turned_sum
// CHECK: %[[SUM:.*]] = fp8.launch @kernel_0({{.*}} -> tensor<4x8x16xf32>
// CHECK: fp8.launch @kernel_1(read %[[SUM]], {{.*}} tensor<4x8x16xbf16>
// CHECK: fp8.kernel @kernel_0({{.*}}) -> tensor<4x8x16xf32> domain = [4, 16, 512] block = 128 {
// CHECK: outs(%{{.*}} : tensor<4x8x16xf32>) attrs = {fp8.promote_every = 32 : i64, fp8.task_dims = array<i64: 0, 1, 3>}
// CHECK: fp8.kernel @kernel_1
// CHECK: arith.truncf
module {
  func.func @turned_sum(%q: tensor<4x512x8xf32>, %k: tensor<4x16x8xf32>) -> tensor<4x8x16xbf16> {
    %0 = fp8.attention_backward %q, %k : (tensor<4x512x8xf32>, tensor<4x16x8xf32>) -> tensor<4x8x16xbf16> {
    ^bb0(%a: tensor<4x512x8xf32>, %b: tensor<4x16x8xf32>):
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<4x512x16xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x512x16xf32>) -> tensor<4x512x16xf32>
      %s = linalg.generic {indexing_maps = [#qd, #kd, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%a, %b : tensor<4x512x8xf32>, tensor<4x16x8xf32>) outs(%f : tensor<4x512x16xf32>) {
      ^bb1(%x: f32, %y: f32, %z: f32):
        %m = arith.mulf %x, %y : f32
        %n = arith.addf %z, %m : f32
        linalg.yield %n : f32
      } -> tensor<4x512x16xf32>
      %ge = tensor.empty() : tensor<4x16x8xf32>
      %gf = linalg.fill ins(%zero : f32) outs(%ge : tensor<4x16x8xf32>) -> tensor<4x16x8xf32>
      %g = linalg.generic {indexing_maps = [#ds, #qs, #dk], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%s, %a : tensor<4x512x16xf32>, tensor<4x512x8xf32>) outs(%gf : tensor<4x16x8xf32>) attrs = {fp8.promote_every = 32 : i64} {
      ^bb1(%x: f32, %y: f32, %z: f32):
        %m = arith.mulf %x, %y : f32
        %n = arith.addf %z, %m : f32
        linalg.yield %n : f32
      } -> tensor<4x16x8xf32>
      %ce = tensor.empty() : tensor<4x8x16xbf16>
      %c = linalg.generic {indexing_maps = [affine_map<(b, d, k) -> (b, k, d)>, affine_map<(b, d, k) -> (b, d, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%g : tensor<4x16x8xf32>) outs(%ce : tensor<4x8x16xbf16>) {
      ^bb1(%x: f32, %z: bf16):
        %n = arith.truncf %x : f32 to bf16
        linalg.yield %n : bf16
      } -> tensor<4x8x16xbf16>
      fp8.yield %c : tensor<4x8x16xbf16>
    }
    return %0 : tensor<4x8x16xbf16>
  }
}

// -----

func.func @not_structured(%q: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = fp8.attention %q : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<4x8xf32>):
    // expected-error @+1 {{expected linalg.generic, fills and constants in the body of an attention}}
    %c = tensor.collapse_shape %a [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
    %d = tensor.expand_shape %c [[0, 1]] output_shape [4, 8] : tensor<32xf32> into tensor<4x8xf32>
    fp8.yield %d : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}
