// RUN: fp8-opt %s --stablehlo-one-rank --split-input-file --verify-diagnostics

module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @size(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{expected dimension 0 of 'tensor<4xf32>' in 2 parts but got 'tensor<1xf32>'}}
    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}]>] out_shardings=[<@mesh, [{"a"}]>] manual_axes={"a", "b"} (%y: tensor<1xf32>) {
      sdy.return %y : tensor<1xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @free(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{expected jax.shard_map to be manual over all axes of the mesh but got none for 'b'}}
    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}]>] out_shardings=[<@mesh, [{"a"}]>] manual_axes={"a"} (%y: tensor<2xf32>) {
      sdy.return %y : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @half(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{expected a sharding over whole axes but got <@mesh, [{"a":(1)2}]>}}
    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a":(1)2}]>] out_shardings=[<@mesh, [{"a"}]>] manual_axes={"a", "b"} (%y: tensor<2xf32>) {
      sdy.return %y : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 4 : i32} {
  // expected-error @+1 {{expected a mesh of all 4 devices, in their order}}
  sdy.mesh @mesh = <["a"=2, "b"=2], device_ids=[0, 2, 1, 3]>
  func.func public @permuted(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}]>] out_shardings=[<@mesh, [{"a"}]>] manual_axes={"a", "b"} (%y: tensor<2xf32>) {
      sdy.return %y : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 4 : i32} {
  // expected-error @+1 {{expected a mesh of all 4 devices, in their order}}
  sdy.mesh @mesh = <["a"=2]>
  func.func public @few(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}]>] out_shardings=[<@mesh, [{"a"}]>] manual_axes={"a"} (%y: tensor<2xf32>) {
      sdy.return %y : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["a"=2]>
  // expected-error @+1 {{a jit that splits more over 2 devices than the rows of its batch does not run on ranks: write the step in jax.shard_map, which says what each device does, or leave its state whole}}
  func.func public @columns(%x: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> tensor<4x4xf32> {
    return %x : tensor<4x4xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 2 : i32} {
  // expected-error @+1 {{a jit that splits more over 2 devices}}
  func.func public @tiles(%x: tensor<4x4xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}) -> tensor<4x4xf32> {
    return %x : tensor<4x4xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["a"=2]>
  // expected-error @+1 {{a jit that splits more over 2 devices}}
  func.func public @results(%x: tensor<4xf32>) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
    return %x : tensor<4xf32>
  }
}
