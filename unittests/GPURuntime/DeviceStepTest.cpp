//===- DeviceStepTest.cpp - Steps on a GPU --------------------------------===//

#include "TestKernels.h"
#include "TestSupport.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
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

/// Counts from 0 until the GPU returns 5: the host must read the value.
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
    // Reading the state costs a copy and changes nothing.
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

TEST(Step, TheNextBatchIsWrittenWhileAStepRuns) {
  Trained function;
  Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  ASSERT_EQ(fp8_step_create(executable, 0, &step), FP8_OK) << fp8_last_error();
  std::vector<float> x(elements);
  std::copy(x.begin(), x.end(), argument<float>(step, 0));
  auto feed = [&](int run) {
    std::vector<float> y = ramp(elements, static_cast<float>(run * 10));
    std::copy(y.begin(), y.end(), argument<float>(step, 1));
    ASSERT_EQ(fp8_step_stage(step), FP8_OK) << fp8_last_error();
  };
  feed(0);
  for (int run = 0; run < 6; ++run) {
    ASSERT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
    feed(run + 1);
    // Stages again after writing once more.
    if (run % 2)
      feed(run + 1);
    std::vector<float> y = ramp(elements, static_cast<float>(run * 10));
    float loss = 0;
    for (int64_t i = 0; i < elements; ++i) {
      x[i] += y[i];
      x[i] += function.constant[i];
      x[i] += function.constant[elements + i];
      loss += x[i];
    }
    // Some results are not read before the next step starts.
    if (run % 3)
      EXPECT_EQ(*result<float>(step, 1), loss) << run;
  }
  float *state = argument<float>(step, 0);
  EXPECT_EQ(std::vector<float>(state, state + elements), x);
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

/// Adds the batch to the state and the constant to the large result, in one
/// launch.
static void addTwoSets(fp8_step *step) {
  uint32_t zero = 0;
  for (int64_t i = 0; i < elements; ++i)
    fp8_write(step, ~3, i * 4, 4, &zero);
  startSets(step, 1, addSets, 2, {~0, ~1, ~3, ~4}, 2);
  start(step, 2, sum, 1, {~0, ~2});
}

TEST(Step, RunsSetsOfOperands) {
  Trained function(addTwoSets);
  Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  ASSERT_EQ(fp8_step_create(executable, 0, &step), FP8_OK) << fp8_last_error();
  std::vector<float> x = ramp(elements, 0.5f);
  std::copy(x.begin(), x.end(), argument<float>(step, 0));
  for (int run = 0; run < 4; ++run) {
    std::vector<float> y = ramp(elements, static_cast<float>(run * 10));
    std::copy(y.begin(), y.end(), argument<float>(step, 1));
    fp8_step_set_profile(step, run == 2);
    ASSERT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
    float loss = 0;
    for (int64_t i = 0; i < elements; ++i) {
      x[i] += y[i];
      loss += x[i];
    }
    EXPECT_EQ(*result<float>(step, 1), loss) << run;
    float *large = result<float>(step, 2);
    EXPECT_EQ(std::vector<float>(large, large + elements),
              ramp(elements, 1000));
    int64_t launches = 0;
    const fp8_launch_stat *stats = fp8_step_profile(step, &launches);
    if (run == 2 && launches == 3)
      EXPECT_EQ(stats[1].tasks, 4);
    EXPECT_EQ(launches, run == 2 ? 3 : 0);
  }
  fp8_step_destroy(step);
}

//===----------------------------------------------------------------------===//
// Control flow on the GPU
//===----------------------------------------------------------------------===//

namespace {

/// The emulated driver's counts of actions (its fp8_emulator_counts).
struct Counts {
  uint64_t graphs, kernels, waits, pageable, branches, iterations, overlaps;
};

Counts driverCounts() {
  Counts counts = {};
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  auto *ask = reinterpret_cast<void (*)(Counts *)>(
      dlsym(driver, "fp8_emulator_counts"));
  if (ask)
    ask(&counts);
  return counts;
}

/// Returns how many copies have left or reached memory that is not pinned: the
/// mirrors of state.
uint64_t copiesOfState() { return driverCounts().pageable; }

} // namespace

TEST(Step, IsReadWithoutBeingCopiedBack) {
  Trained function;
  Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  ASSERT_EQ(fp8_step_create(executable, 0, &step), FP8_OK) << fp8_last_error();
  std::fill_n(argument<float>(step, 0), elements, 1.0f);
  std::fill_n(argument<float>(step, 1), elements, 2.0f);
  ASSERT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
  uint64_t copies = copiesOfState();
  float first = *static_cast<const float *>(fp8_step_value(step, 0));
  EXPECT_EQ(first, 1 + 2 + function.constant[0] + function.constant[elements]);
  EXPECT_EQ(copiesOfState(), copies + 1);
  ASSERT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
  EXPECT_EQ(copiesOfState(), copies + 1);
  // What may be written goes back.
  argument<float>(step, 0)[0] = 5;
  ASSERT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
  EXPECT_EQ(copiesOfState(), copies + 3);
  EXPECT_EQ(*static_cast<const float *>(fp8_step_value(step, 0)),
            5 + 2 + function.constant[0] + function.constant[elements]);
  fp8_step_destroy(step);
}

// The state goes from one step to the other on the GPU.
TEST(Step, AnEvaluationLeavesItsStateOnTheGpu) {
  Trained function;
  Executable executable(function.builder.build());
  Function loss("loss",
                [](fp8_step *step) { start(step, 0, sum, 1, {~0, ~2}); });
  loss.builder.arg("x", FP8_DTYPE_F32, {elements}, FP8_ROLE_STATE)
      .arg("y", FP8_DTYPE_F32, {elements}, FP8_ROLE_BATCH)
      .result("loss", FP8_DTYPE_F32, {}, FP8_KIND_LOSS);
  loss.builder.desc.num_constants = 0; // They would be copied, too.
  Executable evaluation(loss.builder.build());
  std::vector<float> rows = ramp(2 * elements, 0);
  int64_t dims[] = {2, elements};
  fp8_tensor_info info = {};
  info.dtype = FP8_DTYPE_F32;
  info.rank = 2;
  info.dims = dims;
  fp8_batch_source source = {"y", nullptr, nullptr, &info, rows.data()};
  fp8_train_options options = {};
  options.step = executable;
  options.eval = evaluation;
  options.eval_batches = &source;
  options.num_eval_batches = 1;
  options.no_signals = 1;
  fp8_step *step = nullptr;
  ASSERT_EQ(fp8_step_create(executable, 0, &step), FP8_OK) << fp8_last_error();
  std::fill_n(argument<float>(step, 0), elements, 1.0f);
  ASSERT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
  uint64_t copies = copiesOfState();
  std::string said;
  auto say = [](void *user, const char *line) {
    *static_cast<std::string *>(user) = line;
  };
  ASSERT_EQ(fp8_evaluate(&options, step, say, &said), FP8_OK)
      << fp8_last_error();
  EXPECT_EQ(copiesOfState(), copies);
  ASSERT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
  EXPECT_EQ(copiesOfState(), copies);
  // The sum of 1 + (1000 + i) + (1064 + i) for i below 64.
  EXPECT_EQ(said, "{\"heldout_loss\":136192.0,\"batches\":2}");
  fp8_step_destroy(step);
}

namespace {

/// With FP8_GPU_CHECK launches are made one by one, and the GPU decides
/// nothing.
bool isChecked() { return std::getenv("FP8_GPU_CHECK") != nullptr; }

// External buffers: 0 the state x[3][4], 1 the batch y[3][4], 2 an integer n,
// 3 the limit of n, 4 numbers[2] that the loops write, 5 the loss.
void decided(fp8_step *step) {
  // x[i][j] += y[i][j], in loops that the GPU counts, twice as long as x is.
  const int64_t rows[] = {16, 4, 16, 4};
  for (int64_t i = 0, is = fp8_loop(step, &countLoop, 3); i < is; ++i) {
    for (int64_t j = 0, js = fp8_loop(step, &countLoop, 4); j < js; ++j) {
      int64_t operands[] = {~0, ~1};
      int64_t offsets[] = {i * 16 + j * 4, i * 16 + j * 4};
      fp8_launch_moving(step, 0, &moving, 1, operands, offsets, rows, 2);
      const int64_t by[] = {100, -1};
      fp8_write_moving(step, &put, ~4, 0, nullptr, 4, 7 + 100 * i - j, by);
    }
    fp8_end(step);
    // A branch decides which of two counters is incremented: i < limit.
    const int64_t by[] = {1};
    fp8_write_moving(step, &put, 0, 0, nullptr, 4, i, by);
    start(step, 1, less, 1, {0, ~3, 64});
    fp8_keep(step, &keep, 0, 64, 0, nullptr, 1);
    // The memory of a condition may be overwritten before the branch.
    uint8_t other = 1;
    fp8_write(step, 64, 0, 1, &other);
    if (fp8_branch(step, &test, 0, 0, 0, 1)) {
      start(step, 3, count, 1, {~4}, std::array<int64_t, 1>{4}.data());
      fp8_end(step);
    }
    if (fp8_branch(step, &test, 0, 0, 0, 0)) {
      start(step, 3, count, 1, {~4}, std::array<int64_t, 1>{8}.data());
      fp8_end(step);
    }
  }
  fp8_end(step);
  for (int64_t i = 0, is = fp8_loop(step, &countLoop, 0); i < is; ++i)
    start(step, 2, race, 1, {0});
  fp8_end(step);
  // while (n < limit) ++n, twice.
  for (int64_t loop = 0; loop < 2; ++loop) {
    for (;;) {
      start(step, 1, less, 1, {~2, ~3, 64});
      fp8_keep(step, &keep, 1, 64, 0, nullptr, 1);
      if (!fp8_while(step, &test, loop, 1, 1, 1, 0))
        break;
      start(step, 3, count, 1, {~2});
    }
    if (loop == 0)
      start(step, 3, count, 1, {~3});
  }
}

struct Decided : Function {
  Decided() : Function("decided", decided) {
    builder.arg("x", FP8_DTYPE_F32, {3, 4}, FP8_ROLE_STATE)
        .arg("y", FP8_DTYPE_F32, {3, 4}, FP8_ROLE_BATCH)
        .arg("n", FP8_DTYPE_I32, {}, FP8_ROLE_STATE)
        .arg("limit", FP8_DTYPE_I32, {}, FP8_ROLE_STATE)
        .arg("numbers", FP8_DTYPE_I32, {3}, FP8_ROLE_STATE)
        .result("x", FP8_DTYPE_F32, {3, 4}, FP8_KIND_STATE, 0)
        .result("n", FP8_DTYPE_I32, {}, FP8_KIND_STATE, 2)
        .result("limit", FP8_DTYPE_I32, {}, FP8_KIND_STATE, 3)
        .result("numbers", FP8_DTYPE_I32, {3}, FP8_KIND_STATE, 4);
  }
};

} // namespace

TEST(Step, LoopsAndBranchesAreTheGPUs) {
  Decided function;
  Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  ASSERT_EQ(fp8_step_create(executable, 0, &step), FP8_OK) << fp8_last_error();
  std::vector<float> x(12);
  int32_t n = 0, taken = 0, left = 0;
  std::fill_n(argument<int32_t>(step, 4), 3, 0);
  for (int run = 0; run < 4; ++run) {
    int32_t limit = run == 2 ? 9 : run;
    std::vector<float> y = ramp(12, static_cast<float>(run));
    std::copy(y.begin(), y.end(), argument<float>(step, 1));
    *argument<int32_t>(step, 3) = limit;
    // A profile makes launches one by one, like FP8_GPU_CHECK.
    fp8_step_set_profile(step, run == 1);
    Counts before = driverCounts();
    ASSERT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
    Counts after = driverCounts();
    bool isGraph = run != 1 && !isChecked();
    EXPECT_EQ(after.graphs - before.graphs, isGraph ? 1u : 0u);
    if (isGraph) {
      EXPECT_EQ(after.kernels, before.kernels) << "all launches are nodes";
      EXPECT_EQ(after.waits, before.waits) << "nothing waits";
    }
    for (int64_t i = 0; i < 12; ++i)
      x[i] += y[i];
    taken += std::min(3, limit);
    left += 3 - std::min(3, limit);
    n = std::max(n, limit + 1);
    float *state = argument<float>(step, 0);
    EXPECT_EQ(std::vector<float>(state, state + 12), x) << run;
    EXPECT_EQ(*argument<int32_t>(step, 2), n) << run;
    EXPECT_EQ(*argument<int32_t>(step, 3), limit + 1) << run;
    int32_t *numbers = argument<int32_t>(step, 4);
    EXPECT_EQ(std::vector<int32_t>(numbers, numbers + 3),
              (std::vector<int32_t>{7 + 200 - 3, taken, left}))
        << run;
  }
  fp8_step_destroy(step);
}

/// Nests more loops than there are counters.
static void tooDeep(fp8_step *step) {
  for (int level = 0; level <= FP8_GPU_LOOPS; ++level)
    fp8_loop(step, &countLoop, 2);
  for (int level = 0; level <= FP8_GPU_LOOPS; ++level)
    fp8_end(step);
}

static void endsTooOften(fp8_step *step) { fp8_end(step); }

TEST(Step, BadControlFlowIsAnError) {
  if (isChecked())
    GTEST_SKIP() << "nothing is decided on the GPU";
  for (auto [entry, text] :
       {std::pair(&tooDeep, "expected at most 4 loops in one another that the "
                            "GPU counts, in 'step'"),
        std::pair(&endsTooOften, "'step' ends a loop or branch that it has not "
                                 "begun")}) {
    Trained function(entry);
    Executable executable(function.builder.build());
    fp8_step *step = nullptr;
    ASSERT_EQ(fp8_step_create(executable, 0, &step), FP8_OK);
    EXPECT_NE(fp8_step_run(step), FP8_OK);
    EXPECT_STREQ(fp8_last_error(), text);
    fp8_step_destroy(step);
  }
}

/// With so many operands the standard library throws.
static const fp8_gpu_kernel tooMany = [] {
  fp8_gpu_kernel kernel = add;
  kernel.num_operands = -1;
  return kernel;
}();
static bool launchesTooMany;

/// No exception may cross generated code, which this stands for.
static void failsOnce(fp8_step *step) noexcept {
  start(step, 0, add, 2, {~0, ~1});
  if (launchesTooMany)
    fp8_launch(
        step, 1,
        reinterpret_cast<fp8_kernel_fn>(const_cast<fp8_gpu_kernel *>(&tooMany)),
        1, nullptr, nullptr, -1);
  start(step, 2, sum, 1, {~0, ~2});
}

TEST(Step, RunsAfterAnExceptionOfTheLibrary) {
  Trained function(failsOnce);
  const fp8_gpu_kernel *kernels[] = {&add, &sum, &tooMany};
  function.builder.desc.gpu_kernels = kernels;
  function.builder.desc.num_gpu_kernels = std::size(kernels);
  Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  ASSERT_EQ(fp8_step_create(executable, 0, &step), FP8_OK) << fp8_last_error();
  launchesTooMany = true;
  EXPECT_EQ(fp8_step_run(step), FP8_ERROR_INTERNAL);
  launchesTooMany = false;
  for (float y : {2.0f, 3.0f}) {
    std::fill_n(argument<float>(step, 0), elements, 1.0f);
    std::fill_n(argument<float>(step, 1), elements, y);
    ASSERT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
    EXPECT_EQ(*result<float>(step, 1), elements * (1 + y));
  }
  fp8_step_destroy(step);
}

//===----------------------------------------------------------------------===//
// Missing drivers and devices
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
  EXPECT_NE(fp8_gpu_find(), FP8_OK);
  EXPECT_EQ(fp8_last_error(), text);
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
            "'step' needs 14.0 KiB of GPU memory, but GPU emulator has 4.0 KiB "
            "free of 4.0 KiB");
}

//===----------------------------------------------------------------------===//
// Nodes in the order of their data
//===----------------------------------------------------------------------===//

static void order(fp8_step *step, int64_t node, std::vector<int64_t> after) {
  fp8_order(step, node, after.data(), static_cast<int64_t>(after.size()));
}

static void countAt(fp8_step *step, int64_t offset) {
  start(step, 3, count, 1, {~3}, &offset);
}

// External buffers as of `step`; two integers lie at byte 400 of the large
// result.
static void ordered(fp8_step *step) {
  order(step, 0, {});
  start(step, 0, add, 2, {~0, ~1});
  order(step, 1, {});
  uint64_t seven = 7ull << 32 | 5;
  fp8_write(step, ~3, 400, 8, &seven);
  order(step, 2, {1});
  countAt(step, 400);
  order(step, 3, {1});
  countAt(step, 404);
  // It reads and writes what node 0 writes, and the same scratch memory.
  order(step, 4, {0});
  start(step, 1, add, 2, {~0, ~4});
  order(step, 5, {4});
  start(step, 2, sum, 1, {~0, ~2});
  // Nothing is launched, so what follows the node follows node 4.
  order(step, 6, {4});
  start(step, 1, add, 0, {~0, ~4});
  order(step, 7, {6});
  start(step, 5, add, 2, {~3, ~0});
  // A loop, with an order in its body.
  order(step, 8, {2, 3});
  for (int64_t i = 0, is = fp8_loop(step, &countLoop, 3); i < is; ++i) {
    order(step, 9, {});
    countAt(step, 400);
    order(step, 10, {});
    countAt(step, 404);
    order(step, 11, {9});
    countAt(step, 400);
  }
  fp8_end(step);
  order(step, 12, {8});
  countAt(step, 400);
  order(step, 13, {5});
  fp8_fetch(step, ~2);
}

TEST(Step, NodesFollowTheirData) {
  Trained function(ordered);
  Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  ASSERT_EQ(fp8_step_create(executable, 0, &step), FP8_OK) << fp8_last_error();
  std::vector<float> x = ramp(elements, 0.5f), large(elements);
  std::copy(x.begin(), x.end(), argument<float>(step, 0));
  for (int run = 0; run < 4; ++run) {
    std::vector<float> y = ramp(elements, static_cast<float>(run * 10));
    std::copy(y.begin(), y.end(), argument<float>(step, 1));
    ASSERT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
    float loss = 0;
    for (int64_t i = 0; i < elements; ++i) {
      x[i] += y[i];
      x[i] += function.constant[i];
      loss += x[i];
      large[i] += x[i];
    }
    EXPECT_EQ(*result<float>(step, 1), loss) << run;
    if (run == 1)
      continue; // The rest is not read before the next run starts.
    const float *found = result<float>(step, 2);
    EXPECT_EQ(std::vector<float>(found, found + elements), large);
    std::array<int32_t, 2> numbers = {};
    std::memcpy(numbers.data(), found + 100, sizeof(numbers));
    EXPECT_EQ(numbers, (std::array<int32_t, 2>{13, 11}));
    float *state = argument<float>(step, 0);
    EXPECT_EQ(std::vector<float>(state, state + elements), x);
  }
  fp8_step_destroy(step);
}

/// The loss needs no kernel that updates the state.
static void lossFirst(fp8_step *step) {
  order(step, 0, {});
  start(step, 0, add, 2, {~0, ~1});
  order(step, 1, {0});
  start(step, 1, add, 2, {~0, ~4});
  order(step, 2, {});
  start(step, 2, sum, 1, {~1, ~2});
  order(step, 3, {2});
  fp8_fetch(step, ~2);
}

// The next step is launched before this one has ended, if nobody has asked for
// its state.
TEST(Early, ALossArrivesWhileItsStepRuns) {
  Trained function(lossFirst);
  Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  ASSERT_EQ(fp8_step_create(executable, 0, &step), FP8_OK) << fp8_last_error();
  std::vector<float> x(elements);
  std::copy(x.begin(), x.end(), argument<float>(step, 0));
  uint64_t before = driverCounts().overlaps;
  for (int run = 0; run < 5; ++run) {
    std::vector<float> y = ramp(elements, static_cast<float>(run * 10));
    std::copy(y.begin(), y.end(), argument<float>(step, 1));
    ASSERT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
    float loss = 0;
    for (int64_t i = 0; i < elements; ++i) {
      x[i] += y[i];
      x[i] += function.constant[i];
      loss += y[i];
    }
    EXPECT_EQ(*result<float>(step, 1), loss) << run;
    if (run == 2) {
      float *state = argument<float>(step, 0);
      EXPECT_EQ(std::vector<float>(state, state + elements), x);
    }
  }
  EXPECT_EQ(driverCounts().overlaps - before, 3u);
  float *state = argument<float>(step, 0);
  EXPECT_EQ(std::vector<float>(state, state + elements), x);
  fp8_step_destroy(step);
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

/// Returns the error of a function whose entry is `entry`.
static std::string faultOf(fp8_entry_fn entry) {
  Trained function(entry);
  Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  EXPECT_EQ(fp8_step_create(executable, 0, &step), FP8_OK) << fp8_last_error();
  EXPECT_NE(fp8_step_run(step), FP8_OK);
  std::string text = fp8_last_error();
  // Later runs fail as well, and nothing hangs.
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

/// `ordered` without the edge from the last update to the sum.
static void unordered(fp8_step *step) {
  order(step, 0, {});
  start(step, 0, add, 2, {~0, ~1});
  order(step, 1, {});
  start(step, 2, sum, 1, {~0, ~2});
}

/// The copy of a result that does not follow the kernel that makes it.
static void fetchedTooEarly(fp8_step *step) {
  order(step, 0, {});
  start(step, 2, sum, 1, {~1, ~2});
  order(step, 1, {});
  fp8_fetch(step, ~2);
}

/// Two launches with the same scratch memory.
static void sharedScratch(fp8_step *step) {
  order(step, 0, {});
  start(step, 0, add, 2, {~0, ~1});
  order(step, 1, {});
  start(step, 5, add, 2, {~3, ~1});
}

/// Two kernels in the body of a loop.
static void unorderedBody(fp8_step *step) {
  order(step, 0, {});
  for (int64_t i = 0, is = fp8_loop(step, &countLoop, 3); i < is; ++i) {
    order(step, 1, {});
    start(step, 0, add, 2, {~0, ~1});
    order(step, 2, {});
    start(step, 2, sum, 1, {~0, ~2});
  }
  fp8_end(step);
}

/// Returns the error of a step whose graph has a race.
static std::string raceOf(fp8_entry_fn entry) {
  Trained function(entry);
  Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  EXPECT_EQ(fp8_step_create(executable, 0, &step), FP8_OK);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(fp8_step_run(step) != FP8_OK ||
              fp8_step_result(step, 1) == nullptr);
  std::string text = testing::internal::GetCapturedStderr();
  fp8_step_destroy(step);
  return text;
}

TEST(NodeRace, UpdateAndSum) {
  EXPECT_NE(raceOf(unordered).find("race between two nodes of a graph"),
            std::string::npos);
}

TEST(NodeRace, Fetch) {
  EXPECT_NE(raceOf(fetchedTooEarly).find("race between two nodes of a graph"),
            std::string::npos);
}

TEST(NodeRace, Scratch) {
  EXPECT_NE(raceOf(sharedScratch).find("race between two nodes of a graph"),
            std::string::npos);
}

TEST(NodeRace, Body) {
  EXPECT_NE(raceOf(unorderedBody).find("race between two nodes of a graph"),
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
                .find("launch 3 (count) of 'step': expected 1 operands of "
                      "kernel 'count' but got 2"),
            std::string::npos);
}

static void setsOfAnotherKernel(fp8_step *step) {
  startSets(step, 3, count, 1, {0, 4}, 2);
}
static void setsAsOne(fp8_step *step) { start(step, 3, addSets, 1, {0, 4}); }

TEST(Fault, KernelsOfSets) {
  EXPECT_NE(faultOf(setsOfAnotherKernel)
                .find("expected a kernel that takes sets of operands but got "
                      "'count'"),
            std::string::npos);
  EXPECT_NE(faultOf(setsAsOne).find(
                "expected a kernel for one set of operands but got "
                "'add_sets'"),
            std::string::npos);
}

TEST(Fault, IsToldLater) {
  Trained function(racing);
  Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  ASSERT_EQ(fp8_step_create(executable, 0, &step), FP8_OK);
  EXPECT_EQ(fp8_step_run(step), FP8_OK);
  EXPECT_EQ(fp8_step_result(step, 1), nullptr);
  std::string text = fp8_last_error();
  EXPECT_NE(text.find("run 'step'"), std::string::npos) << text;
  std::string hint = "; with FP8_GPU_CHECK=1 the error names the launch";
  EXPECT_NE(text.find(hint), std::string::npos) << text;
  EXPECT_EQ(text.find(hint), text.rfind(hint)) << text;
  fp8_step_destroy(step);
}

/// Returns the error of loading a function whose only kernel is `kernel`.
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
