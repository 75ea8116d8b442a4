// RUN: fp8-opt %s --stablehlo-one-rank --stablehlo-lower-collectives --fp8-data-parallel --split-input-file | FileCheck %s

// A step of which all is in shard_map: a rank has its part of the weights, and
// gathers nothing.
// CHECK-LABEL: func.func public @inside(
// CHECK-SAME: %[[W:[^:]*]]: tensor<4x2xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state", stablehlo.part = {offsets = dense<{{\[}}[0, 0], [0, 4], [0, 2], [0, 6]]> : tensor<4x2xi64>, whole = array<i64: 4, 8>}
// CHECK-SAME: -> (tensor<4x2xf32> {
// CHECK-NOT: exchange
// CHECK: %[[NEW:.*]] = stablehlo.exponential %[[W]] : tensor<4x2xf32>
// CHECK-NOT: exchange
// CHECK: return %[[NEW]], %{{.*}} : tensor<4x2xf32>, tensor<f32>
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @inside(%w: tensor<4x8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"})
      -> (tensor<4x8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"}, tensor<f32> {fp8.kind = "loss", fp8.path = "[1]"}) {
    %loss = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = sdy.manual_computation(%w) in_shardings=[<@mesh, [{}, {"b", "a"}]>] out_shardings=[<@mesh, [{}, {"b", "a"}]>] manual_axes={"a", "b"} (%v: tensor<4x2xf32>) {
      %1 = stablehlo.exponential %v : tensor<4x2xf32>
      sdy.return %1 : tensor<4x2xf32>
    } : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %0, %loss : tensor<4x8xf32>, tensor<f32>
  }
}

// -----

// An optimizer outside works on parts where it works element by element; a norm
// is summed over one rank of each part. Rows along "a" are held twice.
// CHECK-LABEL: func.func public @outside(
// CHECK-SAME: %[[W:[^:]*]]: tensor<4x4xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state", stablehlo.part = {offsets = dense<{{\[}}[0, 0], [0, 4], [0, 0], [0, 4]]> : tensor<4x2xi64>, whole = array<i64: 4, 8>}
// CHECK-SAME: %[[M:[^:]*]]: tensor<4x4xf32> {fp8.kind = "moment1", {{.*}}stablehlo.part = {
// CHECK-SAME: %[[S:[^:]*]]: tensor<f32>
// CHECK: %[[G:.*]] = stablehlo.exponential %[[W]] : tensor<4x4xf32>
// CHECK: %[[MINE:.*]] = stablehlo.reduce(%[[G]] init: %{{.*}}) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<f32>
// CHECK: %[[ALL:.*]] = fp8.exchange gather %[[MINE]] ranks = dense<{{\[}}[0, 1], [2, 3]]> : tensor<2x2xi64> label = "state in parts" {{.*}} : tensor<f32> -> tensor<2xf32>
// CHECK: %[[NORM:.*]] = stablehlo.reduce(%[[ALL]] init: %{{.*}}) applies stablehlo.add across dimensions = [0]
// CHECK: %[[SPREAD:.*]] = stablehlo.broadcast_in_dim %[[NORM]], dims = [] : (tensor<f32>) -> tensor<4x4xf32>
// CHECK: %[[CLIPPED:.*]] = stablehlo.divide %[[G]], %[[SPREAD]] : tensor<4x4xf32>
// CHECK: %[[NEWM:.*]] = stablehlo.add %[[M]], %[[CLIPPED]]
// CHECK: %[[ONES:.*]] = stablehlo.constant dense<1.0{{.*}}> : tensor<4x4xf32>
// CHECK: %[[SCALED:.*]] = stablehlo.multiply %[[NEWM]], %[[ONES]] : tensor<4x4xf32>
// CHECK: %[[NEW:.*]] = stablehlo.subtract %[[W]], %[[SCALED]]
// CHECK-NOT: exchange
// CHECK: return %[[NEW]], %[[NEWM]], %[[NORM]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @outside(%w: tensor<4x8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
                            %m: tensor<4x8xf32> {fp8.kind = "moment1", fp8.path = "m", fp8.role = "state", fp8.parameter = "w"},
                            %s: tensor<f32> {fp8.path = "s", fp8.role = "constant"})
      -> (tensor<4x8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"}, tensor<4x8xf32> {fp8.kind = "state", fp8.path = "[1]", fp8.state = "m"},
          tensor<f32> {fp8.kind = "loss", fp8.path = "[2]"}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %ones = stablehlo.constant dense<1.0> : tensor<4x8xf32>
    %g = sdy.manual_computation(%w) in_shardings=[<@mesh, [{}, {"b"}]>] out_shardings=[<@mesh, [{}, {"b"}]>] manual_axes={"a", "b"} (%v: tensor<4x4xf32>) {
      %1 = stablehlo.exponential %v : tensor<4x4xf32>
      sdy.return %1 : tensor<4x4xf32>
    } : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %norm = stablehlo.reduce(%g init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
    %spread = stablehlo.broadcast_in_dim %norm, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %clipped = stablehlo.divide %g, %spread : tensor<4x8xf32>
    %newm = stablehlo.add %m, %clipped : tensor<4x8xf32>
    %scaled = stablehlo.multiply %newm, %ones : tensor<4x8xf32>
    %new = stablehlo.subtract %w, %scaled : tensor<4x8xf32>
    return %new, %newm, %norm : tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>
  }
}

// -----

// Two dimensions in parts.
// CHECK-LABEL: func.func public @both(
// CHECK-SAME: tensor<3x2xf32> {{{.*}}stablehlo.part = {offsets = dense<{{\[}}[0, 0], [0, 2], [3, 0], [3, 2]]> : tensor<4x2xi64>, whole = array<i64: 6, 4>}
// CHECK-NOT: exchange
// CHECK: return %{{.*}} : tensor<3x2xf32>
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @both(%w: tensor<6x4xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"})
      -> (tensor<6x4xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"}) {
    %0 = sdy.manual_computation(%w) in_shardings=[<@mesh, [{"a"}, {"b"}]>] out_shardings=[<@mesh, [{"a"}, {"b"}]>] manual_axes={"a", "b"} (%v: tensor<3x2xf32>) {
      %1 = stablehlo.exponential %v : tensor<3x2xf32>
      sdy.return %1 : tensor<3x2xf32>
    } : (tensor<6x4xf32>) -> tensor<6x4xf32>
    return %0 : tensor<6x4xf32>
  }
}

// -----

// State that a dot outside reads stays whole, and so does what comes back in
// other parts.
// CHECK-LABEL: func.func public @whole(
// CHECK-SAME: tensor<4x4xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"}
// CHECK-SAME: tensor<4x4xf32> {fp8.kind = "parameter", fp8.path = "v", fp8.role = "state"}
// CHECK-NOT: stablehlo.part
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=2]>
  func.func public @whole(%w: tensor<4x4xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
                          %v: tensor<4x4xf32> {fp8.kind = "parameter", fp8.path = "v", fp8.role = "state"})
      -> (tensor<4x4xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"}, tensor<4x4xf32> {fp8.kind = "state", fp8.path = "[1]", fp8.state = "v"}) {
    %0:2 = sdy.manual_computation(%w, %v) in_shardings=[<@mesh, [{}, {"a"}]>, <@mesh, [{}, {"a"}]>] out_shardings=[<@mesh, [{}, {"a"}]>, <@mesh, [{}, {"a"}]>] manual_axes={"a"} (%a: tensor<4x2xf32>, %b: tensor<4x2xf32>) {
      %1 = stablehlo.exponential %a : tensor<4x2xf32>
      sdy.return %1, %b : tensor<4x2xf32>, tensor<4x2xf32>
    } : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
    %2 = stablehlo.dot_general %0#0, %w, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %3 = sdy.manual_computation(%0#1) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a"} (%b: tensor<2x4xf32>) {
      sdy.return %b : tensor<2x4xf32>
    } : (tensor<4x4xf32>) -> tensor<4x4xf32>
    return %2, %3 : tensor<4x4xf32>, tensor<4x4xf32>
  }
}
