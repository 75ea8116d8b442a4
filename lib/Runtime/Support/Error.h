//===- Error.h - Failures ---------------------------------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_SUPPORT_ERROR_H
#define FP8_LIB_RUNTIME_SUPPORT_ERROR_H

#include "Text.h"
#include "fp8-c/Runtime.h"

#include <stdexcept>
#include <string>

namespace fp8::rt {

/// A failure that the C interface turns into a status.
struct Error : std::runtime_error {
  Error(fp8_status status, const std::string &message)
      : std::runtime_error(message), status(status) {}
  fp8_status status;
};

/// Returns the exception that is being handled.
Error currentError();

/// Returns "No such file or directory", ...
std::string errnoText(int code);

/// Runs `body` and converts exceptions to a status and fp8_last_error().
fp8_status recordFailure() noexcept;
template <typename F> fp8_status guard(F &&body) noexcept {
  try {
    body();
    return FP8_OK;
  } catch (...) {
    return recordFailure();
  }
}

/// Throws unless a caller's list has `count` texts; what: "alarms", for the
/// message.
void checkTexts(const char *what, const char *const *texts, int64_t count);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_SUPPORT_ERROR_H
