//===- Formats.cpp - Small floating-point formats -------------------------===//

#include "Formats.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace fp8::emulator {

namespace {
struct Layout {
  int exponentBits, mantissaBits;
  bool hasInfinity;
};
} // namespace

static Layout layoutOf(Format format) {
  switch (format) {
  case Format::E4M3:
    return {4, 3, false};
  case Format::E5M2:
    return {5, 2, true};
  case Format::F16:
    return {5, 10, true};
  case Format::BF16:
    return {8, 7, true};
  case Format::TF32:
    return {8, 10, true};
  case Format::F32:
    return {8, 23, true};
  }
  return {8, 23, true};
}

unsigned bitsOf(Format format) {
  switch (format) {
  case Format::E4M3:
  case Format::E5M2:
    return 8;
  case Format::F16:
  case Format::BF16:
    return 16;
  case Format::TF32:
  case Format::F32:
    return 32;
  }
  return 32;
}

const char *nameOfFormat(Format format) {
  switch (format) {
  case Format::E4M3:
    return "e4m3";
  case Format::E5M2:
    return "e5m2";
  case Format::F16:
    return "f16";
  case Format::BF16:
    return "bf16";
  case Format::TF32:
    return "tf32";
  case Format::F32:
    return "f32";
  }
  return "";
}

double elementOf(const uint64_t *registers, unsigned index, Format format) {
  unsigned bits = bitsOf(format), perRegister = 32 / bits;
  uint64_t word =
      registers[index / perRegister] >> (index % perRegister) * bits;
  return decode(format,
                static_cast<uint32_t>(word & ((uint64_t(1) << bits) - 1)));
}

float asFloat(uint64_t bits) {
  uint32_t low = static_cast<uint32_t>(bits);
  float value;
  std::memcpy(&value, &low, sizeof(value));
  return value;
}

uint32_t asBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

double decode(Format format, uint32_t bits) {
  // A TF32 element is an f32 whose last 13 bits are ignored.
  if (format == Format::TF32)
    bits >>= 13;
  Layout layout = layoutOf(format);
  int bias = (1 << (layout.exponentBits - 1)) - 1;
  uint32_t mantissa = bits & ((1u << layout.mantissaBits) - 1);
  uint32_t top = (1u << layout.exponentBits) - 1;
  uint32_t exponent = (bits >> layout.mantissaBits) & top;
  bool isNegative = (bits >> (layout.mantissaBits + layout.exponentBits)) & 1;
  double sign = isNegative ? -1 : 1;
  if (layout.hasInfinity && exponent == top)
    return mantissa ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  if (!layout.hasInfinity && exponent == top &&
      mantissa == (1u << layout.mantissaBits) - 1)
    return std::numeric_limits<double>::quiet_NaN();
  double fraction = std::ldexp(mantissa, -layout.mantissaBits);
  if (exponent == 0)
    return sign * std::ldexp(fraction, 1 - bias);
  return sign * std::ldexp(1 + fraction, static_cast<int>(exponent) - bias);
}

uint32_t encode(Format format, double value, bool saturate) {
  Layout layout = layoutOf(format);
  int width = layout.mantissaBits + layout.exponentBits;
  uint32_t top = (1u << layout.exponentBits) - 1;
  uint32_t sign = std::signbit(value) ? 1u << width : 0;
  uint32_t infinity = top << layout.mantissaBits;
  // Canonical NaNs are 0x7f for f8 and 0x7fff for f16 and bf16.
  uint32_t nan = (1u << width) - 1;
  uint32_t largest = layout.hasInfinity ? infinity - 1 : nan - 1;
  unsigned shift = format == Format::TF32 ? 13 : 0;
  if (std::isnan(value))
    return nan << shift;
  double magnitude = std::fabs(value);
  int bias = (1 << (layout.exponentBits - 1)) - 1;
  int exponent = 1 - bias;
  if (magnitude > 0 && std::isfinite(magnitude))
    exponent = std::max(exponent, std::ilogb(magnitude));
  // Round in units of the last place; nearbyint rounds ties to even. A carry
  // into the next binade gives the right result.
  double units =
      std::nearbyint(std::ldexp(magnitude, layout.mantissaBits - exponent));
  double first = std::ldexp(1.0, layout.mantissaBits);
  uint32_t code = largest + 1;
  if (std::isfinite(units) && exponent + bias < static_cast<int>(top) + 1) {
    uint64_t base = static_cast<uint64_t>(exponent + bias)
                    << layout.mantissaBits;
    uint64_t whole = units < first
                         ? static_cast<uint64_t>(units)
                         : base + static_cast<uint64_t>(units - first);
    code = whole > largest ? largest + 1 : static_cast<uint32_t>(whole);
  }
  if (code > largest)
    code = saturate ? largest : layout.hasInfinity ? infinity : nan;
  return (sign | code) << shift;
}

} // namespace fp8::emulator
