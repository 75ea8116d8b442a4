//===- Package.h - An executable as files for the runtime -------*- C++ -*-===//

#ifndef FP8_COMPILER_PACKAGE_H
#define FP8_COMPILER_PACKAGE_H

#include "fp8/Compiler/Executable.h"

namespace mlir::fp8 {

/// Writes `executable` to a directory, which is created if it is missing: the
/// code as a shared library (package.so), manifest.json, a C header (step.h)
/// and the texts. fp8_package_open reads it. Calls the system's linker.
llvm::Error writePackage(const Executable &executable, StringRef directory);

} // namespace mlir::fp8

#endif // FP8_COMPILER_PACKAGE_H
