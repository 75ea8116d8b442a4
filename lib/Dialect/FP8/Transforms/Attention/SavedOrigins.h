//===- SavedOrigins.h - What loops and branches saved -----------*- C++ -*-===//
//
// Autodiff saves a value of a loop's body in a stack, and a value of a branch
// as one more result; an unrolled loop concatenates the values of its copies of
// the body. All of these may be nested. The backward pass reads slices.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_SAVEDORIGINS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_SAVEDORIGINS_H

#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

namespace mlir {
namespace fp8 {

/// The iterations and branches of the forward pass that an op of the backward
/// pass belongs to.
struct ForwardPlace {
  /// The op can read the index of each.
  SmallVector<stablehlo::StackedIteration> iterations;
  SmallVector<Block *> branches; ///< Those that were taken.

  /// Returns the iteration of the loop with this body; null if it has none.
  const stablehlo::StackedIteration *getIteration(Block *body) const;
  bool isEmpty() const { return iterations.empty() && branches.empty(); }
};

/// A value inside loops or branches.
struct Origin {
  Value value;
  ForwardPlace place;
};

/// Returns the value that `value`, which `reader` can read, was before it was
/// saved. If it was not saved, the place is empty.
Origin findOrigin(Value value, Operation *reader);

/// Returns the value that holds what is read by `use`: a reshape, a
/// concatenation, the stack or the result of a branch in `place`. Returns null
/// for other uses.
Value getHolder(OpOperand &use, const ForwardPlace &place);

/// Reads what is read by `use` from its holder; `whole` is the value of that at
/// `place`.
Value readFromHolder(OpBuilder &builder, OpOperand &use, Value whole,
                     const ForwardPlace &place);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_SAVEDORIGINS_H
