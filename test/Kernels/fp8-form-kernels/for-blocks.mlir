// RUN: fp8-opt %s --fp8-form-kernels | FileCheck %s --check-prefix=CPU
// RUN: fp8-opt %s --fp8-form-kernels=for-blocks | FileCheck %s

#row = affine_map<(i, j) -> (i)>
#both = affine_map<(i, j) -> (i, j)>
#lhs = affine_map<(i, j, k) -> (i, k)>
#rhs = affine_map<(i, j, k) -> (k, j)>
#out = affine_map<(i, j, k) -> (i, j)>

// A dot whose rows are added up. On a CPU a task has whole rows. A block of a GPU
// has 128 columns, so the sum is a kernel of its own.
// CPU-LABEL: func @long_rows
// CPU: label = "dot_sum
// CPU-NOT: fp8.launch
// CPU: return
// CHECK-LABEL: func @long_rows
// CHECK: fp8.launch @[[DOT:.*]](read %{{.*}}label = "dot {{.*}} 64x256xf32"
// CHECK: fp8.launch @[[SUM:.*]](read %{{.*}}label = "sum
// CHECK-NOT: fp8.launch
// CHECK: return
func.func @long_rows(%x: tensor<64x32xf32>, %w: tensor<32x256xf32>) -> (tensor<64x256xf32>, tensor<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x256xf32>) -> tensor<64x256xf32>
  %0 = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<64x32xf32>, tensor<32x256xf32>) outs(%f : tensor<64x256xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x256xf32>
  %er = tensor.empty() : tensor<64xf32>
  %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
  %1 = linalg.generic {indexing_maps = [#both, #row], iterator_types = ["parallel", "reduction"]}
      ins(%0 : tensor<64x256xf32>) outs(%fr : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %0, %1 : tensor<64x256xf32>, tensor<64xf32>
}

// A block would have to keep a row of 20000 exponentials.
// CPU-LABEL: func @very_long_rows
// CPU: fp8.launch
// CPU-NOT: fp8.launch
// CPU: return
// CHECK-LABEL: func @very_long_rows
// CHECK: fp8.launch {{.*}}label = "elementwise
// CHECK: fp8.launch {{.*}}label = "sum
// CHECK: return
func.func @very_long_rows(%x: tensor<64x20000xf32>) -> (tensor<64x20000xf32>, tensor<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x20000xf32>
  %0 = linalg.generic {indexing_maps = [#both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x20000xf32>) outs(%e : tensor<64x20000xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.exp %a : f32
    linalg.yield %s : f32
  } -> tensor<64x20000xf32>
  %er = tensor.empty() : tensor<64xf32>
  %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
  %1 = linalg.generic {indexing_maps = [#both, #row], iterator_types = ["parallel", "reduction"]}
      ins(%0 : tensor<64x20000xf32>) outs(%fr : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %0, %1 : tensor<64x20000xf32>, tensor<64xf32>
}

// Heads of one feature have products and sums instead of dots. A task of a CPU
// computes rows of such an attention; the blocks of a GPU divide an attention by
// its dots, so there its ops are ordinary kernels.
// CPU-LABEL: func @attention_without_dots
// CPU: label = "attention
// CPU-NOT: fp8.launch
// CPU: return
// CHECK-LABEL: func @attention_without_dots
// CHECK-NOT: label = "attention
// CHECK: label = "sum
// CHECK: return
func.func @attention_without_dots(%q: tensor<32xf32>, %k: tensor<24xf32>, %v: tensor<24xf32>) -> tensor<32xf32> {
  %0 = fp8.attention %q, %k, %v : (tensor<32xf32>, tensor<24xf32>, tensor<24xf32>) -> tensor<32xf32> {
  ^bb0(%qs: tensor<32xf32>, %ks: tensor<24xf32>, %vs: tensor<24xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<32x24xf32>
    %weights = linalg.generic {indexing_maps = [#row, affine_map<(i, j) -> (j)>, #both], iterator_types = ["parallel", "parallel"]}
        ins(%qs, %ks : tensor<32xf32>, tensor<24xf32>) outs(%e : tensor<32x24xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %m = arith.mulf %a, %b : f32
      %w = math.exp %m : f32
      linalg.yield %w : f32
    } -> tensor<32x24xf32>
    %er = tensor.empty() : tensor<32xf32>
    %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<32xf32>) -> tensor<32xf32>
    %sums = linalg.generic {indexing_maps = [#both, #row], iterator_types = ["parallel", "reduction"]}
        ins(%weights : tensor<32x24xf32>) outs(%fr : tensor<32xf32>) {
    ^bb0(%a: f32, %o: f32):
      %s = arith.addf %o, %a : f32
      linalg.yield %s : f32
    } -> tensor<32xf32>
    %out = linalg.generic {indexing_maps = [#both, affine_map<(i, j) -> (j)>, #row, #row], iterator_types = ["parallel", "reduction"]}
        ins(%weights, %vs, %sums : tensor<32x24xf32>, tensor<24xf32>, tensor<32xf32>) outs(%fr : tensor<32xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
      %p = arith.divf %a, %c : f32
      %m = arith.mulf %p, %b : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    } -> tensor<32xf32>
    fp8.yield %out : tensor<32xf32>
  }
  return %0 : tensor<32xf32>
}
