//===- EvaluateState.h - Evaluation and export outside of a run -*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_METRICS_EVALUATESTATE_H
#define FP8_LIB_RUNTIME_METRICS_EVALUATESTATE_H

#include "../Step/Step.h"

namespace fp8::rt {

/// Implements fp8_evaluate; returns the line of JSON.
std::string evaluateState(const fp8_train_options &options, fp8_step &step);

/// Implements fp8_export_weights.
void exportState(const fp8_train_options &options, fp8_step &step,
                 int64_t number);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_METRICS_EVALUATESTATE_H
