func.func @three(%x: tensor<4x8xf32>, %scale: tensor<f32>, %quantizer: tensor<f32>) {
  %0 = fp8.quantize %x, %scale, %quantizer rounding = nearest_even, overflow = saturate
      : tensor<4x8xf32> -> !fp8.scaled<4x8xf8E4M3FN, tile = [*, *], scale = f32>
  %1 = fp8.quantize %x, %scale, %quantizer rounding = nearest_even, overflow = nan
      : tensor<4x8xf32> -> !fp8.scaled<4x8xf8E4M3FN, tile = [*, *], scale = f32>
  %2 = fp8.quantize %x, %scale, %quantizer rounding = nearest_even, overflow = saturate
      : tensor<4x8xf32> -> !fp8.scaled<4x8xf8E5M2, tile = [*, *], scale = f32>
  return
}
