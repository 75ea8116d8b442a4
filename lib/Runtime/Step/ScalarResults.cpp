//===- ScalarResults.cpp - The loss and the metrics of a step -------------===//

#include "ScalarResults.h"
#include "../Metrics/Trace.h"
#include "../Support/Elements.h"

using namespace fp8::rt;

ScalarResults::ScalarResults(const fp8_executable &step) {
  bool hasLoss = false;
  const std::vector<TensorInfo> &all = step.results;
  for (size_t i = 0; i < all.size(); ++i) {
    bool isScalar = all[i].type.elements() == 1;
    if (all[i].kind == FP8_KIND_LOSS) {
      if (!isScalar || !isFloat(all[i].type.dtype))
        throw Error(FP8_ERROR_INVALID,
                    str("loss '", all[i].name,
                        "': expected a floating-point scalar but got ",
                        all[i].type.text()));
      if (hasLoss)
        throw Error(FP8_ERROR_INVALID, "expected one loss but got two");
      loss = i;
      hasLoss = true;
    } else if (all[i].stateArg < 0 && isScalar && !isTrace(all[i].kind)) {
      metrics.push_back(i);
    }
  }
  if (!hasLoss)
    throw Error(FP8_ERROR_INVALID, "the step has no loss");
}

std::vector<std::string>
ScalarResults::metricNames(const fp8_executable &step) const {
  std::vector<std::string> names;
  for (size_t i : metrics)
    names.push_back(step.results[i].name);
  return names;
}

std::vector<std::string>
ScalarResults::names(const fp8_executable &step) const {
  std::vector<std::string> names = metricNames(step);
  names.insert(names.begin(), step.results[loss].name);
  return names;
}

std::vector<double> ScalarResults::values(fp8_step &step) const {
  auto value = [&](size_t i) {
    return elementAsDouble(step.result(i),
                           step.executable.results[i].type.dtype, 0);
  };
  std::vector<double> all = {value(loss)};
  for (size_t i : metrics)
    all.push_back(value(i));
  return all;
}
