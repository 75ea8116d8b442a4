//===- ExitCode.h - How a program ends, and what it says -------*- C++ -*-===//

#ifndef FP8_RUN_EXITCODE_H
#define FP8_RUN_EXITCODE_H

#include "fp8/Run/RunOptions.h"

namespace fp8run {

/// Prints the message of an error, as the program's.
void printError(const std::string &program, const std::string &message);

/// Prints the message of a failure and returns the exit status of the program.
int exitCode(const std::string &program, fp8_status status);

/// The same at the end of a run: of all ranks that fail one prints, and ends
/// the others.
int exitCodeOnRanks(const RunOptions &run, fp8_status status);

} // namespace fp8run

#endif // FP8_RUN_EXITCODE_H
