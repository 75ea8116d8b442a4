//===- BuildId.h - Version and build of the compiler ------------*- C++ -*-===//

#ifndef FP8_COMPILER_BUILDID_H
#define FP8_COMPILER_BUILDID_H

#include "llvm/ADT/StringRef.h"

namespace mlir::fp8 {

/// Returns the version of the project and of LLVM, for users.
llvm::StringRef getCompilerVersion();

/// Returns a hash of the program or library that holds the compiler, and of the
/// LLVM and MLIR that it runs with. It changes whenever the generated code may
/// change.
llvm::StringRef getCompilerBuildId();

} // namespace mlir::fp8

#endif // FP8_COMPILER_BUILDID_H
