// RUN: fp8-opt %s --stablehlo-one-rank --split-input-file --verify-diagnostics

module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["a"=2]>
  func.func public @outside(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{'stablehlo.add' op is outside of jax.shard_map: put it inside}}
    %0 = stablehlo.add %x, %x : tensor<4xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"a"} (%v: tensor<4xf32>) {
      sdy.return %v : tensor<4xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["a"=2]>
  func.func public @columns(%x: tensor<4x4xf32>) -> tensor<f32> {
    // expected-error @+1 {{expected operand 0 of 'tensor<4x4xf32>' whole on every device, or its rows (dimension 0) split over all axes of a mesh in their order; <@mesh, [{}, {"a"}]> is not supported yet}}
    %1 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{}, {"a"}]>] out_shardings=[<@mesh, []>] manual_axes={"a"} (%v: tensor<4x2xf32>) {
      %c = stablehlo.constant dense<0.0> : tensor<f32>
      sdy.return %c : tensor<f32>
    } : (tensor<4x4xf32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----

// Device 1 has the third part of the rows.
module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @order(%x: tensor<4xf32>) -> tensor<f32> {
    // expected-error @+1 {{<@mesh, [{"b", "a"}]> is not supported yet}}
    %1 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"b", "a"}]>] out_shardings=[<@mesh, []>] manual_axes={"a", "b"} (%v: tensor<1xf32>) {
      %c = stablehlo.constant dense<0.0> : tensor<f32>
      sdy.return %c : tensor<f32>
    } : (tensor<4xf32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----

module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["a"=2]>
  func.func public @state(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{expected result 0 to be whole on every device, of type 'tensor<4xf32>'; state that is split over devices is not supported yet}}
    %1 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}]>] out_shardings=[<@mesh, [{"a"}]>] manual_axes={"a"} (%v: tensor<2xf32>) {
      sdy.return %v : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["a"=2]>
  func.func public @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"a"} (%v: tensor<4xf32>) {
      sdy.return %v : tensor<4xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    // expected-error @+1 {{expected the whole step in one jax.shard_map but got a second one}}
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"a"} (%v: tensor<4xf32>) {
      sdy.return %v : tensor<4xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
