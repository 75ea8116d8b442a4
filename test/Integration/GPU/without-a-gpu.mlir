// Without a GPU, a run for one says so in one line and goes to the CPU. A
// package is made for another machine.
// RUN: env LD_LIBRARY_PATH=%fp8_obj_root/test/emulator FP8_EMULATOR_DEVICES=0 fp8-run %s --entry main --recipe none --target nvptx:sm_90a --outputs %t.safetensors > %t.out 2>&1
// RUN: FileCheck %s --input-file %t.out
// RUN: fp8-run %s --entry main --recipe none --outputs %t.cpu.safetensors
// RUN: cmp %t.safetensors %t.cpu.safetensors
// RUN: env LD_LIBRARY_PATH=%fp8_obj_root/test/emulator FP8_EMULATOR_CAPABILITY=90 fp8-run %s --entry main --recipe none --target nvptx:sm_90a --gpu-image bitcode --outputs %t.safetensors 2>&1 | FileCheck %s --check-prefix=GPU --allow-empty

// CHECK: {{^}}fp8-run: warning: the code is for an NVIDIA GPU, but there is none: the driver says {{.*}}; it is compiled for the CPU instead{{$}}
// CHECK-NOT: warning
// GPU-NOT: warning
func.func @main() -> tensor<4x8xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<4x8xf32>
  %1 = stablehlo.multiply %0, %0 : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
