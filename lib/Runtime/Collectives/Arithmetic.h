//===- Arithmetic.h - One element of a reduction over ranks -----*- C++ -*-===//
//
// What the CPU and a GPU compute alike when ranks reduce. For GPUs, too:
// nothing of the standard library is here.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_COLLECTIVES_ARITHMETIC_H
#define FP8_LIB_RUNTIME_COLLECTIVES_ARITHMETIC_H

#include "Float8.h"
#include "fp8-c/Runtime.h"

namespace fp8::rt {

/// The value of two ranks, the first of them of the lower one. NaN is the
/// largest and the smallest number; sums of integers wrap around.
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

/// 2 to the power of -126 to 127.
inline float powerOfTwo(int exponent) {
  return floatOf(static_cast<uint32_t>(127 + exponent) << 23);
}

/// The exponent of the scale of elements on an f8 wire whose largest magnitude
/// is `amax`: a power of two, so that nothing is rounded but by codes.
inline int scaleExponent(float amax, float largestCode) {
  int exponent = 0;
  if (amax > 0) {
    double quotient = static_cast<double>(amax) / largestCode;
    auto bits = __builtin_bit_cast(uint64_t, quotient); // of a normal number
    exponent = static_cast<int>(bits >> 52) - 1023;
    exponent += (bits << 12) != 0; // rounded up, but for a power of two
  }
  return exponent < -126 ? -126 : exponent; // its inverse is finite
}

/// Mu and its steps after a reduction in which `saturated` of `elements` codes
/// did: half of it if these are more than 0.001 %, else twice as much in 1000
/// steps (FP8-LM). Beyond the number of ranks it would gain nothing.
inline void updateMu(float *control, int64_t saturated, int64_t elements,
                     int64_t ranks) {
  constexpr double tooMany = 1e-5;
  constexpr float growth = 1.000693387f;
  float mu = control[0] > 0 ? control[0] : 1, steps = control[1];
  if (static_cast<double>(saturated) >
      tooMany * static_cast<double>(elements)) {
    mu /= 2;
    steps = 0;
  } else {
    float limit =
        static_cast<float>(ranks) > mu ? static_cast<float>(ranks) : mu;
    mu = mu * growth < limit ? mu * growth : limit;
    steps += 1;
  }
  control[0] = mu;
  control[1] = steps;
}

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_COLLECTIVES_ARITHMETIC_H
