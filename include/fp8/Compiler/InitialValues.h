//===- InitialValues.h - Initial values of a run ----------------*- C++ -*-===//

#ifndef FP8_COMPILER_INITIALVALUES_H
#define FP8_COMPILER_INITIALVALUES_H

#include "fp8-c/Runtime.h"
#include "fp8/Analysis/Signature.h"
#include "fp8/Compiler/Executable.h"

namespace mlir::fp8 {

/// Returns paths and types of the tensors in a safetensors file. For a
/// checkpoint, these are those of the user's tree, however they are stored.
llvm::SmallVector<TreeLeaf> leavesOf(const fp8_tensors *tensors,
                                     MLIRContext &context);

/// Returns paths and types of an initializer's results.
llvm::SmallVector<TreeLeaf> leavesOf(const Signature &initializer);
llvm::SmallVector<TreeLeaf> leavesOf(const ExecutableFunction &initializer,
                                     MLIRContext &context);

} // namespace mlir::fp8

#endif // FP8_COMPILER_INITIALVALUES_H
