//===- DeviceStepTest.cpp - Steps on a GPU --------------------------------===//

#include "DeviceFunctions.h"

#include <cstring>

using namespace fp8::test;

/// Counts from 0 until the GPU returns 5: the host must read the value.
static void loop(fp8_step *step) {
  uint32_t zero = 0;
  fp8_write(step, 0, 0, 4, &zero);
  uint32_t value = 0;
  do {
    start(step, 0, count, 1, {0});
    std::memcpy(&value, fp8_read(step, 0, 0, 4), 4);
  } while (value < 5);
  start(step, 1, count, 1, {~0});
}

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

/// Returns how many copies have left or reached memory that is not pinned: the
/// mirrors of state.
static uint64_t copiesOfState() { return driverCounts().pageable; }

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
