// RUN: fp8-opt %s --fp8-resolve-recipe="set=optimizer.moment1.format=f8E4M3FN set=optimizer.moment1.tile=1x128 set=optimizer.moment1.expand=true set=optimizer.moment2.format=f8E5M2 set=optimizer.moment2.scaling=delayed set=optimizer.moment2.history=2 set=optimizer.master.format=bf16 set=optimizer.master.rounding=stochastic set=optimizer.min_elements=100" --fp8-store-state --fp8-drop-verdicts --cse | FileCheck %s
// RUN: fp8-opt %s --fp8-resolve-recipe="recipe=coat set=optimizer.min_elements=100" --fp8-store-state --fp8-report-verdicts=file=- 2>&1 >/dev/null | FileCheck %s --check-prefix=TABLE
// RUN: fp8-opt %s --fp8-resolve-recipe="recipe=coat set=optimizer.min_elements=100" --fp8-store-state --fp8-report-verdicts=file=%t.json -o /dev/null && FileCheck %s --check-prefix=JSON < %t.json

// Expanded groups, a delayed scale, a master that is rounded stochastically.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<8x200xbf16> {fp8.kind = "parameter", fp8.path = "p['w']", fp8.role = "state"}
// CHECK-SAME: %{{.*}}: tensor<50xf32> {fp8.kind = "parameter", fp8.path = "p['b']"
// CHECK-SAME: %{{.*}}: !fp8.scaled<8x200xf8E4M3FN, tile = [1, 128], scale = f32>
// CHECK-SAME: %{{.*}}: !fp8.scaled<8x200xf8E5M2, tile = [*, *], scale = f32>
// CHECK-SAME: %[[T:[a-z0-9]+]]: tensor<i32> {fp8.kind = "step"
// CHECK-SAME: tensor<8x2xf32> {fp8.kind = "moment1", fp8.path = "m['w'].center", fp8.role = "state"}
// CHECK-SAME: tensor<8x2xf32> {fp8.kind = "moment1", fp8.path = "m['w'].exponent", fp8.role = "state"}
// CHECK-SAME: tensor<2xf32> {fp8.kind = "other", fp8.path = "fp8.v['w'].amax_history", fp8.role = "state", fp8.zero_init}
// CHECK-SAME: %[[KEPT:[a-z0-9]+]]: tensor<f32> {fp8.kind = "other", fp8.path = "fp8.v['w'].quantizer", fp8.role = "state", fp8.zero_init}
// CHECK-SAME: tensor<8x2xf32> {fp8.path = "m['w'].center", fp8.state = "m['w'].center"}
// CHECK-DAG: %[[SEED:.*]] = fp8.mix_seed %{{.*}}, %[[T]]
// CHECK-DAG: %[[W:.*]] = stablehlo.convert %[[P]]
// CHECK-DAG: fp8.restore_range
// The quantizer of earlier steps, the first value's own if it was never set.
// CHECK-DAG: %[[UNSET:.*]] = stablehlo.compare EQ, %[[KEPT]]
// CHECK-DAG: %[[Q:.*]] = stablehlo.select %[[UNSET]], %{{.*}}, %[[KEPT]]
// CHECK-DAG: %[[S:.*]] = stablehlo.select %[[UNSET]], %{{.*}}#0
// CHECK: fp8.round %{{.*}} seed = %[[SEED]] rounding = stochastic {tensor = {{.*}}} : tensor<8x200xf32> -> tensor<8x200xbf16>
// CHECK: fp8.amin %{{.*}} tile = [1, 128]
// CHECK: fp8.compute_expansion
// CHECK: %[[WIDE:.*]] = fp8.expand_range
// CHECK: fp8.amax %[[WIDE]] tile = [1, 128]
// CHECK: fp8.quantize %[[WIDE]]
// CHECK: fp8.quantize %{{.*}}, %[[S]], %[[Q]] {{.*}} -> !fp8.scaled<8x200xf8E5M2, tile = [*, *], scale = f32>

// TABLE: state kind elements from to tile bytes reason
// TABLE: p['w'] parameter 1600 f32 f32 - 6400 the recipe stores it as it is
// TABLE: p['b'] parameter 50 f32 f32 - 200 the recipe stores it as it is
// TABLE: m['w'] moment1 1600 f32 f8E4M3FN 1x128 1792 as the recipe says; with range expansion
// TABLE: m['b'] moment1 50 f32 f32 - 200 50 elements, fewer than min_elements: 100
// TABLE: v['w'] moment2 1600 f32 f8E4M3FN 1x128 1792 as the recipe says; with range expansion
// TABLE: average other 1600 f32 f32 - 6400 no parameter, moment, gradient or master copy that narrow formats suit (--explain-signature says why)
// TABLE: recipe coat: 2 of 6 arrays of state stored otherwise; 16784 bytes of state

// JSON: "recipe": "coat"
// JSON: "state": [
// JSON: "path": "m['w']",
// JSON-NEXT: "kind": "moment1",
// JSON-NEXT: "parameter": "p['w']",
// JSON-NEXT: "elements": 1600,
// JSON-NEXT: "from": "f32",
// JSON-NEXT: "to": "f8E4M3FN",
// JSON-NEXT: "tile": "1x128",
// JSON-NEXT: "bytes": 1792,
// JSON-NEXT: "changed": true,
// JSON-NEXT: "reason": "as the recipe says",
func.func @main(%p: tensor<8x200xf32> {fp8.kind = "parameter", fp8.path = "p['w']", fp8.role = "state"},
                %b: tensor<50xf32> {fp8.kind = "parameter", fp8.path = "p['b']", fp8.role = "state"},
                %m: tensor<8x200xf32> {fp8.kind = "moment1", fp8.parameter = "p['w']", fp8.path = "m['w']", fp8.role = "state"},
                %mb: tensor<50xf32> {fp8.kind = "moment1", fp8.parameter = "p['b']", fp8.path = "m['b']", fp8.role = "state"},
                %v: tensor<8x200xf32> {fp8.kind = "moment2", fp8.parameter = "p['w']", fp8.path = "v['w']", fp8.role = "state"},
                %e: tensor<8x200xf32> {fp8.kind = "other", fp8.path = "average", fp8.role = "state"},
                %t: tensor<i32> {fp8.kind = "step", fp8.path = "t", fp8.role = "state"},
                %g: tensor<8x200xf32> {fp8.path = "g", fp8.role = "batch"}, %gb: tensor<50xf32> {fp8.path = "gb", fp8.role = "batch"})
    -> (tensor<8x200xf32> {fp8.path = "r0", fp8.state = "p['w']"}, tensor<50xf32> {fp8.path = "r1", fp8.state = "p['b']"},
        tensor<8x200xf32> {fp8.path = "r2", fp8.state = "m['w']"}, tensor<50xf32> {fp8.path = "r3", fp8.state = "m['b']"},
        tensor<8x200xf32> {fp8.path = "r4", fp8.state = "v['w']"}, tensor<8x200xf32> {fp8.path = "r5", fp8.state = "average"},
        tensor<i32> {fp8.path = "r6", fp8.state = "t"}) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.add %t, %one : tensor<i32>
  %1 = stablehlo.add %m, %g : tensor<8x200xf32>
  %2 = stablehlo.multiply %g, %g : tensor<8x200xf32>
  %3 = stablehlo.add %v, %2 : tensor<8x200xf32>
  %4 = stablehlo.sqrt %3 : tensor<8x200xf32>
  %5 = stablehlo.divide %1, %4 : tensor<8x200xf32>
  %6 = stablehlo.subtract %p, %5 : tensor<8x200xf32>
  %7 = stablehlo.add %mb, %gb : tensor<50xf32>
  %8 = stablehlo.subtract %b, %7 : tensor<50xf32>
  %9 = stablehlo.add %e, %6 : tensor<8x200xf32>
  return %6, %8, %1, %7, %3, %9, %0
      : tensor<8x200xf32>, tensor<50xf32>, tensor<8x200xf32>, tensor<50xf32>, tensor<8x200xf32>, tensor<8x200xf32>, tensor<i32>
}
