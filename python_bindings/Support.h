//===- Support.h - Failures, locks and texts --------------------*- C++ -*-===//

#ifndef FP8_PYTHON_BINDINGS_SUPPORT_H
#define FP8_PYTHON_BINDINGS_SUPPORT_H

#include "fp8-c/Runtime/Status.h"

#include <nanobind/nanobind.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace fp8::python {

namespace nb = nanobind;
using namespace nb::literals;

/// A status that is not FP8_OK, with its message.
struct Failure : std::runtime_error {
  Failure(fp8_status status, const std::string &message)
      : std::runtime_error(message), status(status) {}
  fp8_status status;
};

void check(fp8_status status);

/// Leaves Python's lock to others as long as it lives.
class Unlocked {
public:
  Unlocked();
  Unlocked(const Unlocked &) = delete;
  ~Unlocked();

private:
  PyThreadState *state;
};

/// Has Python's lock as long as it lives.
class Locked {
public:
  Locked();
  Locked(const Locked &) = delete;
  ~Locked();

private:
  PyGILState_STATE state;
};

using Texts = std::vector<std::string>;

/// Returns a text for the C interfaces, which read it up to the first NUL.
const char *cText(const std::string &text);
std::vector<const char *> pointersTo(const Texts &texts);
std::string orEmpty(const char *text);

/// Sets the string to which `user` points.
void set(void *user, const char *text);
/// Appends a line to the `Texts` to which `user` points.
void keep(void *user, const char *text);

} // namespace fp8::python

#endif // FP8_PYTHON_BINDINGS_SUPPORT_H
