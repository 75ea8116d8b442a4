// RUN: fp8-opt %s --fp8-target=nvptx=sm_89 | FileCheck %s --check-prefix=ADA
// RUN: fp8-opt %s --fp8-target=nvptx=sm_90a | FileCheck %s --check-prefix=HOPPER
// RUN: fp8-opt %s --fp8-target=nvptx=sm_120a --fp8-target | FileCheck %s --check-prefix=BLACKWELL
// RUN: not fp8-opt %s --fp8-target=nvptx=sm_70 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not fp8-opt %s --fp8-target="nvptx=sm_89 cpu=znver4" 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not fp8-opt %s --fp8-target=nvptx=sm_90a --fp8-lower-kernels 2>&1 | FileCheck %s --check-prefix=NO-CPU
// RUN: not fp8-opt %s --fp8-target=cpu=znver4 --fp8-plan-blocks 2>&1 | FileCheck %s --check-prefix=NO-GPU

// ADA: module attributes {fp8.target = #fp8.gpu_target<chip = "sm_89", features = "+ptx84">}
// HOPPER: module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84">}
// BLACKWELL: module attributes {fp8.target = #fp8.gpu_target<chip = "sm_120a", features = "+ptx87">}
// UNKNOWN: expected an NVIDIA GPU of sm_89, sm_90a, sm_100a, sm_120a but got 'sm_70'
// BOTH: expected either a CPU or a GPU but got both: 'znver4' and 'sm_89'
// NO-CPU: expected a #fp8.cpu_target but got #fp8.gpu_target<chip = "sm_90a"
// NO-GPU: expected a #fp8.gpu_target but got #fp8.cpu_target<
module {}
