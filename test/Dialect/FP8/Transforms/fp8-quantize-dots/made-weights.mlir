// RUN: fp8-opt %s --fp8-quantize='recipe=delayed set=forward.weight.history=4 set=dgrad=none set=wgrad=none set=weight_copies=state set=rules=[] set=gradients.format=bf16 set=optimizer.min_elements=1 set=optimizer.moment1.format=bf16 report=%t.json' | FileCheck %s
// RUN: FileCheck %s --input-file=%t.json --check-prefix=JSON

// The weight is made with a dot, which copies of weights repeat: at the end of
// the step, and in the function that makes the first copy: in bf16, as the step
// computes it. The report has the dots of the step alone.
// JSON: "total": 2,
// JSON-NOT: "function": "fp8_store"

// CHECK: func.func @main
// CHECK: stablehlo.dot_general {{.*}} : (tensor<32x4xbf16>, tensor<4x16xbf16>) -> tensor<32x16xf32>
// CHECK: func.func private @fp8_store
// CHECK: stablehlo.dot_general {{.*}} : (tensor<32x4xbf16>, tensor<4x16xbf16>) -> tensor<32x16xf32>
func.func @main(%w: tensor<32x16xf32> {fp8.kind = "parameter", fp8.path = "w", fp8.role = "state"},
                %a: tensor<32x4xf32> {fp8.kind = "parameter", fp8.path = "a", fp8.role = "state"},
                %b: tensor<4x16xf32> {fp8.kind = "parameter", fp8.path = "b", fp8.role = "state"},
                %x: tensor<4x32xf32> {fp8.path = "x", fp8.role = "batch"},
                %g: tensor<32x16xf32> {fp8.path = "g", fp8.role = "batch"})
    -> (tensor<32x16xf32> {fp8.path = "result[0]", fp8.state = "w"}, tensor<32x4xf32> {fp8.path = "result[1]", fp8.state = "a"},
        tensor<4x16xf32> {fp8.path = "result[2]", fp8.state = "b"}, tensor<4x16xf32> {fp8.kind = "loss", fp8.path = "result[3]"}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x4xf32>, tensor<4x16xf32>) -> tensor<32x16xf32>
  %1 = stablehlo.add %w, %0 : tensor<32x16xf32>
  %2 = stablehlo.dot_general %x, %1, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
  %3 = stablehlo.add %w, %g : tensor<32x16xf32>
  return %3, %a, %b, %2 : tensor<32x16xf32>, tensor<32x4xf32>, tensor<4x16xf32>, tensor<4x16xf32>
}
