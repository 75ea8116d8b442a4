// RUN: fp8-opt %s --fp8-analyze-signature="roles=batch.x=frozen states=h=result[1]" | FileCheck %s
// RUN: not fp8-opt %s --fp8-analyze-signature="roles=z=frozen" 2>&1 | FileCheck %s --check-prefix=PATH
// RUN: not fp8-opt %s --fp8-analyze-signature="roles=batch.x=weights" 2>&1 | FileCheck %s --check-prefix=ROLE
// RUN: not fp8-opt %s --fp8-analyze-signature="roles=batch.x=state" 2>&1 | FileCheck %s --check-prefix=STATE
// RUN: not fp8-opt %s --fp8-analyze-signature="states=batch.x=result[1]" 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: not fp8-opt %s --fp8-analyze-signature="loss=result[9]" 2>&1 | FileCheck %s --check-prefix=LOSS
// RUN: not fp8-opt %s --fp8-analyze-signature="kind=steps" 2>&1 | FileCheck %s --check-prefix=KIND

// A path is that of the tree, or of attributes: batch.x is batch['x'].
// h is replaced by something that is no update of it: only the user knows.
// CHECK: %{{.*}}: tensor<4xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"}
// CHECK-SAME: %{{.*}}: tensor<8x4xf32> {fp8.path = "batch['x']", fp8.role = "frozen"}
// CHECK-SAME: %{{.*}}: tensor<8xf32> {fp8.kind = "other", fp8.path = "h", fp8.role = "state"}
// CHECK-SAME: {fp8.path = "result[1]", fp8.state = "h"}
// PATH: no argument has the path 'z'; the nearest is
// ROLE: role of 'batch.x': expected state, frozen, batch, key or constant but got 'weights'
// STATE: role: no result replaces 'batch['x']'; name it with the option 'states' (fp8-run: --state ARGUMENT=RESULT)
// TYPE: state: expected 'result[1]' to have the type of 'batch.x', 'tensor<8x4xf32>', but got 'tensor<8xf32>'
// LOSS: loss: no result has the path 'result[9]'; the nearest is 'result[
// KIND: expected kind to be auto, step or function but got 'steps'
func.func public @main(%w: tensor<4xf32> loc("w"), %x: tensor<8x4xf32> loc("batch['x']"), %h: tensor<8xf32> loc("h")) -> (tensor<4xf32> {jax.result_info = "result[0]"}, tensor<8xf32> {jax.result_info = "result[1]"}, tensor<f32> {jax.result_info = "result[2]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %s = stablehlo.multiply %z, %h : tensor<8xf32>
  %loss = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %h, %x, contracting_dims = [0] x [0] : (tensor<8xf32>, tensor<8x4xf32>) -> tensor<4xf32>
  %0 = stablehlo.subtract %w, %g : tensor<4xf32>
  return %0, %z, %loss : tensor<4xf32>, tensor<8xf32>, tensor<f32>
}
