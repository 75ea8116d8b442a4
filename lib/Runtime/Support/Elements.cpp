//===- Elements.cpp - Elements of tensors of any type ---------------------===//

#include "Elements.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace fp8::rt {

std::pair<int64_t, int64_t> integerRange(fp8_dtype dtype) {
  switch (dtype) {
  case FP8_DTYPE_BOOL:
    return {0, 1};
  case FP8_DTYPE_U8:
    return {0, UINT8_MAX};
  case FP8_DTYPE_I8:
    return {INT8_MIN, INT8_MAX};
  case FP8_DTYPE_U16:
    return {0, UINT16_MAX};
  case FP8_DTYPE_I16:
    return {INT16_MIN, INT16_MAX};
  case FP8_DTYPE_U32:
    return {0, UINT32_MAX};
  case FP8_DTYPE_I32:
    return {INT32_MIN, INT32_MAX};
  case FP8_DTYPE_U64:
    return {0, INT64_MAX};
  default:
    return {INT64_MIN, INT64_MAX};
  }
}

template <typename T> static T load(const void *data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char *>(data) + index * sizeof(T),
              sizeof(T));
  return value;
}

template <typename T> static void store(void *data, int64_t index, T value) {
  std::memcpy(static_cast<char *>(data) + index * sizeof(T), &value, sizeof(T));
}

int64_t elementAsInteger(const void *data, fp8_dtype dtype, int64_t index) {
  switch (dtype) {
  case FP8_DTYPE_BOOL:
  case FP8_DTYPE_U8:
    return load<uint8_t>(data, index);
  case FP8_DTYPE_I8:
    return load<int8_t>(data, index);
  case FP8_DTYPE_U16:
    return load<uint16_t>(data, index);
  case FP8_DTYPE_I16:
    return load<int16_t>(data, index);
  case FP8_DTYPE_U32:
    return load<uint32_t>(data, index);
  case FP8_DTYPE_I32:
    return load<int32_t>(data, index);
  case FP8_DTYPE_U64:
    // Values that int64 cannot hold become its largest: never valid tokens.
    return static_cast<int64_t>(
        std::min<uint64_t>(load<uint64_t>(data, index), INT64_MAX));
  default:
    return load<int64_t>(data, index);
  }
}

void storeInteger(void *data, fp8_dtype dtype, int64_t index, int64_t value) {
  switch (fp8_dtype_size(dtype)) {
  case 1:
    return store(data, index, static_cast<uint8_t>(value));
  case 2:
    return store(data, index, static_cast<uint16_t>(value));
  case 4:
    return store(data, index, static_cast<uint32_t>(value));
  default:
    return store(data, index, value);
  }
}

void storeDouble(void *data, fp8_dtype dtype, int64_t index, double value) {
  if (dtype == FP8_DTYPE_F32)
    store(data, index, static_cast<float>(value));
  else
    store(data, index, value);
}

/// Decodes a byte of a format without infinities and without a negative zero,
/// whose encoding is the only NaN.
static double decodeUnsignedZero(uint8_t bits, int mantissaBits, int bias) {
  if (bits == 0x80)
    return std::numeric_limits<double>::quiet_NaN();
  int exponent = (bits & 0x7f) >> mantissaBits;
  int mantissa = bits & ((1 << mantissaBits) - 1);
  double value = exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissaBits)
                               : std::ldexp(mantissa + (1 << mantissaBits),
                                            exponent - bias - mantissaBits);
  return bits & 0x80 ? -value : value;
}

/// Decodes a power of two, the scale of the OCP microscaling formats (5.4.1).
static double decodePowerOfTwo(uint8_t bits) {
  return bits == 0xff ? std::numeric_limits<double>::quiet_NaN()
                      : std::ldexp(1.0, bits - 127);
}

/// Decodes any format with sign, exponent, mantissa and IEEE's subnormals.
static double decodeFloat(uint32_t bits, int exponentBits, int mantissaBits,
                          bool hasInfinity) {
  uint32_t mantissa = bits & ((1u << mantissaBits) - 1);
  uint32_t exponent = (bits >> mantissaBits) & ((1u << exponentBits) - 1);
  bool negative = (bits >> (mantissaBits + exponentBits)) & 1;
  uint32_t top = (1u << exponentBits) - 1;
  int bias = static_cast<int>(top >> 1);
  double value;
  if (exponent == top && hasInfinity)
    value = mantissa ? std::numeric_limits<double>::quiet_NaN()
                     : std::numeric_limits<double>::infinity();
  else if (exponent == top && mantissa == (1u << mantissaBits) - 1 &&
           !hasInfinity)
    value = std::numeric_limits<double>::quiet_NaN();
  else if (exponent == 0)
    value = std::ldexp(mantissa, 1 - bias - mantissaBits);
  else
    value = std::ldexp(mantissa + (1u << mantissaBits),
                       static_cast<int>(exponent) - bias - mantissaBits);
  return negative ? -value : value;
}

double elementAsDouble(const void *data, fp8_dtype dtype, int64_t index) {
  switch (dtype) {
  case FP8_DTYPE_F8_E4M3FN:
    return decodeFloat(load<uint8_t>(data, index), 4, 3, false);
  case FP8_DTYPE_F8_E5M2:
    return decodeFloat(load<uint8_t>(data, index), 5, 2, true);
  case FP8_DTYPE_F8_E4M3:
    return decodeFloat(load<uint8_t>(data, index), 4, 3, true);
  case FP8_DTYPE_F8_E3M4:
    return decodeFloat(load<uint8_t>(data, index), 3, 4, true);
  case FP8_DTYPE_F8_E4M3FNUZ:
    return decodeUnsignedZero(load<uint8_t>(data, index), 3, 8);
  case FP8_DTYPE_F8_E4M3B11FNUZ:
    return decodeUnsignedZero(load<uint8_t>(data, index), 3, 11);
  case FP8_DTYPE_F8_E5M2FNUZ:
    return decodeUnsignedZero(load<uint8_t>(data, index), 2, 16);
  case FP8_DTYPE_F8_E8M0FNU:
    return decodePowerOfTwo(load<uint8_t>(data, index));
  case FP8_DTYPE_F16:
    return decodeFloat(load<uint16_t>(data, index), 5, 10, true);
  case FP8_DTYPE_BF16:
    return decodeFloat(load<uint16_t>(data, index), 8, 7, true);
  case FP8_DTYPE_F32:
    return load<float>(data, index);
  case FP8_DTYPE_F64:
    return load<double>(data, index);
  case FP8_DTYPE_U64:
    return static_cast<double>(load<uint64_t>(data, index));
  default:
    return static_cast<double>(elementAsInteger(data, dtype, index));
  }
}

/// Returns the index of the first of `count` bytes that is `value`, the only
/// NaN of its format, or -1.
static int64_t firstEqual(const void *data, int64_t count, uint8_t value) {
  const void *found = count ? std::memchr(data, value, count) : nullptr;
  return found ? static_cast<const char *>(found) -
                     static_cast<const char *>(data)
               : -1;
}

/// Returns the index of the first of `count` words that is NaN or infinite, or
/// -1: its bits under `mask` are at least `limit`.
template <typename T>
static int64_t firstAtLeast(const void *data, int64_t count, T mask, T limit) {
  const T *words = static_cast<const T *>(data);
  for (int64_t i = 0; i < count; ++i)
    if ((words[i] & mask) >= limit)
      return i;
  return -1;
}

int64_t firstNonFinite(const void *data, const TensorType &type) {
  int64_t count = type.elements();
  switch (type.dtype) {
  case FP8_DTYPE_F8_E4M3FN:
    return firstAtLeast<uint8_t>(data, count, 0x7f, 0x7f);
  case FP8_DTYPE_F8_E5M2:
    return firstAtLeast<uint8_t>(data, count, 0x7f, 0x7c);
  case FP8_DTYPE_F8_E4M3:
    return firstAtLeast<uint8_t>(data, count, 0x7f, 0x78);
  case FP8_DTYPE_F8_E3M4:
    return firstAtLeast<uint8_t>(data, count, 0x7f, 0x70);
  case FP8_DTYPE_F8_E4M3FNUZ:
  case FP8_DTYPE_F8_E4M3B11FNUZ:
  case FP8_DTYPE_F8_E5M2FNUZ:
    return firstEqual(data, count, 0x80);
  case FP8_DTYPE_F8_E8M0FNU:
    return firstEqual(data, count, 0xff);
  case FP8_DTYPE_F16:
    return firstAtLeast<uint16_t>(data, count, 0x7fff, 0x7c00);
  case FP8_DTYPE_BF16:
    return firstAtLeast<uint16_t>(data, count, 0x7fff, 0x7f80);
  case FP8_DTYPE_F32:
    return firstAtLeast<uint32_t>(data, count, 0x7fffffff, 0x7f800000);
  case FP8_DTYPE_F64:
    return firstAtLeast<uint64_t>(data, count, 0x7fffffffffffffff,
                                  0x7ff0000000000000);
  default:
    return -1;
  }
}

} // namespace fp8::rt
