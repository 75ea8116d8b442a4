// RUN: fp8-opt %s --fp8-data-parallel=global-batch=4 --verify-diagnostics --split-input-file
// RUN: not fp8-opt %S/means.mlir "--fp8-data-parallel=global-batch=2 loss-reduction=mean" --split-input-file 2>&1 | FileCheck %s --check-prefix=REDUCTION

// REDUCTION: expected no loss-reduction with a batch that ranks share (global-batch): the loss is that of all its rows

// The rows do not divide among the ranks.
// expected-error @+1 {{expected the rows of 'x' to be a multiple of the 4 ranks that share the batch but got 6}}
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<6x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<6x8xf32>, tensor<8xf32>) -> tensor<6xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<6xf32>, tensor<f32>) -> tensor<f32>
  return %w, %s : tensor<8xf32>, tensor<f32>
}

// -----

// Nor do those of a micro-batch.
// expected-error @+1 {{expected the rows of each micro-batch, or other part, of 'x' to be a multiple of the 4 ranks that share the batch but got 2}}
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<8x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %half = stablehlo.slice %x [0:2, 0:8] : (tensor<8x8xf32>) -> tensor<2x8xf32>
  %y = stablehlo.dot_general %half, %w, contracting_dims = [1] x [0] : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
  return %w, %s : tensor<8xf32>, tensor<f32>
}

// -----

// Rows are cut where another dimension has been joined to them.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<8x3x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %flat = stablehlo.reshape %x : (tensor<8x3x8xf32>) -> tensor<24x8xf32>
  // expected-error @+1 {{expected the leading dimension of a batch that ranks share to be cut into equal parts, of each of which a rank has some rows, but it cuts the rows differently from other operations}}
  %half = stablehlo.slice %flat [0:12, 0:8] : (tensor<24x8xf32>) -> tensor<12x8xf32>
  %y = stablehlo.dot_general %half, %w, contracting_dims = [1] x [0] : (tensor<12x8xf32>, tensor<8xf32>) -> tensor<12xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<12xf32>, tensor<f32>) -> tensor<f32>
  return %w, %s : tensor<8xf32>, tensor<f32>
}

// -----

// A jit that splits state.
// expected-error @+1 {{expected a jit to split nothing but the rows of its batch over devices, to run on ranks, but it splits 'w': write the step in jax.shard_map, which says what each device does, or leave its state whole}}
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state", stablehlo.rows},
    %x: tensor<8x8xf32> {fp8.path = "x", fp8.role = "batch", stablehlo.rows})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) attributes {stablehlo.sharing = 4 : i64} {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  return %w, %s : tensor<8xf32>, tensor<f32>
}
