//===- Reports.cpp - What a package says before the first step ------------===//

#include "fp8/Run/Train.h"

#include <cstdio>

using namespace fp8run;

static void print(const char *text) {
  if (text)
    std::fputs(text, stdout);
}

/// A pairing that leaves state as it is may be a mistake: it is said before the
/// first step.
static void printUnchangedState(const char *text) {
  constexpr size_t kShown = 6;
  std::string line;
  size_t count = 0;
  for (std::string rest = text ? text : ""; !rest.empty(); ++count) {
    size_t end = rest.find('\n');
    if (count < kShown)
      line += (count ? ", " : "") + rest.substr(0, end);
    rest.erase(0, end == std::string::npos ? end : end + 1);
  }
  if (count == 0)
    return;
  if (count > kShown)
    line += " and " + std::to_string(count - kShown) + " more";
  std::printf("state that the step returns as it came: %s\n", line.c_str());
}

void fp8run::printReports(const RunOptions &options,
                          const fp8_package *package) {
  if (options.showVerdicts)
    print(fp8_package_text(package, "verdicts.txt"));
  else if (!options.quiet)
    print(fp8_package_text(package, "summary.txt"));
  if (!options.quiet) {
    printUnchangedState(fp8_package_text(package, "state.txt"));
    print(fp8_package_text(package, "memory.txt"));
  }
  std::fflush(stdout);
}
