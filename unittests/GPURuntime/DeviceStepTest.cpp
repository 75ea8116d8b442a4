//===- DeviceStepTest.cpp - Steps on a GPU --------------------------------===//

#include "TestKernels.h"
#include "TestSupport.h"

#include <cstring>
#include <numeric>

using namespace fp8::test;

namespace {

constexpr int64_t elements = 64;

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

// External buffers: 0 the state x, 1 the batch y, 2 the loss, 3 a large result,
// 4 a constant.
void step(fp8_step *step) {
  start(step, 0, add, 2, {~0, ~1});
  // The constant is two vectors; the loop adds the one, then the other.
  for (int64_t i = 0; i < 2; ++i) {
    int64_t offsets[] = {0, i * elements * 4};
    start(step, 1, add, 2, {~0, ~4}, offsets);
  }
  start(step, 2, sum, 1, {~0, ~2});
  // A scalar that the schedule writes, and a kernel that counts on.
  uint64_t seven = 7ull << 32 | 5;
  fp8_write(step, 128, 4, 8, &seven);
  start(step, 3, count, 1, {132});
  start(step, 3, count, 1, {136});
  uint8_t byte = 1;
  fp8_write(step, 136, 1, 1, &byte);
  start(step, 4, count, 1, {136});
  // Clears part of the large result, then copies what the arena holds.
  uint32_t zero = 0;
  for (int64_t i = 0; i < 2048; ++i)
    fp8_write(step, ~3, i * 4, 4, &zero);
  int64_t offsets[] = {0, 0};
  start(step, 5, add, 2, {~3, ~0}, offsets);
}

/// Counts at 0 until the GPU says 5: the host has to read it.
void loop(fp8_step *step) {
  uint32_t zero = 0;
  fp8_write(step, 0, 0, 4, &zero);
  uint32_t value = 0;
  do {
    start(step, 0, count, 1, {0});
    std::memcpy(&value, fp8_read(step, 0, 0, 4), 4);
  } while (value < 5);
  start(step, 1, count, 1, {~0});
}

std::vector<float> ramp(int64_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// A function with the kernels above.
struct Function {
  explicit Function(const char *name, fp8_entry_fn entry)
      : builder(name, entry), constant(ramp(2 * elements, 1000)),
        constants{{constant.data(),
                   static_cast<int64_t>(constant.size() * sizeof(float))}} {
    builder.desc.arena_bytes = 4096;
    builder.desc.scratch_bytes = 256;
    builder.desc.gpu_kernels = kernels;
    builder.desc.num_gpu_kernels = 4;
    builder.desc.constants = constants;
    builder.desc.num_constants = 1;
    builder.desc.launch_names = names;
    builder.desc.num_launches = 6;
  }
  Builder builder;
  std::vector<float> constant;
  fp8_constant constants[1];
  const fp8_gpu_kernel *kernels[4] = {&add, &sum, &count, &race};
  const char *names[6] = {"add batch", "add constant", "loss",
                          "count",     "count again",  "large"};
};

struct Trained : Function {
  explicit Trained(fp8_entry_fn entry = step, int32_t ownBuffer = 0)
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

} // namespace

TEST(Step, RunsAgainAndAgain) {
  Trained function;
  Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  ASSERT_EQ(fp8_step_create(executable, 0, &step), FP8_OK) << fp8_last_error();
  std::vector<float> x = ramp(elements, 0.5f);
  std::copy(x.begin(), x.end(), argument<float>(step, 0));
  for (int run = 0; run < 5; ++run) {
    std::vector<float> y = ramp(elements, static_cast<float>(run * 10));
    std::copy(y.begin(), y.end(), argument<float>(step, 1));
    ASSERT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
    float loss = 0;
    for (int64_t i = 0; i < elements; ++i) {
      x[i] += y[i];
      x[i] += function.constant[i];
      x[i] += function.constant[elements + i];
      loss += x[i];
    }
    EXPECT_EQ(*result<float>(step, 1), loss) << run;
    // A look at the state costs a copy and changes nothing.
    if (run % 2) {
      float *state = argument<float>(step, 0);
      EXPECT_EQ(std::vector<float>(state, state + elements), x);
    }
    float *large = result<float>(step, 2);
    EXPECT_EQ(std::vector<float>(large, large + elements), x);
    EXPECT_EQ(large[elements], 0);
  }
  fp8_step_destroy(step);
}

TEST(Step, TwoStepsHaveTheirOwnMemory) {
  Trained function;
  Executable executable(function.builder.build());
  fp8_step *steps[2] = {};
  for (fp8_step *&step : steps) {
    ASSERT_EQ(fp8_step_create(executable, 0, &step), FP8_OK);
    bool isSecond = &step == &steps[1];
    std::fill_n(argument<float>(step, 0), elements, isSecond ? 3.0f : 1.0f);
    std::fill_n(argument<float>(step, 1), elements, 0.0f);
  }
  for (fp8_step *step : steps)
    ASSERT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
  EXPECT_EQ(*result<float>(steps[1], 1) - *result<float>(steps[0], 1),
            2 * elements);
  for (fp8_step *step : steps)
    fp8_step_destroy(step);
}

TEST(Step, ReadsWhatTheGpuComputes) {
  Function function("loop", loop);
  function.builder.arg("n", FP8_DTYPE_I32, {}, FP8_ROLE_STATE)
      .result("n", FP8_DTYPE_I32, {}, FP8_KIND_STATE, 0);
  Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  ASSERT_EQ(fp8_step_create(executable, 0, &step), FP8_OK) << fp8_last_error();
  *argument<int32_t>(step, 0) = 40;
  for (int run = 1; run < 4; ++run) {
    ASSERT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
    EXPECT_EQ(*argument<int32_t>(step, 0), 40 + run);
  }
  fp8_step_destroy(step);
}

TEST(Step, MeasuresItsLaunches) {
  Trained function;
  Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  ASSERT_EQ(fp8_step_create(executable, 0, &step), FP8_OK);
  std::fill_n(argument<float>(step, 0), elements, 0.0f);
  std::fill_n(argument<float>(step, 1), elements, 0.0f);
  ASSERT_EQ(fp8_step_run(step), FP8_OK);
  float loss = *result<float>(step, 1);
  fp8_step_set_profile(step, 1);
  ASSERT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
  EXPECT_EQ(*result<float>(step, 1), 2 * loss);
  int64_t launches = 0;
  const fp8_launch_stat *stats = fp8_step_profile(step, &launches);
  ASSERT_EQ(launches, 6);
  EXPECT_STREQ(stats[1].name, "add constant");
  EXPECT_EQ(stats[1].runs, 2);
  fp8_step_destroy(step);
}

//===----------------------------------------------------------------------===//
// What can be missing
//===----------------------------------------------------------------------===//

static std::string failureOf(Function &function) {
  Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  EXPECT_NE(fp8_step_create(executable, 0, &step), FP8_OK);
  EXPECT_EQ(step, nullptr);
  return fp8_last_error();
}

TEST(Missing, Driver) {
  Trained function;
  std::string text = failureOf(function);
  EXPECT_EQ(text.find("the code is for an NVIDIA GPU, but there is none: "), 0u)
      << text;
  EXPECT_NE(text.find("libcuda.so.1"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

TEST(Missing, Device) {
  Trained function;
  EXPECT_EQ(failureOf(function),
            "the code is for an NVIDIA GPU, but there is none: the driver says "
            "CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)");
}

TEST(Missing, Memory) {
  Trained function;
  EXPECT_EQ(failureOf(function),
            "'step' needs 13.8 KiB of GPU memory, but GPU emulator has 4.0 KiB "
            "free of 4.0 KiB");
}

//===----------------------------------------------------------------------===//
// What can go wrong
//===----------------------------------------------------------------------===//

/// What is said of a function whose entry is `entry`.
static std::string faultOf(fp8_entry_fn entry) {
  Trained function(entry);
  Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  EXPECT_EQ(fp8_step_create(executable, 0, &step), FP8_OK) << fp8_last_error();
  EXPECT_NE(fp8_step_run(step), FP8_OK);
  std::string text = fp8_last_error();
  // What comes after is told as well, and nothing hangs.
  EXPECT_NE(fp8_step_run(step), FP8_OK);
  fp8_step_destroy(step);
  return text;
}

static void beyondTheEnd(fp8_step *step) {
  start(step, 0, add, 2, {~0, ~1});
  int64_t offsets[] = {1 << 20};
  start(step, 3, count, 1, {0}, offsets);
}

TEST(Fault, OutOfBounds) {
  EXPECT_EQ(faultOf(beyondTheEnd),
            "launch 3 (count) of 'step': the GPU cannot run launch 3 (count) "
            "of 'step': CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access "
            "was encountered)");
}

static void racing(fp8_step *step) { start(step, 2, race, 1, {0}); }

TEST(Fault, Race) {
  EXPECT_NE(faultOf(racing).find("CUDA_ERROR_LAUNCH_FAILED"),
            std::string::npos);
}

static void unwritten(fp8_step *step) { start(step, 3, count, 1, {64}); }

TEST(Fault, Unwritten) {
  EXPECT_NE(faultOf(unwritten).find("launch 3 (count) of 'step'"),
            std::string::npos);
}

static void wrongOperands(fp8_step *step) { start(step, 3, count, 1, {0, 4}); }

TEST(Fault, BadOperands) {
  EXPECT_NE(faultOf(wrongOperands)
                .find("launch 3 (count) of 'step' has 2 operands and 1 blocks, "
                      "but kernel 'count' takes 1"),
            std::string::npos);
}

TEST(Fault, IsToldLater) {
  Trained function(racing);
  Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  ASSERT_EQ(fp8_step_create(executable, 0, &step), FP8_OK);
  EXPECT_EQ(fp8_step_run(step), FP8_OK);
  EXPECT_EQ(fp8_step_result(step, 1), nullptr);
  EXPECT_NE(std::string(fp8_last_error()).find("run 'step'"), std::string::npos)
      << fp8_last_error();
  fp8_step_destroy(step);
}

/// Of a function whose one kernel is `kernel`.
static std::string loadingFailureOf(fp8_gpu_kernel kernel) {
  Trained function;
  const fp8_gpu_kernel *kernels[] = {&kernel};
  function.builder.desc.gpu_kernels = kernels;
  function.builder.desc.num_gpu_kernels = 1;
  return failureOf(function);
}

TEST(Fault, BadImage) {
  fp8_gpu_kernel kernel = add;
  std::string ptx = ".version 8.4\n.target sm_90a\n";
  kernel.image = ptx.data();
  kernel.image_bytes = static_cast<int64_t>(ptx.size());
  EXPECT_EQ(loadingFailureOf(kernel),
            "the GPU cannot load kernel 'add': CUDA_ERROR_NO_BINARY_FOR_GPU "
            "(no kernel image is available for execution on the device); it is "
            "GPU emulator (compute capability 8.9): the GPU emulator loads "
            "LLVM IR for nvptx64, but this image is machine code or PTX");
}

TEST(Fault, BadName) {
  fp8_gpu_kernel kernel = add;
  kernel.name = "missing";
  EXPECT_EQ(loadingFailureOf(kernel),
            "the GPU cannot find kernel 'missing' of 'step' in its image: "
            "CUDA_ERROR_NOT_FOUND (named symbol not found)");
}

TEST(Fault, TooMuchShared) {
  fp8_gpu_kernel kernel = add;
  kernel.shared_bytes = 1 << 20;
  EXPECT_NE(loadingFailureOf(kernel).find("give kernel 'add' of 'step' 1048576 "
                                          "bytes of shared memory a block"),
            std::string::npos);
}
