// Which integers of a batch are labels, and which are tokens, follows from what
// they choose: a table of parameters or results of the model.
// RUN: fp8-opt %s --fp8-analyze-signature --split-input-file | FileCheck %s

// Labels are gathered from, and tokens gather from a table; labels that are to be
// ignored are replaced before.
// CHECK: {fp8.labels, fp8.path = "wanted", fp8.role = "batch"}
// CHECK-SAME: {fp8.path = "given", fp8.role = "batch", fp8.vocabulary = 11 : i64}
func.func public @main(%w: tensor<11x11xf32> loc("w"), %wanted: tensor<5xi32> loc("wanted"), %given: tensor<5xi32> loc("given"))
    -> (tensor<11x11xf32> {jax.result_info = "result[0]"}, tensor<f32> {jax.result_info = "result[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %ignored = stablehlo.constant dense<255> : tensor<5xi32>
  %zeros = stablehlo.constant dense<0> : tensor<5xi32>
  %tokens = stablehlo.reshape %given : (tensor<5xi32>) -> tensor<5x1xi32>
  %x = "stablehlo.gather"(%w, %tokens) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 11>}> : (tensor<11x11xf32>, tensor<5x1xi32>) -> tensor<5x11xf32>
  %logits = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<5x11xf32>, tensor<11x11xf32>) -> tensor<5x11xf32>
  %rows = stablehlo.iota dim = 0 : tensor<5x1xi32>
  %isIgnored = stablehlo.compare EQ, %wanted, %ignored, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
  %known = stablehlo.select %isIgnored, %zeros, %wanted : tensor<5xi1>, tensor<5xi32>
  %labels = stablehlo.reshape %known : (tensor<5xi32>) -> tensor<5x1xi32>
  %places = stablehlo.concatenate %rows, %labels, dim = 1 : (tensor<5x1xi32>, tensor<5x1xi32>) -> tensor<5x2xi32>
  %chosen = "stablehlo.gather"(%logits, %places) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<5x11xf32>, tensor<5x2xi32>) -> tensor<5xf32>
  %loss = stablehlo.reduce(%chosen init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<f32>
  %dw = stablehlo.dot_general %logits, %x, contracting_dims = [0] x [0] : (tensor<5x11xf32>, tensor<5x11xf32>) -> tensor<11x11xf32>
  %new = stablehlo.subtract %w, %dw : tensor<11x11xf32>
  return %new, %loss : tensor<11x11xf32>, tensor<f32>
}

// -----

// One-hot rows of both: those of tokens are multiplied with a table.
// CHECK: {fp8.labels, fp8.path = "wanted", fp8.role = "batch"}
// CHECK-SAME: {fp8.path = "given", fp8.role = "batch", fp8.vocabulary = 11 : i64}
func.func public @main(%w: tensor<11x11xf32> loc("w"), %wanted: tensor<5xi32> loc("wanted"), %given: tensor<5xi32> loc("given"))
    -> (tensor<11x11xf32> {jax.result_info = "result[0]"}, tensor<f32> {jax.result_info = "result[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %classes = stablehlo.iota dim = 1 : tensor<5x11xi32>
  %tokens = stablehlo.broadcast_in_dim %given, dims = [0] : (tensor<5xi32>) -> tensor<5x11xi32>
  %isToken = stablehlo.compare EQ, %tokens, %classes, SIGNED : (tensor<5x11xi32>, tensor<5x11xi32>) -> tensor<5x11xi1>
  %x = stablehlo.convert %isToken : (tensor<5x11xi1>) -> tensor<5x11xf32>
  %logits = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<5x11xf32>, tensor<11x11xf32>) -> tensor<5x11xf32>
  %labels = stablehlo.broadcast_in_dim %wanted, dims = [0] : (tensor<5xi32>) -> tensor<5x11xi32>
  %isLabel = stablehlo.compare EQ, %labels, %classes, SIGNED : (tensor<5x11xi32>, tensor<5x11xi32>) -> tensor<5x11xi1>
  %y = stablehlo.convert %isLabel : (tensor<5x11xi1>) -> tensor<5x11xf32>
  %products = stablehlo.multiply %logits, %y : tensor<5x11xf32>
  %loss = stablehlo.reduce(%products init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<5x11xf32>, tensor<f32>) -> tensor<f32>
  %dw = stablehlo.dot_general %x, %logits, contracting_dims = [0] x [0] : (tensor<5x11xf32>, tensor<5x11xf32>) -> tensor<11x11xf32>
  %new = stablehlo.subtract %w, %dw : tensor<11x11xf32>
  return %new, %loss : tensor<11x11xf32>, tensor<f32>
}
