//===- Module.cpp - The C interfaces as the Python module fp8._native -----===//
//
// A thin layer: objects own the handles of the C interfaces, and statuses
// become exceptions. The interface for Python users is in fp8/*.py. Everything
// that takes time releases the interpreter's lock.
//
//===----------------------------------------------------------------------===//

#include "Module.h"

NB_MODULE(_native, m) {
  m.doc() = "The C interfaces of fp8's compiler and runtime.";
  // A view that is alive when Python ends keeps its buffers, as documented.
  nanobind::set_leak_warnings(false);
  fp8::python::defineErrors(m);
  fp8::python::defineSteps(m);
  fp8::python::definePackages(m);
  fp8::python::defineCompiler(m);
}
