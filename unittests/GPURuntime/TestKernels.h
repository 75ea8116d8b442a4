//===- TestKernels.h - Kernels of the tests' steps --------------*- C++ -*-===//

#ifndef FP8_UNITTESTS_GPURUNTIME_TESTKERNELS_H
#define FP8_UNITTESTS_GPURUNTIME_TESTKERNELS_H

#include "fp8-c/Runtime.h"

#include <string>
#include <vector>

namespace fp8::test {

/// add: x += y, in blocks of 32 threads, with y in scratch memory. sum: s =
/// x[0] + .. + x[63] in one thread. count: n += 1. add_sets: x += y for sets of
/// operands.
inline const std::string image = R"(
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
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
define ptx_kernel void @moving(ptr %x, ptr %y, ptr %counters, i64 %xo, i64 %xi, i64 %yo, i64 %yi) {
  %po = getelementptr i64, ptr %counters, i64 1
  %o = load i64, ptr %counters, align 8
  %i = load i64, ptr %po, align 8
  %xo1 = mul i64 %xo, %o
  %xi1 = mul i64 %xi, %i
  %xb = add i64 %xo1, %xi1
  %yo1 = mul i64 %yo, %o
  %yi1 = mul i64 %yi, %i
  %yb = add i64 %yo1, %yi1
  %px = getelementptr i8, ptr %x, i64 %xb
  %py = getelementptr i8, ptr %y, i64 %yb
  %v = load float, ptr %px, align 4
  %w = load float, ptr %py, align 4
  %z = fadd float %v, %w
  store float %z, ptr %px, align 4
  ret void
}
define ptx_kernel void @less(ptr %n, ptr %limit, ptr %flag) {
  %v = load i32, ptr %n, align 4
  %l = load i32, ptr %limit, align 4
  %is = icmp slt i32 %v, %l
  %byte = zext i1 %is to i8
  store i8 %byte, ptr %flag, align 1
  ret void
}
define ptx_kernel void @add_sets(ptr %table) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %set = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %first = mul i32 %b, 32
  %i = add i32 %first, %t
  %row = getelementptr [2 x i64], ptr %table, i32 %set
  %second = getelementptr i64, ptr %row, i32 1
  %x = load ptr, ptr %row, align 8
  %y = load ptr, ptr %second, align 8
  %px = getelementptr float, ptr %x, i32 %i
  %py = getelementptr float, ptr %y, i32 %i
  %v = load float, ptr %px, align 4
  %w = load float, ptr %py, align 4
  %z = fadd float %v, %w
  store float %z, ptr %px, align 4
  ret void
}
define ptx_kernel void @race(ptr %n) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  store i32 %t, ptr %n, align 4
  ret void
}
)";

/// The control kernels in fp8-plan-graph's form (for integers of 1 and 4
/// bytes).
inline const std::string controlImage = R"(
target triple = "nvptx64-nvidia-cuda"
declare void @cudaGraphSetConditional(i64, i32)
define ptx_kernel void @count_loop(ptr %counter, i64 %next, i64 %trips, i64 %handle) {
  %starts = icmp eq i64 %next, 0
  br i1 %starts, label %store, label %add
add:
  %old = load i64, ptr %counter, align 8
  %new = add i64 %old, 1
  br label %store
store:
  %value = phi i64 [0, %0], [%new, %add]
  store i64 %value, ptr %counter, align 8
  %more = icmp slt i64 %value, %trips
  %go = zext i1 %more to i32
  call void @cudaGraphSetConditional(i64 %handle, i32 %go)
  ret void
}
define ptx_kernel void @keep(ptr %condition, ptr %from, i64 %bytes, ptr %counters, i64 %s0, i64 %s1, i64 %s2, i64 %s3) {
  %c0 = load i64, ptr %counters, align 8
  %m0 = mul i64 %c0, %s0
  %at = getelementptr i8, ptr %from, i64 %m0
  %isByte = icmp eq i64 %bytes, 1
  br i1 %isByte, label %byte, label %word
byte:
  %b = load i8, ptr %at, align 1
  %b1 = sext i8 %b to i64
  br label %store
word:
  %w = load i32, ptr %at, align 4
  %w1 = sext i32 %w to i64
  br label %store
store:
  %value = phi i64 [%b1, %byte], [%w1, %word]
  store i64 %value, ptr %condition, align 8
  ret void
}
define ptx_kernel void @test(ptr %condition, i64 %low, i64 %high, i64 %inverted, i64 %handle) {
  %value = load i64, ptr %condition, align 8
  %above = icmp sle i64 %low, %value
  %below = icmp sle i64 %value, %high
  %inside = and i1 %above, %below
  %flip = trunc i64 %inverted to i1
  %holds = xor i1 %inside, %flip
  %go = zext i1 %holds to i32
  call void @cudaGraphSetConditional(i64 %handle, i32 %go)
  ret void
}
define ptx_kernel void @put(ptr %to, i64 %bytes, ptr %counters, i64 %s0, i64 %s1, i64 %s2, i64 %s3, i64 %value, i64 %v0, i64 %v1, i64 %v2, i64 %v3) {
  %p1 = getelementptr i64, ptr %counters, i64 1
  %c0 = load i64, ptr %counters, align 8
  %c1 = load i64, ptr %p1, align 8
  %m0 = mul i64 %c0, %v0
  %m1 = mul i64 %c1, %v1
  %a0 = add i64 %value, %m0
  %a1 = add i64 %a0, %m1
  %word = trunc i64 %a1 to i32
  store i32 %word, ptr %to, align 4
  ret void
}
)";

inline fp8_gpu_kernel kernelOf(const char *name, int threads, int operands,
                               int64_t scratch = 0,
                               const std::string &code = image) {
  fp8_gpu_kernel kernel = {};
  kernel.name = name;
  kernel.image = code.data();
  kernel.image_bytes = static_cast<int64_t>(code.size());
  kernel.threads = threads;
  kernel.num_operands = operands;
  kernel.scratch_bytes = scratch;
  return kernel;
}

inline const fp8_gpu_kernel add = kernelOf("add", 32, 2, 128),
                            sum = kernelOf("sum", 1, 2),
                            count = kernelOf("count", 1, 1),
                            race = kernelOf("race", 32, 1),
                            less = kernelOf("less", 1, 3),
                            countLoop =
                                kernelOf("count_loop", 1, 4, 0, controlImage),
                            keep = kernelOf("keep", 1, 8, 0, controlImage),
                            test = kernelOf("test", 1, 5, 0, controlImage),
                            put = kernelOf("put", 1, 12, 0, controlImage),
                            addSets =
                                [] {
                                  fp8_gpu_kernel kernel =
                                      kernelOf("add_sets", 32, 2);
                                  kernel.takes_sets = 1;
                                  return kernel;
                                }(),
                            moving = [] {
                              fp8_gpu_kernel kernel = kernelOf("moving", 1, 2);
                              kernel.loops = 2;
                              return kernel;
                            }();

inline void start(fp8_step *step, int64_t number, const fp8_gpu_kernel &kernel,
                  int64_t blocks, std::vector<int64_t> operands,
                  const int64_t *offsets = nullptr) {
  fp8_launch(
      step, number,
      reinterpret_cast<fp8_kernel_fn>(const_cast<fp8_gpu_kernel *>(&kernel)),
      blocks, operands.data(), offsets, static_cast<int64_t>(operands.size()));
}

inline void startSets(fp8_step *step, int64_t number,
                      const fp8_gpu_kernel &kernel, int64_t blocks,
                      std::vector<int64_t> operands, int64_t sets) {
  fp8_launch_sets(
      step, number,
      reinterpret_cast<fp8_kernel_fn>(const_cast<fp8_gpu_kernel *>(&kernel)),
      blocks, operands.data(), nullptr,
      static_cast<int64_t>(operands.size()) / sets, sets);
}

} // namespace fp8::test

#endif // FP8_UNITTESTS_GPURUNTIME_TESTKERNELS_H
