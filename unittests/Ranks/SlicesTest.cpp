//===- SlicesTest.cpp - Stacks whose slices several ranks own -------------===//

#include "RanksInMemory.h"

#include <numeric>

using namespace fp8::test;

namespace {

constexpr int64_t kRows = 5, kColumns = 3, kWhole = 32;

/// Adds the task's number plus 1 to an element. Two tasks work on each row.
void addTask(int64_t task, void *const *operands, void *) {
  auto *w = static_cast<int32_t *>(operands[0]);
  w[task / 2 * kColumns + task % 2] += static_cast<int32_t>(task) + 1;
}

/// Adds 1000 to each row. It has one task, so it does not divide into slices.
void addToEachRow(int64_t, void *const *operands, void *) {
  auto *m = static_cast<int32_t *>(operands[0]);
  for (int64_t row = 0; row < kRows; ++row)
    m[row] += 1000;
}

/// Builds a step with a stack w and a vector m, one number per slice, in shard
/// 1, and v in shard 2, which has one owner.
fp8_executable *buildStack(int64_t slices, int64_t slicesOfM) {
  Builder builder("slices", [](fp8_step *step) {
    const int64_t w = ~0, m = ~1;
    fp8_launch_owned(step, 0, addTask, 2 * kRows, &w, nullptr, 1, 1);
    fp8_launch_owned(step, 1, addToEachRow, 1, &m, nullptr, 1, 1);
  });
  builder.arg("w", FP8_DTYPE_I32, {kRows, kColumns}, FP8_ROLE_STATE)
      .inShard(1, slices)
      .arg("m", FP8_DTYPE_I32, {kRows}, FP8_ROLE_STATE)
      .inShard(1, slicesOfM)
      .arg("v", FP8_DTYPE_I32, {kWhole}, FP8_ROLE_STATE)
      .inShard(2);
  fp8_executable *executable = nullptr;
  (void)fp8_executable_create(&builder.describe(), &executable);
  return executable;
}

std::vector<int32_t> read(fp8_step *step, int64_t index, size_t count) {
  std::vector<int32_t> values(count);
  std::memcpy(values.data(), fp8_step_argument(step, index),
              count * sizeof(int32_t));
  return values;
}

} // namespace

TEST(Slices, AreDealtAndUpdatedByTheirOwners) {
  Executable executable(buildStack(kRows, kRows));
  fp8_tensor_info info;
  ASSERT_EQ(fp8_executable_argument(executable, 0, &info), FP8_OK);
  EXPECT_EQ(info.slices, kRows);
  std::vector<int32_t> first(kRows * kColumns), expected;
  std::iota(first.begin(), first.end(), 100);
  expected = first;
  for (int64_t task = 0; task < 2 * kRows; ++task)
    expected[task / 2 * kColumns + task % 2] += static_cast<int32_t>(task) + 1;
  // Rank 0 gets v, 128 bytes. The slices, 16 bytes each, go to the other ranks
  // in turn.
  const int64_t counts[] = {0, 3, 2}, begins[] = {0, 0, 3};
  runRanks(3, [&](fp8_group *group, int64_t rank) {
    fp8_step *step = nullptr;
    ASSERT_EQ(fp8_step_create(executable, 1, &step), FP8_OK);
    ASSERT_EQ(fp8_step_set_group(step, group), FP8_OK);
    EXPECT_EQ(fp8_owns(step, 1), counts[rank]);
    EXPECT_EQ(fp8_owns(step, 2), rank == 0);
    ASSERT_EQ(fp8_step_set_whole(step, 0, first.data()), FP8_OK);
    EXPECT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
    // The slices of other ranks are unchanged.
    std::vector<int32_t> own = first;
    int64_t begin = begins[rank] * kColumns,
            end = begin + counts[rank] * kColumns;
    std::copy(expected.begin() + begin, expected.begin() + end,
              own.begin() + begin);
    EXPECT_EQ(read(step, 0, own.size()), own);
    fp8_memory memory;
    EXPECT_EQ(fp8_step_memory(step, &memory), FP8_OK);
    EXPECT_EQ(memory.shards, rank == 0 ? 4 * kWhole : 16 * counts[rank]);
    EXPECT_EQ(memory.arguments, memory.shards);
    EXPECT_EQ(fp8_step_gather(step), FP8_OK) << fp8_last_error();
    EXPECT_EQ(read(step, 0, expected.size()), expected);
    EXPECT_EQ(read(step, 1, kRows), std::vector<int32_t>(kRows, 1000));
    fp8_step_destroy(step);
  });
}

TEST(Slices, OfOneRankAreAll) {
  Executable executable(buildStack(kRows, kRows));
  fp8_step *step = nullptr;
  ASSERT_EQ(fp8_step_create(executable, 1, &step), FP8_OK);
  EXPECT_EQ(fp8_owns(step, 1), kRows);
  EXPECT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
  std::vector<int32_t> w = read(step, 0, kRows * kColumns);
  EXPECT_EQ(w[4 * kColumns + 1], 10);
  fp8_step_destroy(step);
}

TEST(Slices, AreOfAllTensorsOfAShard) {
  EXPECT_EQ(buildStack(4, 4), nullptr);
  EXPECT_STREQ(fp8_last_error(), "argument 'w': expected rows for 4 slices of "
                                 "shard 1 but got i32[5,3]");
  Executable executable(buildStack(kRows, 1));
  fp8_step *step = nullptr;
  EXPECT_EQ(fp8_step_create(executable, 1, &step), FP8_ERROR_INVALID);
  EXPECT_STREQ(fp8_last_error(),
               "argument 'm': expected 5 slices of shard 1 but got 1");
}
