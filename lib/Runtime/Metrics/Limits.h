//===- Limits.h - The limits of the machine ---------------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_METRICS_LIMITS_H
#define FP8_LIB_RUNTIME_METRICS_LIMITS_H

#include "fp8-c/Runtime.h"

namespace fp8::rt {

/// Implements fp8_measure_limits.
fp8_limits measureLimits(int threads);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_METRICS_LIMITS_H
