// RUN: fp8-opt %s --fp8-report-verdicts=file=- -o /dev/null 2>&1 | tr -s " " | FileCheck %s
// RUN: fp8-opt %s --fp8-report-verdicts="file=- update" -o /dev/null 2>&1 | FileCheck %s --check-prefix=UPDATE
// RUN: fp8-opt %s --fp8-report-verdicts=file=%t.json --mlir-print-debuginfo | fp8-opt --fp8-report-verdicts=file=%t.again.json -o /dev/null
// RUN: diff %t.json %t.again.json && FileCheck %s --check-prefix=JSON --input-file=%t.json

// The report is made of attributes alone, wherever they come from.
// CHECK: verdict role layer batch M N K lhs rhs reason location
// CHECK: high_precision attention - 2 4 4 8 f32 f32 attention: a batched product of two activations; in a loop of 3 iterations
// CHECK: recipe mine: 0 of 1 dots in FP8; 1 attention
// CHECK: scores pass batch queries keys reason needed at location
// CHECK: stored backward 2 4 4 scores are read by stablehlo.sort f.py:2:1
// CHECK: recipe mine: 0 of 1 softmaxes in tiles
// CHECK: state kind elements from to tile bytes reason
// CHECK: m moment1 32 f32 f8E4M3FN 1x128 36 as the recipe says; rounded stochastically
// CHECK: recipe mine: 1 of 1 arrays of state stored otherwise; 36 bytes of state

// UPDATE-NOT: attention
// UPDATE: 0 of 1 softmaxes
// UPDATE: 1 of 1 arrays of state

// JSON: "loops": [
// JSON-NEXT: 3
// JSON: "gated_units": [
// JSON: "layer": "p['down']"
// JSON: "reason": "why not"
// JSON: "softmaxes": [
// JSON: "scores": "stored",
// JSON: "loops": [
// JSON-NEXT: 3,
// JSON-NEXT: null
// JSON: "obstacle": "f.py:2:1",
// JSON: "state": [
// JSON: "path": "m",
// JSON: "parameter": "p",
// JSON: "tile": "1x128",
module attributes {fp8.recipe = #fp8.recipe<{name = mine}>} {
  func.func @main(%x: tensor<2x4x8xf32>,
                  %m: tensor<32xf32> {fp8.path = "m", fp8.state_verdict = #fp8.state_verdict<kind = "moment1", parameter = "p", elements = 32, from = f32, to = f8E4M3FN, tile = "1x128", bytes = 36, changed = true, reason = "as the recipe says", notes = ["rounded stochastically"]>})
      -> tensor<2x4x4xf32> attributes {fp8.gated_units = [{function = "main", layer = "p['down']", location = "f.py:1:1", reason = "why not"}]} {
    %0 = stablehlo.dot_general %x, %x, batching_dims = [0] x [0], contracting_dims = [2] x [2]
        {fp8.verdict = #fp8.verdict<high_precision, role = attention, category = attention, batch = 2, m = 4, n = 4, k = 8, lhs_format = f32, rhs_format = f32, loops = [3], reason = "attention: a batched product of two activations", notes = ["in a loop of 3 iterations"]>,
         fp8.softmax_verdict = #fp8.softmax_verdict<stored, backward = true, batch = 2, queries = 4, keys = 4, loops = [3, 0], reason = "scores are read by stablehlo.sort", obstacle = "f.py:2:1">}
        : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x4xf32>
    return %0 : tensor<2x4x4xf32>
  }
}
