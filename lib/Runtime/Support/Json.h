//===- Json.h - JSON as text ------------------------------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_JSON_H
#define FP8_LIB_RUNTIME_JSON_H

#include <string>

namespace fp8::rt {

/// Writes a value of nlohmann's types as text, which is UTF-8: names may hold
/// other bytes, each of which becomes U+FFFD.
template <typename Json>
std::string dumpJson(const Json &json, int indent = -1) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace);
}

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_JSON_H
