// RUN: fp8-opt %s --fp8-target=cpu=x86-64-v3 | FileCheck %s --check-prefix=V3
// RUN: fp8-opt %s --fp8-target=cpu=x86-64-v2 | FileCheck %s --check-prefix=V2
// RUN: fp8-opt %s --fp8-target=cpu=znver4 | FileCheck %s --check-prefix=ZEN
// RUN: fp8-opt %s --fp8-target=cpu=neoverse-v2 | FileCheck %s --check-prefix=ARM
// RUN: fp8-opt %s --fp8-target=cpu=native | FileCheck %s --check-prefix=NATIVE
// RUN: fp8-opt %s --fp8-target=cpu=x86-64-v3 --fp8-target | FileCheck %s --check-prefix=V3
// RUN: fp8-opt %s --fp8-target=cpu=x86-64-v3 --fp8-target=cpu=znver4 | FileCheck %s --check-prefix=ZEN
// RUN: not fp8-opt %s --fp8-target=cpu=i860 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// V2: module attributes {fp8.target = #fp8.cpu_target<triple = "x86_64-unknown-linux-gnu", cpu = "x86-64-v2", features = "", vector_bits = 128>}
// V3: module attributes {fp8.target = #fp8.cpu_target<triple = "x86_64-unknown-linux-gnu", cpu = "x86-64-v3", features = "", vector_bits = 256>}
// ZEN: module attributes {fp8.target = #fp8.cpu_target<triple = "x86_64-unknown-linux-gnu", cpu = "znver4", features = "", vector_bits = 512>}
// ARM: module attributes {fp8.target = #fp8.cpu_target<triple = "aarch64-unknown-linux-gnu", cpu = "neoverse-v2", features = "", vector_bits = 128>}
// NATIVE: module attributes {fp8.target = #fp8.cpu_target<triple = "{{.+}}", cpu = "{{.+}}", features = "{{.+}}", vector_bits = {{128|256|512}}>}
// UNKNOWN: expected 'native' or a CPU that LLVM knows (x86-64-v2, x86-64-v3, x86-64-v4, znver4, sapphirerapids, neoverse-v2, ...) but got 'i860'
module {}
