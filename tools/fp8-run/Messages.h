//===- Messages.h - What fp8-run says of a mistake --------------*- C++ -*-===//

#ifndef FP8_TOOLS_FP8RUN_MESSAGES_H
#define FP8_TOOLS_FP8RUN_MESSAGES_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

namespace mlir::fp8 {

/// Prints a mistake in the command line; returns the exit status.
int usageError(const llvm::Twine &message);

/// Prints an error that has no location in a file; returns the exit status.
int fail(llvm::Error error);

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8RUN_MESSAGES_H
