//===- SchemesTest.cpp - Schemes for sums of gradients in FP8 -------------===//
//
// Sums the same gradients as the runtime does and by other schemes: scaled down
// by the number of ranks before rounding, not scaled, or rounded after every
// addition (a ring of FP8 sums). docs/Numerics.md has the results.
//
//===----------------------------------------------------------------------===//

#include "RanksInMemory.h"

#include "../../lib/Runtime/Collectives/Float8.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace fp8::test;
using fp8::rt::E4M3FN;

namespace {

constexpr int64_t elements = 1 << 15;

/// Returns the gradients of one step; rho is the part of the variance that all
/// ranks share.
std::vector<std::vector<float>> makeGradients(int64_t ranks, float rho) {
  std::vector<float> common = Gradients(1).tensor(elements);
  std::vector<std::vector<float>> all;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    all.push_back(Gradients(100 + rank).tensor(elements));
    for (int64_t i = 0; i < elements; ++i)
      all.back()[i] =
          std::sqrt(rho) * common[i] + std::sqrt(1 - rho) * all.back()[i];
  }
  return all;
}

float roundToFloat8(float value, int64_t &saturated) {
  return fp8::rt::decodeFloat8<E4M3FN>(
      fp8::rt::encodeFloat8<E4M3FN>(value, saturated));
}

struct Quality {
  double snr = 0;       // dB
  double underflow = 0; // fraction of the gradients that became zero
  double overflow = 0;  // fraction of the sums that saturated
};

double snrOf(const std::vector<double> &exact, const std::vector<float> &got) {
  double signal = 0, noise = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    signal += exact[i] * exact[i];
    noise += (exact[i] - got[i]) * (exact[i] - got[i]);
  }
  return 10 * std::log10(signal / noise);
}

std::vector<double> sumExactly(const std::vector<std::vector<float>> &all) {
  std::vector<double> sums(elements, 0);
  for (const std::vector<float> &each : all)
    for (int64_t i = 0; i < elements; ++i)
      sums[i] += each[i];
  return sums;
}

/// Sums with one shared scale, gradients multiplied by mu before rounding; the
/// sum is in FP8 too, rounded once or after every addition.
Quality sumInFloat8(const std::vector<std::vector<float>> &all, float mu,
                    bool isRing) {
  float amax = 0;
  for (const std::vector<float> &each : all)
    for (float value : each)
      amax = std::max(amax, std::fabs(value));
  float scale = E4M3FN::max / amax * mu;
  std::vector<float> sums(elements, 0);
  int64_t ignored = 0, saturated = 0, zeros = 0;
  for (const std::vector<float> &each : all)
    for (int64_t i = 0; i < elements; ++i) {
      float code = roundToFloat8(each[i] * scale, ignored);
      zeros += code == 0;
      sums[i] += code;
      if (isRing)
        sums[i] = roundToFloat8(sums[i], saturated);
    }
  for (float &sum : sums)
    sum = roundToFloat8(sum, saturated) / scale;
  Quality quality;
  quality.snr = snrOf(sumExactly(all), sums);
  quality.underflow =
      static_cast<double>(zeros) / static_cast<double>(elements * all.size());
  quality.overflow = static_cast<double>(saturated) / elements;
  return quality;
}

double sumOverRanks(const std::vector<std::vector<float>> &all) {
  fp8_all_reduce what =
      describe(FP8_REDUCE_SUM, FP8_DTYPE_F32, elements, FP8_WIRE_F8_E4M3FN);
  return snrOf(sumExactly(all), reduceAll(what, all)[0]);
}

} // namespace

TEST(Schemes, OnlySumsInF32KeepTheSignalEverywhere) {
  std::printf("rho   ranks  runtime  pre   under  post  over   1/sqrt  ring\n");
  for (float rho : {0.0f, 0.95f})
    for (int64_t ranks : {8, 64, 256}) {
      auto all = makeGradients(ranks, rho);
      auto n = static_cast<float>(ranks);
      Quality pre = sumInFloat8(all, 1 / n, false);
      Quality post = sumInFloat8(all, 1, false);
      Quality root = sumInFloat8(all, 1 / std::sqrt(n), false);
      Quality ring = sumInFloat8(all, 1 / n, true);
      double runtime = sumOverRanks(all);
      std::printf("%.2f  %-5d  %-7.1f  %-4.1f  %-5.1f  %-4.1f  %-5.2f  %-6.1f  "
                  "%.1f\n",
                  rho, static_cast<int>(ranks), runtime, pre.snr,
                  pre.underflow * 100, post.snr, post.overflow * 100, root.snr,
                  ring.snr);
      EXPECT_GE(runtime, 25);
      // Each of the other schemes fails somewhere: rounding before the sum
      // loses small gradients, ...
      if (rho == 0 && ranks == 256) {
        EXPECT_GT(pre.underflow, 0.05);
        EXPECT_LT(pre.snr, runtime - 2);
      }
      // ... without scaling, sums saturate if gradients agree, ...
      if (rho > 0) {
        EXPECT_GT(post.overflow, 0.001);
        EXPECT_LT(post.snr, 15);
        EXPECT_LT(root.snr, 25);
      }
      // ... and long sums in FP8 lose the last terms.
      if (ranks >= 64) {
        EXPECT_LT(ring.snr, 18);
        if (rho > 0)
          EXPECT_LT(ring.snr, ranks == 64 ? 8 : 4);
      }
    }
}
