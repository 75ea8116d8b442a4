//===- OptionTable.h - The options of a run, by name ------------*- C++ -*-===//
//
// The options that fp8-run and fp8-train have in common: their names, their
// help and what they set. Each program reads its command line in its own way.
// No LLVM in here.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUN_OPTIONTABLE_H
#define FP8_RUN_OPTIONTABLE_H

#include "fp8/Run/RunOptions.h"

#include <functional>
#include <string>
#include <vector>

namespace fp8run {

struct Option {
  std::string name;
  /// What its value is called; "" for a flag, which needs none.
  std::string value;
  std::string help;
  /// Takes the text of a value, of a flag "true" or "false". Returns the
  /// mistake in it; "" if there is none.
  std::function<std::string(const std::string &)> set;
  /// Each one that is given adds a value.
  bool isList = false;

  bool isFlag() const { return value.empty(); }
};

// Options that set `out`.
Option flag(std::string name, std::string help, bool &out);
Option text(std::string name, std::string value, std::string help,
            std::string &out);
Option list(std::string name, std::string value, std::string help,
            std::vector<std::string> &out);
Option integer(std::string name, std::string help, int64_t &out);

/// The options that set `run`, which outlives them.
std::vector<Option> runOptionTable(RunOptions &run);

} // namespace fp8run

#endif // FP8_RUN_OPTIONTABLE_H
