// Descent on w * x: the gradient of w is x.
func.func public @main(%w: tensor<f32> loc("w"), %x: tensor<f32> loc("x"))
    -> (tensor<f32> {jax.result_info = "[0]"}, tensor<f32> {jax.result_info = "loss"}) {
  %loss = stablehlo.multiply %w, %x : tensor<f32>
  %rate = stablehlo.constant dense<0.5> : tensor<f32>
  %0 = stablehlo.multiply %rate, %x : tensor<f32>
  %new = stablehlo.subtract %w, %0 : tensor<f32>
  return %new, %loss : tensor<f32>, tensor<f32>
}
