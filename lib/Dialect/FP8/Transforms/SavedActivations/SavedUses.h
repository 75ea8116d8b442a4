//===- SavedUses.h - What reads a saved value -------------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_SAVEDUSES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_SAVEDUSES_H

#include "fp8/Analysis/LinearLayers/LinearLayers.h"

#include "llvm/ADT/SetVector.h"

namespace mlir {
namespace fp8 {

/// Whether `use`, directly or in another layout, is compared for equality.
bool isComparedEqual(OpOperand &use);

/// Whether only ops of which `isReader` is true read a value, directly, in
/// another layout or from a stack.
bool feedsOnly(Value value, llvm::function_ref<bool(Operation *)> isReader);
bool feedsOnly(OpOperand &use, llvm::function_ref<bool(Operation *)> isReader);

/// Returns the number of elements of the largest operand of a dot that `use`
/// is, directly, in another layout or type, or by way of a stack; 0 if there is
/// none.
int64_t getLargestOperand(OpOperand &use);

/// Collects the uses where a loop writes values computed from `use` to stacks
/// for the backward pass. Returns false if there are none.
bool collectStackWrites(OpOperand &use, const LinearLayers &layers,
                        llvm::SetVector<OpOperand *> &writes);

/// Whether `use` is a bias of scores, which the backward pass computes again:
/// the exponential makes the absolute error of a score the relative error of a
/// weight, and sums of rows belong to the exact scores.
bool isAddedToScores(OpOperand &use);

/// Whether `isFound` is true for a value that `value` is computed from element
/// by element, or for itself. Looks through ops of which `passes` is true.
bool anySource(Value value, llvm::function_ref<bool(Operation *)> passes,
               llvm::function_ref<bool(Value)> isFound);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_SAVEDUSES_H
