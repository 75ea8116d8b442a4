//===- Ranks.cpp - A program that is one of several ranks -----------------===//

#include "fp8/Run/Ranks.h"
#include "fp8/Run/ExitCode.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

using namespace fp8run;

Ranks::~Ranks() { fp8_group_destroy(group); }

int Ranks::join(RunOptions &options) {
  run = &options;
  if (!options.dataParallel)
    return 0;
  fp8_group_options joining = {};
  joining.timeout = options.rankTimeout;
  // A transport of a test, or one that we do not know.
  joining.transport = std::getenv("FP8_TRANSPORT");
  if (const char *bytes = std::getenv("FP8_BUCKET_BYTES")) {
    const char *end = bytes + std::strlen(bytes);
    auto [parsed, error] = std::from_chars(bytes, end, joining.bucket_bytes);
    if (error != std::errc() || parsed != end || joining.bucket_bytes < 1) {
      printError(options.program,
                 std::string("FP8_BUCKET_BYTES: expected a number of bytes "
                             "above 0 but got '") +
                     bytes + "'");
      return 1;
    }
  }
  fp8_status status = fp8_group_create(&joining, &group);
  if (status != FP8_OK)
    return exitCode(options.program, status);
  options.group = group;
  if (fp8_group_rank(group) > 0) {
    options.quiet = true;
    options.showVerdicts = options.report = false;
  }
  return 0;
}

int Ranks::waitForAll() {
  fp8_status status = fp8_group_barrier(group);
  return status == FP8_OK ? 0 : exitCodeOnRanks(*run, status);
}

int Ranks::waitForFirst() {
  return fp8_group_rank(group) > 0 ? waitForAll() : 0;
}

int Ranks::letOthersFollow() {
  return fp8_group_rank(group) == 0 ? waitForAll() : 0;
}

int Ranks::leave(int status) {
  // What a run ends with has ended the others already.
  bool isEnd = status == 0 || status == 3 || status == 4 || status == 130;
  if (!isEnd && fp8_group_size(group) > 1) {
    std::string message = "rank " + std::to_string(fp8_group_rank(group)) +
                          " ended with status " + std::to_string(status);
    fp8_group_abort(group, message.c_str());
  }
  return status;
}
