//===- DeviceControlTest.cpp - Loops and branches that a GPU decides ------===//

#include "DeviceFunctions.h"

#include <array>

using namespace fp8::test;

namespace {

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
