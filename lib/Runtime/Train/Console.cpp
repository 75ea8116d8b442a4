//===- Console.cpp - What a run prints ------------------------------------===//

#include "Console.h"
#include "../State/Binding.h"
#include "../Support/Text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

namespace fp8::rt {

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

std::string durationText(double seconds) {
  int64_t whole = std::max<int64_t>(0, std::llround(seconds));
  if (whole < 60)
    return str(whole, "s");
  auto two = [](int64_t value) {
    return (value < 10 ? "0" : "") + std::to_string(value);
  };
  if (whole < 3600)
    return str(whole / 60, "m", two(whole % 60), "s");
  return str(whole / 3600, "h", two(whole / 60 % 60), "m");
}

std::string lossText(double loss) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.4f", loss);
  return text;
}

std::string metricText(const std::vector<std::string> &names,
                       const std::vector<double> &values) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < values.size(); ++i) {
    char number[40];
    bool isWhole = values[i] == std::floor(values[i]) &&
                   std::abs(values[i]) < 1e15; // counts, step numbers
    std::snprintf(number, sizeof(number), isWhole ? "%.0f" : "%.5g", values[i]);
    text += str("  ", names[i], " ", number);
  }
  return text;
}

/// Returns whether the terminal shows UTF-8, judging by its locale.
static bool isUTF8() {
  for (const char *name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char *value = std::getenv(name);
    if (!value || !*value)
      continue;
    std::string locale = value;
    for (char &c : locale)
      c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return locale.find("utf-8") != std::string::npos ||
           locale.find("utf8") != std::string::npos;
  }
  return false;
}

std::string sparkline(const std::vector<double> &values, size_t width) {
  static constexpr const char *blocks[] = {"\u2581", "\u2582", "\u2583",
                                           "\u2584", "\u2585", "\u2586",
                                           "\u2587", "\u2588"};
  if (values.size() < 3 || width == 0 || !isUTF8())
    return "";
  // If there are more values than blocks, each block is the mean of its share.
  size_t count = std::min(values.size(), width);
  std::vector<double> means(count, NAN);
  double low = INFINITY, high = -INFINITY;
  for (size_t i = 0; i < count; ++i) {
    double sum = 0;
    size_t finite = 0;
    for (size_t k = i * values.size() / count;
         k < (i + 1) * values.size() / count; ++k)
      if (std::isfinite(values[k])) {
        sum += values[k];
        ++finite;
      }
    if (finite == 0)
      continue;
    means[i] = sum / static_cast<double>(finite);
    low = std::min(low, means[i]);
    high = std::max(high, means[i]);
  }
  if (low > high)
    return "";
  std::string line;
  for (double mean : means) {
    if (!std::isfinite(mean)) {
      line += ' ';
      continue;
    }
    double height = high > low ? (mean - low) / (high - low) : 0;
    line += blocks[static_cast<size_t>(std::lround(height * 7))];
  }
  return line;
}

static std::string lastKeys(const std::string &path, size_t count) {
  std::vector<std::string> keys = splitPath(path);
  std::string text;
  for (size_t i = keys.size() - std::min(count, keys.size()); i < keys.size();
       ++i)
    text += (text.empty() ? "" : ".") + keys[i];
  return text.empty() ? path : text;
}

std::vector<std::string> shortNames(const std::vector<std::string> &paths) {
  std::vector<std::string> names;
  for (const std::string &path : paths) {
    size_t most = splitPath(path).size(), count = 1;
    auto isShared = [&] {
      std::string name = lastKeys(path, count);
      return name == "loss" ||
             std::count_if(paths.begin(), paths.end(),
                           [&](const std::string &other) {
                             return lastKeys(other, count) == name;
                           }) > 1;
    };
    while (count < most && isShared())
      ++count;
    names.push_back(lastKeys(path, count));
  }
  return names;
}

//===----------------------------------------------------------------------===//
// Console
//===----------------------------------------------------------------------===//

Console::Console(const fp8_train_options &options)
    : options(options),
      terminal(options.live > 0 || (options.live == 0 && isatty(1))),
      anotherRankPrints(fp8_group_rank(options.group) != 0) {}

void Console::print(const std::string &text) {
  if (options.quiet || anotherRankPrints)
    return;
  if (options.message) {
    options.message(options.user, text.c_str());
    return;
  }
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void Console::printLine(const std::string &text) {
  endLiveLine();
  print(text + "\n");
}

void Console::showProgress(std::string line) {
  if (!terminal) {
    print(line + "\n");
    return;
  }
  // A live line must not be longer than the terminal is wide.
  struct winsize size = {};
  if (ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    line.resize(std::min<size_t>(line.size(), size.ws_col - 1));
  print("\r" + line + "\x1b[K");
  lineIsLive = true;
}

void Console::endLiveLine() {
  if (lineIsLive)
    print("\n");
  lineIsLive = false;
}

void Console::warn(const std::string &text) {
  if (anotherRankPrints)
    return;
  if (options.message)
    options.message(options.user, (text + "\n").c_str());
  else
    std::fputs((text + "\n").c_str(), stderr);
}

} // namespace fp8::rt
