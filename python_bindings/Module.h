//===- Module.h - The parts of the module fp8._native -----------*- C++ -*-===//

#ifndef FP8_PYTHON_BINDINGS_MODULE_H
#define FP8_PYTHON_BINDINGS_MODULE_H

#include <nanobind/nanobind.h>

namespace fp8::python {

/// Failures of the C interfaces become exceptions.
void defineErrors(nanobind::module_ &m);
/// Compiled functions, with their memory and the ranks that run them together.
void defineSteps(nanobind::module_ &m);
/// Functions by name, their evaluation and export; alarms.
void definePackages(nanobind::module_ &m);
/// Compilation, and single passes.
void defineCompiler(nanobind::module_ &m);

} // namespace fp8::python

#endif // FP8_PYTHON_BINDINGS_MODULE_H
