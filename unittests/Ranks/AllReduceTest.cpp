//===- AllReduceTest.cpp - Reductions over ranks --------------------------===//

#include "RanksInMemory.h"

#include "../../lib/Runtime/Collectives/Float8.h"

#include <cmath>
#include <limits>

using namespace fp8::test;

namespace {
/// Expects the same bytes on all ranks.
template <typename T>
void expectEqualRanks(const std::vector<std::vector<T>> &results) {
  for (const std::vector<T> &each : results)
    EXPECT_EQ(
        std::memcmp(each.data(), results[0].data(), each.size() * sizeof(T)),
        0);
}

template <typename T>
std::vector<std::vector<T>> randomIntegers(int64_t ranks, int64_t elements) {
  std::mt19937_64 engine(3);
  std::vector<std::vector<T>> values(ranks, std::vector<T>(elements));
  for (std::vector<T> &each : values)
    for (T &value : each)
      value = static_cast<T>(engine());
  return values;
}

std::vector<std::vector<float>> randomGradients(int64_t ranks,
                                                int64_t elements) {
  std::vector<std::vector<float>> values;
  for (int64_t rank = 0; rank < ranks; ++rank)
    values.push_back(Gradients(17 + rank).tensor(elements));
  return values;
}

template <typename T> void checkIntegers(fp8_dtype dtype) {
  for (fp8_reduction reduction :
       {FP8_REDUCE_SUM, FP8_REDUCE_MAX, FP8_REDUCE_MIN}) {
    auto values = randomIntegers<T>(3, 1001);
    auto results = reduceAll(describe(reduction, dtype, 1001), values);
    expectEqualRanks(results);
    for (size_t i = 0; i < results[0].size(); ++i) {
      T a = values[0][i], b = values[1][i], c = values[2][i];
      T expected = reduction == FP8_REDUCE_SUM
                       ? static_cast<T>(static_cast<uint64_t>(a) + b + c)
                   : reduction == FP8_REDUCE_MAX ? std::max({a, b, c})
                                                 : std::min({a, b, c});
      ASSERT_EQ(results[0][i], expected);
    }
  }
}
} // namespace

//===----------------------------------------------------------------------===//
// Exact wires
//===----------------------------------------------------------------------===//

TEST(AllReduce, SumsInTheOrderOfRanks) {
  for (int64_t ranks : {2, 3, 8})
    for (int64_t elements : {0, 1, 5, 1000, 100003}) {
      auto values = randomGradients(ranks, elements);
      for (fp8_reduction reduction : {FP8_REDUCE_SUM, FP8_REDUCE_MEAN}) {
        auto results =
            reduceAll(describe(reduction, FP8_DTYPE_F32, elements), values);
        expectEqualRanks(results);
        for (int64_t i = 0; i < elements; ++i) {
          float sum = values[0][i];
          for (int64_t rank = 1; rank < ranks; ++rank)
            sum += values[rank][i];
          if (reduction == FP8_REDUCE_MEAN)
            sum /= static_cast<float>(ranks);
          ASSERT_EQ(results[0][i], sum);
        }
      }
    }
}

TEST(AllReduce, Integers) {
  checkIntegers<uint8_t>(FP8_DTYPE_U8);
  checkIntegers<int8_t>(FP8_DTYPE_I8);
  checkIntegers<uint16_t>(FP8_DTYPE_U16);
  checkIntegers<int16_t>(FP8_DTYPE_I16);
  checkIntegers<uint32_t>(FP8_DTYPE_U32);
  checkIntegers<int32_t>(FP8_DTYPE_I32);
  checkIntegers<uint64_t>(FP8_DTYPE_U64);
  checkIntegers<int64_t>(FP8_DTYPE_I64);
}

TEST(AllReduce, DoublesAndNarrowFloats) {
  std::vector<std::vector<double>> doubles = {{1e300, 1}, {-1e300, 1e-20}};
  auto sums = reduceAll(describe(FP8_REDUCE_SUM, FP8_DTYPE_F64, 2), doubles);
  EXPECT_EQ(sums[1], (std::vector<double>{0, 1}));

  // 256 + 1 + 1 is 258 in f32, which bf16 represents; in bf16 it would be 256.
  std::vector<std::vector<uint16_t>> narrow = {{fp8::rt::encodeBFloat16(256)},
                                               {fp8::rt::encodeBFloat16(1)},
                                               {fp8::rt::encodeBFloat16(1)}};
  auto result = reduceAll(describe(FP8_REDUCE_SUM, FP8_DTYPE_BF16, 1), narrow);
  EXPECT_EQ(fp8::rt::decodeBFloat16(result[2][0]), 258);

  std::vector<std::vector<_Float16>> halves = {{2048}, {1}, {1}};
  EXPECT_EQ(reduceAll(describe(FP8_REDUCE_SUM, FP8_DTYPE_F16, 1), halves)[0][0],
            static_cast<_Float16>(2050));
}

TEST(AllReduce, NaNWinsAndInfinityStays) {
  float nan = std::numeric_limits<float>::quiet_NaN();
  float inf = std::numeric_limits<float>::infinity();
  std::vector<std::vector<float>> values = {{nan, 1, 1, inf}, {1, nan, 2, 1}};
  for (fp8_reduction reduction :
       {FP8_REDUCE_SUM, FP8_REDUCE_MAX, FP8_REDUCE_MIN}) {
    auto results = reduceAll(describe(reduction, FP8_DTYPE_F32, 4), values);
    EXPECT_TRUE(std::isnan(results[0][0]));
    EXPECT_TRUE(std::isnan(results[1][1]));
    EXPECT_EQ(results[0][3], reduction == FP8_REDUCE_MIN ? 1 : inf);
  }
}

TEST(AllReduce, Bools) {
  std::vector<std::vector<uint8_t>> values = {{0, 1, 1}, {0, 0, 1}};
  auto reduce = [&](fp8_reduction reduction) {
    return reduceAll(describe(reduction, FP8_DTYPE_BOOL, 3), values)[0];
  };
  EXPECT_EQ(reduce(FP8_REDUCE_MAX), (std::vector<uint8_t>{0, 1, 1}));
  EXPECT_EQ(reduce(FP8_REDUCE_MIN), (std::vector<uint8_t>{0, 0, 1}));
}

TEST(AllReduce, BFloat16OnTheWire) {
  auto values = randomGradients(3, 777);
  auto results = reduceAll(
      describe(FP8_REDUCE_MEAN, FP8_DTYPE_F32, 777, FP8_WIRE_BF16), values);
  expectEqualRanks(results);
  auto round = [](float value) {
    return fp8::rt::decodeBFloat16(fp8::rt::encodeBFloat16(value));
  };
  for (int64_t i = 0; i < 777; ++i)
    ASSERT_EQ(results[0][i], round((round(values[0][i]) + round(values[1][i]) +
                                    round(values[2][i])) /
                                   3));
}

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

namespace {
/// Returns the nearest code, the even one on ties; saturates.
template <typename Format> uint8_t nearestCode(float value) {
  uint8_t best = 0;
  double distance = INFINITY;
  for (uint32_t code = 0; code <= Format::largest; ++code) {
    double off = std::fabs(static_cast<double>(fp8::rt::decodeFloat8<Format>(
                               static_cast<uint8_t>(code))) -
                           std::fabs(value));
    if (off < distance || (off == distance && code % 2 == 0)) {
      best = static_cast<uint8_t>(code);
      distance = off;
    }
  }
  return best | (std::signbit(value) ? 0x80 : 0);
}

template <typename Format> void checkCodes() {
  int64_t saturated = 0;
  for (int code = 0; code < 256; ++code) {
    float value = fp8::rt::decodeFloat8<Format>(static_cast<uint8_t>(code));
    if (std::isfinite(value)) {
      EXPECT_EQ(fp8::rt::encodeFloat8<Format>(value, saturated), code);
      // Values between two codes, at ties, and close to them.
      for (float scale : {1.03f, 1.0625f, 1.125f, 1.1875f, 0.97f}) {
        float near = value * scale;
        EXPECT_EQ(fp8::rt::encodeFloat8<Format>(near, saturated),
                  nearestCode<Format>(near))
            << near;
      }
    }
  }
  saturated = 0;
  // All bf16 values.
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    float value = fp8::rt::decodeBFloat16(static_cast<uint16_t>(bits));
    // Doubles do not resolve the distances of larger values.
    if (!(std::fabs(value) < 1e6f))
      continue;
    ASSERT_EQ(fp8::rt::encodeFloat8<Format>(value, saturated),
              nearestCode<Format>(value))
        << value;
  }
  EXPECT_GT(saturated, 0);
  saturated = 0;
  EXPECT_FALSE(std::isfinite(fp8::rt::decodeFloat8<Format>(
      fp8::rt::encodeFloat8<Format>(INFINITY, saturated))));
  EXPECT_TRUE(std::isnan(fp8::rt::decodeFloat8<Format>(
      fp8::rt::encodeFloat8<Format>(NAN, saturated))));
  EXPECT_EQ(saturated, 0);
}
} // namespace

TEST(Float8, IsTheNearestCode) {
  checkCodes<fp8::rt::E4M3FN>();
  checkCodes<fp8::rt::E5M2>();
  EXPECT_EQ(fp8::rt::decodeFloat8<fp8::rt::E4M3FN>(0x7e), 448);
  EXPECT_EQ(fp8::rt::decodeFloat8<fp8::rt::E4M3FN>(0x01), 0.001953125f);
  EXPECT_EQ(fp8::rt::decodeFloat8<fp8::rt::E5M2>(0x7b), 57344);
  EXPECT_TRUE(std::isinf(fp8::rt::decodeFloat8<fp8::rt::E5M2>(0x7c)));
}

namespace {
/// Returns the signal-to-noise ratio of results against exact sums, in dB.
double snrOf(const std::vector<double> &exact, const std::vector<float> &got,
             double factor = 1) {
  double signal = 0, noise = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    double error = exact[i] - got[i] * factor;
    signal += exact[i] * exact[i];
    noise += error * error;
  }
  return 10 * std::log10(signal / noise);
}

std::vector<double> exactSums(const std::vector<std::vector<float>> &values) {
  std::vector<double> sums(values[0].size(), 0);
  for (const std::vector<float> &each : values)
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] += each[i];
  return sums;
}
} // namespace

TEST(Float8Wire, KeepsTheSignal) {
  constexpr int64_t elements = 1 << 14;
  for (int64_t ranks : {2, 8, 64, 256})
    for (int64_t block : {0, 128}) {
      auto values = randomGradients(ranks, elements);
      std::vector<double> exact = exactSums(values);
      fp8_all_reduce what = describe(FP8_REDUCE_SUM, FP8_DTYPE_F32, elements,
                                     FP8_WIRE_F8_E4M3FN, block);
      auto results = reduceAll(what, values);
      expectEqualRanks(results);
      double snr = snrOf(exact, results[0]);
      RecordProperty("snr_" + std::to_string(ranks) + "_" +
                         std::to_string(block),
                     std::to_string(snr));
      EXPECT_GE(snr, 25) << ranks << " ranks, blocks of " << block;
      EXPECT_LE(snr, 40); // the wire is FP8
    }
}

TEST(Float8Wire, MeanIsTheSumDividedAndTypesAreKept) {
  auto values = randomGradients(4, 1000);
  auto sum = reduceAll(
      describe(FP8_REDUCE_SUM, FP8_DTYPE_F32, 1000, FP8_WIRE_F8_E5M2, 128),
      values);
  auto mean = reduceAll(
      describe(FP8_REDUCE_MEAN, FP8_DTYPE_F32, 1000, FP8_WIRE_F8_E5M2, 128),
      values);
  for (size_t i = 0; i < 1000; ++i)
    ASSERT_EQ(mean[0][i] * 4, sum[0][i]);
  EXPECT_GE(snrOf(exactSums(values), sum[0]), 19); // two bits
}

TEST(Float8Wire, WhatIsNotFiniteSurvives) {
  for (fp8_wire wire : {FP8_WIRE_F8_E4M3FN, FP8_WIRE_F8_E5M2})
    for (int64_t block : {0, 128}) {
      auto values = randomGradients(3, 500);
      values[1][7] = NAN;
      values[2][300] = INFINITY;
      std::vector<std::array<float, 2>> controls(3);
      auto results =
          reduceAll(describe(FP8_REDUCE_SUM, FP8_DTYPE_F32, 500, wire, block),
                    values, &controls);
      expectEqualRanks(results);
      for (size_t i = 0; i < 500; ++i)
        EXPECT_EQ(std::isfinite(results[0][i]), i != 7 && i != 300) << i;
      EXPECT_TRUE(std::isnan(results[0][7]));
      if (wire == FP8_WIRE_F8_E5M2)
        EXPECT_EQ(results[0][300], INFINITY);
      // An infinity does not mean that the scale is too small.
      EXPECT_GE(controls[0][0], 1);
      values[1][7] = values[2][300] = 0;
      EXPECT_GE(snrOf(exactSums(values),
                      [&] {
                        auto finite = results[0];
                        finite[7] = finite[300] = 0;
                        return finite;
                      }()),
                18);
    }
}

TEST(Float8Wire, ExtremeSizes) {
  float tiny = std::numeric_limits<float>::denorm_min();
  float large = std::numeric_limits<float>::max() / 4;
  for (float size : {0.0f, tiny, 1e-38f, large}) {
    std::vector<std::vector<float>> values(2, std::vector<float>(300, size));
    auto results = reduceAll(
        describe(FP8_REDUCE_MEAN, FP8_DTYPE_F32, 300, FP8_WIRE_F8_E4M3FN),
        values);
    for (float value : results[0])
      ASSERT_LE(std::fabs(value - size), size * 0.07f + 2e-41f) << size;
  }
}

//===----------------------------------------------------------------------===//
// mu
//===----------------------------------------------------------------------===//

TEST(Mu, DoublesInAThousandStepsAndHalvesWhenCodesSaturate) {
  // Equal values on all ranks: mu > 1 would saturate the largest.
  std::vector<std::vector<float>> equal(4, Gradients(5).tensor(256));
  // With opposite signs almost nothing is left, and mu may grow to N.
  auto opposite = equal;
  for (size_t i = 0; i < 256; ++i)
    opposite[1][i] = opposite[3][i] = -0.99f * equal[0][i];
  fp8_all_reduce what =
      describe(FP8_REDUCE_SUM, FP8_DTYPE_F32, 256, FP8_WIRE_F8_E4M3FN);
  std::array<float, 2> state = {};
  runRanks(4, [&](fp8_group *group, int64_t rank) {
    float control[2] = {};
    std::vector<float> out(256);
    ReduceWork work;
    work.tensors = {{what, reinterpret_cast<char *>(opposite[rank].data()),
                     reinterpret_cast<char *>(out.data()), control}};
    int64_t steps = 0;
    Executable executable(buildReducer(1 << 14));
    fp8_step *step = nullptr;
    ASSERT_EQ(fp8_step_create(executable, 1, &step), FP8_OK);
    ASSERT_EQ(fp8_step_set_group(step, group), FP8_OK);
    reduceWork = &work;
    for (; steps < 1000; ++steps)
      ASSERT_EQ(fp8_step_run(step), FP8_OK);
    EXPECT_NEAR(control[0], 2, 0.002);
    EXPECT_EQ(control[1], 1000);
    // mu = 2: sums of equal values exceed the largest code.
    work.tensors[0].in = reinterpret_cast<char *>(equal[rank].data());
    control[0] = 2;
    ASSERT_EQ(fp8_step_run(step), FP8_OK);
    EXPECT_EQ(control[0], 1);
    EXPECT_EQ(control[1], 0);
    ASSERT_EQ(fp8_step_run(step), FP8_OK);
    EXPECT_GT(control[0], 1);
    EXPECT_EQ(control[1], 1);
    // It never exceeds the number of ranks.
    work.tensors[0].in = reinterpret_cast<char *>(opposite[rank].data());
    control[0] = 4;
    ASSERT_EQ(fp8_step_run(step), FP8_OK);
    EXPECT_EQ(control[0], 4);
    if (rank == 0)
      state = {control[0], control[1]};
    fp8_step_destroy(step);
  });
  EXPECT_EQ(state[0], 4);
}

TEST(Mu, OfMoreRanksDoesNotSaturate) {
  // A run with a mu of 16 goes on with two ranks, whose gradients are alike.
  std::vector<std::vector<float>> values(2, Gradients(6).tensor(256));
  for (float &value : values[1])
    value *= -0.5f;
  std::vector<std::array<float, 2>> controls(2, {16, 100});
  auto results = reduceAll(
      describe(FP8_REDUCE_MEAN, FP8_DTYPE_F32, 256, FP8_WIRE_F8_E4M3FN), values,
      &controls);
  std::vector<double> exact = exactSums(values);
  for (double &sum : exact)
    sum /= 2;
  EXPECT_GE(snrOf(exact, results[0]), 25);
  EXPECT_EQ(controls[0][0], 2);
  EXPECT_EQ(controls[0][1], 101);
}

//===----------------------------------------------------------------------===//
// Bytes, buckets, profiles
//===----------------------------------------------------------------------===//

TEST(AllReduce, BytesOnTheWire) {
  constexpr int64_t elements = 1 << 16;
  for (int64_t ranks : {2, 8}) {
    auto values = randomGradients(ranks, elements);
    auto bytes = [&](fp8_wire wire, int64_t block) {
      int64_t sent = 0;
      reduceAll(describe(FP8_REDUCE_SUM, FP8_DTYPE_F32, elements, wire, block),
                values, nullptr, &sent);
      return static_cast<double>(sent);
    };
    double f32 = bytes(FP8_WIRE_EXACT, 0), bf16 = bytes(FP8_WIRE_BF16, 0);
    // Both transfers, of the other ranks' slices.
    EXPECT_NEAR(f32, 2.0 * 4 * elements * (ranks - 1) / ranks, 64);
    for (int64_t block : {0, 128}) {
      double f8 = bytes(FP8_WIRE_F8_E4M3FN, block);
      EXPECT_LE(f8, 0.30 * f32) << block;
      EXPECT_LE(f8, 0.55 * bf16) << block;
    }
  }
}

namespace {
/// Reduces tensors of many types and sizes.
std::vector<std::vector<char>> reduceMany(int64_t bucketBytes,
                                          bool isWaitedOneByOne) {
  std::vector<std::vector<char>> results;
  fp8_group_options options = {};
  options.bucket_bytes = bucketBytes;
  runRanks(
      3,
      [&](fp8_group *group, int64_t rank) {
        std::vector<std::vector<float>> in;
        std::vector<std::array<float, 2>> controls(12);
        ReduceWork work;
        work.isWaitedOneByOne = isWaitedOneByOne;
        const fp8_wire wires[] = {FP8_WIRE_EXACT, FP8_WIRE_F8_E4M3FN,
                                  FP8_WIRE_BF16, FP8_WIRE_F8_E5M2};
        for (int i = 0; i < 12; ++i)
          in.push_back(Gradients(rank * 100 + i).tensor(1 + i * 311));
        auto out = in;
        for (int i = 0; i < 12; ++i) {
          fp8_wire wire = wires[i % 4];
          work.tensors.push_back(
              {describe(FP8_REDUCE_MEAN, FP8_DTYPE_F32, 1 + i * 311, wire,
                        i % 3 ? 128 : 0),
               reinterpret_cast<char *>(in[i].data()),
               // Some are in place.
               reinterpret_cast<char *>(i % 5 ? out[i].data() : in[i].data()),
               i % 2 ? controls[i].data() : nullptr});
        }
        EXPECT_EQ(reduceOn(group, work), FP8_OK) << fp8_last_error();
        if (rank != 1)
          return;
        for (const ToReduce &tensor : work.tensors)
          results.emplace_back(tensor.out,
                               tensor.out + tensor.what.elements * 4);
      },
      options);
  return results;
}
} // namespace

TEST(AllReduce, BitsDoNotDependOnBuckets) {
  auto alone = reduceMany(1, true);
  ASSERT_EQ(alone.size(), 12u);
  EXPECT_EQ(reduceMany(1, false), alone);
  EXPECT_EQ(reduceMany(5000, false), alone);
  EXPECT_EQ(reduceMany(1 << 20, false), alone);
}

TEST(AllReduce, Profile) {
  runRanks(2, [&](fp8_group *group, int64_t rank) {
    std::vector<float> values(1 << 16, 1.0f), few(100, 1.0f);
    ReduceWork work;
    auto *data = reinterpret_cast<char *>(values.data()),
         *more = reinterpret_cast<char *>(few.data());
    work.tensors = {
        {describe(FP8_REDUCE_SUM, FP8_DTYPE_F32, 1 << 16), data, data},
        {describe(FP8_REDUCE_SUM, FP8_DTYPE_F32, 100), more, more}};
    Executable executable(buildReducer(1 << 20));
    fp8_step *step = nullptr;
    ASSERT_EQ(fp8_step_create(executable, 1, &step), FP8_OK);
    ASSERT_EQ(fp8_step_set_group(step, group), FP8_OK);
    fp8_step_set_profile(step, 1);
    reduceWork = &work;
    for (int i = 0; i < 3; ++i)
      ASSERT_EQ(fp8_step_run(step), FP8_OK);
    int64_t count = 0;
    const fp8_collective_stat *stats = fp8_step_collectives(step, &count);
    // Both travel together: times are shared by size, bytes are counted for
    // each.
    ASSERT_EQ(count, 2);
    for (int64_t i = 0; i < 2; ++i) {
      EXPECT_STREQ(stats[i].label, "gradient w");
      EXPECT_EQ(stats[i].number, 7 + i);
      EXPECT_EQ(stats[i].runs, 3);
      EXPECT_EQ(stats[i].bytes, 3 * (4 * work.tensors[i].what.elements + 8));
      EXPECT_GT(stats[i].seconds, 0);
      EXPECT_GT(stats[i].waited, 0);
    }
    EXPECT_NEAR(stats[0].seconds / stats[1].seconds, (1 << 16) / 100.0, 1);
    EXPECT_NEAR(stats[0].waited / stats[1].waited, (1 << 16) / 100.0, 1);
    fp8_step_destroy(step);
  });
}

//===----------------------------------------------------------------------===//
// One rank, mistakes, failures
//===----------------------------------------------------------------------===//

TEST(Group, GatherBringsTheBytesOfAll) {
  auto keep = [](void *user, const void *data, int64_t bytes) {
    static_cast<std::vector<std::string> *>(user)->emplace_back(
        static_cast<const char *>(data), bytes);
  };
  runRanks(3, [&](fp8_group *group, int64_t rank) {
    std::vector<std::string> all;
    std::string mine(rank, static_cast<char>('a' + rank));
    ASSERT_EQ(fp8_group_gather(group, mine.data(), rank, keep, &all), FP8_OK);
    EXPECT_EQ(all, (std::vector<std::string>{"", "b", "cc"}));
  });
  // Without a group, and without a callback.
  std::vector<std::string> all;
  EXPECT_EQ(fp8_group_gather(nullptr, "x", 1, keep, &all), FP8_OK);
  EXPECT_EQ(all, std::vector<std::string>{"x"});
  EXPECT_EQ(fp8_group_gather(nullptr, "x", 1, nullptr, nullptr),
            FP8_ERROR_INVALID);
}

TEST(Group, AForkedProcessIsNoRank) {
  auto ignore = [](void *, const void *, int64_t) {};
  runRanks(2, [&](fp8_group *group, int64_t rank) {
    if (rank == 0) {
      EXPECT_EQ(runInChild([&] {
                  fp8_status status =
                      fp8_group_gather(group, "", 0, ignore, nullptr);
                  bool isTold =
                      std::strstr(fp8_last_error(), "which was forked from it");
                  fp8_group_abort(group, "");
                  fp8_group_destroy(group);
                  return !(status == FP8_ERROR_RANK && isTold);
                }),
                0);
    }
    EXPECT_EQ(fp8_group_gather(group, "", 0, ignore, nullptr), FP8_OK);
  });
}

TEST(AllReduce, AloneItIsACopy) {
  std::vector<float> in = {1.2345f, NAN, 3e38f}, out(3);
  float control[2] = {0.5f, 3};
  ReduceWork work;
  work.tensors = {
      {describe(FP8_REDUCE_MEAN, FP8_DTYPE_F32, 3, FP8_WIRE_F8_E4M3FN),
       reinterpret_cast<char *>(in.data()),
       reinterpret_cast<char *>(out.data()), control}};
  for (bool hasGroup : {false, true}) {
    fp8_group *group = nullptr;
    if (hasGroup)
      ASSERT_EQ(fp8_group_create(nullptr, &group), FP8_OK) << fp8_last_error();
    EXPECT_EQ(fp8_group_rank(group), 0);
    EXPECT_EQ(fp8_group_size(group), 1);
    ASSERT_EQ(reduceOn(group, work), FP8_OK);
    EXPECT_EQ(std::memcmp(in.data(), out.data(), 12), 0);
    EXPECT_EQ(control[0], 0.5f);
    EXPECT_EQ(control[1], 3);
    fp8_group_destroy(group);
  }
}

TEST(AllReduce, MistakesOfTheCaller) {
  std::vector<double> values(4);
  auto *data = reinterpret_cast<char *>(values.data());
  auto messageOf = [&](const fp8_all_reduce &what) {
    ReduceWork work;
    work.tensors = {{what, data, data}};
    EXPECT_EQ(reduceOn(nullptr, work), FP8_ERROR_INTERNAL);
    return std::string(fp8_last_error());
  };
  EXPECT_EQ(messageOf(describe(FP8_REDUCE_MEAN, FP8_DTYPE_I32, 4)),
            "collective 7 of 'reducer' (gradient w): expected floats for a "
            "mean but got integers");
  EXPECT_EQ(
      messageOf(describe(FP8_REDUCE_MAX, FP8_DTYPE_F32, 4, FP8_WIRE_F8_E4M3FN)),
      "collective 7 of 'reducer' (gradient w): expected a sum or a mean "
      "on a narrow wire but got a maximum or minimum");
  EXPECT_EQ(
      messageOf(describe(FP8_REDUCE_SUM, FP8_DTYPE_F64, 4, FP8_WIRE_BF16)),
      "collective 7 of 'reducer' (gradient w): expected f32, bf16 or f16 "
      "on a narrow wire but got f64[]");
  EXPECT_EQ(
      messageOf(describe(FP8_REDUCE_SUM, FP8_DTYPE_F32, 4, FP8_WIRE_F8_E5M2)),
      "collective 7 of 'reducer' (gradient w): expected 3 operands but "
      "got 2");
}

TEST(AllReduce, AFailureEndsAllRanks) {
  std::atomic<int> failed{0}, told{0};
  runRanks(
      3,
      [&](fp8_group *group, int64_t rank) {
        std::vector<float> values(1000, 1.0f);
        auto *data = reinterpret_cast<char *>(values.data());
        ReduceWork work;
        work.tensors = {
            {describe(FP8_REDUCE_SUM, FP8_DTYPE_F32, 1000), data, data}};
        if (reduceOn(group, work) != FP8_ERROR_RANK)
          return;
        ++failed;
        if (rank == 1)
          EXPECT_STREQ(fp8_last_error(), "the transport fails on purpose");
        told += fp8_group_claim_failure(group);
        fp8_group_abort(group, "rank 1 fails");
      },
      {}, 1, 3);
  EXPECT_EQ(failed, 3);
  EXPECT_EQ(told, 1);
}

TEST(Group, WhatCannotBeOpened) {
  auto messageOf = [](const char *transport, fp8_status status) {
    fp8_group_options options = {};
    options.transport = transport;
    fp8_group *group = nullptr;
    EXPECT_EQ(fp8_group_create(&options, &group), status);
    EXPECT_EQ(group, nullptr);
    return std::string(fp8_last_error());
  };
  EXPECT_EQ(
      messageOf("/none.so", FP8_ERROR_IO).find("cannot open the transport"),
      0u);
  EXPECT_EQ(messageOf("libm.so.6", FP8_ERROR_FORMAT),
            "expected 'libm.so.6' to be a transport but it has no "
            "'fp8_transport_open'");
  EXPECT_EQ(messageOf(TRANSPORT ":rank=1", FP8_ERROR_RANK),
            "expected dir=DIR,rank=R,ranks=N but got 'rank=1'");
  fp8_transport transport = {};
  transport.version = 99;
  fp8_group *group = nullptr;
  EXPECT_EQ(fp8_group_adopt(&transport, nullptr, &group), FP8_ERROR_INVALID);
  EXPECT_STREQ(fp8_last_error(),
               "expected a transport of version 1 but got one of version 99");
}

/// Returns the transport of rank 0 of `ranks` whose functions need no state. It
/// fails at its first exchange and counts in `closed` how often it is closed.
static int closed = 0;
static fp8_transport transportWithoutState(int64_t ranks) {
  fp8_transport transport = {};
  transport.version = FP8_TRANSPORT_VERSION;
  transport.ranks = ranks;
  transport.start = [](void *, const fp8_message *, const fp8_message *) {
    return -1;
  };
  transport.test = [](void *, uint8_t *) { return -1; };
  transport.error = [](void *, int64_t *rank, int32_t *) -> const char * {
    *rank = 99;
    return nullptr;
  };
  transport.abort = [](void *, const char *) {};
  transport.close = [](void *) { ++closed; };
  return transport;
}

TEST(Group, ATransportNeedsNoState) {
  fp8_transport transport = transportWithoutState(1);
  fp8_group *group = nullptr;
  closed = 0;
  ASSERT_EQ(fp8_group_adopt(&transport, nullptr, &group), FP8_OK);
  EXPECT_EQ(fp8_group_barrier(group), FP8_OK);
  fp8_group_destroy(group);
  EXPECT_EQ(closed, 1);
  transport = transportWithoutState(2);
  EXPECT_EQ(fp8_group_adopt(&transport, nullptr, &group), FP8_ERROR_RANK);
  EXPECT_EQ(group, nullptr);
  EXPECT_STREQ(fp8_last_error(),
               "the transport has failed and does not say why");
  EXPECT_EQ(closed, 2);
}

TEST(Group, ATransportHasAllFunctions) {
  for (int missing = 0; missing < 5; ++missing) {
    fp8_transport transport = transportWithoutState(2);
    if (missing == 0)
      transport.start = nullptr;
    else if (missing == 1)
      transport.test = nullptr;
    else if (missing == 2)
      transport.error = nullptr;
    else if (missing == 3)
      transport.abort = nullptr;
    else
      transport.close = nullptr;
    fp8_group *group = nullptr;
    EXPECT_EQ(fp8_group_adopt(&transport, nullptr, &group), FP8_ERROR_INVALID);
    EXPECT_STREQ(fp8_last_error(), "expected a transport with all functions "
                                   "but got NULL for one of them");
  }
}
