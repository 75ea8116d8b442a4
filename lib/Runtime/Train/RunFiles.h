//===- RunFiles.h - What a run expects of files -----------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_TRAIN_RUNFILES_H
#define FP8_LIB_RUNTIME_TRAIN_RUNFILES_H

#include "fp8-c/Runtime.h"

#include "../Support/TensorType.h"

#include <string>
#include <vector>

namespace fp8::rt {

/// Throws if a directory holds a run, whose files a new one would replace.
void expectNoEarlierRun(const std::string &directory);

/// Implements fp8_check_files; throws Error.
void checkFiles(const fp8_train_options &options);

/// Implements fp8_check_batches; throws Error.
void checkBatches(const fp8_train_options &options,
                  std::vector<TensorInfo> arguments, bool isEvaluation);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_TRAIN_RUNFILES_H
