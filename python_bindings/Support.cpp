//===- Support.cpp - Failures, locks and texts ----------------------------===//

#include "Support.h"

#include "Module.h"

#include <unistd.h>

using namespace fp8;
using namespace fp8::python;

/// fp8.RankError, created with the module.
static PyObject *rankError;

static PyObject *exceptionOf(fp8_status status) {
  switch (status) {
  case FP8_ERROR_RANK:
    return rankError;
  case FP8_ERROR_IO:
    return PyExc_OSError;
  case FP8_ERROR_INVALID:
  case FP8_ERROR_FORMAT:
  case FP8_ERROR_DATA:
  case FP8_ERROR_MISMATCH:
    return PyExc_ValueError;
  case FP8_ERROR_NONFINITE:
    return PyExc_FloatingPointError;
  case FP8_ERROR_MEMORY:
    return PyExc_MemoryError;
  case FP8_INTERRUPTED:
    return PyExc_KeyboardInterrupt;
  default:
    return PyExc_RuntimeError;
  }
}

static void translate(const std::exception_ptr &thrown, void *) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Failure &failure) {
    PyErr_SetString(exceptionOf(failure.status), failure.what());
  }
}

void python::defineErrors(nb::module_ &m) {
  nb::register_exception_translator(translate);
  rankError = PyErr_NewExceptionWithDoc(
      "fp8.RankError",
      "Another rank has failed, does not answer, or does something else than "
      "rank 0; the text names it.",
      PyExc_RuntimeError, nullptr);
  m.attr("RankError") = nb::handle(rankError);
}

void python::check(fp8_status status) {
  if (status != FP8_OK)
    throw Failure(status, fp8_last_error());
}

/// Waits for the end of the process. When Python ends, it ends other threads
/// where they ask for its lock, by unwinding their stacks; in the frames of
/// nanobind and of the C interfaces that would abort the program.
[[noreturn]] static void waitForEnd() {
  for (;;)
    pause();
}

Unlocked::Unlocked() : state(PyEval_SaveThread()) {}

Unlocked::~Unlocked() {
  try {
    PyEval_RestoreThread(state);
  } catch (...) {
    waitForEnd();
  }
}

Locked::Locked() {
  try {
    state = PyGILState_Ensure();
  } catch (...) {
    waitForEnd();
  }
}

Locked::~Locked() { PyGILState_Release(state); }

const char *python::cText(const std::string &text) {
  if (text.find('\0') != std::string::npos)
    throw Failure(FP8_ERROR_INVALID,
                  std::string("expected a text without NUL but got one behind "
                              "'") +
                      text.c_str() + "'");
  return text.c_str();
}

std::vector<const char *> python::pointersTo(const Texts &texts) {
  std::vector<const char *> pointers;
  for (const std::string &text : texts)
    pointers.push_back(cText(text));
  return pointers;
}

std::string python::orEmpty(const char *text) { return text ? text : ""; }

void python::set(void *user, const char *text) {
  *static_cast<std::string *>(user) = text;
}

void python::keep(void *user, const char *text) {
  static_cast<Texts *>(user)->push_back(text);
}
