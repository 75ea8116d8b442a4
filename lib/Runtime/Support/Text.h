//===- Text.h - Numbers and other values as text ----------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_SUPPORT_TEXT_H
#define FP8_LIB_RUNTIME_SUPPORT_TEXT_H

#include <charconv>
#include <cstdint>
#include <locale>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

namespace fp8::rt {

/// Returns a stream whose numbers do not depend on the global locale, which may
/// group their digits.
template <typename Stream, typename... Ts> Stream classic(Ts &&...arguments) {
  Stream stream(std::forward<Ts>(arguments)...);
  stream.imbue(std::locale::classic());
  return stream;
}

/// Concatenates any values that have operator<<.
template <typename... Ts> std::string str(const Ts &...parts) {
  auto stream = classic<std::ostringstream>();
  (stream << ... << parts);
  return stream.str();
}

/// Returns the number that a text is as a whole; nothing if it is none.
template <typename T> std::optional<T> numberOf(const std::string &text) {
  T number;
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end)
    return std::nullopt;
  return number;
}

/// Returns the shortest text that reads back as the same number.
std::string numberText(double value);
/// Quotes a text as JSON, which is UTF-8: names of source files may hold other
/// bytes, each of which becomes U+FFFD.
std::string jsonText(const std::string &text);
/// 1234567 -> "1,234,567".
std::string groupedText(int64_t value);
/// 12345678 -> "11.8 MiB".
std::string bytesText(int64_t bytes);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_SUPPORT_TEXT_H
