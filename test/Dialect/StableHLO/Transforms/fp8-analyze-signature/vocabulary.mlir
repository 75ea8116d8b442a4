// RUN: fp8-opt %s --fp8-analyze-signature --split-input-file | FileCheck %s

// As jnp.take prints it: negative indices wrap.
// CHECK: fp8.path = "tok", fp8.role = "batch", fp8.vocabulary = 11 : i64
func.func public @main(%emb: tensor<11x4xf32> loc("emb"), %tok: tensor<2x4xi32> loc("tok")) -> tensor<2x3x4xf32> {
  %0 = stablehlo.slice %tok [0:2, 0:3] : (tensor<2x4xi32>) -> tensor<2x3xi32>
  %c = stablehlo.constant dense<0> : tensor<2x3xi32>
  %1 = stablehlo.compare LT, %0, %c, SIGNED : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>
  %c_0 = stablehlo.constant dense<11> : tensor<2x3xi32>
  %2 = stablehlo.add %0, %c_0 : tensor<2x3xi32>
  %3 = stablehlo.select %1, %2, %0 : tensor<2x3xi1>, tensor<2x3xi32>
  %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<2x3xi32>) -> tensor<2x3x1xi32>
  %5 = "stablehlo.gather"(%emb, %4) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<11x4xf32>, tensor<2x3x1xi32>) -> tensor<2x3x4xf32>
  return %5 : tensor<2x3x4xf32>
}

// -----

// one_hot compares with an iota; a dot takes rows of a table.
// CHECK: fp8.path = "tok", fp8.role = "batch", fp8.vocabulary = 7 : i64
func.func public @main(%emb: tensor<7x4xf32> loc("emb"), %tok: tensor<5xi32> loc("tok")) -> tensor<5x4xf32> {
  %0 = stablehlo.broadcast_in_dim %tok, dims = [0] : (tensor<5xi32>) -> tensor<5x7xi32>
  %1 = stablehlo.iota dim = 1 : tensor<5x7xi32>
  %2 = stablehlo.compare EQ, %0, %1, SIGNED : (tensor<5x7xi32>, tensor<5x7xi32>) -> tensor<5x7xi1>
  %3 = stablehlo.convert %2 : (tensor<5x7xi1>) -> tensor<5x7xf32>
  %4 = stablehlo.dot_general %3, %emb, contracting_dims = [1] x [0] : (tensor<5x7xf32>, tensor<7x4xf32>) -> tensor<5x4xf32>
  return %4 : tensor<5x4xf32>
}

// -----

// A label that is in no class (255) has a row of zeros.
// CHECK: fp8.path = "label", fp8.role = "batch"}
func.func public @main(%label: tensor<5xi32> loc("label"), %logp: tensor<5x7xf32> loc("logp")) -> tensor<5x7xf32> {
  %0 = stablehlo.broadcast_in_dim %label, dims = [0] : (tensor<5xi32>) -> tensor<5x7xi32>
  %1 = stablehlo.iota dim = 1 : tensor<5x7xi32>
  %2 = stablehlo.compare EQ, %0, %1, SIGNED : (tensor<5x7xi32>, tensor<5x7xi32>) -> tensor<5x7xi1>
  %3 = stablehlo.convert %2 : (tensor<5x7xi1>) -> tensor<5x7xf32>
  %4 = stablehlo.multiply %3, %logp : tensor<5x7xf32>
  return %4 : tensor<5x7xf32>
}

// -----

// Labels to be ignored are replaced before the gather, and the smaller of the
// index and the last row is always a row.
// CHECK: fp8.path = "label", fp8.role = "batch"}
// CHECK-SAME: fp8.path = "tok", fp8.role = "batch"}
func.func public @main(%logp: tensor<11xf32> loc("logp"), %label: tensor<5xi32> loc("label"), %tok: tensor<5xi32> loc("tok")) -> (tensor<5xf32>, tensor<5xf32>) {
  %ignored = stablehlo.constant dense<255> : tensor<5xi32>
  %zeros = stablehlo.constant dense<0> : tensor<5xi32>
  %last = stablehlo.constant dense<10> : tensor<5xi32>
  %0 = stablehlo.compare EQ, %label, %ignored, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
  %1 = stablehlo.select %0, %zeros, %label : tensor<5xi1>, tensor<5xi32>
  %2 = stablehlo.reshape %1 : (tensor<5xi32>) -> tensor<5x1xi32>
  %3 = "stablehlo.gather"(%logp, %2) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1>}> : (tensor<11xf32>, tensor<5x1xi32>) -> tensor<5xf32>
  %4 = stablehlo.minimum %tok, %last : tensor<5xi32>
  %5 = stablehlo.reshape %4 : (tensor<5xi32>) -> tensor<5x1xi32>
  %6 = "stablehlo.gather"(%logp, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1>}> : (tensor<11xf32>, tensor<5x1xi32>) -> tensor<5xf32>
  return %3, %6 : tensor<5xf32>, tensor<5xf32>
}

// -----

// CHECK: fp8.path = "n", fp8.role = "batch"}
func.func public @main(%n: tensor<5xi32> loc("n")) -> tensor<5xi32> {
  %0 = stablehlo.multiply %n, %n : tensor<5xi32>
  return %0 : tensor<5xi32>
}

// -----

// A mask of lengths is no table.
// CHECK: fp8.path = "length", fp8.role = "batch"}
func.func public @main(%length: tensor<5xi32> loc("length")) -> tensor<5x7xi1> {
  %0 = stablehlo.broadcast_in_dim %length, dims = [0] : (tensor<5xi32>) -> tensor<5x7xi32>
  %1 = stablehlo.iota dim = 1 : tensor<5x7xi32>
  %2 = stablehlo.compare LT, %1, %0, SIGNED : (tensor<5x7xi32>, tensor<5x7xi32>) -> tensor<5x7xi1>
  return %2 : tensor<5x7xi1>
}
