// RUN: fp8-opt %s --split-input-file --fp8-resolve-recipe="recipe=none set=optimizer.moment1.format=f8E4M3FN set=optimizer.moment1.tile=tensor set=optimizer.min_elements=4096" --fp8-store-state=emit-remarks 2>&1 | FileCheck %s
// RUN: fp8-opt %s --split-input-file --fp8-resolve-recipe="recipe=none set=optimizer.moment1.format=f8E4M3FN set=optimizer.moment1.tile=tensor set=optimizer.moment1.scaling=delayed" --fp8-store-state=emit-remarks 2>&1 | FileCheck %s --check-prefix=DELAYED
// RUN: fp8-opt %s --split-input-file --fp8-resolve-recipe="recipe=none set=optimizer.moment1.format=f8E4M3FN set=optimizer.moment1.tile=1x128 set=optimizer.min_elements=4096" --fp8-store-state=emit-remarks 2>&1 | FileCheck %s --check-prefix=GROUPS

// RUN: fp8-opt %s --split-input-file --fp8-resolve-recipe="recipe=none set=optimizer.moment1.format=f8E4M3FN set=optimizer.moment1.tile=1x128 set=optimizer.moment1.expand=true set=optimizer.min_elements=4096" --fp8-store-state=emit-remarks 2>&1 | FileCheck %s --check-prefix=EXPANDED

// A rank stores its part with the scale of the whole, whose elements are what
// counts. What begins a run is whole.
// CHECK: stored as f8E4M3FN (scales: tensor): moment1 m of w
// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %[[M:[^:]*]]: !fp8.scaled<64x32xf8E4M3FN, tile = [*, *], scale = f32> {{{.*}}stablehlo.part = {
// CHECK: %[[NEW:.*]] = stablehlo.add
// CHECK: %[[OWN:.*]] = fp8.amax %[[NEW]]
// CHECK: %[[AMAX:.*]] = fp8.all_reduce max %[[OWN]] label = "amax m"
// CHECK: %[[S:.*]], %[[Q:.*]] = fp8.compute_scale %[[AMAX]]
// CHECK: fp8.quantize %[[NEW]], %[[S]], %[[Q]]
// CHECK-LABEL: func.func private @fp8_store(
// CHECK-SAME: tensor<64x64xf32>
// CHECK-SAME: -> (!fp8.scaled<64x64xf8E4M3FN, tile = [*, *], scale = f32>
// CHECK-NOT: fp8.all_reduce
// CHECK-LABEL: func.func private @fp8_load(
// CHECK-SAME: !fp8.scaled<64x64xf8E4M3FN, tile = [*, *], scale = f32>
// CHECK-SAME: -> (tensor<64x64xf32>

// DELAYED: stays f32: moment1 m of w, 2048 elements of f32: each rank has a part of it, which takes current scales, of the whole or of groups in one part
// DELAYED-NOT: fp8.all_reduce

// Groups along the columns, which two ranks have, and where a rank has all of
// them: then scales are its own.
// GROUPS-LABEL: func.func public @main(
// GROUPS-SAME: reason = "each rank has a part of it, which takes
// GROUPS-LABEL: func.func public @rows(
// GROUPS-SAME: !fp8.scaled<32x64xf8E4M3FN, tile = [1, 128], scale = f32>
// GROUPS-NOT: fp8.all_reduce
// GROUPS-LABEL: func.func private @fp8_store(
// GROUPS-SAME: -> (!fp8.scaled<64x64xf8E4M3FN, tile = [1, 128], scale = f32>

// A rank has the ranges of its groups, and the begin of a run has those of all.
// EXPANDED-LABEL: func.func public @rows(
// EXPANDED-SAME: !fp8.scaled<32x64xf8E4M3FN, tile = [1, 128], scale = f32>
// EXPANDED-SAME: tensor<32x1xf32> {fp8.kind = "moment1", fp8.path = "m.center", fp8.role = "state", stablehlo.part = {offsets = dense<{{\[}}[0, 0], [32, 0]]> : tensor<2x2xi64>, whole = array<i64: 64, 1>}}
// EXPANDED-SAME: fp8.path = "m.exponent", fp8.role = "state", stablehlo.part = {offsets = dense<{{\[}}[0, 0], [32, 0]]> : tensor<2x2xi64>, whole = array<i64: 64, 1>}}
// EXPANDED-NOT: fp8.all_reduce
// EXPANDED-LABEL: func.func private @fp8_store(
// EXPANDED-SAME: -> (!fp8.scaled<64x64xf8E4M3FN, tile = [1, 128], scale = f32>
// EXPANDED-SAME: tensor<64x1xf32>

func.func public @main(
    %w: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state", stablehlo.part = {whole = array<i64: 64, 64>, offsets = dense<[[0, 0], [0, 32]]> : tensor<2x2xi64>}},
    %m: tensor<64x32xf32> {fp8.kind = "moment1", fp8.parameter = "w", fp8.path = "m", fp8.role = "state", stablehlo.part = {whole = array<i64: 64, 64>, offsets = dense<[[0, 0], [0, 32]]> : tensor<2x2xi64>}},
    %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"})
    -> (tensor<64x32xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"}, tensor<64x32xf32> {fp8.kind = "state", fp8.path = "[1]", fp8.state = "m"}) {
  %new = stablehlo.add %m, %g : tensor<64x32xf32>
  %next = stablehlo.subtract %w, %new : tensor<64x32xf32>
  return %next, %new : tensor<64x32xf32>, tensor<64x32xf32>
}

// -----

func.func public @rows(
    %w: tensor<32x64xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state", stablehlo.part = {whole = array<i64: 64, 64>, offsets = dense<[[0, 0], [32, 0]]> : tensor<2x2xi64>}},
    %m: tensor<32x64xf32> {fp8.kind = "moment1", fp8.parameter = "w", fp8.path = "m", fp8.role = "state", stablehlo.part = {whole = array<i64: 64, 64>, offsets = dense<[[0, 0], [32, 0]]> : tensor<2x2xi64>}},
    %g: tensor<32x64xf32> {fp8.path = "g", fp8.role = "batch"})
    -> (tensor<32x64xf32> {fp8.kind = "state", fp8.path = "[0]", fp8.state = "w"}, tensor<32x64xf32> {fp8.kind = "state", fp8.path = "[1]", fp8.state = "m"}) {
  %new = stablehlo.add %m, %g : tensor<32x64xf32>
  %next = stablehlo.subtract %w, %new : tensor<32x64xf32>
  return %next, %new : tensor<32x64xf32>, tensor<32x64xf32>
}
