//===- ScalarResults.h - The loss and the metrics of a step -----*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_STEP_SCALARRESULTS_H
#define FP8_LIB_RUNTIME_STEP_SCALARRESULTS_H

#include "Step.h"

#include <string>
#include <vector>

namespace fp8::rt {

/// The scalars among a step's results: the loss and all metrics.
struct ScalarResults {
  ScalarResults() = default;
  /// Throws Error unless there is exactly one loss.
  explicit ScalarResults(const fp8_executable &step);

  std::vector<std::string> metricNames(const fp8_executable &step) const;
  /// The paths, and the values from the last run, the loss first.
  std::vector<std::string> names(const fp8_executable &step) const;
  std::vector<double> values(fp8_step &step) const;

  size_t loss = 0;
  std::vector<size_t> metrics;
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_STEP_SCALARRESULTS_H
