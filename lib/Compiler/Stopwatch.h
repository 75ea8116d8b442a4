//===- Stopwatch.h - Measured seconds ---------------------------*- C++ -*-===//

#ifndef FP8_LIB_COMPILER_STOPWATCH_H
#define FP8_LIB_COMPILER_STOPWATCH_H

#include <chrono>

namespace mlir::fp8 {

/// Measures the seconds since its construction.
class Stopwatch {
public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         begin)
        .count();
  }

private:
  std::chrono::steady_clock::time_point begin =
      std::chrono::steady_clock::now();
};

} // namespace mlir::fp8

#endif // FP8_LIB_COMPILER_STOPWATCH_H
