// RUN: fp8-opt %s "--fp8-resolve-recipe=recipe=tensorwise" --fp8-data-parallel=global-amax | FileCheck %s --check-prefix=ROWS
// RUN: fp8-opt %s "--fp8-quantize=recipe=tensorwise data-parallel global-amax report=-" 2>%t.txt | FileCheck %s
// RUN: tr -s " " < %t.txt | FileCheck %s --check-prefix=REPORT
// RUN: fp8-opt %s "--fp8-quantize=recipe=rowwise global-amax" | FileCheck %s --check-prefix=ROWWISE
// RUN: fp8-opt %s "--fp8-quantize=recipe=tensorwise data-parallel" | FileCheck %s --check-prefix=OWN

// What dots do with rows.
// ROWS: stablehlo.dot_general %arg3, %arg0, {{.*}}fp8.rows = ["free", "none"]
// ROWS: stablehlo.dot_general %{{.*}}, %arg1, {{.*}}fp8.rows = ["free", "none"]
// ROWS: stablehlo.dot_general %arg3, %{{.*}}, {{.*}}fp8.rows = ["contracted", "contracted"]

// REPORT-NOT: collective
// REPORT: 2 of 5 dots in FP8
// REPORT-NEXT: collective operation shape from wire block bytes reason location
// REPORT-NEXT: amax w.activation max [] f32 f32 - 8 amaxes travel as they are
// REPORT: gradient w mean [128, 256] f32 f32 - 262144 the recipe has no all_reduce
// REPORT: 0 of 5 collectives in fewer bits

// The scales of activations and of gradients are those of all ranks' rows, that
// of the weight is the same everywhere.
// CHECK-LABEL: func.func public @main
// CHECK-NOT: fp8.rows
// CHECK-DAG: %[[X:.*]] = fp8.amax %arg3
// CHECK-DAG: %[[ALL:.*]] = fp8.all_reduce max %[[X]] label = "amax w.activation" : tensor<f32>
// CHECK-DAG: fp8.compute_scale %[[ALL]]
// CHECK-DAG: %[[W:.*]] = fp8.amax %arg0
// CHECK-DAG: fp8.compute_scale %[[W]]
// CHECK: %[[G:.*]] = fp8.amax
// CHECK-NEXT: fp8.all_reduce max %[[G]] label = "amax w.gradient" : tensor<f32>

// One scale a row of the forward dot, one a channel of the wgrad.
// ROWWISE-LABEL: func.func public @main
// ROWWISE-DAG: %[[X:.*]] = fp8.amax %arg3 tile = [1, *]
// ROWWISE-DAG: fp8.compute_scale %[[X]]
// ROWWISE-DAG: %[[C:.*]] = fp8.amax %arg3 tile = [*, 1]
// ROWWISE-DAG: fp8.all_reduce max %[[C]] label = "amax {{.*}}" : tensor<1x128xf32>

// OWN: fp8.amax
// OWN-NOT: fp8.all_reduce max
func.func public @main(
    %w: tensor<128x256xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
    %v: tensor<256x128xf32> {fp8.kind = "parameter", fp8.path = "v", fp8.role = "state"},
    %t: tensor<16x128xf32> {fp8.path = "t", fp8.role = "batch"},
    %x: tensor<16x128xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<128x256xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"},
        tensor<256x128xf32> {fp8.kind = "state", fp8.path = "[1]", fp8.state = "v"},
        tensor<f32> {fp8.kind = "loss", fp8.path = "[2]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<2048.0> : tensor<f32>
  %two = stablehlo.constant dense<9.765625e-04> : tensor<16x128xf32>
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x128xf32>, tensor<128x256xf32>) -> tensor<16x256xf32>
  %a = stablehlo.tanh %h : tensor<16x256xf32>
  %y = stablehlo.dot_general %a, %v, contracting_dims = [1] x [0] : (tensor<16x256xf32>, tensor<256x128xf32>) -> tensor<16x128xf32>
  %d = stablehlo.subtract %y, %t : tensor<16x128xf32>
  %dd = stablehlo.multiply %d, %d : tensor<16x128xf32>
  %s = stablehlo.reduce(%dd init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x128xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %n : tensor<f32>
  %dy = stablehlo.multiply %d, %two : tensor<16x128xf32>
  %gv = stablehlo.dot_general %a, %dy, contracting_dims = [0] x [0] : (tensor<16x256xf32>, tensor<16x128xf32>) -> tensor<256x128xf32>
  %da = stablehlo.dot_general %dy, %v, contracting_dims = [1] x [1] : (tensor<16x128xf32>, tensor<256x128xf32>) -> tensor<16x256xf32>
  %dh = stablehlo.multiply %da, %a : tensor<16x256xf32>
  %gw = stablehlo.dot_general %x, %dh, contracting_dims = [0] x [0] : (tensor<16x128xf32>, tensor<16x256xf32>) -> tensor<128x256xf32>
  %neww = stablehlo.subtract %w, %gw : tensor<128x256xf32>
  %newv = stablehlo.subtract %v, %gv : tensor<256x128xf32>
  return %neww, %newv, %loss : tensor<128x256xf32>, tensor<256x128xf32>, tensor<f32>
}
