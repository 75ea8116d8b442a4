//===- Error.cpp - Failures -----------------------------------------------===//

#include "Error.h"
#include "fp8/Binding/Texts.h"

#include <cstring>
#include <new>

namespace fp8::rt {

static thread_local std::string lastError;

static void setLastError(const char *message) noexcept {
  try {
    lastError = message;
  } catch (...) {
    lastError.clear();
  }
}

Error currentError() {
  try {
    throw;
  } catch (const Error &error) {
    return error;
  } catch (const std::bad_alloc &) {
    return {FP8_ERROR_MEMORY, "out of memory"};
  } catch (const std::exception &error) {
    return {FP8_ERROR_INTERNAL, error.what()};
  } catch (...) {
    return {FP8_ERROR_INTERNAL, "unknown failure"};
  }
}

fp8_status recordFailure() noexcept {
  try {
    Error error = currentError();
    setLastError(error.what());
    return error.status;
  } catch (...) {
    setLastError("out of memory");
    return FP8_ERROR_MEMORY;
  }
}

void checkTexts(const char *what, const char *const *texts, int64_t count) {
  if (std::string mistake = fp8binding::mistakeInTexts(what, texts, count);
      !mistake.empty())
    throw Error(FP8_ERROR_INVALID, mistake);
}

std::string errnoText(int code) {
  char buffer[256];
  // The GNU version returns the text, which need not be in the buffer.
  return strerror_r(code, buffer, sizeof(buffer));
}

} // namespace fp8::rt

//===----------------------------------------------------------------------===//
// C interface of this file
//===----------------------------------------------------------------------===//

const char *fp8_last_error(void) { return fp8::rt::lastError.c_str(); }

const char *fp8_status_name(fp8_status status) {
  switch (status) {
  case FP8_OK:
    return "ok";
  case FP8_ERROR_INVALID:
    return "invalid use";
  case FP8_ERROR_IO:
    return "input/output error";
  case FP8_ERROR_FORMAT:
    return "malformed file";
  case FP8_ERROR_DATA:
    return "unfit data";
  case FP8_ERROR_MISMATCH:
    return "tensors do not match";
  case FP8_ERROR_NONFINITE:
    return "not a finite value";
  case FP8_ERROR_MEMORY:
    return "out of memory";
  case FP8_ERROR_INTERNAL:
    return "internal error";
  case FP8_INTERRUPTED:
    return "interrupted";
  case FP8_STOPPED:
    return "stopped by an alarm";
  case FP8_ERROR_RANK:
    return "another rank failed";
  }
  return "unknown status";
}
