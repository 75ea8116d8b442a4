//===- SavedScores.h - Recomputing scores that were saved -------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_SAVEDSCORES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_SAVEDSCORES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fp8 {

/// Lets the backward pass compute scores and their rows again, where loops and
/// branches of the forward pass save them for it; also masks, if they follow
/// from what the backward pass can read anyway. Where it reads rows alone, as a
/// flash attention with a backward pass of its own does, these stay saved.
/// Copies of dots are marked with `fp8.recompute`. Returns whether there are
/// any. `isScore` and `isRow` tell what belongs to a softmax.
bool recomputeSavedScores(func::FuncOp function,
                          llvm::function_ref<bool(Value)> isScore,
                          llvm::function_ref<bool(Value)> isRow);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_SAVEDSCORES_H
