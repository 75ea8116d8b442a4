//===- Text.cpp - Numbers and other values as text ------------------------===//

#include "Text.h"
#include "Json.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace fp8::rt {

std::string numberText(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char text[40];
  bool isSingle = static_cast<double>(static_cast<float>(value)) == value;
  // (The functions of <charconv> do not depend on the process's locale.)
  char *end = text;
  for (int digits = isSingle ? 6 : 15; digits <= 17; ++digits) {
    end = std::to_chars(text, text + sizeof(text), value,
                        std::chars_format::general, digits)
              .ptr;
    double back = 0;
    std::from_chars(text, end, back);
    if (isSingle ? static_cast<float>(back) == static_cast<float>(value)
                 : back == value)
      break;
  }
  return {text, end};
}

std::string jsonText(const std::string &text) {
  return dumpJson(nlohmann::json(text));
}

std::string groupedText(int64_t value) {
  std::string digits = std::to_string(value);
  for (int64_t i = static_cast<int64_t>(digits.size()) - 3;
       i > (value < 0 ? 1 : 0); i -= 3)
    digits.insert(i, ",");
  return digits;
}

std::string bytesText(int64_t bytes) {
  static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  char text[40];
  std::snprintf(text, sizeof(text), unit ? "%.1f %s" : "%.0f %s", value,
                units[unit]);
  return text;
}

} // namespace fp8::rt
