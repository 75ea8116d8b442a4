// RUN: fp8-opt %s --split-input-file --fp8-resolve-recipe="set=optimizer.moment1.format=f8E4M3FN set=optimizer.master.format=f16 set=optimizer.master.tile=tensor set=optimizer.min_elements=1" --fp8-store-state --fp8-drop-verdicts --stablehlo-canonicalize-loops --canonicalize --cse | FileCheck %s

// A branch that passes the old value on passes on payload and scale; the other
// one quantizes. The f32 value leaves neither.

// CHECK-LABEL: func.func @branch(
// CHECK-SAME: %[[P:[a-z0-9]+]]: !fp8.scaled<64x32xf16, tile = [*, *], scale = f32>
// CHECK-SAME: %[[M:[a-z0-9]+]]: !fp8.scaled<64x32xf8E4M3FN, tile = [*, *], scale = f32>
// CHECK-SAME: %[[C:[a-z0-9]+]]: tensor<i1>
// CHECK-DAG: %[[PP:.*]], %[[PS:.*]] = fp8.unpack %[[P]]
// CHECK-DAG: %[[MP:.*]], %[[MS:.*]] = fp8.unpack %[[M]]
// CHECK: %[[R:.*]]:4 = "stablehlo.if"(%[[C]]) ({
// CHECK:   fp8.quantize
// CHECK:   fp8.quantize
// CHECK:   stablehlo.return %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<64x32xf16>, tensor<f32>, tensor<64x32xf8E4M3FN>, tensor<f32>
// CHECK: }, {
// CHECK-NEXT:   stablehlo.return %[[PP]], %[[PS]], %[[MP]], %[[MS]]
// CHECK: }) : (tensor<i1>) -> (tensor<64x32xf16>, tensor<f32>, tensor<64x32xf8E4M3FN>, tensor<f32>)
// CHECK: %[[NP:.*]] = fp8.pack %[[R]]#0, %[[R]]#1
// CHECK: %[[NM:.*]] = fp8.pack %[[R]]#2, %[[R]]#3
// CHECK: return %[[NP]], %[[NM]]
func.func @branch(%p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
                  %m: tensor<64x32xf32> {fp8.kind = "moment1", fp8.parameter = "p", fp8.path = "m", fp8.role = "state"},
                  %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"}, %c: tensor<i1> {fp8.path = "c", fp8.role = "constant"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "p"},
        tensor<64x32xf32> {fp8.path = "result[1]", fp8.state = "m"}) {
  %0:2 = "stablehlo.if"(%c) ({
    %1 = stablehlo.add %m, %g : tensor<64x32xf32>
    %2 = stablehlo.subtract %p, %1 : tensor<64x32xf32>
    stablehlo.return %2, %1 : tensor<64x32xf32>, tensor<64x32xf32>
  }, {
    stablehlo.return %p, %m : tensor<64x32xf32>, tensor<64x32xf32>
  }) : (tensor<i1>) -> (tensor<64x32xf32>, tensor<64x32xf32>)
  return %0#0, %0#1 : tensor<64x32xf32>, tensor<64x32xf32>
}

// -----

// optax's updates: zeros where none is taken. The sum is quantized, and the old
// payload chosen.

// CHECK-LABEL: func.func @zero_update(
// CHECK-SAME: %[[P:[a-z0-9]+]]: !fp8.scaled<64x32xf16, tile = [*, *], scale = f32>
// CHECK-SAME: %[[C:[a-z0-9]+]]: tensor<i1>
// CHECK-DAG: %[[PP:.*]], %[[PS:.*]] = fp8.unpack %[[P]]
// CHECK-DAG: %[[OLD:.*]] = fp8.dequantize %[[P]]
// CHECK: %[[SUM:.*]] = stablehlo.add %[[OLD]],
// CHECK: %[[Q:.*]] = fp8.quantize %[[SUM]]
// CHECK: %[[QP:.*]], %[[QS:.*]] = fp8.unpack %[[Q]]
// CHECK: %[[NP:.*]] = stablehlo.select %{{.*}}, %[[QP]], %[[PP]] : tensor<i1>, tensor<64x32xf16>
// CHECK: %[[NS:.*]] = stablehlo.select %{{.*}}, %[[QS]], %[[PS]] : tensor<i1>, tensor<f32>
// CHECK: fp8.pack %[[NP]], %[[NS]]
func.func @zero_update(%p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
                       %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"}, %c: tensor<i1> {fp8.path = "c", fp8.role = "constant"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "p"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<64x32xf32>
  %0 = stablehlo.select %c, %g, %zero : tensor<i1>, tensor<64x32xf32>
  %1 = stablehlo.add %p, %0 : tensor<64x32xf32>
  return %1 : tensor<64x32xf32>
}

// -----

// A loop over whole steps carries payload and scale.

// CHECK-LABEL: func.func @steps(
// CHECK-SAME: %[[M:[a-z0-9]+]]: !fp8.scaled<64x32xf8E4M3FN, tile = [*, *], scale = f32>
// CHECK: %[[MP:.*]], %[[MS:.*]] = fp8.unpack %[[M]]
// CHECK: %[[R:.*]]:{{.*}} = stablehlo.while({{.*}} = %[[MP]], %{{.*}} = %[[MS]])
// CHECK: do {
// CHECK: %[[OWN:.*]] = fp8.pack
// CHECK: %[[OLD:.*]] = fp8.dequantize %[[OWN]]
// CHECK: %[[NEW:.*]] = stablehlo.add %[[OLD]],
// CHECK: fp8.quantize %[[NEW]]
// CHECK: fp8.pack %[[R]]
func.func @steps(%p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "frozen"},
                 %m: tensor<64x32xf32> {fp8.kind = "moment1", fp8.parameter = "p", fp8.path = "m", fp8.role = "state"},
                 %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "m"}) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %many = stablehlo.constant dense<1000> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %own = %m) : tensor<i32>, tensor<64x32xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %many : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.add %own, %g : tensor<64x32xf32>
    stablehlo.return %1, %2 : tensor<i32>, tensor<64x32xf32>
  }
  return %0#1 : tensor<64x32xf32>
}

// -----

// What a clamp returns of zero is zero only between its bounds: 1e-3 is an
// update, and it is always stored.

// CHECK-LABEL: func.func @lower_clamp(
// CHECK: fp8.quantize
// CHECK-NOT: stablehlo.select %{{.*}} : tensor<i1>, tensor<64x32xf16>
// CHECK: return
func.func @lower_clamp(%p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
                       %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"}, %c: tensor<i1> {fp8.path = "c", fp8.role = "constant"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "p"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<64x32xf32>
  %low = stablehlo.constant dense<1.0e-3> : tensor<64x32xf32>
  %one = stablehlo.constant dense<1.0> : tensor<64x32xf32>
  %0 = stablehlo.select %c, %g, %zero : tensor<i1>, tensor<64x32xf32>
  %1 = stablehlo.clamp %low, %0, %one : tensor<64x32xf32>
  %2 = stablehlo.add %p, %1 : tensor<64x32xf32>
  return %2 : tensor<64x32xf32>
}

// -----

// Between -1 and 1 zero stays zero, and so it does as the larger one of itself
// and -1.

// CHECK-LABEL: func.func @clamp_around_zero(
// CHECK: fp8.quantize
// CHECK: stablehlo.select %{{.*}} : tensor<i1>, tensor<64x32xf16>
func.func @clamp_around_zero(%p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
                             %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"}, %c: tensor<i1> {fp8.path = "c", fp8.role = "constant"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "p"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<64x32xf32>
  %low = stablehlo.constant dense<-1.0> : tensor<64x32xf32>
  %one = stablehlo.constant dense<1.0> : tensor<64x32xf32>
  %0 = stablehlo.select %c, %g, %zero : tensor<i1>, tensor<64x32xf32>
  %1 = stablehlo.clamp %low, %0, %one : tensor<64x32xf32>
  %2 = stablehlo.maximum %1, %low : tensor<64x32xf32>
  %3 = stablehlo.add %p, %2 : tensor<64x32xf32>
  return %3 : tensor<64x32xf32>
}

// -----

// A clamp of the chosen value may move the old one as well.

// CHECK-LABEL: func.func @clamped_choice(
// CHECK: fp8.quantize
// CHECK-NOT: stablehlo.select %{{.*}} : tensor<i1>, tensor<64x32xf16>
// CHECK: return
func.func @clamped_choice(%p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
                          %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"}, %c: tensor<i1> {fp8.path = "c", fp8.role = "constant"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "p"}) {
  %low = stablehlo.constant dense<1.0e-3> : tensor<64x32xf32>
  %one = stablehlo.constant dense<1.0> : tensor<64x32xf32>
  %0 = stablehlo.select %c, %g, %p : tensor<i1>, tensor<64x32xf32>
  %1 = stablehlo.clamp %low, %0, %one : tensor<64x32xf32>
  return %1 : tensor<64x32xf32>
}

// -----

// Rounding to fewer bits moves it, too.

// CHECK-LABEL: func.func @rounded_choice(
// CHECK: fp8.quantize
// CHECK-NOT: stablehlo.select %{{.*}} : tensor<i1>, tensor<64x32xf16>
// CHECK: return
func.func @rounded_choice(%p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
                          %g: tensor<64x32xbf16> {fp8.path = "g", fp8.role = "batch"}, %c: tensor<i1> {fp8.path = "c", fp8.role = "constant"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "p"}) {
  %0 = stablehlo.convert %p : (tensor<64x32xf32>) -> tensor<64x32xbf16>
  %1 = stablehlo.select %c, %g, %0 : tensor<i1>, tensor<64x32xbf16>
  %2 = stablehlo.convert %1 : (tensor<64x32xbf16>) -> tensor<64x32xf32>
  return %2 : tensor<64x32xf32>
}

// -----

// Zero times an update that overflowed is NaN: such elements are stored, with
// the scale that there is.

// CHECK-LABEL: func.func @product(
// CHECK-DAG: %[[C:.*]] = stablehlo.compare EQ
// CHECK: %[[SUM:.*]] = stablehlo.add %{{.*}}, %{{.*}} : tensor<64x32xf32>
// CHECK: fp8.quantize %[[SUM]]
// CHECK-DAG: %[[NAN:.*]] = stablehlo.compare NE, %[[SUM]], %[[SUM]]
// CHECK-DAG: %[[ALL:.*]] = stablehlo.broadcast_in_dim %[[C]], dims = [] : (tensor<i1>) -> tensor<64x32xi1>
// CHECK: %[[WHERE:.*]] = stablehlo.or %[[ALL]], %[[NAN]]
// CHECK: stablehlo.select %[[WHERE]], %{{.*}} : tensor<64x32xi1>, tensor<64x32xf16>
// CHECK: stablehlo.select %[[C]], %{{.*}} : tensor<i1>, tensor<f32>
func.func @product(%p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
                   %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"}, %n: tensor<i32> {fp8.path = "n", fp8.role = "constant"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "p"}) {
  %three = stablehlo.constant dense<3> : tensor<i32>
  %c = stablehlo.compare EQ, %n, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %flag = stablehlo.convert %c : (tensor<i1>) -> tensor<f32>
  %spread = stablehlo.broadcast_in_dim %flag, dims = [] : (tensor<f32>) -> tensor<64x32xf32>
  %0 = stablehlo.multiply %spread, %g : tensor<64x32xf32>
  %1 = stablehlo.add %p, %0 : tensor<64x32xf32>
  return %1 : tensor<64x32xf32>
}
