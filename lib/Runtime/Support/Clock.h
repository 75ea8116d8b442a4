//===- Clock.h - Time that has passed ---------------------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_SUPPORT_CLOCK_H
#define FP8_LIB_RUNTIME_SUPPORT_CLOCK_H

#include <chrono>

namespace fp8::rt {

using Clock = std::chrono::steady_clock;

inline double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_SUPPORT_CLOCK_H
