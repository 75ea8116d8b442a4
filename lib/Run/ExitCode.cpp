//===- ExitCode.cpp - How a program ends, and what it says ----------------===//

#include "fp8/Run/ExitCode.h"

#include <cstdio>

using namespace fp8run;

static int exitStatus(fp8_status status) {
  switch (status) {
  case FP8_OK:
    return 0;
  case FP8_INTERRUPTED:
    return 130;
  case FP8_STOPPED:
    return 4;
  case FP8_ERROR_NONFINITE:
    return 3;
  default:
    return 1;
  }
}

void fp8run::printError(const std::string &program,
                        const std::string &message) {
  if (!message.empty())
    std::fprintf(stderr, "%s: error: %s\n", program.c_str(), message.c_str());
}

int fp8run::exitCode(const std::string &program, fp8_status status) {
  if (status != FP8_OK)
    printError(program, fp8_last_error());
  return exitStatus(status);
}

int fp8run::exitCodeOnRanks(const RunOptions &run, fp8_status status) {
  int64_t rank = fp8_group_rank(run.group), ranks = fp8_group_size(run.group);
  if (status == FP8_OK || ranks == 1)
    return exitCode(run.program, status);
  std::string message = fp8_last_error();
  int result = exitStatus(status);
  // What is no failure of a rank ends all of them at the same step.
  if (result != 1) {
    if (rank == 0)
      printError(run.program, message);
    return result;
  }
  // The messages of these name the rank.
  if (status != FP8_ERROR_RANK)
    message = "rank " + std::to_string(rank) + " of " + std::to_string(ranks) +
              ": " + message;
  if (fp8_group_claim_failure(run.group))
    printError(run.program, message);
  fp8_group_abort(run.group, message.c_str());
  return result;
}
