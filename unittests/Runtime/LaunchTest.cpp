//===- LaunchTest.cpp - Threads, launches, executables --------------------===//

#include "TestSupport.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>

using namespace fp8::test;

extern "C" int fp8RunFromC(void);

TEST(CHeader, IsC) { EXPECT_TRUE(fp8RunFromC()); }

namespace {
/// Owns a step. A test without one stops.
struct Step {
  Step(const Executable &executable, int threads) {
    if (fp8_step_create(executable, threads, &handle) != FP8_OK)
      throw std::runtime_error(fp8_last_error());
  }
  ~Step() { fp8_step_destroy(handle); }
  Step(const Step &) = delete;
  operator fp8_step *() const { return handle; }
  fp8_step *handle = nullptr;
};

// Many launches one after another; each task mixes the results of the previous
// launch, so a lost, repeated or early task is detected.
constexpr int64_t cells = 96;
constexpr int launches = 400;

void mix(int64_t task, void *const *operands, void *scratch) {
  const uint64_t *in = static_cast<const uint64_t *>(operands[0]);
  uint64_t *out = static_cast<uint64_t *>(operands[1]);
  uint64_t *mine = static_cast<uint64_t *>(scratch);
  mine[0] = in[task];
  mine[1] = in[(task * 7 + 3) % cells];
  for (int i = 0; i < 20; ++i)
    mine[0] = mine[0] * 6364136223846793005ull + mine[1] + 1;
  out[task] = mine[0];
}

void mixEntry(fp8_step *step) {
  for (int i = 0; i < launches; ++i) {
    // Alternates between two buffers of the arena; launch 0 reads the argument,
    // the last one writes the result.
    int64_t in = i == 0 ? ~int64_t(0) : (i % 2) * 4096;
    int64_t out = i == launches - 1 ? ~int64_t(1) : ((i + 1) % 2) * 4096;
    const int64_t operands[2] = {in, out};
    fp8_launch(step, i, mix, cells, operands, nullptr, 2);
  }
}

std::vector<uint64_t> runMix(int threads, int runs) {
  Builder builder("mix", mixEntry);
  builder.desc.arena_bytes = 8192;
  builder.desc.scratch_bytes = 16;
  builder.arg("x", FP8_DTYPE_U64, {cells}, FP8_ROLE_FROZEN)
      .result("y", FP8_DTYPE_U64, {cells}, FP8_KIND_OUTPUT);
  Executable executable(builder.build());
  Step step(executable, threads);
  uint64_t *x = static_cast<uint64_t *>(fp8_step_argument(step, 0));
  for (int64_t i = 0; i < cells; ++i)
    x[i] = i;
  for (int i = 0; i < runs; ++i) {
    EXPECT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
    std::memcpy(x, fp8_step_result(step, 0), cells * 8);
    if (i % 7 == 0) // long enough for the threads to fall asleep
      std::this_thread::sleep_for(std::chrono::microseconds(700));
  }
  std::vector<uint64_t> result(x, x + cells);
  return result;
}
} // namespace

TEST(Launch, SameResultsForAnyNumberOfThreads) {
  std::vector<uint64_t> one = runMix(1, 30);
  EXPECT_EQ(runMix(2, 30), one);
  EXPECT_EQ(runMix(3, 30), one);
  EXPECT_EQ(runMix(16, 30), one);
  EXPECT_EQ(runMix(0, 30), one);
}

TEST(Launch, StepsInManyThreadsShareAPool) {
  std::vector<uint64_t> expected = runMix(1, 5);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { good += runMix(2, 5) == expected; });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(good, 4);
}

namespace {
std::atomic<bool> isBlocked{false}, mayEnd{false};
void block(int64_t, void *const *, void *) {
  isBlocked = true;
  while (!mayEnd)
    std::this_thread::yield();
}
void blockEntry(fp8_step *step) {
  fp8_launch(step, 0, block, 2, nullptr, nullptr, 0);
}
} // namespace

TEST(Launch, AForkedProcessHasThreadsOfItsOwn) {
  std::vector<uint64_t> expected = runMix(1, 5);
  Builder builder("block", blockEntry);
  Executable executable(builder.build());
  auto held = std::make_unique<Step>(executable, 2);
  std::thread other([&] { EXPECT_EQ(fp8_step_run(*held), FP8_OK); });
  while (!isBlocked)
    std::this_thread::yield();
  // The pool is in use, by a thread that the child does not have.
  EXPECT_EQ(runInChild([&] {
              bool isRight = runMix(2, 5) == expected;
              held.reset();
              return !isRight;
            }),
            0);
  mayEnd = true;
  other.join();
  EXPECT_EQ(fp8_step_run(*held), FP8_OK);
  // Now the child has the last step of the pool.
  EXPECT_EQ(runInChild([&] {
              held.reset();
              return 0;
            }),
            0);
}

namespace {
void nothing(int64_t, void *const *, void *) {}
void emptyLaunches(fp8_step *step) {
  for (int i = 0; i < 1000; ++i)
    fp8_launch(step, 0, nothing, 2, nullptr, nullptr, 0);
}
void zeroTasks(fp8_step *step) {
  fp8_launch(step, 0, nothing, 0, nullptr, nullptr, 0);
}
} // namespace

TEST(Launch, CostsLittle) {
  Builder builder("empty", emptyLaunches);
  Executable executable(builder.build());
  Step step(executable, 2);
  double best = 1;
  for (int i = 0; i < 20; ++i) {
    auto start = std::chrono::steady_clock::now();
    ASSERT_EQ(fp8_step_run(step), FP8_OK);
    best = std::min(best, std::chrono::duration<double>(
                              std::chrono::steady_clock::now() - start)
                              .count());
  }
  RecordProperty("nanoseconds", static_cast<int>(best * 1e6));
  // It takes about 0.3 us on an idle machine; the bound allows for a busy one.
  EXPECT_LT(best / 1000, 100e-6);
}

TEST(Launch, MayHaveNoTasks) {
  Builder builder("zero", zeroTasks);
  Executable executable(builder.build());
  Step step(executable, 2);
  EXPECT_EQ(fp8_step_run(step), FP8_OK);
}

namespace {
void badOperand(fp8_step *step) {
  const int64_t operands[1] = {~int64_t(7)};
  fp8_launch(step, 0, nothing, 1, operands, nullptr, 1);
}

void count(int64_t, void *const *operands, void *) {
  const int32_t *old = static_cast<const int32_t *>(operands[0]);
  int32_t *next = static_cast<int32_t *>(operands[1]);
  const int32_t *constant = static_cast<const int32_t *>(operands[2]);
  *next = *old + *constant;
}
void countEntry(fp8_step *step) {
  const int64_t operands[3] = {~int64_t(0), ~int64_t(1), ~int64_t(2)};
  fp8_launch(step, 0, count, 1, operands, nullptr, 3);
}

// Adds one array to the next one of a stack, like a loop over layers.
void add(int64_t, void *const *operands, void *) {
  const int32_t *in = static_cast<const int32_t *>(operands[0]);
  int32_t *out = static_cast<int32_t *>(operands[1]);
  for (int i = 0; i < 4; ++i)
    out[i] += in[i];
}
void stackEntry(fp8_step *step) {
  const int64_t operands[2] = {~int64_t(0), ~int64_t(0)};
  for (int64_t layer = 0; layer < 2; ++layer) {
    const int64_t offsets[2] = {layer * 16, layer * 16 + 16};
    fp8_launch(step, 0, add, 1, operands, offsets, 2);
  }
}

// A loop whose condition an earlier launch should have written.
void holdEntry(fp8_step *step) {
  badOperand(step);
  while (*static_cast<int8_t *>(fp8_operand(step, ~int64_t(0))))
    fp8_launch(step, 0, nothing, 1, nullptr, nullptr, 0);
}

// Three tasks of 50 sets: y[set][task] = x[set] + task. Then one task of a set:
// s[set] = the sum of y[set], in scratch memory.
constexpr int64_t sets = 50;
void spread(int64_t task, void *const *operands, void *) {
  static_cast<int32_t *>(operands[1])[task] =
      *static_cast<const int32_t *>(operands[0]) + static_cast<int32_t>(task);
}
void total(int64_t, void *const *operands, void *scratch) {
  const int32_t *y = static_cast<const int32_t *>(operands[0]);
  int32_t *sum = static_cast<int32_t *>(scratch);
  *sum = 0;
  for (int i = 0; i < 3; ++i)
    *sum += y[i];
  *static_cast<int32_t *>(operands[1]) = *sum;
}
void setsEntry(fp8_step *step) {
  int64_t spreads[2 * sets], totals[2 * sets];
  for (int64_t set = 0; set < sets; ++set) {
    // Sets lie in the arena, at most two of an argument.
    spreads[2 * set] = set < 2 ? ~set : 64 * set;
    spreads[2 * set + 1] = totals[2 * set] = 8192 + 64 * set;
    totals[2 * set + 1] = 64 * set + 16;
  }
  fp8_launch_sets(step, 0, spread, 3, spreads, nullptr, 2, sets);
  fp8_launch_sets(step, 1, total, 1, totals, nullptr, 2, sets);
  fp8_launch_sets(step, 2, total, 0, totals, nullptr, 2, sets);
  // Gathers the sums.
  int64_t gathered[sets + 1] = {~int64_t(2)};
  for (int64_t set = 0; set < sets; ++set)
    gathered[set + 1] = 64 * set + 16;
  auto gather = [](int64_t, void *const *operands, void *) {
    for (int64_t set = 0; set < sets; ++set)
      static_cast<int32_t *>(operands[0])[set] =
          *static_cast<const int32_t *>(operands[set + 1]);
  };
  fp8_launch(step, 3, gather, 1, gathered, nullptr, sets + 1);
}
void badSet(fp8_step *step) {
  const int64_t operands[2] = {0, ~int64_t(7)};
  fp8_launch_sets(step, 0, nothing, 1, operands, nullptr, 1, 2);
}

void touchHalf(int64_t, void *const *operands, void *) {
  std::memset(operands[0], 1, 4 << 20);
}
void touchEntry(fp8_step *step) {
  const int64_t operands[1] = {0};
  fp8_launch(step, 0, touchHalf, 1, operands, nullptr, 1);
}
} // namespace

TEST(Launch, OffsetsSelectPartsOfAStack) {
  Builder builder("stack", stackEntry);
  builder.arg("x", FP8_DTYPE_I32, {3, 4}, FP8_ROLE_FROZEN);
  Executable executable(builder.build());
  Step step(executable, 1);
  int32_t *x = static_cast<int32_t *>(fp8_step_argument(step, 0));
  for (int i = 0; i < 12; ++i)
    x[i] = i;
  ASSERT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(x[i], i);
    EXPECT_EQ(x[4 + i], i + (4 + i));
    EXPECT_EQ(x[8 + i], i + (4 + i) + (8 + i));
  }
}

TEST(Launch, RunsSetsOfOperands) {
  for (int threads : {1, 2, 5}) {
    for (bool profiled : {false, true}) {
      Builder builder("sets", setsEntry);
      builder.desc.arena_bytes = 16384;
      builder.desc.scratch_bytes = 64;
      builder.arg("a", FP8_DTYPE_I32, {}, FP8_ROLE_FROZEN)
          .arg("b", FP8_DTYPE_I32, {}, FP8_ROLE_FROZEN)
          .result("sums", FP8_DTYPE_I32, {sets}, FP8_KIND_OUTPUT);
      Executable executable(builder.build());
      Step step(executable, threads);
      fp8_step_set_profile(step, profiled);
      *static_cast<int32_t *>(fp8_step_argument(step, 0)) = 10;
      *static_cast<int32_t *>(fp8_step_argument(step, 1)) = 20;
      ASSERT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
      const int32_t *sums =
          static_cast<const int32_t *>(fp8_step_result(step, 0));
      EXPECT_EQ(sums[0], 33);
      EXPECT_EQ(sums[1], 63);
      for (int64_t set = 2; set < sets; ++set) // The arena begins with zeros.
        EXPECT_EQ(sums[set], 3) << set;
      int64_t count = 0;
      fp8_step_profile(step, &count);
      EXPECT_EQ(count, profiled ? 4 : 0);
    }
  }
}

/// Checks that a run fails because of the operand of `badOperand` or `badSet`.
static void expectBadOperand(void (*entry)(fp8_step *)) {
  Builder builder("bad", entry);
  Executable executable(builder.build());
  Step step(executable, 1);
  EXPECT_EQ(fp8_step_run(step), FP8_ERROR_INTERNAL);
  EXPECT_NE(std::string(fp8_last_error()).find("operand code -8"),
            std::string::npos)
      << fp8_last_error();
}

TEST(Launch, BadOperandOfASetIsAStatus) { expectBadOperand(badSet); }

TEST(Launch, AFailureEndsALoop) {
  Builder builder("hold", holdEntry);
  builder.arg("x", FP8_DTYPE_BOOL, {1}, FP8_ROLE_FROZEN);
  Executable executable(builder.build());
  Step step(executable, 1);
  *static_cast<int8_t *>(fp8_step_argument(step, 0)) = 1;
  EXPECT_EQ(fp8_step_run(step), FP8_ERROR_INTERNAL);
}

static void storeAfterFailure(fp8_step *step) {
  fp8_operand(step, ~99);
  for (int64_t i = 0; i < 4096; ++i)
    static_cast<int32_t *>(fp8_operand(step, ~0))[i] = 1;
  for (int64_t i = 0; i < 4096; ++i)
    EXPECT_EQ(static_cast<int32_t *>(fp8_operand(step, ~0))[i], 0);
}

TEST(Launch, ScalarsOfAFailedStepGoNowhere) {
  Builder builder("store", storeAfterFailure);
  builder.arg("counts", FP8_DTYPE_I32, {4096}, FP8_ROLE_FROZEN);
  Executable executable(builder.build());
  Step step(executable, 1);
  EXPECT_EQ(fp8_step_run(step), FP8_ERROR_INTERNAL);
  EXPECT_EQ(static_cast<int32_t *>(fp8_step_argument(step, 0))[4095], 0);
}

TEST(Launch, BadOperandIsAStatus) { expectBadOperand(badOperand); }

/// No exception may cross generated code, which this stands for.
static void tooManyOperands(fp8_step *step) noexcept {
  fp8_launch(step, 0, mix, 1, nullptr, nullptr, INT64_MAX);
}

TEST(Launch, AnExceptionOfTheLibraryIsAStatus) {
  Builder builder("many", tooManyOperands);
  Executable executable(builder.build());
  Step step(executable, 1);
  EXPECT_EQ(fp8_step_run(step), FP8_ERROR_INTERNAL);
  EXPECT_NE(std::string(fp8_last_error()), "");
}

TEST(Step, StateWithABufferOfItsOwnChangesPlaces) {
  alignas(64) static char storage[128];
  // It is not aligned to 64 bytes, so it is copied.
  int32_t three = 3;
  std::memcpy(storage + 4, &three, 4);
  fp8_constant constant = {storage + 4, 4};
  Builder builder("count", countEntry);
  builder.desc.constants = &constant;
  builder.desc.num_constants = 1;
  builder.arg("n", FP8_DTYPE_I32, {}, FP8_ROLE_STATE)
      .result("next", FP8_DTYPE_I32, {}, FP8_KIND_STATE, 0, 1);
  Executable executable(builder.build());
  std::memset(storage, 0, sizeof(storage));
  Step step(executable, 1);
  for (int i = 1; i <= 3; ++i) {
    ASSERT_EQ(fp8_step_run(step), FP8_OK);
    EXPECT_EQ(*static_cast<int32_t *>(fp8_step_argument(step, 0)), 3 * i);
  }
}

TEST(Step, MemoryTouchedIsMeasured) {
  Builder builder("touch", touchEntry);
  builder.desc.arena_bytes = 8 << 20;
  Executable executable(builder.build());
  Step step(executable, 1);
  fp8_memory memory;
  ASSERT_EQ(fp8_step_memory(step, &memory), FP8_OK);
  EXPECT_EQ(memory.arena_planned, 8 << 20);
  EXPECT_EQ(memory.arena_touched, 0);
  fp8_step_set_profile(step, 1);
  ASSERT_EQ(fp8_step_run(step), FP8_OK);
  ASSERT_EQ(fp8_step_memory(step, &memory), FP8_OK);
  EXPECT_GE(memory.arena_touched, 4 << 20);
  EXPECT_LE(memory.arena_touched, memory.arena_reserved);
  EXPECT_GT(memory.peak_rss, 4 << 20);
  int64_t stats = 0;
  const fp8_launch_stat *profile = fp8_step_profile(step, &stats);
  ASSERT_EQ(stats, 1);
  EXPECT_EQ(profile[0].runs, 1);
  EXPECT_GT(profile[0].seconds, 0);
}

TEST(Step, MemoryThatCannotBeHadIsAStatus) {
  for (int64_t bytes : {INT64_MAX, INT64_MAX - 63, INT64_MAX - 4096}) {
    for (bool isArena : {true, false}) {
      Builder builder("large", zeroTasks);
      (isArena ? builder.desc.arena_bytes : builder.desc.scratch_bytes) = bytes;
      Executable executable(builder.build());
      fp8_step *step = nullptr;
      EXPECT_EQ(fp8_step_create(executable, 1, &step), FP8_ERROR_MEMORY);
      EXPECT_EQ(step, nullptr);
      EXPECT_EQ(std::string(fp8_last_error()).find("out of memory: cannot "),
                0u);
    }
  }
}

TEST(Executable, BadDescriptionsAreStatuses) {
  fp8_executable *executable = nullptr;
  EXPECT_EQ(fp8_executable_create(nullptr, &executable), FP8_ERROR_INVALID);
  EXPECT_STRNE(fp8_last_error(), "");
  fp8_executable_desc desc = {};
  EXPECT_EQ(fp8_executable_create(&desc, &executable), FP8_ERROR_INVALID);
  desc.entry = zeroTasks;
  fp8_tensor_info info = {};
  info.name = "x";
  info.rank = 1;
  const int64_t dims[1] = {-4};
  info.dims = dims;
  desc.arguments = &info;
  desc.num_arguments = 1;
  EXPECT_EQ(fp8_executable_create(&desc, &executable), FP8_ERROR_INVALID);
  EXPECT_EQ(executable, nullptr);
  EXPECT_EQ(fp8_step_create(nullptr, 1, nullptr), FP8_ERROR_INVALID);
  EXPECT_EQ(fp8_step_run(nullptr), FP8_ERROR_INVALID);
  EXPECT_EQ(fp8_executable_on_gpu(nullptr), 0);
  fp8_executable_destroy(nullptr);
  fp8_step_destroy(nullptr);
}

TEST(Dtype, NamesAndSizes) {
  EXPECT_STREQ(fp8_dtype_name(FP8_DTYPE_F8_E4M3FN), "F8_E4M3");
  EXPECT_STREQ(fp8_dtype_name(FP8_DTYPE_BF16), "BF16");
  EXPECT_STREQ(fp8_dtype_name(FP8_DTYPE_F8_E3M4), "float8_e3m4");
  EXPECT_EQ(fp8_dtype_name(FP8_NUM_DTYPES), nullptr);
  EXPECT_EQ(fp8_dtype_size(FP8_DTYPE_F64), 8u);
  EXPECT_EQ(fp8_dtype_size(FP8_DTYPE_F8_E5M2), 1u);
  EXPECT_EQ(fp8_dtype_size(FP8_NUM_DTYPES), 0u);
}

TEST(Limits, ArePlausible) {
  fp8_limits limits;
  ASSERT_EQ(fp8_measure_limits(2, &limits), FP8_OK) << fp8_last_error();
  EXPECT_EQ(limits.threads, 2);
  // Current machines are within these bounds.
  EXPECT_GT(limits.f32_flops, 1e8);
  EXPECT_LT(limits.f32_flops, 1e12);
  EXPECT_GE(limits.bf16_flops, 0);
  EXPECT_GT(limits.bytes, 1e8);
  EXPECT_LT(limits.bytes, 1e12);
  EXPECT_EQ(fp8_measure_limits(-1, &limits), FP8_ERROR_INVALID);
  EXPECT_EQ(fp8_measure_limits(1, nullptr), FP8_ERROR_INVALID);
}
