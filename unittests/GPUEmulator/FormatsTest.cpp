//===- FormatsTest.cpp - Small formats compared with LLVM's APFloat -------===//

#include "Formats.h"

#include "llvm/ADT/APFloat.h"
#include "gtest/gtest.h"

#include <cmath>
#include <random>

using namespace fp8::emulator;

static double fromAPFloat(const llvm::fltSemantics &semantics, unsigned bits,
                          uint32_t code) {
  llvm::APFloat value(semantics, llvm::APInt(bits, code));
  bool losesInfo;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToDouble();
}

static uint32_t toAPFloat(const llvm::fltSemantics &semantics, float number) {
  llvm::APFloat value(number);
  bool losesInfo;
  value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return static_cast<uint32_t>(value.bitcastToAPInt().getZExtValue());
}

static void compare(Format format, const llvm::fltSemantics &semantics,
                    double largest) {
  unsigned bits = bitsOf(format);
  std::vector<float> samples;
  for (uint32_t code = 0; code < 1u << bits; ++code) {
    double expected = fromAPFloat(semantics, bits, code);
    double got = decode(format, code);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got)) << code;
      continue;
    }
    EXPECT_EQ(got, expected) << code;
    EXPECT_EQ(std::signbit(got), std::signbit(expected)) << code;
    if (std::isinf(expected))
      continue;
    // Each value, the midpoint to the next one, and that midpoint's neighbours.
    double next = fromAPFloat(semantics, bits, code + 1);
    float half = static_cast<float>((expected + next) / 2);
    for (float sample :
         {static_cast<float>(expected), half, std::nextafter(half, 0.0f),
          std::nextafter(half, INFINITY)})
      samples.push_back(sample);
  }
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i)
    samples.push_back(asFloat(random()));
  for (float sample : samples) {
    if (std::isnan(sample))
      continue;
    uint32_t saturated = encode(format, sample, true);
    if (std::fabs(sample) <= largest) {
      EXPECT_EQ(saturated, toAPFloat(semantics, sample)) << sample;
      EXPECT_EQ(encode(format, sample, false), saturated) << sample;
    } else {
      EXPECT_EQ(decode(format, saturated),
                std::copysign(largest, double(sample)))
          << sample;
    }
  }
}

TEST(Formats, AreLLVMs) {
  compare(Format::E4M3, llvm::APFloat::Float8E4M3FN(), 448);
  compare(Format::E5M2, llvm::APFloat::Float8E5M2(), 57344);
  compare(Format::F16, llvm::APFloat::IEEEhalf(), 65504);
  compare(Format::BF16, llvm::APFloat::BFloat(),
          fromAPFloat(llvm::APFloat::BFloat(), 16, 0x7f7f));
}

TEST(Formats, NaNsAreCanonical) {
  EXPECT_EQ(encode(Format::E4M3, NAN, true), 0x7fu);
  EXPECT_EQ(encode(Format::E5M2, NAN, true), 0x7fu);
  EXPECT_EQ(encode(Format::E4M3, INFINITY, true), 0x7eu);
  EXPECT_EQ(encode(Format::E5M2, -INFINITY, true), 0xfbu);
  EXPECT_EQ(encode(Format::E5M2, INFINITY, false), 0x7cu);
}
