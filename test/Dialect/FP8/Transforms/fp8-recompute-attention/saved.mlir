// RUN: fp8-opt %s --fp8-recompute-attention --stablehlo-canonicalize-loops | FileCheck %s

// Scores that loops and branches of a forward pass save for the backward pass.

#attention = #fp8.verdict<high_precision, role = attention, category = attention, lhs = activation, rhs = activation,
  batch = 1, m = 16, n = 16, k = 8, lhs_format = f32, rhs_format = f32, reason = "attention">

// A loop over chunks of queries, whose mask depends on the counter, stacks the
// weights and the mask. The backward pass runs in reverse order; it slices the
// chunk itself.
// CHECK-LABEL: @chunks
// CHECK-SAME: (%[[Q:.*]]: tensor<4x16x8xf32> {{.*}}, %[[K:.*]]: tensor<64x8xf32> {{.*}}, %[[V:.*]]: tensor<64x8xf32>
// CHECK-NOT: tensor<4x16x64x{{.*}}>
// CHECK: stablehlo.while
// CHECK: stablehlo.dot_general
// CHECK-NOT: fp8.recompute
// CHECK: stablehlo.while
// CHECK: do {
// CHECK: %[[I:.*]] = stablehlo.subtract %{{.*}}, %iterArg
// CHECK: %[[FIRST:.*]] = stablehlo.multiply %[[I]],
// CHECK: stablehlo.broadcast_in_dim %[[FIRST]]
// CHECK: %[[SLICE:.*]] = stablehlo.dynamic_slice %[[Q]], %[[I]],
// CHECK: %[[CHUNK:.*]] = stablehlo.reshape %[[SLICE]]
// CHECK: %[[S:.*]] = stablehlo.dot_general %[[CHUNK]], %[[K]], {{.*}}fp8.recompute
// CHECK: stablehlo.select %{{.*}}, %[[S]],
// CHECK: %[[P:.*]] = stablehlo.divide
// CHECK: %[[DS:.*]] = stablehlo.select %{{.*}}, %[[P]],
// CHECK: stablehlo.dot_general %[[DS]], %{{.*}}, contracting_dims = [0] x [0]
// CHECK: return
func.func @chunks(%q: tensor<4x16x8xf32> {fp8.role = "batch", fp8.path = "q"}, %k: tensor<64x8xf32> {fp8.role = "batch", fp8.path = "k"},
                  %v: tensor<64x8xf32> {fp8.role = "batch", fp8.path = "v"})
    -> (tensor<4x16x8xf32>, tensor<64x8xf32>) {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %c3 = stablehlo.constant dense<3> : tensor<i32>
  %c4 = stablehlo.constant dense<4> : tensor<i32>
  %c16 = stablehlo.constant dense<16> : tensor<i32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<-1.0e+30> : tensor<16x64xf32>
  %outs = stablehlo.constant dense<0.0> : tensor<4x16x8xf32>
  %weights = stablehlo.constant dense<0.0> : tensor<4x16x64xf32>
  %masks = stablehlo.constant dense<false> : tensor<4x16x64xi1>
  %dvs = stablehlo.constant dense<0.0> : tensor<64x8xf32>
  %forward:4 = stablehlo.while(%i = %c0, %out = %outs, %stack = %weights, %maskStack = %masks)
      : tensor<i32>, tensor<4x16x8xf32>, tensor<4x16x64xf32>, tensor<4x16x64xi1>
  cond {
    %more = stablehlo.compare LT, %i, %c4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %slice = stablehlo.dynamic_slice %q, %i, %c0, %c0, sizes = [1, 16, 8] : (tensor<4x16x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x8xf32>
    %chunk = stablehlo.reshape %slice : (tensor<1x16x8xf32>) -> tensor<16x8xf32>
    %first = stablehlo.multiply %i, %c16 : tensor<i32>
    %firsts = stablehlo.broadcast_in_dim %first, dims = [] : (tensor<i32>) -> tensor<16x64xi32>
    %rows = stablehlo.iota dim = 0 : tensor<16x64xi32>
    %columns = stablehlo.iota dim = 1 : tensor<16x64xi32>
    %positions = stablehlo.add %firsts, %rows : tensor<16x64xi32>
    %mask = stablehlo.compare GE, %positions, %columns, SIGNED : (tensor<16x64xi32>, tensor<16x64xi32>) -> tensor<16x64xi1>
    %s = stablehlo.dot_general %chunk, %k, contracting_dims = [1] x [1] {fp8.verdict = #attention} : (tensor<16x8xf32>, tensor<64x8xf32>) -> tensor<16x64xf32>
    %masked = stablehlo.select %mask, %s, %low : tensor<16x64xi1>, tensor<16x64xf32>
    %e = stablehlo.exponential %masked : tensor<16x64xf32>
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<16x64xf32>, tensor<f32>) -> tensor<16xf32>
    %sums = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<16xf32>) -> tensor<16x64xf32>
    %p = stablehlo.divide %e, %sums : tensor<16x64xf32>
    %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] {fp8.verdict = #attention} : (tensor<16x64xf32>, tensor<64x8xf32>) -> tensor<16x8xf32>
    %oSlot = stablehlo.reshape %o : (tensor<16x8xf32>) -> tensor<1x16x8xf32>
    %newOut = stablehlo.dynamic_update_slice %out, %oSlot, %i, %c0, %c0 : (tensor<4x16x8xf32>, tensor<1x16x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x16x8xf32>
    %slot = stablehlo.reshape %p : (tensor<16x64xf32>) -> tensor<1x16x64xf32>
    %new = stablehlo.dynamic_update_slice %stack, %slot, %i, %c0, %c0 : (tensor<4x16x64xf32>, tensor<1x16x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x16x64xf32>
    %maskSlot = stablehlo.reshape %mask : (tensor<16x64xi1>) -> tensor<1x16x64xi1>
    %newMask = stablehlo.dynamic_update_slice %maskStack, %maskSlot, %i, %c0, %c0 : (tensor<4x16x64xi1>, tensor<1x16x64xi1>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x16x64xi1>
    %next = stablehlo.add %i, %c1 : tensor<i32>
    stablehlo.return %next, %newOut, %new, %newMask : tensor<i32>, tensor<4x16x8xf32>, tensor<4x16x64xf32>, tensor<4x16x64xi1>
  }
  %backward:2 = stablehlo.while(%i = %c0, %dv = %dvs) : tensor<i32>, tensor<64x8xf32>
  cond {
    %more = stablehlo.compare LT, %i, %c4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %j = stablehlo.subtract %c3, %i : tensor<i32>
    %slice = stablehlo.dynamic_slice %forward#2, %j, %c0, %c0, sizes = [1, 16, 64] : (tensor<4x16x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x64xf32>
    %p = stablehlo.reshape %slice : (tensor<1x16x64xf32>) -> tensor<16x64xf32>
    %maskSlice = stablehlo.dynamic_slice %forward#3, %j, %c0, %c0, sizes = [1, 16, 64] : (tensor<4x16x64xi1>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x64xi1>
    %mask = stablehlo.reshape %maskSlice : (tensor<1x16x64xi1>) -> tensor<16x64xi1>
    %outSlice = stablehlo.dynamic_slice %forward#1, %j, %c0, %c0, sizes = [1, 16, 8] : (tensor<4x16x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x8xf32>
    %do = stablehlo.reshape %outSlice : (tensor<1x16x8xf32>) -> tensor<16x8xf32>
    %zeros = stablehlo.constant dense<0.0> : tensor<16x64xf32>
    %ds = stablehlo.select %mask, %p, %zeros : tensor<16x64xi1>, tensor<16x64xf32>
    %part = stablehlo.dot_general %ds, %do, contracting_dims = [0] x [0] {fp8.verdict = #attention} : (tensor<16x64xf32>, tensor<16x8xf32>) -> tensor<64x8xf32>
    %new = stablehlo.add %dv, %part : tensor<64x8xf32>
    %next = stablehlo.add %i, %c1 : tensor<i32>
    stablehlo.return %next, %new : tensor<i32>, tensor<64x8xf32>
  }
  return %forward#1, %backward#1 : tensor<4x16x8xf32>, tensor<64x8xf32>
}

// Of two branches one attends. The backward pass takes the same branch because
// it depends on the same predicate. There it reads the values themselves.
// CHECK-LABEL: @branches
// CHECK-SAME: (%[[ON:.*]]: tensor<i1> {{.*}}, %[[Q:.*]]: tensor<16x8xf32> {{.*}}, %[[K:.*]]: tensor<16x8xf32> {{.*}}, %[[V:.*]]: tensor<16x8xf32>
// CHECK: %[[O:.*]] = "stablehlo.if"(%[[ON]])
// CHECK: }) : (tensor<i1>) -> tensor<16x8xf32>
// CHECK: "stablehlo.if"(%[[ON]])
// CHECK: stablehlo.dot_general %[[Q]], %[[K]], {{.*}}fp8.recompute
// CHECK: %[[P:.*]] = stablehlo.divide
// CHECK: stablehlo.dot_general %[[P]], %[[V]]
func.func @branches(%on: tensor<i1> {fp8.role = "batch", fp8.path = "on"}, %q: tensor<16x8xf32> {fp8.role = "batch", fp8.path = "q"},
                    %k: tensor<16x8xf32> {fp8.role = "batch", fp8.path = "k"}, %v: tensor<16x8xf32> {fp8.role = "batch", fp8.path = "v"})
    -> tensor<16x8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<16x16xf32>
  %forward:2 = "stablehlo.if"(%on) ({
    %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] {fp8.verdict = #attention} : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
    %e = stablehlo.exponential %s : tensor<16x16xf32>
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<16x16xf32>, tensor<f32>) -> tensor<16xf32>
    %sums = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<16xf32>) -> tensor<16x16xf32>
    %p = stablehlo.divide %e, %sums : tensor<16x16xf32>
    %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] {fp8.verdict = #attention} : (tensor<16x16xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    stablehlo.return %o, %p : tensor<16x8xf32>, tensor<16x16xf32>
  }, {
    stablehlo.return %v, %zeros : tensor<16x8xf32>, tensor<16x16xf32>
  }) : (tensor<i1>) -> (tensor<16x8xf32>, tensor<16x16xf32>)
  %none = stablehlo.constant dense<0.0> : tensor<16x8xf32>
  %saved = stablehlo.select %on, %v, %none : tensor<i1>, tensor<16x8xf32>
  %dv = "stablehlo.if"(%on) ({
    %part = stablehlo.dot_general %forward#1, %saved, contracting_dims = [0] x [0] {fp8.verdict = #attention} : (tensor<16x16xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    stablehlo.return %part : tensor<16x8xf32>
  }, {
    stablehlo.return %forward#0 : tensor<16x8xf32>
  }) : (tensor<i1>) -> tensor<16x8xf32>
  return %dv : tensor<16x8xf32>
}

// The other branch, and a branch that depends on another predicate, read what
// was returned: it may be zeros.
// CHECK-LABEL: @other_branches
// CHECK-NOT: fp8.recompute
func.func @other_branches(%on: tensor<i1> {fp8.role = "batch", fp8.path = "on"}, %other: tensor<i1> {fp8.role = "batch", fp8.path = "other"},
                          %q: tensor<16x8xf32> {fp8.role = "batch", fp8.path = "q"}, %k: tensor<16x8xf32> {fp8.role = "batch", fp8.path = "k"},
                          %v: tensor<16x8xf32> {fp8.role = "batch", fp8.path = "v"})
    -> (tensor<16x8xf32>, tensor<16x8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<16x16xf32>
  %forward:2 = "stablehlo.if"(%on) ({
    %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] {fp8.verdict = #attention} : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
    %e = stablehlo.exponential %s : tensor<16x16xf32>
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<16x16xf32>, tensor<f32>) -> tensor<16xf32>
    %sums = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<16xf32>) -> tensor<16x16xf32>
    %p = stablehlo.divide %e, %sums : tensor<16x16xf32>
    %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] {fp8.verdict = #attention} : (tensor<16x16xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    stablehlo.return %o, %p : tensor<16x8xf32>, tensor<16x16xf32>
  }, {
    stablehlo.return %v, %zeros : tensor<16x8xf32>, tensor<16x16xf32>
  }) : (tensor<i1>) -> (tensor<16x8xf32>, tensor<16x16xf32>)
  %a = "stablehlo.if"(%on) ({
    stablehlo.return %forward#0 : tensor<16x8xf32>
  }, {
    %part = stablehlo.dot_general %forward#1, %forward#0, contracting_dims = [0] x [0] {fp8.verdict = #attention} : (tensor<16x16xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    stablehlo.return %part : tensor<16x8xf32>
  }) : (tensor<i1>) -> tensor<16x8xf32>
  %b = "stablehlo.if"(%other) ({
    %part = stablehlo.dot_general %forward#1, %forward#0, contracting_dims = [0] x [0] {fp8.verdict = #attention} : (tensor<16x16xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    stablehlo.return %part : tensor<16x8xf32>
  }, {
    stablehlo.return %forward#0 : tensor<16x8xf32>
  }) : (tensor<i1>) -> tensor<16x8xf32>
  return %a, %b : tensor<16x8xf32>, tensor<16x8xf32>
}

// A checkpointed layer reads what its policy saves behind a barrier: scores
// pass it no longer, nor does what nothing reads behind it.
// CHECK-LABEL: @barrier
// CHECK-SAME: (%[[Q:.*]]: tensor<16x8xf32> {{.*}}, %[[K:.*]]: tensor<16x8xf32> {{.*}}, %[[V:.*]]: tensor<16x8xf32>
// CHECK: %[[S:.*]] = stablehlo.dot_general %[[Q]], %[[K]]
// CHECK: %[[BEHIND:.*]] = stablehlo.optimization_barrier %[[V]] : tensor<16x8xf32>
// CHECK: %[[E:.*]] = stablehlo.exponential %[[S]]
// CHECK: %[[P:.*]] = stablehlo.divide %[[E]]
// CHECK: stablehlo.dot_general %[[P]], %[[BEHIND]]
func.func @barrier(%q: tensor<16x8xf32> {fp8.role = "batch", fp8.path = "q"}, %k: tensor<16x8xf32> {fp8.role = "batch", fp8.path = "k"},
                   %v: tensor<16x8xf32> {fp8.role = "batch", fp8.path = "v"}) -> tensor<16x8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] {fp8.verdict = #attention} : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
  %behind:3 = stablehlo.optimization_barrier %s, %v, %k : tensor<16x16xf32>, tensor<16x8xf32>, tensor<16x8xf32>
  %e = stablehlo.exponential %behind#0 : tensor<16x16xf32>
  %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<16x16xf32>, tensor<f32>) -> tensor<16xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<16xf32>) -> tensor<16x16xf32>
  %p = stablehlo.divide %e, %sums : tensor<16x16xf32>
  %o = stablehlo.dot_general %p, %behind#1, contracting_dims = [1] x [0] {fp8.verdict = #attention} : (tensor<16x16xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  return %o : tensor<16x8xf32>
}
