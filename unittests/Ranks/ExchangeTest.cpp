//===- ExchangeTest.cpp - Exchanges of parts between ranks ----------------===//

#include "RanksInMemory.h"

using namespace fp8::test;

namespace {

using Values = std::vector<std::vector<int32_t>>; // by rank

/// The settings of the entry below, for this thread.
struct ExchangeWork {
  fp8_exchange what;
  const std::vector<int32_t> *in;
  std::vector<int32_t> *out;
  int repeats;
};
thread_local ExchangeWork *exchangeWork;

/// Several exchanges of one number are in flight at once, as in a loop.
void exchangeEntry(fp8_step *step) {
  auto *arena = static_cast<char *>(fp8_operand(step, 0));
  auto inBytes = static_cast<int64_t>(exchangeWork->in->size() * 4);
  auto outBytes = static_cast<int64_t>(exchangeWork->out->size() * 4);
  std::memcpy(arena, exchangeWork->in->data(), inBytes);
  const int64_t operands[2] = {0, 0};
  for (int i = 0; i < exchangeWork->repeats; ++i) {
    const int64_t offsets[2] = {0, inBytes + i * outBytes};
    std::memset(arena + offsets[1], 0x55, outBytes);
    fp8_exchange_start(step, 3, &exchangeWork->what, operands, offsets, 2);
  }
  fp8_wait(step, 3);
  for (int i = 1; i < exchangeWork->repeats; ++i)
    EXPECT_EQ(
        std::memcmp(arena + inBytes, arena + inBytes + i * outBytes, outBytes),
        0);
  std::memcpy(exchangeWork->out->data(), arena + inBytes, outBytes);
}

fp8_status exchangeOn(fp8_group *group, ExchangeWork work) {
  Builder builder("exchanger", exchangeEntry);
  builder.desc.arena_bytes = 1 << 16;
  Executable executable(builder.build());
  fp8_step *step = nullptr;
  EXPECT_EQ(fp8_step_create(executable, 1, &step), FP8_OK);
  EXPECT_EQ(fp8_step_set_group(step, group), FP8_OK);
  exchangeWork = &work;
  fp8_status status = fp8_step_run(step);
  fp8_step_destroy(step);
  return status;
}

fp8_exchange describe(fp8_exchange_kind kind, int64_t elements,
                      const std::vector<int64_t> &ranks, int64_t groupSize) {
  return {"parts",       kind,
          elements * 4,  static_cast<int64_t>(ranks.size()) / groupSize,
          groupSize,     ranks.data(),
          FP8_DTYPE_I32, /*summed=*/0};
}

/// Runs the exchange over both transports of the tests and expects equal
/// results.
Values exchange(const fp8_exchange &what, const Values &in, size_t outSize) {
  Values results(in.size(), std::vector<int32_t>(outSize));
  runRanks(static_cast<int64_t>(in.size()), [&](fp8_group *group,
                                                int64_t rank) {
    EXPECT_EQ(exchangeOn(group, {what, &in[rank], &results[rank], 3}), FP8_OK)
        << fp8_last_error();
  });

  Values others(in.size(), std::vector<int32_t>(outSize));
  TempDir dir;
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < in.size(); ++rank)
    threads.emplace_back([&, rank] {
      std::string transport = std::string(TRANSPORT) + ":dir=" + dir.path +
                              ",rank=" + std::to_string(rank) +
                              ",ranks=" + std::to_string(in.size());
      fp8_group_options options = {};
      options.transport = transport.c_str();
      options.timeout = 60;
      fp8_group *group = nullptr;
      EXPECT_EQ(fp8_group_create(&options, &group), FP8_OK) << fp8_last_error();
      EXPECT_EQ(exchangeOn(group, {what, &in[rank], &others[rank], 2}), FP8_OK)
          << fp8_last_error();
      fp8_group_destroy(group);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(results, others);
  return results;
}

} // namespace

TEST(Exchange, Gather) {
  // Groups of a mesh [2, 2] along its first axis, in a different order than the
  // ranks'.
  auto results = exchange(describe(FP8_EXCHANGE_GATHER, 2, {2, 0, 1, 3}, 2),
                          {{1, 2}, {11, 12}, {21, 22}, {31, 32}}, 4);
  EXPECT_EQ(
      results,
      (Values{
          {21, 22, 1, 2}, {11, 12, 31, 32}, {21, 22, 1, 2}, {11, 12, 31, 32}}));
}

TEST(Exchange, AllToAll) {
  auto results = exchange(describe(FP8_EXCHANGE_ALL_TO_ALL, 1, {0, 1, 2}, 3),
                          {{0, 1, 2}, {10, 11, 12}, {20, 21, 22}}, 3);
  EXPECT_EQ(results, (Values{{0, 10, 20}, {1, 11, 21}, {2, 12, 22}}));
}

TEST(Exchange, Permute) {
  // A pipeline: the first rank receives nothing.
  auto pipeline = exchange(describe(FP8_EXCHANGE_PERMUTE, 2, {0, 1, 1, 2}, 2),
                           {{1, 2}, {11, 12}, {21, 22}}, 2);
  EXPECT_EQ(pipeline, (Values{{0, 0}, {1, 2}, {11, 12}}));
  // One rank sends to all, including itself.
  auto broadcast =
      exchange(describe(FP8_EXCHANGE_PERMUTE, 1, {1, 0, 1, 1, 1, 2}, 2),
               {{1}, {2}, {3}}, 1);
  EXPECT_EQ(broadcast, (Values{{2}, {2}, {2}}));
}

TEST(Exchange, OneRankAlone) {
  std::vector<int32_t> in = {7, 8}, out(2);
  std::vector<int64_t> ranks = {0};
  for (fp8_exchange_kind kind :
       {FP8_EXCHANGE_GATHER, FP8_EXCHANGE_ALL_TO_ALL}) {
    out = {0, 0};
    EXPECT_EQ(exchangeOn(nullptr, {describe(kind, 2, ranks, 1), &in, &out, 2}),
              FP8_OK);
    EXPECT_EQ(out, in);
  }
}

TEST(Exchange, Errors) {
  std::vector<int32_t> in = {7}, out(2);
  std::vector<int64_t> ranks = {0, 1};
  EXPECT_EQ(exchangeOn(nullptr, {describe(FP8_EXCHANGE_GATHER, 1, ranks, 2),
                                 &in, &out, 1}),
            FP8_ERROR_INTERNAL);
  EXPECT_NE(std::string(fp8_last_error())
                .find("expected at least 2 ranks, which the step was written "
                      "for, but got 1"),
            std::string::npos)
      << fp8_last_error();
  ranks = {1};
  runRanks(2, [&](fp8_group *group, int64_t rank) {
    if (rank == 0) {
      EXPECT_NE(exchangeOn(group, {describe(FP8_EXCHANGE_GATHER, 1, ranks, 1),
                                   &in, &out, 1}),
                FP8_OK);
      EXPECT_NE(std::string(fp8_last_error()).find("it is in none of them"),
                std::string::npos)
          << fp8_last_error();
    }
  });
}
