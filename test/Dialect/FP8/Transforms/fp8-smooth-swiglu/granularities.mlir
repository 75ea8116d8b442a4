// RUN: fp8-opt %S/Inputs/step.mlir --fp8-resolve-recipe="recipe=tensorwise set=smooth_swiglu.granularity=channel" --fp8-smooth-swiglu | FileCheck %s --check-prefix=CHANNEL
// RUN: fp8-opt %S/Inputs/step.mlir --fp8-resolve-recipe="recipe=tensorwise set=smooth_swiglu.granularity=token" --fp8-smooth-swiglu | FileCheck %s --check-prefix=TOKEN
// RUN: fp8-opt %S/Inputs/step.mlir --fp8-resolve-recipe="recipe=tensorwise" --fp8-smooth-swiglu | FileCheck %s --check-prefix=NONE
// RUN: fp8-opt %S/Inputs/step.mlir --fp8-resolve-recipe="recipe=none set=smooth_swiglu.granularity=channel" --fp8-smooth-swiglu | FileCheck %s --check-prefix=NONE
// RUN: fp8-opt %S/Inputs/step.mlir --fp8-resolve-recipe="recipe=none set=smooth_swiglu.granularity=channel" --fp8-smooth-swiglu=all-dots | FileCheck %s --check-prefix=CHANNEL
// RUN: fp8-opt %S/Inputs/step.mlir --fp8-resolve-recipe="recipe=rowwise_gw_hp set=smooth_swiglu.granularity=channel" --fp8-smooth-swiglu | FileCheck %s --check-prefix=NOWGRAD
// RUN: fp8-opt %S/Inputs/step.mlir --fp8-resolve-recipe="recipe=tensorwise set=smooth_swiglu.granularity=channel set=smooth_swiglu.scale=exact set=smooth_swiglu.margin=1" --fp8-smooth-swiglu | FileCheck %s --check-prefix=EXACT

// One factor serves all three dots; the product and the weight are rescaled
// once.

// CHANNEL: %[[H:.*]] = stablehlo.multiply
// CHANNEL: %[[H:.*]] = stablehlo.multiply
// CHANNEL-NEXT: %[[TILES:.*]] = fp8.amax %[[H]] tile = [*, *, 1] : tensor<2x4x32xf32> -> tensor<1x1x32xf32>
// CHANNEL-NEXT: %[[OWN:.*]] = stablehlo.reshape %[[TILES]]
// CHANNEL-NEXT: %[[LARGEST:.*]] = fp8.amax %[[OWN]] : tensor<32xf32> -> tensor<f32>
// CHANNEL-NEXT: %[[PART:.*]] = stablehlo.constant dense<3.906250e-03>
// CHANNEL-NEXT: %[[LEAST:.*]] = stablehlo.multiply %[[LARGEST]], %[[PART]]
// CHANNEL-NEXT: %[[SPREAD:.*]] = stablehlo.broadcast_in_dim %[[LEAST]]
// CHANNEL-NEXT: %[[AMAX:.*]] = stablehlo.maximum %[[OWN]], %[[SPREAD]]
// CHANNEL-NEXT: %[[S:.*]], %[[Q:.*]] = fp8.compute_scale %[[AMAX]] {format = f8E4M3FN, {{.*}}rule = #fp8.scale_rule<pow2>} : tensor<32xf32>
// CHANNEL-DAG: %[[SMALL:.*]] = fp8.rescale %[[H]], %[[Q]] dims = [2] : tensor<2x4x32xf32>, tensor<32xf32>
// CHANNEL-DAG: %[[LARGE:.*]] = fp8.rescale %arg2, %[[S]] dims = [0] : tensor<32x16xf32>, tensor<32xf32>
// CHANNEL: %[[Y:.*]] = stablehlo.dot_general %[[SMALL]], %[[LARGE]],
// CHANNEL: stablehlo.dot_general %[[Y]], %arg3
// CHANNEL: %[[DY:.*]] = stablehlo.dot_general %{{.*}}, %arg3
// CHANNEL: %[[DW:.*]] = stablehlo.dot_general %[[DY]], %[[SMALL]]
// CHANNEL: %[[DW_FULL:.*]] = fp8.rescale %[[DW]], %[[S]] dims = [1] : tensor<16x32xf32>, tensor<32xf32>
// CHANNEL: stablehlo.transpose %[[DW_FULL]]
// CHANNEL: %[[DH:.*]] = stablehlo.dot_general %[[DY]], %[[LARGE]]
// CHANNEL: %[[DH_FULL:.*]] = fp8.rescale %[[DH]], %[[Q]] dims = [2]
// CHANNEL: stablehlo.multiply %{{.*}}, %[[DH_FULL]]
// CHANNEL-NOT: fp8.rescale

// TOKEN: %[[B:.*]] = stablehlo.dot_general %arg4, %arg1
// TOKEN-NEXT: %[[TILES:.*]] = fp8.amax %[[B]] tile = [1, 1, *] : tensor<2x4x32xf32> -> tensor<2x4x1xf32>
// TOKEN-NEXT: %[[AMAX:.*]] = stablehlo.reshape %[[TILES]]
// TOKEN-NEXT: %[[S:.*]], %[[Q:.*]] = fp8.compute_scale %[[AMAX]] {{.*}} : tensor<2x4xf32>
// TOKEN: %[[SMALL:.*]] = fp8.rescale %{{.*}}, %[[Q]] dims = [0, 1] : tensor<2x4x32xf32>, tensor<2x4xf32>
// TOKEN: %[[Y:.*]] = stablehlo.dot_general %[[SMALL]], %arg2
// TOKEN-NEXT: %[[Y_FULL:.*]] = fp8.rescale %[[Y]], %[[S]] dims = [0, 1]
// TOKEN: stablehlo.dot_general %[[Y_FULL]], %arg3
// TOKEN: %[[DY:.*]] = stablehlo.dot_general %{{.*}}, %arg3
// TOKEN: %[[DYS:.*]] = fp8.rescale %[[DY]], %[[S]] dims = [0, 1] : tensor<2x4x16xf32>, tensor<2x4xf32>
// TOKEN: stablehlo.dot_general %[[DYS]], %[[SMALL]]
// TOKEN: %[[DH:.*]] = stablehlo.dot_general %[[DYS]], %arg2
// TOKEN-NEXT: fp8.rescale %[[DH]], %[[Q]] dims = [0, 1]
// TOKEN-NOT: fp8.rescale

// NONE-NOT: fp8.rescale

// A dot in high precision reads what it has read.
// NOWGRAD: %[[H:.*]] = stablehlo.multiply
// NOWGRAD: %[[H:.*]] = stablehlo.multiply
// NOWGRAD-NEXT: fp8.amax %[[H]]
// NOWGRAD: %[[DY:.*]] = stablehlo.dot_general %{{.*}}, %arg3, contracting_dims = [2] x [1]
// NOWGRAD: stablehlo.dot_general %[[DY]], %[[H]], contracting_dims = [0, 1] x [0, 1]

// EXACT: fp8.compute_scale %{{.*}} {format = f8E4M3FN, margin = 1 : i64, rule = #fp8.scale_rule<exact>}
