// The example's whole step: every linear layer of its six blocks in FP8 in all
// three dots, everything else accounted for.
//
// RUN: fp8-opt %fp8_src_root/examples/llama/step.mlir --fp8-import \
// RUN:   --fp8-quantize="recipe=tensorwise report=%t.json fail-on-fallback" -o %t.mlir
// RUN: FileCheck %s --input-file=%t.json
// RUN: grep -c " fp8.quantize " %t.mlir | FileCheck %s --check-prefix=QUANTIZE
// RUN: grep -c " fp8.dot_general " %t.mlir | FileCheck %s --check-prefix=DOT
// RUN: fp8-opt %t.mlir --fp8-verify-quantized -o /dev/null
// RUN: fp8-opt %fp8_src_root/examples/llama/step.mlir --fp8-import \
// RUN:   --fp8-quantize="recipe=none report=%t.none.json" -o /dev/null
// RUN: FileCheck %s --input-file=%t.none.json --check-prefix=NONE

// Seven weights a block, three dots each.
// CHECK: "summary": "126 of 165 dots in FP8; 36 attention, 3 head"
// CHECK: "fallback": 0
// DOT: {{^126$}}

// A block quantizes 7 weights, 4 activations (into query, key and value; into
// the output projection; into gate and up; into down) and 7 output gradients.
// QUANTIZE: {{^108$}}

// NONE: "summary": "0 of 165 dots in FP8; 126 linear layers kept in high precision, 36 attention, 3 head"
