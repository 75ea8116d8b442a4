// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-slice-logits="emit-remarks" | FileCheck %s --implicit-check-not=stablehlo.while

// Logits that are a result.
// CHECK-LABEL: @returned
module attributes {fp8.recipe = #fp8.recipe<{name = none, compute = {logits_bytes = 131072}}>} {
  func.func public @returned(
      %h: tensor<128x16xf32> {fp8.path = "x", fp8.role = "batch"},
      %w: tensor<16x512xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"})
      -> (tensor<128x512xf32>, tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    // expected-remark@below {{logits are computed whole: 'func.return' needs all rows}}
    %logits = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<128x16xf32>, tensor<16x512xf32>) -> tensor<128x512xf32>
    %loss = stablehlo.reduce(%logits init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<128x512xf32>, tensor<f32>) -> tensor<f32>
    return %logits, %loss : tensor<128x512xf32>, tensor<f32>
  }
}

// -----

// An order of the rows.
// CHECK-LABEL: @reversed
module attributes {fp8.recipe = #fp8.recipe<{name = none, compute = {logits_bytes = 131072}}>} {
  func.func public @reversed(
      %h: tensor<128x16xf32> {fp8.path = "x", fp8.role = "batch"},
      %w: tensor<16x512xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"})
      -> (tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    // expected-remark@below {{logits are computed whole: 'stablehlo.reverse' needs all rows}}
    %logits = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<128x16xf32>, tensor<16x512xf32>) -> tensor<128x512xf32>
    %other = stablehlo.reverse %logits, dims = [0, 1] : tensor<128x512xf32>
    %both = stablehlo.multiply %logits, %other : tensor<128x512xf32>
    %loss = stablehlo.reduce(%both init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<128x512xf32>, tensor<f32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// The weight takes four megabytes, and 256 rows are the fewest that are worth
// reading it.
// CHECK-LABEL: @few
module attributes {fp8.recipe = #fp8.recipe<{name = none, compute = {logits_bytes = 131072}}>} {
  func.func public @few(
      %h: tensor<256x64xf32> {fp8.path = "x", fp8.role = "batch"},
      %w: tensor<64x16384xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"})
      -> (tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    // expected-remark@below {{logits are computed whole: there are too few rows}}
    %logits = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x16384xf32>) -> tensor<256x16384xf32>
    %loss = stablehlo.reduce(%logits init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<256x16384xf32>, tensor<f32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// 0: never.
// CHECK-LABEL: @never
module attributes {fp8.recipe = #fp8.recipe<{name = none, compute = {logits_bytes = 0}}>} {
  func.func public @never(
      %h: tensor<128x16xf32> {fp8.path = "x", fp8.role = "batch"},
      %w: tensor<16x512xf32> {fp8.kind = "parameter", fp8.path = "params['w']", fp8.role = "state"})
      -> (tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %logits = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<128x16xf32>, tensor<16x512xf32>) -> tensor<128x512xf32>
    %loss = stablehlo.reduce(%logits init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<128x512xf32>, tensor<f32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// expected-error@below {{fp8-resolve-recipe}}
module {}
