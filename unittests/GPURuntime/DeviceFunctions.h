//===- DeviceFunctions.h - Functions for an emulated GPU --------*- C++ -*-===//

#ifndef FP8_UNITTESTS_GPURUNTIME_DEVICEFUNCTIONS_H
#define FP8_UNITTESTS_GPURUNTIME_DEVICEFUNCTIONS_H

#include "TestKernels.h"
#include "TestSupport.h"

#include <cstdlib>
#include <dlfcn.h>
#include <numeric>

namespace fp8::test {

constexpr int64_t elements = 64;

// External buffers: 0 the state x, 1 the batch y, 2 the loss, 3 a large result,
// 4 a constant.
inline void trainEntry(fp8_step *step) {
  start(step, 0, add, 2, {~0, ~1});
  // The constant is two vectors; the loop adds one after the other.
  for (int64_t i = 0; i < 2; ++i) {
    int64_t offsets[] = {0, i * elements * 4};
    start(step, 1, add, 2, {~0, ~4}, offsets);
  }
  start(step, 2, sum, 1, {~0, ~2});
  // A scalar that the schedule writes and a kernel increments.
  uint64_t seven = 7ull << 32 | 5;
  fp8_write(step, 128, 4, 8, &seven);
  start(step, 3, count, 1, {132});
  start(step, 3, count, 1, {136});
  uint8_t byte = 1;
  fp8_write(step, 136, 1, 1, &byte);
  start(step, 4, count, 1, {136});
  // Clears part of the large result, then adds the state to it.
  uint32_t zero = 0;
  for (int64_t i = 0; i < 2048; ++i)
    fp8_write(step, ~3, i * 4, 4, &zero);
  int64_t offsets[] = {0, 0};
  start(step, 5, add, 2, {~3, ~0}, offsets);
}

inline std::vector<float> ramp(int64_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// A function with the kernels of TestKernels.h.
struct Function {
  explicit Function(const char *name, fp8_entry_fn entry)
      : builder(name, entry), constant(ramp(2 * elements, 1000)),
        constants{{constant.data(),
                   static_cast<int64_t>(constant.size() * sizeof(float))}} {
    builder.desc.arena_bytes = 4096;
    builder.desc.scratch_bytes = 256;
    builder.desc.gpu_kernels = kernels;
    builder.desc.num_gpu_kernels = std::size(kernels);
    builder.desc.constants = constants;
    builder.desc.num_constants = 1;
    builder.desc.launch_names = names;
    builder.desc.num_launches = 6;
  }
  Builder builder;
  std::vector<float> constant;
  fp8_constant constants[1];
  const fp8_gpu_kernel *kernels[11] = {&add,  &sum,    &count,  &race,
                                       &less, &keep,   &test,   &countLoop,
                                       &put,  &moving, &addSets};
  const char *names[6] = {"add batch", "add constant", "loss",
                          "count",     "count again",  "large"};
};

struct Trained : Function {
  explicit Trained(fp8_entry_fn entry = trainEntry, int32_t ownBuffer = 0)
      : Function("step", entry) {
    builder.arg("x", FP8_DTYPE_F32, {elements}, FP8_ROLE_STATE)
        .arg("y", FP8_DTYPE_F32, {elements}, FP8_ROLE_BATCH)
        .result("x", FP8_DTYPE_F32, {elements}, FP8_KIND_STATE, 0, ownBuffer)
        .result("loss", FP8_DTYPE_F32, {}, FP8_KIND_LOSS)
        .result("large", FP8_DTYPE_F32, {2048}, FP8_KIND_OUTPUT);
  }
};

template <typename T> T *argument(fp8_step *step, int64_t index) {
  void *address = fp8_step_argument(step, index);
  EXPECT_NE(address, nullptr) << fp8_last_error();
  return static_cast<T *>(address);
}

template <typename T> T *result(fp8_step *step, int64_t index) {
  void *address = fp8_step_result(step, index);
  EXPECT_NE(address, nullptr) << fp8_last_error();
  return static_cast<T *>(address);
}

/// The emulated driver's counts of actions (its fp8_emulator_counts).
struct Counts {
  uint64_t graphs, kernels, waits, pageable, branches, iterations, overlaps;
};

inline Counts driverCounts() {
  Counts counts = {};
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  auto *ask = reinterpret_cast<void (*)(Counts *)>(
      dlsym(driver, "fp8_emulator_counts"));
  if (ask)
    ask(&counts);
  return counts;
}

/// With FP8_GPU_CHECK launches are made one by one, and the GPU decides
/// nothing.
inline bool isChecked() { return std::getenv("FP8_GPU_CHECK") != nullptr; }

} // namespace fp8::test

#endif // FP8_UNITTESTS_GPURUNTIME_DEVICEFUNCTIONS_H
