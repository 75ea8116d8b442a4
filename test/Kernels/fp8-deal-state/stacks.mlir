// RUN: fp8-opt %s --split-input-file --fp8-deal-state | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#layer = affine_map<(i, j) -> (i)>
#all1 = affine_map<(i) -> (i)>
#none1 = affine_map<(i) -> ()>
#none = affine_map<(i, j) -> ()>

// A loop reads the payload of w layer by layer, so w is a stack. Owners quantize
// and update their slices. They send the partial sums of the norm, one per layer,
// and all ranks add them.
// CHECK-LABEL: func.func @stack
// CHECK-SAME: %[[W:arg0]]: tensor<4x64xf32> {{{.*}}fp8.shard = 1 : i64, fp8.slices = 4 : i64}
// CHECK-SAME: %[[SCALE:arg1]]: tensor<f32> {fp8.parameter = "w", fp8.path = "scale", fp8.role = "state"}
// CHECK: %[[Q:.*]] = linalg.generic {{.*}} ins(%[[W]], %[[SCALE]] :
// CHECK-SAME: attrs = {fp8.shard = 1 : i64}
// CHECK: %[[ALL:.*]] = fp8.all_reduce owner %[[Q]] shard = 1 label = "owner of w" : tensor<4x64xf8E4M3FN>
// CHECK: scf.for
// CHECK: tensor.extract_slice %[[ALL]]
// CHECK: %[[S:.*]] = fp8.all_reduce sum %{{.*}} shard = 1 : tensor<4x64xf32>
// CHECK: %[[PARTS:.*]] = linalg.generic {{.*}} ins(%[[S]] :
// CHECK-SAME: attrs = {fp8.shard = 1 : i64}
// CHECK: %[[SENT:.*]] = fp8.all_reduce owner %[[PARTS]] shard = 1 label = "owner of w" : tensor<4xf32>
// CHECK: %[[NORM:.*]] = linalg.generic {{.*}} ins(%[[SENT]] :
// CHECK-NOT: fp8.shard
// CHECK: ^bb0
// CHECK: linalg.generic {{.*}} ins(%[[W]], %[[S]], %[[NORM]]
// CHECK-SAME: attrs = {fp8.shard = 1 : i64}
module attributes {fp8.zero = 1 : i64} {
  func.func @stack(
      %w: tensor<4x64xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
      %scale: tensor<f32> {fp8.parameter = "w", fp8.path = "scale", fp8.role = "state"},
      %x: tensor<4x64xf32> {fp8.path = "x", fp8.role = "batch"},
      %y: tensor<64xf32> {fp8.path = "y", fp8.role = "batch"})
      -> (tensor<4x64xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
          tensor<f32> {fp8.kind = "state", fp8.path = "[1]", fp8.state = "scale"},
          tensor<64xf32> {fp8.kind = "output", fp8.path = "[2]"}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4x64xf32>
    %e8 = tensor.empty() : tensor<4x64xf8E4M3FN>
    %el = tensor.empty() : tensor<64xf32>
    %ep = tensor.empty() : tensor<4xf32>
    %es = tensor.empty() : tensor<f32>
    %q = linalg.generic {indexing_maps = [#id, #none, #id], iterator_types = ["parallel", "parallel"]}
        ins(%w, %scale : tensor<4x64xf32>, tensor<f32>) outs(%e8 : tensor<4x64xf8E4M3FN>) {
    ^bb0(%a: f32, %s: f32, %o: f8E4M3FN):
      %0 = arith.divf %a, %s : f32
      %1 = arith.truncf %0 : f32 to f8E4M3FN
      linalg.yield %1 : f8E4M3FN
    } -> tensor<4x64xf8E4M3FN>
    %h = scf.for %i = %c0 to %c4 step %c1 iter_args(%c = %y) -> tensor<64xf32> {
      %layer = tensor.extract_slice %q[%i, 0] [1, 64] [1, 1] : tensor<4x64xf8E4M3FN> to tensor<64xf8E4M3FN>
      %next = linalg.generic {indexing_maps = [#all1, #all1, #all1], iterator_types = ["parallel"]}
          ins(%c, %layer : tensor<64xf32>, tensor<64xf8E4M3FN>) outs(%el : tensor<64xf32>) {
      ^bb0(%a: f32, %b: f8E4M3FN, %o: f32):
        %0 = arith.extf %b : f8E4M3FN to f32
        %1 = arith.mulf %a, %0 : f32
        linalg.yield %1 : f32
      } -> tensor<64xf32>
      scf.yield %next : tensor<64xf32>
    }
    %s = fp8.all_reduce sum %x : tensor<4x64xf32>
    %f4 = linalg.fill ins(%zero : f32) outs(%ep : tensor<4xf32>) -> tensor<4xf32>
    %parts = linalg.generic {indexing_maps = [#id, #layer], iterator_types = ["parallel", "reduction"]}
        ins(%s : tensor<4x64xf32>) outs(%f4 : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %0 = arith.mulf %a, %a : f32
      %1 = arith.addf %0, %o : f32
      linalg.yield %1 : f32
    } -> tensor<4xf32>
    %f0 = linalg.fill ins(%zero : f32) outs(%es : tensor<f32>) -> tensor<f32>
    %norm = linalg.generic {indexing_maps = [#all1, #none1], iterator_types = ["reduction"]}
        ins(%parts : tensor<4xf32>) outs(%f0 : tensor<f32>) {
    ^bb0(%a: f32, %o: f32):
      %0 = arith.addf %a, %o : f32
      linalg.yield %0 : f32
    } -> tensor<f32>
    %p = linalg.generic {indexing_maps = [#id, #id, #none, #id], iterator_types = ["parallel", "parallel"]}
        ins(%w, %s, %norm : tensor<4x64xf32>, tensor<4x64xf32>, tensor<f32>) outs(%e : tensor<4x64xf32>) {
    ^bb0(%a: f32, %b: f32, %n: f32, %o: f32):
      %0 = arith.divf %b, %n : f32
      %1 = arith.subf %a, %0 : f32
      linalg.yield %1 : f32
    } -> tensor<4x64xf32>
    return %p, %norm, %h : tensor<4x64xf32>, tensor<f32>, tensor<64xf32>
  }
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>
#all1 = affine_map<(i) -> (i)>

// The new moment mixes layers, so the stack has one owner.
// CHECK-LABEL: func.func @mixed
// CHECK-SAME: %arg0: tensor<8x8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"}
// CHECK-SAME: %arg1: tensor<8x8xf32> {{{.*}}fp8.shard = 1 : i64, fp8.whole_reason = "what is computed at {{.*}}stacks.mlir:{{.*}} reads several slices at once"}
module attributes {fp8.zero = 1 : i64} {
  func.func @mixed(
      %w: tensor<8x8xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
      %m: tensor<8x8xf32> {fp8.kind = "moment1", fp8.parameter = "w", fp8.path = "m", fp8.role = "state"},
      %x: tensor<8x8xf32> {fp8.path = "x", fp8.role = "batch"},
      %y: tensor<8xf32> {fp8.path = "y", fp8.role = "batch"})
      -> (tensor<8x8xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
          tensor<8x8xf32> {fp8.kind = "state", fp8.path = "[1]", fp8.state = "m"},
          tensor<8xf32> {fp8.kind = "output", fp8.path = "[2]"}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %e = tensor.empty() : tensor<8x8xf32>
    %el = tensor.empty() : tensor<8xf32>
    %h = scf.for %i = %c0 to %c8 step %c1 iter_args(%c = %y) -> tensor<8xf32> {
      %layer = tensor.extract_slice %w[%i, 0] [1, 8] [1, 1] : tensor<8x8xf32> to tensor<8xf32>
      %next = linalg.generic {indexing_maps = [#all1, #all1, #all1], iterator_types = ["parallel"]}
          ins(%c, %layer : tensor<8xf32>, tensor<8xf32>) outs(%el : tensor<8xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %0 = arith.mulf %a, %b : f32
        linalg.yield %0 : f32
      } -> tensor<8xf32>
      scf.yield %next : tensor<8xf32>
    }
    %s = fp8.all_reduce sum %x : tensor<8x8xf32>
    %new = linalg.generic {indexing_maps = [#turned, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%m, %s : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %0 = arith.addf %a, %b : f32
      linalg.yield %0 : f32
    } -> tensor<8x8xf32>
    %p = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%w, %new : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %0 = arith.subf %a, %b : f32
      linalg.yield %0 : f32
    } -> tensor<8x8xf32>
    return %p, %new, %h : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8xf32>
  }
}
