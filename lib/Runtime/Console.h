//===- Console.h - What a run tells people ----------------------*- C++ -*-===//
//
// Lines of text, to the terminal or to a function of the caller's. On a
// terminal one line is live: each step writes over it.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_CONSOLE_H
#define FP8_LIB_RUNTIME_CONSOLE_H

#include "Support.h"

namespace fp8::rt {

class Console {
public:
  explicit Console(const fp8_train_options &options);

  /// A whole line, below the live one if there is one.
  void sayLine(const std::string &text);
  /// A line that says how far the run is; a later one takes its place where the
  /// console is a terminal.
  void showProgress(std::string line);
  /// Leaves the live line as it is and begins a new one.
  void endLiveLine();
  /// Said whether quiet or not: the run is not what it may be taken for.
  void warn(const std::string &text);

  bool isTerminal() const { return terminal; }

private:
  void say(const std::string &text);

  const fp8_train_options &options;
  bool terminal;
  bool isMute; // another rank speaks
  bool lineIsLive = false;
};

/// "12s", "3m07s", "1h05m".
std::string durationText(double seconds);

std::string lossText(double loss);

/// "  accuracy 0.53  grad_norm 1.27".
std::string metricText(const std::vector<std::string> &names,
                       const std::vector<double> &values);

/// The values as a line of blocks of eight heights, at most `width` of them; ""
/// where there is nothing to see, or the locale is not of UTF-8.
std::string sparkline(const std::vector<double> &values, size_t width);

/// For each path its last keys: as many as tell it from the others.
std::vector<std::string> shortNames(const std::vector<std::string> &paths);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_CONSOLE_H
