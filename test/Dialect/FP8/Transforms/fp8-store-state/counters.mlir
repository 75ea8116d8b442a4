// RUN: fp8-opt %s --split-input-file --fp8-resolve-recipe="set=optimizer.master.format=bf16 set=optimizer.master.rounding=stochastic set=optimizer.min_elements=1" --fp8-store-state --fp8-drop-verdicts | FileCheck %s

// Stochastic rounding draws other numbers in every call: the seed is mixed with
// a counter that every call advances. optax's increment saturates.

// CHECK-LABEL: func.func @saturates(
// CHECK-SAME: %[[N:[a-z0-9]+]]: tensor<i32> {fp8.kind = "step"
// CHECK-NOT: "fp8.step"
// CHECK: fp8.mix_seed %{{.*}}, %[[N]]
// CHECK-NOT: tensor<i64> {{.*}} tensor<i64>
func.func @saturates(%p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
                     %n: tensor<i32> {fp8.kind = "step", fp8.path = "n", fp8.role = "state"},
                     %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "p"}, tensor<i32> {fp8.path = "result[1]", fp8.state = "n"}) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %max = stablehlo.constant dense<2147483647> : tensor<i32>
  %less = stablehlo.compare LT, %n, %max : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %more = stablehlo.add %n, %one : tensor<i32>
  %next = stablehlo.select %less, %more, %max : tensor<i1>, tensor<i32>
  %0 = stablehlo.subtract %p, %g : tensor<64x32xf32>
  return %0, %next : tensor<64x32xf32>, tensor<i32>
}

// -----

// Counters of Flax nnx are unsigned.

// CHECK-LABEL: func.func @unsigned(
// CHECK-SAME: %[[N:[a-z0-9]+]]: tensor<ui32> {fp8.kind = "step"
// CHECK-NOT: "fp8.step"
// CHECK: %[[SIGNLESS:.*]] = stablehlo.bitcast_convert %[[N]] : (tensor<ui32>) -> tensor<i32>
// CHECK: fp8.mix_seed %{{.*}}, %[[SIGNLESS]]
func.func @unsigned(%p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
                    %n: tensor<ui32> {fp8.kind = "step", fp8.path = "n", fp8.role = "state"},
                    %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "p"}, tensor<ui32> {fp8.path = "result[1]", fp8.state = "n"}) {
  %one = stablehlo.constant dense<1> : tensor<ui32>
  %max = stablehlo.constant dense<4294967295> : tensor<ui32>
  %less = stablehlo.compare LT, %n, %max : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
  %more = stablehlo.add %n, %one : tensor<ui32>
  %next = stablehlo.select %less, %more, %max : tensor<i1>, tensor<ui32>
  %0 = stablehlo.subtract %p, %g : tensor<64x32xf32>
  return %0, %next : tensor<64x32xf32>, tensor<ui32>
}

// -----

// The first of two that does: one counts the updates that are taken, one the
// micro-batches of an update.

// CHECK-LABEL: func.func @several(
// CHECK-SAME: %[[N:[a-z0-9]+]]: tensor<i64> {fp8.kind = "step", fp8.path = "calls"
// CHECK: fp8.mix_seed %{{.*}}, %[[N]]
func.func @several(%p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
                   %taken: tensor<i32> {fp8.kind = "step", fp8.path = "taken", fp8.role = "state"},
                   %mini: tensor<i32> {fp8.kind = "step", fp8.path = "mini", fp8.role = "state"},
                   %calls: tensor<i64> {fp8.kind = "step", fp8.path = "calls", fp8.role = "state"},
                   %c: tensor<i1> {fp8.path = "c", fp8.role = "constant"},
                   %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "p"}, tensor<i32> {fp8.path = "result[1]", fp8.state = "taken"},
        tensor<i32> {fp8.path = "result[2]", fp8.state = "mini"}, tensor<i64> {fp8.path = "result[3]", fp8.state = "calls"}) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %long = stablehlo.constant dense<1> : tensor<i64>
  %0 = stablehlo.subtract %p, %g : tensor<64x32xf32>
  %1 = stablehlo.add %taken, %one : tensor<i32>
  %2 = stablehlo.select %c, %1, %taken : tensor<i1>, tensor<i32>
  %3 = stablehlo.add %mini, %one : tensor<i32>
  %4 = stablehlo.remainder %3, %three : tensor<i32>
  %5 = stablehlo.add %calls, %long : tensor<i64>
  return %0, %2, %4, %5 : tensor<64x32xf32>, tensor<i32>, tensor<i32>, tensor<i64>
}

// -----

// Without one, the step gets its own.

// CHECK-LABEL: func.func @own(
// CHECK-SAME: %[[N:[a-z0-9]+]]: tensor<i64> {fp8.kind = "step", fp8.path = "fp8.step", fp8.role = "state", fp8.zero_init}
// CHECK-SAME: tensor<i64> {fp8.path = "fp8.step", fp8.state = "fp8.step"}
// CHECK: fp8.mix_seed %{{.*}}, %[[N]]
// CHECK: %[[ONE:.*]] = stablehlo.constant dense<1> : tensor<i64>
// CHECK: %[[NEXT:.*]] = stablehlo.add %[[N]], %[[ONE]]
// CHECK: return %{{.*}}, %{{.*}}, %[[NEXT]]
func.func @own(%p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
               %n: tensor<i32> {fp8.kind = "step", fp8.path = "n", fp8.role = "state"},
               %c: tensor<i1> {fp8.path = "c", fp8.role = "constant"},
               %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "p"}, tensor<i32> {fp8.path = "result[1]", fp8.state = "n"}) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.subtract %p, %g : tensor<64x32xf32>
  %1 = "stablehlo.if"(%c) ({
    %2 = stablehlo.add %n, %one : tensor<i32>
    stablehlo.return %2 : tensor<i32>
  }, {
    stablehlo.return %n : tensor<i32>
  }) : (tensor<i1>) -> tensor<i32>
  return %0, %1 : tensor<64x32xf32>, tensor<i32>
}

// -----

// One that stops at a hundred counts no calls either.

// CHECK-LABEL: func.func @stops(
// CHECK-SAME: "fp8.step"
func.func @stops(%p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
                 %n: tensor<i32> {fp8.kind = "step", fp8.path = "n", fp8.role = "state"},
                 %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "p"}, tensor<i32> {fp8.path = "result[1]", fp8.state = "n"}) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %max = stablehlo.constant dense<100> : tensor<i32>
  %less = stablehlo.compare LT, %n, %max : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %more = stablehlo.add %n, %one : tensor<i32>
  %next = stablehlo.select %less, %more, %max : tensor<i1>, tensor<i32>
  %0 = stablehlo.subtract %p, %g : tensor<64x32xf32>
  return %0, %next : tensor<64x32xf32>, tensor<i32>
}

// -----

// Several updates in a call: the loop advances it.

// CHECK-LABEL: func.func @updates(
// CHECK-SAME: %[[N:[a-z0-9]+]]: tensor<i32> {fp8.kind = "step"
// CHECK-NOT: "fp8.step"
// CHECK: %[[OUTER:.*]] = fp8.mix_seed %{{.*}}, %[[N]]
// CHECK: do {
// CHECK: fp8.mix_seed %[[OUTER]]
func.func @updates(%p: tensor<64x32xf32> {fp8.kind = "parameter", fp8.path = "p", fp8.role = "state"},
                   %n: tensor<i32> {fp8.kind = "step", fp8.path = "n", fp8.role = "state"},
                   %g: tensor<64x32xf32> {fp8.path = "g", fp8.role = "batch"})
    -> (tensor<64x32xf32> {fp8.path = "result[0]", fp8.state = "p"}, tensor<i32> {fp8.path = "result[1]", fp8.state = "n"}) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %own = %p, %count = %n) : tensor<i32>, tensor<64x32xf32>, tensor<i32>
  cond {
    %1 = stablehlo.compare LT, %i, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.subtract %own, %g : tensor<64x32xf32>
    %3 = stablehlo.add %count, %one : tensor<i32>
    stablehlo.return %1, %2, %3 : tensor<i32>, tensor<64x32xf32>, tensor<i32>
  }
  return %0#1, %0#2 : tensor<64x32xf32>, tensor<i32>
}
