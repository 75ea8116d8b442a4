module @jit_init attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<256x32xf32> {jax.result_info = "result['embed']"}, tensor<32x256xf32> {jax.result_info = "result['out']"}) {
    %0 = stablehlo.iota dim = 0 : tensor<8192xf32>
    %cst = stablehlo.constant dense<1.500000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8192xf32>
    %2 = stablehlo.power %0, %1 : tensor<8192xf32>
    %cst_0 = stablehlo.constant dense<1.298980e+01> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<8192xf32>
    %4 = stablehlo.multiply %3, %2 : tensor<8192xf32>
    %5 = stablehlo.sine %4 : tensor<8192xf32>
    %6 = stablehlo.reshape %5 : (tensor<8192xf32>) -> tensor<256x32xf32>
    %7 = stablehlo.iota dim = 0 : tensor<8192xf32>
    %cst_1 = stablehlo.constant dense<1.500000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<8192xf32>
    %9 = stablehlo.power %7, %8 : tensor<8192xf32>
    %cst_2 = stablehlo.constant dense<1.298980e+01> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<8192xf32>
    %11 = stablehlo.multiply %10, %9 : tensor<8192xf32>
    %12 = stablehlo.sine %11 : tensor<8192xf32>
    %13 = stablehlo.reshape %12 : (tensor<8192xf32>) -> tensor<32x256xf32>
    %cst_3 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<32x256xf32>
    %15 = stablehlo.multiply %14, %13 : tensor<32x256xf32>
    return %6, %15 : tensor<256x32xf32>, tensor<32x256xf32>
  }
}
