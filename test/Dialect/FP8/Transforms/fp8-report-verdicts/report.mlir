// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=tensorwise --fp8-decide --fp8-report-verdicts=file=%t.json -o /dev/null
// RUN: FileCheck %s --input-file=%t.json
// RUN: fp8-opt %s --fp8-resolve-recipe=recipe=%S/Inputs/head.yaml --fp8-decide --fp8-report-verdicts=file=%t.txt -o /dev/null
// RUN: FileCheck %s --input-file=%t.txt --check-prefix=HEAD
// RUN: not fp8-opt %s --fp8-resolve-recipe=recipe=none --fp8-decide --fp8-report-verdicts=file=%t.missing/v.json -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=UNWRITABLE

// UNWRITABLE: error: cannot write the verdict report '{{.*}}v.json': No such file or directory

// CHECK: {
// CHECK-NEXT: "recipe": "tensorwise",
// CHECK-NEXT: "summary": "1 of 2 dots in FP8; 1 head",
// CHECK-NEXT: "total": 2,
// CHECK-NEXT: "fp8": 1,
// CHECK-NEXT: "high_precision": 1,
// CHECK-NEXT: "fallback": 0,
// CHECK-NEXT: "convolutions": 0,
// CHECK-NEXT: "dots": [
// CHECK-NEXT: {
// CHECK-NEXT: "function": "main",
// CHECK-NEXT: "layer": "p['w']",
// CHECK-NEXT: "role": "forward",
// CHECK-NEXT: "category": "linear",
// CHECK-NEXT: "batch": 1,
// CHECK-NEXT: "m": 6,
// CHECK-NEXT: "n": 24,
// CHECK-NEXT: "k": 16,
// CHECK-NEXT: "lhs": "f8E4M3FN",
// CHECK-NEXT: "rhs": "f8E4M3FN",
// CHECK-NEXT: "lhs_tile": "tensor",
// CHECK-NEXT: "rhs_tile": "tensor",
// CHECK-NEXT: "loops": [],
// CHECK-NEXT: "in_branch": false,
// CHECK-NEXT: "recomputed": false,
// CHECK-NEXT: "verdict": "fp8",
// CHECK-NEXT: "reason": "linear layer",
// CHECK-NEXT: "location": "model.py:7:3 (jit(step)/dot_general)",
// CHECK-NEXT: "notes": []
// CHECK: "layer": "p['head']",
// CHECK: "category": "head",
// CHECK: "rule": 1,
// CHECK-NEXT: "verdict": "high_precision",
// CHECK-NEXT: "reason": "head: no other layer reads the layer's output",
// CHECK: "notes": [
// CHECK-NEXT: "kept by rule 1 (line 20): part: head"

// A recipe may quantize the head.
// HEAD: recipe head: 2 of 2 dots in FP8
func.func @main(
    %w: tensor<16x24xf32> {fp8.role = "frozen", fp8.path = "p['w']"},
    %head: tensor<24x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %x: tensor<6x16xf32> {fp8.role = "batch", fp8.path = "x"}) -> tensor<6x8xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<6x16xf32>, tensor<16x24xf32>) -> tensor<6x24xf32> loc("jit(step)/dot_general"("model.py":7:3))
  %1 = stablehlo.dot_general %0, %head, contracting_dims = [1] x [0]
      : (tensor<6x24xf32>, tensor<24x8xf32>) -> tensor<6x8xf32>
  return %1 : tensor<6x8xf32>
}
