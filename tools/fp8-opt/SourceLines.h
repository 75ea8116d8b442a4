//===- SourceLines.h - Short source lines in diagnostics --------*- C++ -*-===//

#ifndef FP8_OPT_SOURCELINES_H
#define FP8_OPT_SOURCELINES_H

#include "mlir/IR/DialectRegistry.h"
#include "llvm/Support/MemoryBufferRef.h"

/// Lets diagnostics show at most a window of a long source line: the line of a
/// large constant may have a megabyte. MlirOptMain makes the context and its
/// diagnostic handler itself, so that another handler can only be installed
/// when a dialect is loaded. `input` must live as long as the context, of which
/// there may be one. (Errors before the first op of a dialect show all of the
/// line.)
void shortenSourceLines(mlir::DialectRegistry &registry,
                        llvm::MemoryBufferRef input);

#endif // FP8_OPT_SOURCELINES_H
