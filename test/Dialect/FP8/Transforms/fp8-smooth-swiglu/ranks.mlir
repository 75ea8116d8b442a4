// RUN: fp8-opt %s --fp8-resolve-recipe="recipe=tensorwise set=smooth_swiglu.granularity=token" --fp8-smooth-swiglu | FileCheck %s --check-prefix=TOKEN
// RUN: fp8-opt %s --fp8-resolve-recipe="recipe=tensorwise set=smooth_swiglu.granularity=token set=smooth_swiglu.scaling=delayed" --fp8-smooth-swiglu | FileCheck %s --check-prefix=LOCAL
// RUN: fp8-opt %s --fp8-resolve-recipe="recipe=tensorwise set=smooth_swiglu.granularity=channel" --fp8-smooth-swiglu | FileCheck %s --check-prefix=LOCAL

// Ranks 0 and 2, and 1 and 3, have half of the channels each: they sum the
// results. A token has one factor on both, forward and backward.
// TOKEN: %[[B:.*]] = stablehlo.dot_general %arg4, %arg1
// TOKEN-NEXT: %[[TILES:.*]] = fp8.amax %[[B]] tile = [1, 1, *] : tensor<2x4x32xf32> -> tensor<2x4x1xf32>
// TOKEN-NEXT: %[[ALL:.*]] = fp8.exchange gather %[[TILES]] ranks = dense<{{\[}}[0, 2], [1, 3]]> : tensor<2x2xi64> label = "amax of tokens" {fp8.wire_reason = "ranks have some channels of each token"} : tensor<2x4x1xf32> -> tensor<2x2x4x1xf32>
// TOKEN: %[[LARGEST:.*]] = stablehlo.reduce(%[[ALL]] init: %{{.*}}) applies stablehlo.maximum across dimensions = [0]
// TOKEN-NEXT: %[[AMAX:.*]] = stablehlo.reshape %[[LARGEST]]
// TOKEN-NEXT: %[[S:.*]], %[[Q:.*]] = fp8.compute_scale %[[AMAX]] {{.*}} : tensor<2x4xf32>
// TOKEN: %[[SMALL:.*]] = fp8.rescale %{{.*}}, %[[Q]] dims = [0, 1]
// TOKEN: %[[Y:.*]] = stablehlo.dot_general %[[SMALL]], %arg2
// TOKEN-NEXT: %[[Y_FULL:.*]] = fp8.rescale %[[Y]], %[[S]] dims = [0, 1]
// TOKEN-NEXT: fp8.exchange gather %[[Y_FULL]]
// TOKEN-NOT: fp8.exchange
// TOKEN: stablehlo.dot_general %{{.*}}, %arg3
// TOKEN: %[[DY:.*]] = stablehlo.dot_general %{{.*}}, %arg3
// TOKEN: %[[DYS:.*]] = fp8.rescale %[[DY]], %[[S]] dims = [0, 1]
// TOKEN: stablehlo.dot_general %[[DYS]], %[[SMALL]]
// TOKEN: %[[DH:.*]] = stablehlo.dot_general %[[DYS]], %arg2
// TOKEN-NEXT: fp8.rescale %[[DH]], %[[Q]] dims = [0, 1]

// A channel is on one rank, and a history has the largest of all ranks anyway:
// the one exchange is the step's.
// LOCAL-NOT: amax of tokens
// LOCAL: fp8.exchange gather {{.*}} label = "all_reduce"
// LOCAL-NOT: fp8.exchange

// A step of a part of a gated unit's channels, and a head.
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
  %part = stablehlo.dot_general %h, %down, contracting_dims = [2] x [0]
      : (tensor<2x4x32xf32>, tensor<32x16xf32>) -> tensor<2x4x16xf32>
  %parts = fp8.exchange gather %part ranks = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64> label = "all_reduce"
      : tensor<2x4x16xf32> -> tensor<2x2x4x16xf32>
  %y = stablehlo.reduce(%parts init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<2x2x4x16xf32>, tensor<f32>) -> tensor<2x4x16xf32>
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
