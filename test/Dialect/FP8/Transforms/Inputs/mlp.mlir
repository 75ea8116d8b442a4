// Three layers, the last the head, with all their gradients, and a count of the
// steps: one training step as the import stage leaves it.
func.func @main(
    %w1: tensor<256x384xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['layers'][0]['w']"},
    %w2: tensor<384x256xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['layers'][1]['w']"},
    %head: tensor<256x64xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['head']"},
    %count: tensor<i32> {fp8.role = "state", fp8.kind = "step", fp8.path = "count"},
    %x: tensor<2x128x256xf32> {fp8.role = "batch", fp8.path = "x"})
    -> (tensor<256x384xf32> {fp8.path = "p['layers'][0]['w']", fp8.state = "p['layers'][0]['w']"}, tensor<384x256xf32> {fp8.path = "p['layers'][1]['w']", fp8.state = "p['layers'][1]['w']"},
        tensor<256x64xf32> {fp8.path = "p['head']", fp8.state = "p['head']"}, tensor<i32> {fp8.path = "count", fp8.state = "count"}, tensor<f32> {fp8.kind = "loss", fp8.path = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %next = stablehlo.add %count, %one : tensor<i32>
  %h1 = stablehlo.dot_general %x, %w1, contracting_dims = [2] x [0]
      : (tensor<2x128x256xf32>, tensor<256x384xf32>) -> tensor<2x128x384xf32>
  %a1 = stablehlo.tanh %h1 : tensor<2x128x384xf32>
  %h2 = stablehlo.dot_general %a1, %w2, contracting_dims = [2] x [0]
      : (tensor<2x128x384xf32>, tensor<384x256xf32>) -> tensor<2x128x256xf32>
  %a2 = stablehlo.tanh %h2 : tensor<2x128x256xf32>
  %y = stablehlo.dot_general %a2, %head, contracting_dims = [2] x [0]
      : (tensor<2x128x256xf32>, tensor<256x64xf32>) -> tensor<2x128x64xf32>
  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1, 2]
      : (tensor<2x128x64xf32>, tensor<f32>) -> tensor<f32>
  %dy = stablehlo.cosine %y : tensor<2x128x64xf32>
  %dhead = stablehlo.dot_general %a2, %dy, contracting_dims = [0, 1] x [0, 1]
      : (tensor<2x128x256xf32>, tensor<2x128x64xf32>) -> tensor<256x64xf32>
  %da2 = stablehlo.dot_general %dy, %head, contracting_dims = [2] x [1]
      : (tensor<2x128x64xf32>, tensor<256x64xf32>) -> tensor<2x128x256xf32>
  %dh2 = stablehlo.multiply %da2, %a2 : tensor<2x128x256xf32>
  %dw2 = stablehlo.dot_general %a1, %dh2, contracting_dims = [0, 1] x [0, 1]
      : (tensor<2x128x384xf32>, tensor<2x128x256xf32>) -> tensor<384x256xf32>
  %da1 = stablehlo.dot_general %dh2, %w2, contracting_dims = [2] x [1]
      : (tensor<2x128x256xf32>, tensor<384x256xf32>) -> tensor<2x128x384xf32>
  %dh1 = stablehlo.multiply %da1, %a1 : tensor<2x128x384xf32>
  %dw1 = stablehlo.dot_general %x, %dh1, contracting_dims = [0, 1] x [0, 1]
      : (tensor<2x128x256xf32>, tensor<2x128x384xf32>) -> tensor<256x384xf32>
  return %dw1, %dw2, %dhead, %next, %loss : tensor<256x384xf32>, tensor<384x256xf32>, tensor<256x64xf32>, tensor<i32>, tensor<f32>
}
