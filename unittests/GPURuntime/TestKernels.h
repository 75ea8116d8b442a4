//===- TestKernels.h - Kernels that steps of tests launch -------*- C++ -*-===//

#ifndef FP8_UNITTESTS_GPURUNTIME_TESTKERNELS_H
#define FP8_UNITTESTS_GPURUNTIME_TESTKERNELS_H

#include "fp8-c/Runtime.h"

#include <string>
#include <vector>

namespace fp8::test {

/// add: x += y, by blocks of 32 threads; its scratch memory holds y meanwhile.
/// sum: s = x[0] + .. + x[63] in one thread. count: n += 1.
inline const std::string image = R"(
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
define ptx_kernel void @add(ptr %x, ptr %y, ptr %scratch) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %first = mul i32 %b, 32
  %i = add i32 %first, %t
  %px = getelementptr float, ptr %x, i32 %i
  %py = getelementptr float, ptr %y, i32 %i
  %ps = getelementptr float, ptr %scratch, i32 %i
  %v = load float, ptr %px, align 4
  %w = load float, ptr %py, align 4
  store float %w, ptr %ps, align 4
  %w2 = load float, ptr %ps, align 4
  %z = fadd float %v, %w2
  store float %z, ptr %px, align 4
  ret void
}
define ptx_kernel void @sum(ptr %x, ptr %s) {
entry:
  br label %loop
loop:
  %i = phi i32 [0, %entry], [%i1, %loop]
  %a = phi float [0.0, %entry], [%a1, %loop]
  %p = getelementptr float, ptr %x, i32 %i
  %v = load float, ptr %p, align 4
  %a1 = fadd float %a, %v
  %i1 = add i32 %i, 1
  %go = icmp ult i32 %i1, 64
  br i1 %go, label %loop, label %done
done:
  store float %a1, ptr %s, align 4
  ret void
}
define ptx_kernel void @count(ptr %n) {
  %v = load i32, ptr %n, align 4
  %v1 = add i32 %v, 1
  store i32 %v1, ptr %n, align 4
  ret void
}
define ptx_kernel void @race(ptr %n) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  store i32 %t, ptr %n, align 4
  ret void
}
)";

inline fp8_gpu_kernel kernelOf(const char *name, int threads, int operands,
                               int64_t scratch = 0) {
  fp8_gpu_kernel kernel = {};
  kernel.name = name;
  kernel.image = image.data();
  kernel.image_bytes = static_cast<int64_t>(image.size());
  kernel.threads = threads;
  kernel.num_operands = operands;
  kernel.scratch_bytes = scratch;
  return kernel;
}

inline const fp8_gpu_kernel add = kernelOf("add", 32, 2, 128),
                            sum = kernelOf("sum", 1, 2),
                            count = kernelOf("count", 1, 1),
                            race = kernelOf("race", 32, 1);

inline void start(fp8_step *step, int64_t number, const fp8_gpu_kernel &kernel,
                  int64_t blocks, std::vector<int64_t> operands,
                  const int64_t *offsets = nullptr) {
  fp8_launch(
      step, number,
      reinterpret_cast<fp8_kernel_fn>(const_cast<fp8_gpu_kernel *>(&kernel)),
      blocks, operands.data(), offsets, static_cast<int64_t>(operands.size()));
}

} // namespace fp8::test

#endif // FP8_UNITTESTS_GPURUNTIME_TESTKERNELS_H
