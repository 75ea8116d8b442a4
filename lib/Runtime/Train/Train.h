//===- Train.h - The training loop ------------------------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_TRAIN_TRAIN_H
#define FP8_LIB_RUNTIME_TRAIN_TRAIN_H

#include "fp8-c/Runtime.h"

#include <cstdint>

namespace fp8::rt {

/// Implements fp8_train. Fills the summary as far as training comes; throws
/// Error.
void train(const fp8_train_options &options, fp8_train_summary &summary);

/// Implements fp8_run_once.
void runOnce(const fp8_executable &executable, const char *inputs,
             const char *outputs, int threads);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_TRAIN_TRAIN_H
