//===- NodeOrderTest.cpp - Nodes in the order of their data ---------------===//

#include "DeviceFunctions.h"

#include <array>
#include <cstring>

using namespace fp8::test;

static void order(fp8_step *step, int64_t node, std::vector<int64_t> after) {
  fp8_order(step, node, after.data(), static_cast<int64_t>(after.size()));
}

static void countAt(fp8_step *step, int64_t offset) {
  start(step, 3, count, 1, {~3}, &offset);
}

// External buffers as of `trainEntry`; two integers lie at byte 400 of the
// large result.
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
