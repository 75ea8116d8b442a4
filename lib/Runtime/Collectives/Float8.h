//===- Float8.h - The f8 formats on the wire --------------------*- C++ -*-===//
//
// Rounds to nearest, ties to even, and saturates, as the compiler's own
// conversions do. Infinities and NaN are preserved. The code has no branches,
// so that loops over it vectorize. It also compiles for GPUs, so it uses
// nothing of the standard library.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_COLLECTIVES_FLOAT8_H
#define FP8_LIB_RUNTIME_COLLECTIVES_FLOAT8_H

#include <stdint.h>

namespace fp8::rt {

inline uint32_t bitsOf(float value) {
  return __builtin_bit_cast(uint32_t, value);
}

inline float floatOf(uint32_t bits) { return __builtin_bit_cast(float, bits); }

struct E4M3FN {
  static constexpr int mantissa = 3;
  static constexpr int minExponent = -6; // of a normal number
  static constexpr uint32_t largest = 0x7e, infinity = 0x7f, nan = 0x7f;
  static constexpr float max = 448;
};

struct E5M2 {
  static constexpr int mantissa = 2;
  static constexpr int minExponent = -14;
  static constexpr uint32_t largest = 0x7b, infinity = 0x7c, nan = 0x7e;
  static constexpr float max = 57344;
};

/// Returns the code of `value`. If it is finite and rounds to more than the
/// largest code, it saturates and `saturated` is incremented.
template <typename Format>
inline uint8_t encodeFloat8(float value, int64_t &saturated) {
  constexpr int dropped = 23 - Format::mantissa;
  constexpr uint32_t smallestNormal =
      static_cast<uint32_t>(127 + Format::minExponent) << 23;
  // The unit in the last place of this number is the smallest code.
  constexpr uint32_t magic =
      static_cast<uint32_t>(127 + Format::minExponent + dropped) << 23;
  uint32_t bits = bitsOf(value), sign = (bits >> 24) & 0x80;
  bits &= 0x7fffffff;
  uint32_t small = bitsOf(floatOf(bits) + floatOf(magic)) - magic;
  uint32_t rounded =
      (bits + ((1u << (dropped - 1)) - 1) + ((bits >> dropped) & 1)) >> dropped;
  uint32_t normal = rounded - (static_cast<uint32_t>(126 + Format::minExponent)
                               << Format::mantissa);
  uint32_t code = bits < smallestNormal ? small : normal;
  bool isBeyond = code > Format::largest;
  code = isBeyond ? Format::largest : code;
  bool isFinite = bits < 0x7f800000;
  saturated += isBeyond && isFinite;
  code = isFinite ? code : bits == 0x7f800000 ? Format::infinity : Format::nan;
  return static_cast<uint8_t>(sign | code);
}

template <typename Format> inline float decodeFloat8(uint8_t code) {
  uint32_t magnitude = code & 0x7f;
  uint32_t sign = static_cast<uint32_t>(code & 0x80) << 24;
  if (magnitude > Format::largest)
    return floatOf(
        sign | (magnitude == Format::infinity && Format::infinity != Format::nan
                    ? 0x7f800000
                    : 0x7fc00000));
  uint32_t fraction = magnitude & ((1u << Format::mantissa) - 1);
  int exponent = static_cast<int>(magnitude >> Format::mantissa);
  float unit = floatOf(static_cast<uint32_t>(127 + Format::minExponent -
                                             Format::mantissa +
                                             (exponent ? exponent - 1 : 0))
                       << 23);
  float value = unit * static_cast<float>(
                           fraction + (exponent ? 1u << Format::mantissa : 0u));
  return floatOf(sign | bitsOf(value));
}

/// Rounds to bf16, to nearest, ties to even.
inline uint16_t encodeBFloat16(float value) {
  uint32_t bits = bitsOf(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline float decodeBFloat16(uint16_t code) {
  return floatOf(static_cast<uint32_t>(code) << 16);
}

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_COLLECTIVES_FLOAT8_H
