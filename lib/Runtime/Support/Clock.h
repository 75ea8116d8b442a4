//===- Clock.h - Time that has passed ---------------------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_SUPPORT_CLOCK_H
#define FP8_LIB_RUNTIME_SUPPORT_CLOCK_H

#include <algorithm>
#include <chrono>

namespace fp8::rt {

using Clock = std::chrono::steady_clock;

inline double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// How long a thread that looks again and again has waited for others. A long
/// pause between two looks counts little: the thread itself was stopped, and
/// perhaps the others with it, who need time to go on.
class WaitedTime {
public:
  double seconds() {
    Clock::time_point now = Clock::now();
    sum += std::min(std::chrono::duration<double>(now - last).count(), 0.05);
    last = now;
    return sum;
  }

private:
  Clock::time_point last = Clock::now();
  double sum = 0;
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_SUPPORT_CLOCK_H
