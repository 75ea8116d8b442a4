// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide --fp8-quantize-dots --fp8-compute-types --fp8-drop-verdicts | FileCheck %s
// RUN: fp8-opt %s --fp8-resolve-recipe="recipe=tensorwise set=forward.activation.rounding=stochastic" --fp8-decide --fp8-quantize-dots --fp8-compute-types --fp8-drop-verdicts --verify-diagnostics -o /dev/null
// RUN: fp8-opt %s --fp8-resolve-recipe="recipe=tensorwise set=rules=[]" --fp8-decide --fp8-quantize-dots --fp8-compute-types --fp8-drop-verdicts | FileCheck %s --check-prefix=INVARIANT

// A loop over four layers of stacked weights, each applied in one of two ways;
// then a head in a loop that it does not change with.

// The weights of all layers are quantized before the loop, a scale each.
// CHECK: %[[AMAX:.*]] = fp8.amax %arg0 tile = [1, *, *] : tensor<4x16x16xf32> -> tensor<4x1x1xf32>
// CHECK: %[[WS:.*]] = fp8.quantize %arg0, {{.*}} -> !fp8.scaled<4x16x16xf8E4M3FN, tile = [1, *, *], scale = f32>
// CHECK: stablehlo.while(%[[I:.*]] = %{{.*}}, %[[H:.*]] = %arg2)
// CHECK: %[[PAYLOAD:.*]], %[[SCALE:.*]] = fp8.unpack %[[WS]]
// CHECK: %[[P:.*]] = stablehlo.dynamic_slice %[[PAYLOAD]], %[[I]], {{.*}} sizes = [1, 16, 16]
// CHECK: %[[PR:.*]] = stablehlo.reshape %[[P]] : (tensor<1x16x16xf8E4M3FN>) -> tensor<16x16xf8E4M3FN>
// CHECK: %[[S:.*]] = stablehlo.dynamic_slice %[[SCALE]], %[[I]], {{.*}} sizes = [1, 1, 1]
// CHECK: %[[SR:.*]] = stablehlo.reshape %[[S]] : (tensor<1x1x1xf32>) -> tensor<f32>
// CHECK: %[[W:.*]] = fp8.pack %[[PR]], %[[SR]] : !fp8.scaled<16x16xf8E4M3FN, tile = [*, *], scale = f32>
// The activation is the same in both branches: quantized before them.
// CHECK: %[[HS:.*]] = fp8.quantize %[[H]],
// CHECK: stablehlo.if
// CHECK: fp8.dot_general %[[HS]], %[[W]], contracting_dims = [1] x [0]
// CHECK: fp8.dot_general %[[HS]], %[[W]], contracting_dims = [1] x [1]
// CHECK-NOT: fp8.quantize

// What a loop does not change is quantized before it.
// INVARIANT-DAG: fp8.quantize %arg1, {{.*}} -> !fp8.scaled<16x8xf8E4M3FN
// INVARIANT-DAG: fp8.quantize %[[OUT:[^,]*]], {{.*}} -> !fp8.scaled<6x16xf8E4M3FN
// INVARIANT: stablehlo.while(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : tensor<i32>, tensor<6x8xf32>
// INVARIANT: fp8.dot_general
func.func @main(
    %w: tensor<4x16x16xf32> {fp8.role = "frozen", fp8.path = "p['w']"},
    %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %x: tensor<6x16xf32> {fp8.role = "batch", fp8.path = "x"},
    %p: tensor<i1> {fp8.role = "batch", fp8.path = "p"},
    %count: tensor<i32> {fp8.role = "state", fp8.kind = "step", fp8.path = "count"}) -> tensor<6x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %start = stablehlo.constant dense<0.0> : tensor<6x8xf32>
  %0:2 = stablehlo.while(%i = %zero, %h = %x) : tensor<i32>, tensor<6x16xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %four, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2 = stablehlo.dynamic_slice %w, %i, %zero, %zero, sizes = [1, 16, 16]
        : (tensor<4x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
    %3 = stablehlo.reshape %2 : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
    %4 = "stablehlo.if"(%p) ({
      %5 = stablehlo.dot_general %h, %3, contracting_dims = [1] x [0] : (tensor<6x16xf32>, tensor<16x16xf32>) -> tensor<6x16xf32>
      stablehlo.return %5 : tensor<6x16xf32>
    }, {
      %5 = stablehlo.dot_general %h, %3, contracting_dims = [1] x [1] : (tensor<6x16xf32>, tensor<16x16xf32>) -> tensor<6x16xf32>
      stablehlo.return %5 : tensor<6x16xf32>
    }) : (tensor<i1>) -> tensor<6x16xf32>
    %6 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %6, %4 : tensor<i32>, tensor<6x16xf32>
  }
  %7:2 = stablehlo.while(%i = %zero, %sum = %start) : tensor<i32>, tensor<6x8xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %four, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %8 = stablehlo.dot_general %0#1, %head, contracting_dims = [1] x [0] : (tensor<6x16xf32>, tensor<16x8xf32>) -> tensor<6x8xf32>
    %9 = stablehlo.add %sum, %8 : tensor<6x8xf32>
    %6 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %6, %9 : tensor<i32>, tensor<6x8xf32>
  }
  return %7#1 : tensor<6x8xf32>
}
