//===- PartsTest.cpp - Arguments in parts ---------------------------------===//

#include "RanksInMemory.h"

#include <numeric>

using namespace fp8::test;

namespace {

using Sizes = std::vector<int64_t>;

/// Creates an executable with one argument of i32 in parts.
fp8_status create(fp8_tensor_info argument, const Sizes &whole,
                  const Sizes &part, const Sizes &offsets,
                  fp8_executable *&executable) {
  argument.dtype = FP8_DTYPE_I32;
  argument.rank = static_cast<int32_t>(part.size());
  argument.dims = part.data();
  argument.whole_dims = whole.data();
  argument.part_offsets = offsets.data();
  argument.num_parts = static_cast<int64_t>(offsets.size() / part.size());
  fp8_executable_desc desc = {};
  desc.name = "parts";
  desc.entry = [](fp8_step *) {};
  desc.arguments = &argument;
  desc.num_arguments = 1;
  return fp8_executable_create(&desc, &executable);
}

/// Returns one with a 6 x 4 parameter in parts of 3 x 2: ranks 0 and 2 have the
/// same part. Null if the parts are not inside the whole.
fp8_executable *buildInParts(const Sizes &offsets) {
  fp8_tensor_info argument = {};
  argument.name = "w";
  argument.kind = FP8_KIND_PARAMETER;
  argument.role = FP8_ROLE_STATE;
  fp8_executable *executable = nullptr;
  (void)create(argument, {6, 4}, {3, 2}, offsets, executable);
  return executable;
}

const std::vector<int64_t> kOffsets = {3, 2, 0, 0, 3, 2, 0, 2, 3, 0};

std::vector<int32_t> read(const void *data, size_t count) {
  std::vector<int32_t> values(count);
  std::memcpy(values.data(), data, count * sizeof(int32_t));
  return values;
}

} // namespace

TEST(Parts, AreCutAndGathered) {
  Executable executable(buildInParts(kOffsets));
  fp8_tensor_info info;
  ASSERT_EQ(fp8_executable_argument(executable, 0, &info), FP8_OK);
  EXPECT_EQ(info.num_parts, 5);
  EXPECT_EQ(info.whole_dims[0], 6);
  EXPECT_EQ(info.part_offsets[7], 2);
  std::vector<int32_t> whole(24);
  std::iota(whole.begin(), whole.end(), 100);
  runRanks(5, [&](fp8_group *group, int64_t rank) {
    fp8_step *step = nullptr;
    ASSERT_EQ(fp8_step_create(executable, 1, &step), FP8_OK);
    ASSERT_EQ(fp8_step_set_group(step, group), FP8_OK);
    EXPECT_EQ(fp8_step_set_whole(step, 0, whole.data()), FP8_OK)
        << fp8_last_error();
    std::vector<int32_t> part;
    for (int64_t row = 0; row < 3; ++row)
      for (int64_t column = 0; column < 2; ++column)
        part.push_back(whole[(kOffsets[rank * 2] + row) * 4 +
                             kOffsets[rank * 2 + 1] + column]);
    EXPECT_EQ(read(fp8_step_argument(step, 0), 6), part);
    EXPECT_EQ(fp8_step_whole(step, 0), nullptr);
    EXPECT_STREQ(fp8_last_error(), "expected 'w', of which each rank has a "
                                   "part, to be gathered");
    EXPECT_EQ(fp8_step_gather(step), FP8_OK) << fp8_last_error();
    EXPECT_EQ(read(fp8_step_whole(step, 0), 24), whole);
    // The gathered value is that of the previous step.
    EXPECT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
    EXPECT_EQ(fp8_step_whole(step, 0), nullptr);
    fp8_memory memory;
    EXPECT_EQ(fp8_step_memory(step, &memory), FP8_OK);
    EXPECT_EQ(memory.arguments, 64);
    fp8_step_destroy(step);
  });
}

TEST(Parts, AreOfTheRanksThatTheStepWasWrittenFor) {
  Executable executable(buildInParts(kOffsets));
  std::vector<int32_t> whole(24);
  runRanks(2, [&](fp8_group *group, int64_t) {
    fp8_step *step = nullptr;
    ASSERT_EQ(fp8_step_create(executable, 1, &step), FP8_OK);
    ASSERT_EQ(fp8_step_set_group(step, group), FP8_OK);
    EXPECT_EQ(fp8_step_set_whole(step, 0, whole.data()), FP8_ERROR_INVALID);
    EXPECT_STREQ(fp8_last_error(), "expected 5 ranks, which the step was "
                                   "written for, but got 2");
    fp8_step_destroy(step);
  });
}

TEST(Parts, LieInTheWhole) {
  EXPECT_EQ(buildInParts({0, 0, 4, 0}), nullptr);
  EXPECT_STREQ(fp8_last_error(), "argument 'w': expected parts of i32[6,4] but "
                                 "got some that are not in it");
  EXPECT_EQ(buildInParts({0, -1}), nullptr);
}

TEST(Parts, HaveAsMuchOfEveryBlock) {
  const Sizes offsets = {0, 2, 4};
  fp8_tensor_info argument = {};
  argument.name = "x";
  argument.role = FP8_ROLE_BATCH;
  argument.part_blocks = 2;
  fp8_executable *created = nullptr;
  ASSERT_EQ(create(argument, {12}, {4}, offsets, created), FP8_OK)
      << fp8_last_error();
  Executable executable(created);
  std::vector<int32_t> values(12);
  std::iota(values.begin(), values.end(), 0);
  runRanks(3, [&](fp8_group *group, int64_t rank) {
    fp8_step *step = nullptr;
    ASSERT_EQ(fp8_step_create(executable, 1, &step), FP8_OK);
    ASSERT_EQ(fp8_step_set_group(step, group), FP8_OK);
    EXPECT_EQ(fp8_step_set_whole(step, 0, values.data()), FP8_OK);
    auto at = static_cast<int32_t>(2 * rank);
    EXPECT_EQ(read(fp8_step_argument(step, 0), 4),
              (std::vector<int32_t>{at, at + 1, at + 6, at + 7}));
    fp8_step_destroy(step);
  });
  // Blocks that do not divide the part.
  argument.part_blocks = 3;
  EXPECT_EQ(create(argument, {12}, {4}, offsets, created), FP8_ERROR_INVALID);
}
