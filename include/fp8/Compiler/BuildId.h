//===- BuildId.h - Which compiler this is -----------------------*- C++ -*-===//

#ifndef FP8_COMPILER_BUILDID_H
#define FP8_COMPILER_BUILDID_H

#include "llvm/ADT/StringRef.h"

namespace mlir::fp8 {

/// Version of the project and of LLVM, for people.
llvm::StringRef getCompilerVersion();

/// A hash of the program or library that holds the compiler, and of the LLVM
/// and MLIR that it runs with: whatever may change the code that it makes
/// changes this.
llvm::StringRef getCompilerBuildId();

} // namespace mlir::fp8

#endif // FP8_COMPILER_BUILDID_H
