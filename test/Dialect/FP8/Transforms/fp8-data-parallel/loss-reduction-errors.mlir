// RUN: fp8-opt %s --fp8-data-parallel=loss-reduction=sum --verify-diagnostics --split-input-file

// What is said of the loss is compared with what is proven.
// expected-error @+1 {{expected loss-reduction=mean, because the loss '[1]' is a sum over the batch divided by the number of its elements, but got loss-reduction=sum}}
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %yy = stablehlo.multiply %y, %y : tensor<16xf32>
  %s = stablehlo.reduce(%yy init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %mean = stablehlo.divide %s, %n : tensor<f32>
  return %w, %mean : tensor<8xf32>, tensor<f32>
}

// -----

// No reduction is right for both terms.
// expected-error @+1 {{expected all terms of the loss to be means over the batch, or all to be sums divided by a count that follows from the batch, but got both: neither loss-reduction=mean nor loss-reduction=sum is right for both; divide the means by a sum over a mask, too (result '[1]')}}
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %mask: tensor<16xf32> {fp8.path = "mask", fp8.role = "batch"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %yy = stablehlo.multiply %y, %y : tensor<16xf32>
  %s = stablehlo.reduce(%yy init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %mean = stablehlo.divide %s, %n : tensor<f32>
  %t = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %c = stablehlo.reduce(%mask init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %m = stablehlo.divide %t, %c : tensor<f32>
  %loss = stablehlo.add %mean, %m : tensor<f32>
  return %w, %loss : tensor<8xf32>, tensor<f32>
}

// -----

// The gradient is divided by the rows of one rank, and the loss is not.
func.func public @main(
    %w: tensor<8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %x: tensor<16x8xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<16.0> : tensor<8xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16xf32>) -> tensor<8xf32>
  // expected-error @+1 {{expected a gradient of a loss that is a sum but got one that is divided by the number of its rows: divide the loss by it, or the update ('gradient w')}}
  %mean = stablehlo.divide %g, %n : tensor<8xf32>
  %new = stablehlo.subtract %w, %mean : tensor<8xf32>
  return %new, %loss : tensor<8xf32>, tensor<f32>
}
