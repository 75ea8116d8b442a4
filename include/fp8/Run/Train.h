//===- Train.h - Training with the functions of a package ------*- C++ -*-===//

#ifndef FP8_RUN_TRAIN_H
#define FP8_RUN_TRAIN_H

#include "fp8/Run/RunOptions.h"

namespace fp8run {

/// Prints what the package has to say before the first step.
void printReports(const RunOptions &options, const fp8_package *package);

/// Why ranks cannot train with the functions of a package; "" if they can, or
/// are not to.
std::string findRanksMistake(const RunOptions &run, const fp8_package *package);

/// Checks the files of a run before its functions are compiled; returns the
/// exit status.
int checkFiles(const RunOptions &options);

/// Checks the arrays for the step's (or the evaluation's) arguments before it
/// is compiled; returns a mistake, or "".
std::string findBatchMistake(const RunOptions &options,
                             const std::vector<fp8_tensor_info> &arguments,
                             bool isEvaluation);

/// Trains with the functions of a package; returns the exit status.
int train(const RunOptions &options, const fp8_package *package);

} // namespace fp8run

#endif // FP8_RUN_TRAIN_H
