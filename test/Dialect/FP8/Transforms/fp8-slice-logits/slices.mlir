// RUN: fp8-opt %s --split-input-file --fp8-slice-logits --canonicalize | FileCheck %s
// RUN: fp8-opt %s --split-input-file --fp8-slice-logits="emit-remarks" -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// A loss over logits of [rows, vocabulary], with labels that are picked by a
// gather: what is of rows is stacked, the gradient of the weight is summed.
// REMARK: remark: logits are computed in 2 slices of 64 rows

// CHECK-LABEL: func.func public @rows
// CHECK: %[[H:.*]] = stablehlo.reshape %arg0 : (tensor<128x16xf32>) -> tensor<2x64x16xf32>
// CHECK: %[[LOOP:.*]]:3 = stablehlo.while(%[[I:.*]] = {{.*}}, %[[LOSSES:.*]] = {{.*}}, %[[DW:.*]] = {{.*}}) : tensor<i32>, tensor<2x64xf32>, tensor<16x512xf32>
// CHECK: compare LT, %[[I]]
// CHECK: %[[PART:.*]] = stablehlo.dynamic_slice %[[H]], %[[I]], {{.*}} sizes = [1, 64, 16]
// CHECK: %[[ROWS:.*]] = stablehlo.reshape %[[PART]]
// CHECK: %[[LOGITS:.*]] = stablehlo.dot_general %[[ROWS]], %arg1, {{.*}} -> tensor<64x512xf32>
// CHECK: %[[E:.*]] = stablehlo.exponential %[[LOGITS]]
// CHECK: %[[SUM:.*]] = stablehlo.reduce(%[[E]]
// CHECK: stablehlo.dot_general %[[ROWS]], %[[E]], contracting_dims = [0] x [0]
// CHECK: stablehlo.dynamic_update_slice %[[LOSSES]]
// CHECK: stablehlo.add %[[DW]]
// CHECK: stablehlo.reduce({{.*}}across dimensions = [0]
// CHECK: stablehlo.subtract %arg1, %[[LOOP]]#2
module attributes {fp8.recipe = #fp8.recipe<{name = none, compute = {logits_bytes = 131072}}>} {
  func.func public @rows(
      %h: tensor<128x16xf32> {fp8.path = "x", fp8.role = "batch"},
      %w: tensor<16x512xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"})
      -> (tensor<16x512xf32> {fp8.kind = "state", fp8.path = "[0]['w']", fp8.state = "params['w']"},
          tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %logits = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<128x16xf32>, tensor<16x512xf32>) -> tensor<128x512xf32>
    %e = stablehlo.exponential %logits : tensor<128x512xf32>
    %sums = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<128x512xf32>, tensor<f32>) -> tensor<128xf32>
    %loss = stablehlo.reduce(%sums init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<128xf32>, tensor<f32>) -> tensor<f32>
    %dw = stablehlo.dot_general %h, %e, contracting_dims = [0] x [0] : (tensor<128x16xf32>, tensor<128x512xf32>) -> tensor<16x512xf32>
    %new = stablehlo.subtract %w, %dw : tensor<16x512xf32>
    return %new, %loss : tensor<16x512xf32>, tensor<f32>
  }
}

// -----

// Two rows are too few slices: those are of the other dimension. One-hot labels
// are computed in slices, of bf16 sums are carried in f32, and a maximum over
// all rows is the maximum of the slices'.
// REMARK: remark: logits are computed in 4 slices of 32 rows

// CHECK-LABEL: func.func public @tokens
// CHECK: %[[H:.*]] = stablehlo.transpose {{.*}} -> tensor<4x2x16x8xbf16>
// CHECK: stablehlo.while({{.*}}) : tensor<i32>, tensor<f32>, tensor<f32>, tensor<4x2x16x8xbf16>, tensor<512x8xf32>
// CHECK: stablehlo.dot_general {{.*}} -> tensor<2x16x512xbf16>
// CHECK: stablehlo.compare EQ, {{.*}} tensor<2x16x512xi1>
// CHECK: stablehlo.dot_general {{.*}} -> tensor<2x16x8xbf16>
// CHECK: stablehlo.dot_general {{.*}} -> tensor<512x8xf32>
// CHECK: stablehlo.maximum
// CHECK: stablehlo.convert {{.*}} : (tensor<512x8xf32>) -> tensor<512x8xbf16>
module attributes {fp8.recipe = #fp8.recipe<{name = none, compute = {logits_bytes = 65536}}>} {
  func.func public @tokens(
      %h: tensor<2x64x8xbf16> {fp8.path = "x", fp8.role = "batch"}, %y: tensor<2x64xi32> {fp8.path = "y", fp8.role = "batch"},
      %w: tensor<8x512xbf16> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"})
      -> (tensor<512x8xbf16>, tensor<2x64x8xbf16>, tensor<bf16>, tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %least = stablehlo.constant dense<0xFF80> : tensor<bf16>
    %logits = stablehlo.dot_general %h, %w, contracting_dims = [2] x [0] : (tensor<2x64x8xbf16>, tensor<8x512xbf16>) -> tensor<2x64x512xbf16>
    %labels = stablehlo.broadcast_in_dim %y, dims = [0, 1] : (tensor<2x64xi32>) -> tensor<2x64x512xi32>
    %words = stablehlo.iota dim = 2 : tensor<2x64x512xi32>
    %is = stablehlo.compare EQ, %labels, %words, SIGNED : (tensor<2x64x512xi32>, tensor<2x64x512xi32>) -> tensor<2x64x512xi1>
    %one_hot = stablehlo.convert %is : (tensor<2x64x512xi1>) -> tensor<2x64x512xbf16>
    %d = stablehlo.subtract %logits, %one_hot : tensor<2x64x512xbf16>
    %wide = stablehlo.convert %d : (tensor<2x64x512xbf16>) -> tensor<2x64x512xf32>
    %loss = stablehlo.reduce(%wide init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x64x512xf32>, tensor<f32>) -> tensor<f32>
    %most = stablehlo.reduce(%logits init: %least) applies stablehlo.maximum across dimensions = [0, 1, 2] : (tensor<2x64x512xbf16>, tensor<bf16>) -> tensor<bf16>
    %dh = stablehlo.dot_general %d, %w, contracting_dims = [2] x [1] : (tensor<2x64x512xbf16>, tensor<8x512xbf16>) -> tensor<2x64x8xbf16>
    %dw = stablehlo.dot_general %d, %h, contracting_dims = [0, 1] x [0, 1] : (tensor<2x64x512xbf16>, tensor<2x64x8xbf16>) -> tensor<512x8xbf16>
    return %dw, %dh, %most, %loss : tensor<512x8xbf16>, tensor<2x64x8xbf16>, tensor<bf16>, tensor<f32>
  }
}

// -----

// JAX transposes the gradient of the weight: each slice's is transposed, since
// that folds into its dot.
// REMARK: remark: logits are computed in 2 slices of 64 rows

// CHECK-LABEL: func.func public @transposed
// CHECK: %[[LOOP:.*]]:2 = stablehlo.while({{.*}}, %[[SUM:.*]] = {{.*}}) : tensor<i32>, tensor<16x512xf32>
// CHECK: %[[DW:.*]] = stablehlo.dot_general {{.*}} -> tensor<512x16xf32>
// CHECK: %[[T:.*]] = stablehlo.transpose %[[DW]], dims = [1, 0]
// CHECK: stablehlo.add %[[SUM]], %[[T]]
// CHECK: }
// CHECK-NOT: transpose
// CHECK: return %[[LOOP]]#1
module attributes {fp8.recipe = #fp8.recipe<{name = none, compute = {logits_bytes = 131072}}>} {
  func.func public @transposed(
      %h: tensor<128x16xf32> {fp8.path = "x", fp8.role = "batch"},
      %w: tensor<16x512xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"})
      -> (tensor<16x512xf32>) {
    %logits = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<128x16xf32>, tensor<16x512xf32>) -> tensor<128x512xf32>
    %e = stablehlo.exponential %logits : tensor<128x512xf32>
    %dw = stablehlo.dot_general %e, %h, contracting_dims = [0] x [0] : (tensor<128x512xf32>, tensor<128x16xf32>) -> tensor<512x16xf32>
    %t = stablehlo.transpose %dw, dims = [1, 0] : (tensor<512x16xf32>) -> tensor<16x512xf32>
    return %t : tensor<16x512xf32>
  }
}

// -----

// The weight is large, so a slice has 256 rows although it is larger than asked
// for: of the two dimensions the one that is cut into more slices.
// REMARK: remark: logits are computed in 4 slices of 256 rows

// CHECK-LABEL: func.func public @large_weight
// CHECK: stablehlo.dot_general {{.*}} -> tensor<2x128x512xf32>
module attributes {fp8.recipe = #fp8.recipe<{name = none, compute = {logits_bytes = 131072}}>} {
  func.func public @large_weight(
      %h: tensor<2x512x1024xf32> {fp8.path = "x", fp8.role = "batch"},
      %w: tensor<1024x512xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"})
      -> (tensor<1024x512xf32> {fp8.kind = "state", fp8.path = "[0]['w']", fp8.state = "params['w']"},
          tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %logits = stablehlo.dot_general %h, %w, contracting_dims = [2] x [0] : (tensor<2x512x1024xf32>, tensor<1024x512xf32>) -> tensor<2x512x512xf32>
    %e = stablehlo.exponential %logits : tensor<2x512x512xf32>
    %loss = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x512x512xf32>, tensor<f32>) -> tensor<f32>
    %dw = stablehlo.dot_general %h, %e, contracting_dims = [0, 1] x [0, 1] : (tensor<2x512x1024xf32>, tensor<2x512x512xf32>) -> tensor<1024x512xf32>
    %new = stablehlo.subtract %w, %dw : tensor<1024x512xf32>
    return %new, %loss : tensor<1024x512xf32>, tensor<f32>
  }
}

// -----

// The gradient of each row follows from the loss of all: a second loop computes
// the logits again.
// REMARK: remark: logits are computed in 2 slices of 64 rows
// REMARK: remark: logits are computed in 2 slices of 64 rows

// CHECK-LABEL: func.func public @weighted
// CHECK: %[[LOSS:.*]]:2 = stablehlo.while({{.*}}) : tensor<i32>, tensor<f32>
// CHECK: stablehlo.dot_general {{.*}} -> tensor<64x512xf32>
// CHECK: %[[H:.*]] = stablehlo.optimization_barrier %arg0
// CHECK: %[[W:.*]] = stablehlo.optimization_barrier %arg1
// CHECK: %[[DW:.*]]:2 = stablehlo.while({{.*}}) : tensor<i32>, tensor<16x512xf32>
// CHECK: %[[AGAIN:.*]] = stablehlo.dot_general %{{.*}}, %[[W]], {{.*}} -> tensor<64x512xf32>
// CHECK: %[[E:.*]] = stablehlo.exponential %[[AGAIN]]
// CHECK: %[[FACTOR:.*]] = stablehlo.broadcast_in_dim %[[LOSS]]#1
// CHECK: %[[D:.*]] = stablehlo.multiply %[[E]], %[[FACTOR]]
// CHECK: stablehlo.dot_general %{{.*}}, %[[D]], contracting_dims = [0] x [0]
// CHECK: return %[[DW]]#1, %[[LOSS]]#1
module attributes {fp8.recipe = #fp8.recipe<{name = none, compute = {logits_bytes = 131072}}>} {
  func.func public @weighted(
      %h: tensor<128x16xf32> {fp8.path = "x", fp8.role = "batch"},
      %w: tensor<16x512xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"})
      -> (tensor<16x512xf32>, tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %logits = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<128x16xf32>, tensor<16x512xf32>) -> tensor<128x512xf32>
    %e = stablehlo.exponential %logits : tensor<128x512xf32>
    %loss = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<128x512xf32>, tensor<f32>) -> tensor<f32>
    %factor = stablehlo.broadcast_in_dim %loss, dims = [] : (tensor<f32>) -> tensor<128x512xf32>
    %d = stablehlo.multiply %e, %factor : tensor<128x512xf32>
    %dw = stablehlo.dot_general %h, %d, contracting_dims = [0] x [0] : (tensor<128x16xf32>, tensor<128x512xf32>) -> tensor<16x512xf32>
    return %dw, %loss : tensor<16x512xf32>, tensor<f32>
  }
}

// -----

// A loss of all rows but the last: it works on all, with a label of zero for the
// last one, and the sum and the gradient leave that out.
// REMARK: remark: logits are computed in 2 slices of 64 rows

// CHECK-LABEL: func.func public @shifted
// CHECK: %[[SHIFTED:.*]] = stablehlo.slice %arg2 [1:128]
// CHECK: %[[LABELS:.*]] = stablehlo.pad %[[SHIFTED]], %{{.*}}, low = [0], high = [1]
// CHECK: %[[PARTS:.*]] = stablehlo.reshape %[[LABELS]] : (tensor<128xi32>) -> tensor<2x64xi32>
// CHECK: stablehlo.while
// CHECK: do {
// CHECK: %[[S:.*]] = stablehlo.dot_general {{.*}} -> tensor<64x512xf32>
// CHECK: stablehlo.dynamic_slice %[[PARTS]]
// CHECK: %[[PICKED:.*]] = stablehlo.select %{{.*}}, %[[S]],
// CHECK: %[[VALID:.*]] = stablehlo.compare LT,
// CHECK: %[[MASKED:.*]] = stablehlo.select %[[VALID]], %[[PICKED]],
// CHECK: stablehlo.reduce(%[[MASKED]] {{.*}} across dimensions = [0, 1]
// CHECK: %[[AGAIN:.*]] = stablehlo.compare LT,
// CHECK: %[[GRADIENT:.*]] = stablehlo.select %[[AGAIN]],
// CHECK: stablehlo.dot_general %{{.*}}, %[[GRADIENT]], contracting_dims = [0] x [0]
module attributes {fp8.recipe = #fp8.recipe<{name = none, compute = {logits_bytes = 131072}}>} {
  func.func public @shifted(
      %h: tensor<128x16xf32> {fp8.path = "x", fp8.role = "batch"},
      %w: tensor<16x512xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"},
      %labels: tensor<128xi32> {fp8.path = "labels", fp8.role = "batch"})
      -> (tensor<16x512xf32>, tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %zeros = stablehlo.constant dense<0.0> : tensor<127x512xf32>
    %logits = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<128x16xf32>, tensor<16x512xf32>) -> tensor<128x512xf32>
    %part = stablehlo.slice %logits [0:127, 0:512] : (tensor<128x512xf32>) -> tensor<127x512xf32>
    %next = stablehlo.slice %labels [1:128] : (tensor<128xi32>) -> tensor<127xi32>
    %label = stablehlo.broadcast_in_dim %next, dims = [0] : (tensor<127xi32>) -> tensor<127x512xi32>
    %words = stablehlo.iota dim = 1 : tensor<127x512xi32>
    %isLabel = stablehlo.compare EQ, %words, %label, SIGNED : (tensor<127x512xi32>, tensor<127x512xi32>) -> tensor<127x512xi1>
    %picked = stablehlo.select %isLabel, %part, %zeros : tensor<127x512xi1>, tensor<127x512xf32>
    %loss = stablehlo.reduce(%picked init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<127x512xf32>, tensor<f32>) -> tensor<f32>
    %sum = stablehlo.reduce(%part init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<127x512xf32>, tensor<f32>) -> tensor<127xf32>
    %sums = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<127xf32>) -> tensor<127x512xf32>
    %squared = stablehlo.multiply %picked, %sums : tensor<127x512xf32>
    %d = stablehlo.pad %squared, %zero, low = [0, 0], high = [1, 0], interior = [0, 0] : (tensor<127x512xf32>, tensor<f32>) -> tensor<128x512xf32>
    %dw = stablehlo.dot_general %h, %d, contracting_dims = [0] x [0] : (tensor<128x16xf32>, tensor<128x512xf32>) -> tensor<16x512xf32>
    return %dw, %loss : tensor<16x512xf32>, tensor<f32>
  }
}

// -----

// A prime number of rows gets rows of zeros, which the sums leave out.
// REMARK: remark: logits are computed in 2 slices of 256 rows

// CHECK-LABEL: func.func public @prime
// CHECK: %[[H:.*]] = stablehlo.pad %arg0, %{{.*}}, low = [0, 0], high = [3, 0]
// CHECK: stablehlo.while
// CHECK: do {
// CHECK: %[[LOGITS:.*]] = stablehlo.dot_general {{.*}} -> tensor<256x32768xf32>
// CHECK: %[[E:.*]] = stablehlo.exponential %[[LOGITS]]
// CHECK: %[[MASKED:.*]] = stablehlo.select %{{.*}}, %[[E]],
// CHECK: stablehlo.reduce(%[[MASKED]]
module attributes {fp8.recipe = #fp8.recipe<{name = none, compute = {logits_bytes = 33554432}}>} {
  func.func public @prime(
      %h: tensor<509x16xf32> {fp8.path = "x", fp8.role = "batch"},
      %w: tensor<16x32768xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"})
      -> (tensor<16x32768xf32>, tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %logits = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<509x16xf32>, tensor<16x32768xf32>) -> tensor<509x32768xf32>
    %e = stablehlo.exponential %logits : tensor<509x32768xf32>
    %loss = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<509x32768xf32>, tensor<f32>) -> tensor<f32>
    %dw = stablehlo.dot_general %h, %e, contracting_dims = [0] x [0] : (tensor<509x16xf32>, tensor<509x32768xf32>) -> tensor<16x32768xf32>
    return %dw, %loss : tensor<16x32768xf32>, tensor<f32>
  }
}

// -----

// A row number in bf16 is rounded once, from the number in all rows.
// CHECK-LABEL: func.func public @row_numbers
// CHECK: stablehlo.while
// CHECK: %[[IOTA:.*]] = stablehlo.iota dim = 0 : tensor<257x128xi32>
// CHECK: %[[ROW:.*]] = stablehlo.add %[[IOTA]], %{{.*}} : tensor<257x128xi32>
// CHECK: stablehlo.convert %[[ROW]] : (tensor<257x128xi32>) -> tensor<257x128xbf16>
// CHECK-NOT: stablehlo.add {{.*}}xbf16>
module attributes {fp8.recipe = #fp8.recipe<{name = none, compute = {logits_bytes = 131584}}>} {
  func.func public @row_numbers(
      %h: tensor<771x16xf32> {fp8.path = "x", fp8.role = "batch"},
      %w: tensor<16x128xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"})
      -> (tensor<16x128xf32> {fp8.kind = "state", fp8.path = "[0]['w']", fp8.state = "params['w']"},
          tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %logits = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<771x16xf32>, tensor<16x128xf32>) -> tensor<771x128xf32>
    %rows = stablehlo.iota dim = 0 : tensor<771x128xbf16>
    %wide = stablehlo.convert %rows : (tensor<771x128xbf16>) -> tensor<771x128xf32>
    %e = stablehlo.add %logits, %wide : tensor<771x128xf32>
    %loss = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<771x128xf32>, tensor<f32>) -> tensor<f32>
    %dw = stablehlo.dot_general %h, %e, contracting_dims = [0] x [0] : (tensor<771x16xf32>, tensor<771x128xf32>) -> tensor<16x128xf32>
    %new = stablehlo.subtract %w, %dw : tensor<16x128xf32>
    return %new, %loss : tensor<16x128xf32>, tensor<f32>
  }
}
