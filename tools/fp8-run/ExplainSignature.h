//===- ExplainSignature.h - The role of every argument, and why -*- C++ -*-===//

#ifndef FP8_TOOLS_FP8RUN_EXPLAINSIGNATURE_H
#define FP8_TOOLS_FP8RUN_EXPLAINSIGNATURE_H

#include "Options.h"
#include "fp8/Compiler/Program.h"

namespace mlir::fp8 {

/// Prints the signature of the step; returns the exit status.
int explainSignature(const Options &flags, MLIRContext &context,
                     SignatureOptions signature);

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8RUN_EXPLAINSIGNATURE_H
