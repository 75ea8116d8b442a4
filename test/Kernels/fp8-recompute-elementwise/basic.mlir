// RUN: fp8-opt %s --split-input-file --fp8-recompute-elementwise | FileCheck %s
// RUN: fp8-opt %s --split-input-file --fp8-recompute-elementwise --fp8-fuse-elementwise --canonicalize --cse --fp8-form-kernels | FileCheck %s --check-prefix=KERNELS

#id = affine_map<(d0, d1) -> (d0, d1)>
#all = affine_map<(d0, d1) -> ()>

// The moment is stored in bf16: computing it again from that and the gradient
// costs less than storing it in f32 until its amax is known.
// CHECK-LABEL: func.func public @moment
// CHECK: %[[NEW:.*]] = linalg.generic
// CHECK-NOT: fp8.sweep
// CHECK: %[[AGAIN:.*]] = linalg.generic {{.*}} attrs =  {fp8.sweep = 1 : i64}
// CHECK: %[[AMAX:.*]] = linalg.generic {{.*}}"reduction", "reduction"]} ins(%[[NEW]] :
// CHECK: linalg.generic {{.*}} ins(%[[AGAIN]], %[[AMAX]] :
// KERNELS-LABEL: func.func public @moment
// KERNELS-NOT: tensor.empty() : tensor<128x128xf32>
// KERNELS: return
func.func public @moment(%m: tensor<128x128xbf16> {fp8.path = "m", fp8.role = "frozen"}, %g: tensor<128x128xbf16> {fp8.path = "g", fp8.role = "frozen"}) -> (tensor<128x128xbf16> {fp8.path = "y", fp8.kind = "output"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x128xf32>
  %new = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%m, %g : tensor<128x128xbf16>, tensor<128x128xbf16>) outs(%e : tensor<128x128xf32>) {
  ^bb0(%a: bf16, %b: bf16, %o: f32):
    %aw = arith.extf %a : bf16 to f32
    %bw = arith.extf %b : bf16 to f32
    %s = arith.addf %aw, %bw : f32
    linalg.yield %s : f32
  } -> tensor<128x128xf32>
  %e0 = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %max = linalg.generic {indexing_maps = [#id, #all], iterator_types = ["reduction", "reduction"]}
      ins(%new : tensor<128x128xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %m0 = math.absf %a : f32
    %m1 = arith.maximumf %m0, %o : f32
    linalg.yield %m1 : f32
  } -> tensor<f32>
  %e1 = tensor.empty() : tensor<128x128xbf16>
  %y = linalg.generic {indexing_maps = [#id, #all, #id], iterator_types = ["parallel", "parallel"]}
      ins(%new, %max : tensor<128x128xf32>, tensor<f32>) outs(%e1 : tensor<128x128xbf16>) {
  ^bb0(%a: f32, %b: f32, %o: bf16):
    %d = arith.divf %a, %b : f32
    %t = arith.truncf %d : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<128x128xbf16>
  return %y : tensor<128x128xbf16>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#all = affine_map<(d0, d1) -> ()>

// The result of a dot is not computed again, and what takes two arrays in f32
// and an exponential is no cheaper than storing one.
// CHECK-LABEL: func.func public @gated
// CHECK-NOT: fp8.sweep
// CHECK: return
func.func public @gated(%a: tensor<128x128xf32> {fp8.path = "a", fp8.role = "frozen"}, %b: tensor<128x128xf32> {fp8.path = "b", fp8.role = "frozen"}) -> (tensor<128x128xbf16> {fp8.path = "y", fp8.kind = "output"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x128xf32>
  %new = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<128x128xf32>, tensor<128x128xf32>) outs(%e : tensor<128x128xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %x = math.exp %i : f32
    %s = arith.mulf %x, %j : f32
    linalg.yield %s : f32
  } -> tensor<128x128xf32>
  %e0 = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %max = linalg.generic {indexing_maps = [#id, #all], iterator_types = ["reduction", "reduction"]}
      ins(%new : tensor<128x128xf32>) outs(%f : tensor<f32>) {
  ^bb0(%i: f32, %o: f32):
    %m1 = arith.maximumf %i, %o : f32
    linalg.yield %m1 : f32
  } -> tensor<f32>
  %e1 = tensor.empty() : tensor<128x128xbf16>
  %y = linalg.generic {indexing_maps = [#id, #all, #id], iterator_types = ["parallel", "parallel"]}
      ins(%new, %max : tensor<128x128xf32>, tensor<f32>) outs(%e1 : tensor<128x128xbf16>) {
  ^bb0(%i: f32, %j: f32, %o: bf16):
    %d = arith.divf %i, %j : f32
    %t = arith.truncf %d : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<128x128xbf16>
  return %y : tensor<128x128xbf16>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#all = affine_map<(d0, d1) -> ()>

// A number that is the same everywhere takes no memory, whatever its type says.
// CHECK-LABEL: func.func public @decayed
// CHECK: linalg.generic {{.*}} attrs =  {fp8.sweep = 1 : i64}
// CHECK: return
// KERNELS-LABEL: func.func public @decayed
// KERNELS-NOT: tensor.empty() : tensor<128x128xf32>
// KERNELS: return
func.func public @decayed(%m: tensor<128x128xbf16> {fp8.path = "m", fp8.role = "frozen"}) -> (tensor<128x128xbf16> {fp8.path = "y", fp8.kind = "output"}) {
  %zero = arith.constant 0.0 : f32
  %decay = arith.constant dense<0.9> : tensor<128x128xf32>
  %shift = arith.constant dense<1.0> : tensor<128x128xf32>
  %limit = arith.constant dense<4.0> : tensor<128x128xf32>
  %e = tensor.empty() : tensor<128x128xf32>
  %new = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%m, %decay, %shift, %limit : tensor<128x128xbf16>, tensor<128x128xf32>, tensor<128x128xf32>, tensor<128x128xf32>) outs(%e : tensor<128x128xf32>) {
  ^bb0(%a: bf16, %b: f32, %c: f32, %d: f32, %o: f32):
    %aw = arith.extf %a : bf16 to f32
    %p = arith.mulf %aw, %b : f32
    %s = arith.addf %p, %c : f32
    %l = arith.minimumf %s, %d : f32
    linalg.yield %l : f32
  } -> tensor<128x128xf32>
  %e0 = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %max = linalg.generic {indexing_maps = [#id, #all], iterator_types = ["reduction", "reduction"]}
      ins(%new : tensor<128x128xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %m0 = math.absf %a : f32
    %m1 = arith.maximumf %m0, %o : f32
    linalg.yield %m1 : f32
  } -> tensor<f32>
  %e1 = tensor.empty() : tensor<128x128xbf16>
  %y = linalg.generic {indexing_maps = [#id, #all, #id], iterator_types = ["parallel", "parallel"]}
      ins(%new, %max : tensor<128x128xf32>, tensor<f32>) outs(%e1 : tensor<128x128xbf16>) {
  ^bb0(%a: f32, %b: f32, %o: bf16):
    %d = arith.divf %a, %b : f32
    %t = arith.truncf %d : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<128x128xbf16>
  return %y : tensor<128x128xbf16>
}
