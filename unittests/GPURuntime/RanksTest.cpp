//===- RanksTest.cpp - Steps on the GPUs of several ranks -----------------===//
//
// Ranks are threads that share the emulated GPU. Reductions have the same bits
// as on CPUs, on every wire.
//
//===----------------------------------------------------------------------===//

#include "../Ranks/RanksInMemory.h"
#include "Collectives/Float8.h"
#include "TestKernels.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <dlfcn.h>
#include <functional>
#include <thread>

using namespace fp8::test;

namespace {

constexpr int64_t elements = 320, threadsOfBlock = 32;

/// The settings of the entries below, for this thread.
struct Work {
  fp8_all_reduce what;
  bool isOnGpu = true, readsOnHost = false, reducesInLoop = false;
  const fp8_exchange *exchange = nullptr;
  float control[2] = {0, 0};    // initial value
  fp8_entry_fn entry = nullptr; // null: step, or exchangeStep
};
thread_local Work *work;

/// x += y, in the order of the kernel.
void addOnCpu(int64_t block, void *const *operands, void *) {
  auto *x = static_cast<float *>(operands[0]);
  auto *y = static_cast<const float *>(operands[1]);
  for (int64_t i = block * threadsOfBlock; i < (block + 1) * threadsOfBlock;
       ++i)
    x[i] += y[i];
}

void launchAdd(fp8_step *step, int64_t number, int64_t x, int64_t y) {
  const int64_t operands[2] = {x, y};
  constexpr int64_t blocks = elements / threadsOfBlock;
  if (work->isOnGpu)
    start(step, number, add, blocks, {x, y});
  else
    fp8_launch(step, number, addOnCpu, blocks, operands, nullptr, 2);
}

/// Arguments: 0 the state x, 1 the batch y, 2 the state control, 3 the state z;
/// result: 4 the sum. x += y; sum = reduced x, while z += y; z += sum.
void step(fp8_step *step) {
  launchAdd(step, 0, ~0, ~1);
  bool isNarrow = work->what.wire >= FP8_WIRE_F8_E4M3FN;
  const int64_t operands[3] = {~0, ~4, ~2};
  fp8_all_reduce_start(step, 1, &work->what, -1, operands, nullptr,
                       isNarrow ? 3 : 2);
  launchAdd(step, 2, ~3, ~1);
  if (work->readsOnHost)
    (void)fp8_read(step, ~3, 0, 4);
  fp8_wait(step, 1);
  launchAdd(step, 3, ~3, ~4);
}

/// Runs `body` `trips` times; on a GPU in a loop that it counts.
template <typename Body>
void repeat(fp8_step *step, int64_t trips, const Body &body) {
  if (work->isOnGpu)
    trips = fp8_loop(step, &countLoop, trips);
  for (int64_t i = 0; i < trips; ++i)
    body();
  if (work->isOnGpu)
    fp8_end(step);
}

/// x += y; sum = reduced x, while z += 3 y; if y[0] is not negative, z += 2
/// sum. A GPU keeps the condition before the reduction and reads it after.
void decidingStep(fp8_step *step) {
  bool isTaken = false;
  if (work->isOnGpu)
    fp8_keep(step, &keep, 0, ~1, 0, nullptr, 4);
  else
    isTaken = !std::signbit(*static_cast<float *>(fp8_operand(step, ~1)));
  launchAdd(step, 0, ~0, ~1);
  const int64_t operands[2] = {~0, ~4};
  auto start = [&] {
    fp8_all_reduce_start(step, 1, &work->what, -1, operands, nullptr, 2);
  };
  if (work->reducesInLoop)
    repeat(step, 2, start);
  else
    start();
  repeat(step, 3, [&] { launchAdd(step, 2, ~3, ~1); });
  fp8_wait(step, 1);
  if (work->isOnGpu)
    isTaken = fp8_branch(step, &test, 0, 0, INT32_MAX, 0) != 0;
  if (!isTaken)
    return;
  repeat(step, 2, [&] { launchAdd(step, 3, ~3, ~4); });
  if (work->isOnGpu)
    fp8_end(step);
}

/// x += y, then exchanges x into the result.
void exchangeStep(fp8_step *step) {
  launchAdd(step, 0, ~0, ~1);
  const int64_t operands[2] = {~0, ~4};
  fp8_exchange_start(step, 1, work->exchange, operands, nullptr, 2);
  launchAdd(step, 2, ~3, ~1);
  fp8_wait(step, 1);
}

/// The result of a run, as bytes: x, control, z and the sum of every step.
using Outcome = std::vector<std::string>;

struct Options {
  int steps = 3;
  bool isProfiled = false;
  int64_t shard = 0, slices = 1; // of x
  fp8_status status = FP8_OK;
  std::function<void(int64_t rank, int step)> beforeStep;
};

template <typename T> std::string bytesOf(const T *data, int64_t count) {
  return {reinterpret_cast<const char *>(data), sizeof(T) * count};
}

float *argument(fp8_step *step, int64_t index) {
  void *address = fp8_step_argument(step, index);
  EXPECT_NE(address, nullptr) << fp8_last_error();
  return static_cast<float *>(address);
}

Outcome runOn(fp8_group *group, int64_t rank, Work mine,
              const Options &options = {}) {
  work = &mine;
  Builder builder("step", mine.entry      ? mine.entry
                          : mine.exchange ? exchangeStep
                                          : step);
  builder.desc.arena_bytes = 4096;
  builder.desc.scratch_bytes = elements * 4;
  const fp8_gpu_kernel *kernels[] = {&add, &keep, &test, &countLoop};
  builder.desc.gpu_kernels = kernels;
  builder.desc.num_gpu_kernels = mine.isOnGpu ? std::size(kernels) : 0;
  builder.arg("x", FP8_DTYPE_F32, {elements}, FP8_ROLE_STATE)
      .inShard(options.shard, options.slices)
      .arg("y", FP8_DTYPE_F32, {elements}, FP8_ROLE_BATCH)
      .arg("control", FP8_DTYPE_F32, {2}, FP8_ROLE_STATE)
      .arg("z", FP8_DTYPE_F32, {elements}, FP8_ROLE_STATE)
      .result("x", FP8_DTYPE_F32, {elements}, FP8_KIND_STATE, 0)
      .result("control", FP8_DTYPE_F32, {2}, FP8_KIND_STATE, 2)
      .result("z", FP8_DTYPE_F32, {elements}, FP8_KIND_STATE, 3)
      .result("sum", FP8_DTYPE_F32, {elements}, FP8_KIND_OUTPUT);
  Executable executable(builder.build());
  fp8_step *step = nullptr;
  EXPECT_EQ(fp8_step_create(executable, 1, &step), FP8_OK) << fp8_last_error();
  if (!step)
    return {};
  if (group)
    EXPECT_EQ(fp8_step_set_group(step, group), FP8_OK) << fp8_last_error();
  fp8_step_set_profile(step, options.isProfiled);
  Gradients random(static_cast<unsigned>(rank) + 1);
  for (int64_t state : {0, 3}) {
    std::vector<float> values = random.tensor(elements);
    std::copy(values.begin(), values.end(), argument(step, state));
  }
  std::copy_n(mine.control, 2, argument(step, 2));
  Outcome outcome;
  for (int i = 0; i < options.steps; ++i) {
    std::vector<float> y = random.tensor(elements);
    std::copy(y.begin(), y.end(), argument(step, 1));
    if (options.beforeStep)
      options.beforeStep(rank, i);
    fp8_status status = fp8_step_run(step);
    if (status != FP8_OK) {
      EXPECT_EQ(status, options.status) << fp8_last_error();
      outcome = {fp8_last_error()};
      break;
    }
    for (int64_t state : {0, 2, 3})
      outcome.push_back(
          bytesOf(argument(step, state), state == 2 ? 2 : elements));
    outcome.push_back(
        bytesOf(static_cast<float *>(fp8_step_result(step, 3)), elements));
  }
  fp8_step_destroy(step);
  return outcome;
}

std::vector<Outcome> runOnRanks(int64_t ranks, const Work &mine,
                                const Options &options = {}) {
  std::vector<Outcome> outcomes(ranks);
  runRanks(ranks, [&](fp8_group *group, int64_t rank) {
    outcomes[rank] = runOn(group, rank, mine, options);
  });
  return outcomes;
}

/// Runs the same step on GPUs and on CPUs, and compares the outcomes.
void expectSame(int64_t ranks, Work mine, const Options &options = {}) {
  std::vector<Outcome> got = runOnRanks(ranks, mine, options);
  mine.isOnGpu = false;
  mine.readsOnHost = false;
  Options expectedOptions = options;
  expectedOptions.isProfiled = false;
  std::vector<Outcome> expected = runOnRanks(ranks, mine, expectedOptions);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    ASSERT_EQ(expected[rank].size(), static_cast<size_t>(4 * options.steps));
    EXPECT_TRUE(got[rank] == expected[rank]) << "rank " << rank;
  }
}

} // namespace

TEST(Ranks, HaveTheBitsOfCpus) {
  for (fp8_wire wire :
       {FP8_WIRE_EXACT, FP8_WIRE_BF16, FP8_WIRE_F8_E4M3FN, FP8_WIRE_F8_E5M2})
    for (int64_t ranks : {2, 3}) {
      SCOPED_TRACE(std::to_string(wire) + " " + std::to_string(ranks));
      expectSame(ranks,
                 {describe(FP8_REDUCE_MEAN, FP8_DTYPE_F32, elements, wire)});
    }
  expectSame(2, {describe(FP8_REDUCE_SUM, FP8_DTYPE_F32, elements,
                          FP8_WIRE_F8_E4M3FN, 64)});
  expectSame(2, {describe(FP8_REDUCE_MAX, FP8_DTYPE_F32, elements)});
  // With this mu some codes saturate.
  Work mine{describe(FP8_REDUCE_SUM, FP8_DTYPE_F32, elements,
                     FP8_WIRE_F8_E4M3FN, 64)};
  mine.control[0] = 16;
  mine.control[1] = 7;
  expectSame(2, mine);
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

namespace {

constexpr int64_t plainBytes = 1280; // of a tensor

/// Returns every type that can be reduced, with each reduction.
std::vector<fp8_all_reduce> plainReductions() {
  std::vector<fp8_all_reduce> all;
  for (int dtype = 0; dtype <= FP8_DTYPE_F64; ++dtype)
    for (fp8_reduction reduction :
         {FP8_REDUCE_SUM, FP8_REDUCE_MEAN, FP8_REDUCE_MAX, FP8_REDUCE_MIN}) {
      auto type = static_cast<fp8_dtype>(dtype);
      if (reduction != FP8_REDUCE_MEAN || type >= FP8_DTYPE_F8_E4M3FN)
        all.push_back(
            describe(reduction, type, plainBytes / fp8_dtype_size(type)));
    }
  return all;
}

/// Argument 0: a tensor of each type; result 1: one of each reduction.
void plainStep(fp8_step *step) {
  static const std::vector<fp8_all_reduce> all = plainReductions();
  const int64_t operands[2] = {~0, ~1};
  for (size_t i = 0; i < all.size(); ++i) {
    const int64_t offsets[2] = {all[i].dtype * plainBytes,
                                static_cast<int64_t>(i) * plainBytes};
    fp8_all_reduce_start(step, static_cast<int64_t>(i), &all[i], -1, operands,
                         offsets, 2);
  }
  for (size_t i = 0; i < all.size(); ++i)
    fp8_wait(step, static_cast<int64_t>(i));
}

/// Fills a tensor of any type with random elements, none of them NaN.
void fillPlainly(fp8_dtype dtype, Gradients &random, char *bytes) {
  auto fill = [&](auto convert) {
    using T = decltype(convert(0.0f));
    for (size_t i = 0; i < plainBytes / sizeof(T); ++i) {
      T value = convert(random.next() * 1e4f);
      std::memcpy(bytes + i * sizeof(T), &value, sizeof(T));
    }
  };
  switch (dtype) {
  case FP8_DTYPE_BOOL:
    return fill([](float value) { return value > 0; });
  case FP8_DTYPE_F16:
    return fill([](float value) { return static_cast<_Float16>(value); });
  case FP8_DTYPE_BF16:
    return fill([](float value) { return fp8::rt::encodeBFloat16(value); });
  case FP8_DTYPE_F8_E4M3FN:
  case FP8_DTYPE_F8_E5M2:
    return fill([](float value) {
      return static_cast<uint8_t>(fp8::rt::bitsOf(value) >> 3 & 0xf7);
    });
  case FP8_DTYPE_F32:
    return fill([](float value) { return value; });
  case FP8_DTYPE_F64:
    return fill([](float value) { return value / 3.0; });
  default: // integers, which are any bits
    return fill(
        [](float value) { return fp8::rt::bitsOf(value) * 2654435761u; });
  }
}

std::string reducePlainly(fp8_group *group, int64_t rank, bool isOnGpu) {
  auto count = static_cast<int64_t>(plainReductions().size());
  constexpr int64_t types = FP8_DTYPE_F64 + 1;
  Builder builder("step", plainStep);
  const fp8_gpu_kernel *kernels[] = {&add};
  builder.desc.gpu_kernels = kernels;
  builder.desc.num_gpu_kernels = isOnGpu ? 1 : 0;
  builder.arg("x", FP8_DTYPE_U8, {types, plainBytes}, FP8_ROLE_BATCH)
      .result("sums", FP8_DTYPE_U8, {count, plainBytes}, FP8_KIND_OUTPUT);
  Executable executable(builder.build());
  fp8_step *step = nullptr;
  EXPECT_EQ(fp8_step_create(executable, 1, &step), FP8_OK) << fp8_last_error();
  EXPECT_EQ(fp8_step_set_group(step, group), FP8_OK) << fp8_last_error();
  Gradients random(static_cast<unsigned>(rank) + 1);
  auto *x = static_cast<char *>(fp8_step_argument(step, 0));
  for (int64_t dtype = 0; dtype < types; ++dtype)
    fillPlainly(static_cast<fp8_dtype>(dtype), random, x + dtype * plainBytes);
  EXPECT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
  std::string bytes = bytesOf(static_cast<char *>(fp8_step_result(step, 0)),
                              count * plainBytes);
  fp8_step_destroy(step);
  return bytes;
}

} // namespace

TEST(Ranks, ReduceEveryType) {
  std::string results[2][3];
  for (bool isOnGpu : {false, true})
    runRanks(3, [&](fp8_group *group, int64_t rank) {
      results[isOnGpu][rank] = reducePlainly(group, rank, isOnGpu);
    });
  const std::vector<fp8_all_reduce> all = plainReductions();
  for (int64_t rank = 0; rank < 3; ++rank)
    for (size_t i = 0; i < all.size(); ++i)
      EXPECT_TRUE(results[true][rank].substr(i * plainBytes, plainBytes) ==
                  results[false][rank].substr(i * plainBytes, plainBytes))
          << "type " << all[i].dtype << ", reduction " << all[i].reduction;
}

TEST(Ranks, RunKernelByKernel) {
  Work mine{describe(FP8_REDUCE_MEAN, FP8_DTYPE_F32, elements)};
  mine.readsOnHost = true;
  expectSame(2, mine);
  mine.readsOnHost = false;
  Options options;
  options.isProfiled = true;
  expectSame(2, mine, options);
}

TEST(Ranks, DecideOnTheGpu) {
  Work mine{describe(FP8_REDUCE_MEAN, FP8_DTYPE_F32, elements)};
  mine.entry = decidingStep;
  Options options;
  options.steps = 8;
  expectSame(2, mine, options);
  options.isProfiled = true;
  expectSame(2, mine, options);
}

TEST(Ranks, DoNotReduceWhereTheGpuDecides) {
  Work mine{describe(FP8_REDUCE_MEAN, FP8_DTYPE_F32, elements)};
  mine.entry = decidingStep;
  mine.reducesInLoop = true;
  Options options;
  options.status = FP8_ERROR_INTERNAL;
  for (const Outcome &outcome : runOnRanks(2, mine, options))
    EXPECT_EQ(outcome, Outcome{"expected collectives outside of the loops and "
                               "branches that the GPU decides, in 'step'"});
}

TEST(Ranks, OneAloneKeepsItsValues) {
  Work mine{describe(FP8_REDUCE_MEAN, FP8_DTYPE_F32, elements)};
  Outcome got = runOn(nullptr, 0, mine);
  mine.isOnGpu = false;
  EXPECT_TRUE(got == runOn(nullptr, 0, mine));
}

TEST(Ranks, ReduceToAnOwner) {
  Work mine{describe(FP8_REDUCE_SUM, FP8_DTYPE_F32, elements)};
  mine.what.shard = 1;
  Options options;
  options.shard = 1;
  expectSame(2, mine, options);
  mine.what.reduction = FP8_REDUCE_OWNER;
  mine.what.dtype = FP8_DTYPE_I8;
  mine.what.elements = elements * 4;
  expectSame(2, mine, options);
}

TEST(Ranks, ReduceToOwnersOfSlices) {
  Work mine{describe(FP8_REDUCE_SUM, FP8_DTYPE_F32, elements)};
  mine.what.shard = 1;
  Options options;
  options.shard = 1;
  options.slices = elements / 5;
  expectSame(3, mine, options);
  mine.what.reduction = FP8_REDUCE_OWNER;
  mine.what.dtype = FP8_DTYPE_I8;
  mine.what.elements = elements * 4;
  expectSame(3, mine, options);
}

TEST(Ranks, ExchangeParts) {
  const int64_t pair[] = {0, 1}, alone[] = {0, 1, 2}, ring[] = {0, 1, 1, 2};
  Work mine{};
  const fp8_exchange exchanges[] = {
      {"all", FP8_EXCHANGE_ALL_TO_ALL, elements * 2, 1, 2, pair, -1, 0},
      {"gather", FP8_EXCHANGE_GATHER, elements * 2, 1, 2, pair, -1, 0},
      {"pair", FP8_EXCHANGE_PERMUTE, elements * 4, 1, 2, pair, -1, 0}};
  for (const fp8_exchange &exchange : exchanges) {
    SCOPED_TRACE(exchange.label);
    mine.exchange = &exchange;
    expectSame(2, mine);
  }
  const fp8_exchange own{
      "own", FP8_EXCHANGE_GATHER, elements * 4, 3, 1, alone, -1, 0};
  mine.exchange = &own;
  expectSame(3, mine);
  // The first rank of a chain receives zeros.
  const fp8_exchange chain{
      "chain", FP8_EXCHANGE_PERMUTE, elements * 4, 2, 2, ring, -1, 0};
  mine.exchange = &chain;
  expectSame(3, mine);
  // And without a group.
  const fp8_exchange one{
      "one", FP8_EXCHANGE_GATHER, elements * 4, 1, 1, pair, -1, 0};
  mine.exchange = &one;
  Outcome got = runOn(nullptr, 0, mine);
  mine.isOnGpu = false;
  EXPECT_TRUE(got == runOn(nullptr, 0, mine));
}

TEST(Ranks, TellOfMistakes) {
  Work mine{describe(FP8_REDUCE_MEAN, FP8_DTYPE_I32, elements)};
  Options options;
  options.status = FP8_ERROR_INTERNAL;
  for (const Outcome &outcome : runOnRanks(2, mine, options))
    EXPECT_EQ(outcome, Outcome{"collective 1 of 'step' (gradient w): expected "
                               "floats for a mean but got integers"});
}

/// Returns how many graphs have been launched on the emulated GPU.
static uint64_t launchedGraphs() {
  uint64_t counts[7] = {};
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  auto *ask = reinterpret_cast<void (*)(uint64_t *)>(
      dlsym(driver, "fp8_emulator_counts"));
  if (ask)
    ask(counts);
  return counts[0];
}

// Rank 0 launches its three graphs, of which the last one needs the sum, before
// rank 1 begins the step.
TEST(NcclAhead, TheGpuWaitsForTheOtherRanks) {
  std::atomic<bool> isCounted{false};
  Options options;
  options.beforeStep = [&](int64_t rank, int step) {
    if (step != 1)
      return;
    if (rank == 0) {
      while (!isCounted)
        std::this_thread::yield();
      return;
    }
    uint64_t before = launchedGraphs();
    isCounted = true;
    for (int tries = 0; launchedGraphs() < before + 3 && tries < 20000; ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(launchedGraphs() - before, 3u);
  };
  Work mine{describe(FP8_REDUCE_MEAN, FP8_DTYPE_F32, elements)};
  std::vector<Outcome> got = runOnRanks(2, mine, options);
  mine.isOnGpu = false;
  EXPECT_TRUE(got == runOnRanks(2, mine));
}

//===----------------------------------------------------------------------===//
// Failures of ranks
//===----------------------------------------------------------------------===//

/// Returns the errors of two ranks in a run that one of them cannot continue.
static std::vector<Outcome> endOfRun(double timeout = 60, int64_t failAt = -1) {
  std::vector<Outcome> outcomes(2);
  Options options;
  options.steps = 50;
  options.status = FP8_ERROR_RANK;
  fp8_group_options joining = {};
  joining.timeout = timeout;
  runRanks(
      2,
      [&](fp8_group *group, int64_t rank) {
        Work mine{describe(FP8_REDUCE_MEAN, FP8_DTYPE_F32, elements)};
        outcomes[rank] = runOn(group, rank, mine, options);
        fp8_group_abort(group, "a test ends all");
      },
      joining, /*failing=*/1, failAt);
  return outcomes;
}

TEST(RanksFail, ByTheTransport) {
  std::vector<Outcome> outcomes = endOfRun(60, /*failAt=*/40);
  EXPECT_EQ(outcomes[1], Outcome{"the transport fails on purpose"});
  EXPECT_EQ(outcomes[0], Outcome{"another rank has ended all"});
}

// FP8_EMULATOR_NCCL sets what rank 1 does.

TEST(NcclFails, WhenItConnects) {
  EXPECT_EQ(endOfRun()[1],
            Outcome{"rank 1 of 2: NCCL cannot connect the ranks: "
                    "unhandled system error (no network)"});
}

TEST(NcclFails, AtOnce) {
  EXPECT_EQ(endOfRun()[1],
            Outcome{"rank 1 of 2: NCCL cannot exchange messages: unhandled "
                    "system error (the network fails on purpose)"});
}

TEST(NcclFails, Later) {
  EXPECT_EQ(endOfRun()[1],
            Outcome{"rank 1 of 2: NCCL cannot exchange messages: remote "
                    "process exited or there was a network error (the network "
                    "fails later, on purpose)"});
}

TEST(NcclFails, WithoutAWord) {
  Outcome stalled{"NCCL: no answer for 5 s (--rank-timeout, or the timeout of "
                  "fp8.Group, has more patience), "
                  "though all ranks are there"};
  std::vector<Outcome> outcomes = endOfRun(5);
  EXPECT_TRUE(outcomes[0] == stalled || outcomes[1] == stalled)
      << outcomes[0][0] << "; " << outcomes[1][0];
}

TEST(NcclMissing, IsSaidWhereItIsAskedFor) {
  // Both find the mistake, and the first of them may have ended the other.
  std::vector<Outcome> outcomes = endOfRun();
  bool isFirst = outcomes[0].at(0) != "another rank has ended all";
  std::string text = outcomes[isFirst ? 0 : 1].at(0);
  EXPECT_EQ(text.find("rank 0 of 2: FP8_GPU_COLLECTIVES asks for NCCL, but "
                      "this rank cannot use it: "),
            0u)
      << text;
  EXPECT_NE(text.find("libnccl.so.2"), std::string::npos) << text;
}

TEST(NcclMissing, IsNoMistakeElsewhere) {
  expectSame(2, {describe(FP8_REDUCE_MEAN, FP8_DTYPE_F32, elements)});
}
