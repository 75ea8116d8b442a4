//===- SavedScores.h - Recomputing scores that were saved -------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_SAVEDSCORES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_SAVEDSCORES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fp8 {

/// Lets the backward pass compute the values that `isScore` again, where loops
/// and branches of the forward pass save them for it; also masks, if they
/// follow from what the backward pass can read anyway. Copies of dots are
/// marked with `fp8.recompute`. Returns whether there are any.
bool recomputeSavedScores(func::FuncOp function,
                          llvm::function_ref<bool(Value)> isScore);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_SAVEDSCORES_H
