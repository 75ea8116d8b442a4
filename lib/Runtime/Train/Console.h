//===- Console.h - What a run prints ----------------------------*- C++ -*-===//
//
// Prints lines of text to the terminal or to a callback. On a terminal one line
// is live: each step overwrites it.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_TRAIN_CONSOLE_H
#define FP8_LIB_RUNTIME_TRAIN_CONSOLE_H

#include "fp8-c/Runtime.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fp8::rt {

class Console {
public:
  explicit Console(const fp8_train_options &options);

  /// Prints a whole line, below the live one if there is one.
  void printLine(const std::string &text);
  /// Prints a progress line; on a terminal, a later one overwrites it.
  void showProgress(std::string line);
  /// Keeps the live line and begins a new one.
  void endLiveLine();
  /// Prints a warning, even if quiet: the run is not what it may seem to be.
  void warn(const std::string &text);

  bool isTerminal() const { return terminal; }

private:
  void print(const std::string &text);

  const fp8_train_options &options;
  bool terminal;
  bool anotherRankPrints;
  bool lineIsLive = false;
};

/// Returns "12s", "3m07s", "1h05m".
std::string durationText(double seconds);

std::string lossText(double loss);

/// Returns "  accuracy 0.53  grad_norm 1.27".
std::string metricText(const std::vector<std::string> &names,
                       const std::vector<double> &values);

/// Returns the values as a line of blocks of eight heights, at most `width` of
/// them; "" if they show nothing or the locale is not UTF-8.
std::string sparkline(const std::vector<double> &values, size_t width);

/// Returns the last keys of each path of a metric: as many as make it unique
/// among these and the loss, which is called "loss".
std::vector<std::string> shortNames(const std::vector<std::string> &paths);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_TRAIN_CONSOLE_H
