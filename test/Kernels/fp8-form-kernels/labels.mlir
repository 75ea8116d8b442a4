// RUN: fp8-opt %s --split-input-file --fp8-form-kernels | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// A launch is called by what its kernel computes, and by the state that it
// updates or by where its last op comes from.
// CHECK-LABEL: func.func @main
// CHECK: fp8.launch @kernel_0({{.*}}) label = "sum train.py:3:7 (norm of x)"
// CHECK: fp8.launch @kernel_1({{.*}}) label = "update params['w']"
func.func @main(%x: tensor<64x8xf32> {fp8.path = "x"}, %m: tensor<64x8xf32> {fp8.kind = "moment1", fp8.path = "mu['w']"},
                %w: tensor<64x8xf32> {fp8.kind = "parameter", fp8.path = "params['w']"})
    -> (tensor<64xf32> {fp8.path = "sums"}, tensor<64x8xf32> {fp8.path = "new_mu", fp8.state = "mu['w']"},
        tensor<64x8xf32> {fp8.path = "new_w", fp8.state = "params['w']"}) {
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty() : tensor<64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x8xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<64xf32> loc("norm of x"("train.py":3:7))
  %e = tensor.empty() : tensor<64x8xf32>
  %mu = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<64x8xf32>) outs(%e : tensor<64x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<64x8xf32>
  %new = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%w, %mu : tensor<64x8xf32>, tensor<64x8xf32>) outs(%e : tensor<64x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<64x8xf32>
  return %sum, %mu, %new : tensor<64xf32>, tensor<64x8xf32>, tensor<64x8xf32>
}

// -----

// A kernel with a dot is called by where the dot comes from, not by what
// follows it: a profile then names the weight that a launch is for.
#id = affine_map<(i, j) -> (i, j)>
#lhs = affine_map<(i, j, k) -> (i, k)>
#rhs = affine_map<(i, j, k) -> (k, j)>
#out = affine_map<(i, j, k) -> (i, j)>
// CHECK-LABEL: func.func @dot
// CHECK: fp8.launch @kernel_0({{.*}}) label = "dot train.py:5:9 (forward params['w'])"
// CHECK-NOT: fp8.launch
func.func @dot(%x: tensor<64x16xf32> {fp8.path = "x"}, %w: tensor<16x32xf32> {fp8.path = "params['w']"}) -> (tensor<64x32xf32> {fp8.path = "y"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %dot = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<64x16xf32>, tensor<16x32xf32>) outs(%f : tensor<64x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x32xf32> loc("forward params['w']"("train.py":5:9))
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%dot : tensor<64x32xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.tanh %a : f32
    linalg.yield %s : f32
  } -> tensor<64x32xf32> loc("tanh"("train.py":6:3))
  return %y : tensor<64x32xf32>
}

// -----

// Where a location has no name, types help: of what a reduction reads, or of
// the result. What is no dot has the weight that it reads, or the layer of the
// next dot.
#id = affine_map<(i, j) -> (i, j)>
#none = affine_map<(i, j) -> ()>
#lhs = affine_map<(i, j, k) -> (i, k)>
#rhs = affine_map<(i, j, k) -> (k, j)>
#out = affine_map<(i, j, k) -> (i, j)>
// CHECK-LABEL: func.func @nameless
// CHECK: fp8.launch @kernel_0({{.*}}) label = "max_quantize 64x16xf8E4M3FN for forward params['w']"
// CHECK: fp8.launch @kernel_1({{.*}}) label = "quantize train.py:7:3 16x32xf8E4M3FN of params['w']"
// CHECK: fp8.launch @kernel_2({{.*}}) label = "dot train.py:5:9 (forward params['w'])"
func.func @nameless(%x: tensor<64x16xf32> {fp8.path = "x"}, %w: tensor<16x32xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"}) -> (tensor<64x32xf32> {fp8.path = "y"}) {
  %zero = arith.constant 0.0 : f32
  %em = tensor.empty() : tensor<f32>
  %fm = linalg.fill ins(%zero : f32) outs(%em : tensor<f32>) -> tensor<f32>
  %max = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction", "reduction"]} ins(%x : tensor<64x16xf32>) outs(%fm : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<f32> loc(unknown)
  %eq = tensor.empty() : tensor<64x16xf8E4M3FN>
  %q = linalg.generic {indexing_maps = [#none, #id], iterator_types = ["parallel", "parallel"]} ins(%max : tensor<f32>) outs(%eq : tensor<64x16xf8E4M3FN>) {
  ^bb0(%a: f32, %o: f8E4M3FN):
    %c = arith.truncf %a : f32 to f8E4M3FN
    linalg.yield %c : f8E4M3FN
  } -> tensor<64x16xf8E4M3FN> loc(unknown)
  %ew = tensor.empty() : tensor<16x32xf8E4M3FN>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<16x32xf32>) outs(%ew : tensor<16x32xf8E4M3FN>) {
  ^bb0(%a: f32, %o: f8E4M3FN):
    %c = arith.truncf %a : f32 to f8E4M3FN
    linalg.yield %c : f8E4M3FN
  } -> tensor<16x32xf8E4M3FN> loc("train.py":7:3)
  %e = tensor.empty() : tensor<64x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %dot = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%q, %p : tensor<64x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>) outs(%f : tensor<64x32xf32>) {
  ^bb0(%a: f8E4M3FN, %b: f8E4M3FN, %o: f32):
    %a32 = arith.extf %a : f8E4M3FN to f32
    %b32 = arith.extf %b : f8E4M3FN to f32
    %m = arith.mulf %a32, %b32 : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x32xf32> loc("forward params['w']"("train.py":5:9))
  return %dot : tensor<64x32xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#none = affine_map<(i, j) -> ()>
// CHECK-LABEL: func.func @reduction
// CHECK: fp8.launch @kernel_{{.*}} label = "max 64x16xf32"
func.func @reduction(%x: tensor<64x16xf32> {fp8.path = "x"}) -> (tensor<f32> {fp8.path = "y"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %max = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction", "reduction"]} ins(%x : tensor<64x16xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<f32> loc(unknown)
  return %max : tensor<f32>
}

// -----

// What goes to no dot has the state that it goes to.
#id = affine_map<(i, j) -> (i, j)>
#none = affine_map<(i, j) -> ()>
// CHECK-LABEL: func.func @history
// CHECK: fp8.launch @kernel_{{.*}} label = "amax train.py:9:1 (add) for amaxes['w']"
func.func @history(%x: tensor<64x16xf32> {fp8.path = "x"}, %h: tensor<4xf32> {fp8.path = "amaxes['w']"}) -> (tensor<4xf32> {fp8.path = "new", fp8.state = "amaxes['w']"}, tensor<f32> {fp8.path = "y"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %max = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction", "reduction"]} ins(%x : tensor<64x16xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %abs = math.absf %a : f32
    %s = arith.maximumf %o, %abs : f32
    linalg.yield %s : f32
  } -> tensor<f32> loc("add"("train.py":9:1))
  %row = tensor.expand_shape %max [] output_shape [1] : tensor<f32> into tensor<1xf32>
  %new = tensor.insert_slice %row into %h[0] [1] [1] : tensor<1xf32> into tensor<4xf32>
  return %new, %max : tensor<4xf32>, tensor<f32>
}
