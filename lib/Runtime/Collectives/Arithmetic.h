//===- Arithmetic.h - One element of a reduction over ranks -----*- C++ -*-===//
//
// The arithmetic that the CPU and a GPU share when ranks reduce. It also
// compiles for GPUs, so it uses nothing of the standard library.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_COLLECTIVES_ARITHMETIC_H
#define FP8_LIB_RUNTIME_COLLECTIVES_ARITHMETIC_H

#include "Float8.h"
#include "fp8-c/Runtime.h"

namespace fp8::rt {

/// Returns the type of values of `dtype` on a wire.
inline int64_t wireType(int64_t wire, int64_t dtype) {
  switch (wire) {
  case FP8_WIRE_F8_E4M3FN:
    return FP8_DTYPE_F8_E4M3FN;
  case FP8_WIRE_F8_E5M2:
    return FP8_DTYPE_F8_E5M2;
  case FP8_WIRE_BF16:
    return FP8_DTYPE_BF16;
  default:
    return dtype;
  }
}

/// Combines the values of two ranks, the lower rank's first. NaN wins both
/// maxima and minima; sums of integers wrap around.
template <typename T> inline T combine(int64_t reduction, T first, T second) {
  constexpr bool isInteger = T(0.5) == T(0);
  if (reduction == FP8_REDUCE_MAX || reduction == FP8_REDUCE_MIN) {
    if constexpr (!isInteger)
      if (__builtin_isnan(first))
        return first;
    bool isFirst =
        reduction == FP8_REDUCE_MAX ? first > second : first < second;
    return isFirst || first == second ? first : second; // which may be NaN
  }
  if constexpr (isInteger)
    return static_cast<T>(static_cast<uint64_t>(first) +
                          static_cast<uint64_t>(second));
  else
    return first + second;
}

/// Returns 2 to the power of `exponent`, which is from -126 to 127.
inline float powerOfTwo(int exponent) {
  return floatOf(static_cast<uint32_t>(127 + exponent) << 23);
}

/// Returns the exponent of the scale of elements on an f8 wire with this amax.
/// The scale is a power of two, so that only the codes are rounded.
inline int scaleExponent(float amax, float largestCode) {
  int exponent = 0;
  if (amax > 0) {
    double quotient = static_cast<double>(amax) / largestCode;
    auto bits =
        __builtin_bit_cast(uint64_t, quotient); // the quotient is normal
    exponent = static_cast<int>(bits >> 52) - 1023;
    exponent += (bits << 12) != 0; // rounds up to a power of two
  }
  return exponent < -126 ? -126 : exponent; // its inverse is finite
}

/// Returns the mu of a reduction; zero stands for one. Above the number of
/// ranks, as when a run goes on with fewer of them, sums would saturate.
inline float muOf(const float *control, int64_t ranks) {
  auto limit = static_cast<float>(ranks);
  float mu = control[0] > 0 ? control[0] : 1;
  return mu < limit ? mu : limit;
}

/// Updates mu and its age after a reduction in which `saturated` of `elements`
/// codes saturated: mu is halved if these are more than 0.001 %, otherwise it
/// doubles in 1000 steps (FP8-LM), up to the number of ranks.
inline void updateMu(float *control, int64_t saturated, int64_t elements,
                     int64_t ranks) {
  constexpr double tooMany = 1e-5;
  constexpr float growth = 1.000693387f;
  float mu = muOf(control, ranks), steps = control[1];
  if (static_cast<double>(saturated) >
      tooMany * static_cast<double>(elements)) {
    mu /= 2;
    steps = 0;
  } else {
    auto limit = static_cast<float>(ranks);
    mu = mu * growth < limit ? mu * growth : limit;
    steps += 1;
  }
  control[0] = mu;
  control[1] = steps;
}

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_COLLECTIVES_ARITHMETIC_H
