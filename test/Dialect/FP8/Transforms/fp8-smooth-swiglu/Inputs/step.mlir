// A step of a gated unit and a head, as JAX differentiates it.
func.func public @main(
    %gate: tensor<16x32xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['gate']"},
    %up: tensor<16x32xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['up']"},
    %down: tensor<32x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['down']"},
    %head: tensor<16x8xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['head']"},
    %x: tensor<2x4x16xf32> {fp8.role = "batch", fp8.path = "x"})
    -> (tensor<16x32xf32> {fp8.state = "p['gate']", fp8.path = "r['gate']"},
        tensor<16x32xf32> {fp8.state = "p['up']", fp8.path = "r['up']"},
        tensor<32x16xf32> {fp8.state = "p['down']", fp8.path = "r['down']"},
        tensor<16x8xf32> {fp8.state = "p['head']", fp8.path = "r['head']"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %ones = stablehlo.constant dense<1.0> : tensor<2x4x32xf32>
  %a = stablehlo.dot_general %x, %gate, contracting_dims = [2] x [0]
      : (tensor<2x4x16xf32>, tensor<16x32xf32>) -> tensor<2x4x32xf32>
  %b = stablehlo.dot_general %x, %up, contracting_dims = [2] x [0]
      : (tensor<2x4x16xf32>, tensor<16x32xf32>) -> tensor<2x4x32xf32>
  %sigmoid = stablehlo.logistic %a : tensor<2x4x32xf32>
  %silu = stablehlo.multiply %a, %sigmoid : tensor<2x4x32xf32>
  %h = stablehlo.multiply %silu, %b : tensor<2x4x32xf32>
  %y = stablehlo.dot_general %h, %down, contracting_dims = [2] x [0]
      : (tensor<2x4x32xf32>, tensor<32x16xf32>) -> tensor<2x4x16xf32>
  %z = stablehlo.dot_general %y, %head, contracting_dims = [2] x [0]
      : (tensor<2x4x16xf32>, tensor<16x8xf32>) -> tensor<2x4x8xf32>
  %loss = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [0, 1, 2]
      : (tensor<2x4x8xf32>, tensor<f32>) -> tensor<f32>

  %dz = stablehlo.cosine %z : tensor<2x4x8xf32>
  %dhead_t = stablehlo.dot_general %dz, %y, contracting_dims = [0, 1] x [0, 1]
      : (tensor<2x4x8xf32>, tensor<2x4x16xf32>) -> tensor<8x16xf32>
  %dhead = stablehlo.transpose %dhead_t, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %dy = stablehlo.dot_general %dz, %head, contracting_dims = [2] x [1]
      : (tensor<2x4x8xf32>, tensor<16x8xf32>) -> tensor<2x4x16xf32>
  %ddown_t = stablehlo.dot_general %dy, %h, contracting_dims = [0, 1] x [0, 1]
      : (tensor<2x4x16xf32>, tensor<2x4x32xf32>) -> tensor<16x32xf32>
  %ddown = stablehlo.transpose %ddown_t, dims = [1, 0] : (tensor<16x32xf32>) -> tensor<32x16xf32>
  %dh = stablehlo.dot_general %dy, %down, contracting_dims = [2] x [1]
      : (tensor<2x4x16xf32>, tensor<32x16xf32>) -> tensor<2x4x32xf32>
  %db = stablehlo.multiply %silu, %dh : tensor<2x4x32xf32>
  %dsilu = stablehlo.multiply %dh, %b : tensor<2x4x32xf32>
  %left = stablehlo.multiply %dsilu, %sigmoid : tensor<2x4x32xf32>
  %rest = stablehlo.subtract %ones, %sigmoid : tensor<2x4x32xf32>
  %slope = stablehlo.multiply %sigmoid, %rest : tensor<2x4x32xf32>
  %da_product = stablehlo.multiply %dsilu, %a : tensor<2x4x32xf32>
  %right = stablehlo.multiply %da_product, %slope : tensor<2x4x32xf32>
  %da = stablehlo.add %left, %right : tensor<2x4x32xf32>
  %dup_t = stablehlo.dot_general %db, %x, contracting_dims = [0, 1] x [0, 1]
      : (tensor<2x4x32xf32>, tensor<2x4x16xf32>) -> tensor<32x16xf32>
  %dup = stablehlo.transpose %dup_t, dims = [1, 0] : (tensor<32x16xf32>) -> tensor<16x32xf32>
  %dgate_t = stablehlo.dot_general %da, %x, contracting_dims = [0, 1] x [0, 1]
      : (tensor<2x4x32xf32>, tensor<2x4x16xf32>) -> tensor<32x16xf32>
  %dgate = stablehlo.transpose %dgate_t, dims = [1, 0] : (tensor<32x16xf32>) -> tensor<16x32xf32>
  %gate_new = stablehlo.subtract %gate, %dgate : tensor<16x32xf32>
  %up_new = stablehlo.subtract %up, %dup : tensor<16x32xf32>
  %down_new = stablehlo.subtract %down, %ddown : tensor<32x16xf32>
  %head_new = stablehlo.subtract %head, %dhead : tensor<16x8xf32>
  return %gate_new, %up_new, %down_new, %head_new, %loss
      : tensor<16x32xf32>, tensor<16x32xf32>, tensor<32x16xf32>, tensor<16x8xf32>, tensor<f32>
}
