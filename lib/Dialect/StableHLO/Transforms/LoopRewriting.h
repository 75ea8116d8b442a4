//===- LoopRewriting.h - Parts of loop canonicalization ---------*- C++ -*-===//
//
// Each part rewrites one kind of op; CanonicalizeLoops.cpp runs them until none
// changes anything, for a limited number of rounds. All of them preserve every
// value bit for bit.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_STABLEHLO_TRANSFORMS_LOOPREWRITING_H
#define FP8_LIB_DIALECT_STABLEHLO_TRANSFORMS_LOOPREWRITING_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include <optional>

namespace mlir {
namespace stablehlo {

//===----------------------------------------------------------------------===//
// Building blocks (LoopRewriting.cpp)
//===----------------------------------------------------------------------===//

/// Whether `value` is computed outside the regions of `op`.
bool isOutside(Value value, Operation *op);

/// Copies `block`, with `arguments` for its arguments, before `op`. Returns the
/// operands of the copied terminator.
SmallVector<Value> cloneBefore(Operation *op, Block &block,
                               ValueRange arguments);

/// Moves the ops of `block` before `op`, with `arguments` for its arguments.
SmallVector<Value> moveBefore(Operation *op, Block &block,
                              ValueRange arguments);

bool eraseDeadOps(Block &block);

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// Removes the carries that a loop does not need, and returns the remaining
/// loop (LoopCarries.cpp).
WhileOp simplifyCarries(WhileOp loop, bool &changed);

/// Moves out ops that are the same in every iteration: those with small
/// results, and expensive ones with their operands. Other large results would
/// only live longer (LoopInvariants.cpp).
bool hoistInvariantOps(WhileOp loop, bool runsAtLeastOnce);

/// Replaces branches whose predicate is known, and removes results that
/// branches need not return (Branches.cpp).
bool canonicalizeIf(IfOp op);
bool canonicalizeCase(CaseOp op);

/// Replaces an op on counters whose result follows from their ranges
/// (CounterArithmetic.cpp).
bool simplifyByRange(Operation *op);

/// Replaces a gather of one window at a scalar in a loop, which JAX writes for
/// `jnp.take(x, i, 0)` and `x.at[i].get`, by a slice. Both clamp the index
/// (CounterArithmetic.cpp).
bool gatherToSlice(GatherOp op);

/// Replaces a scatter of one window at a counter, which JAX writes for
/// `x.at[i].set`, by an update of a slice, if the counter stays inside the
/// tensor (CounterArithmetic.cpp).
bool scatterToUpdate(ScatterOp op);

/// Reads the origin of a value instead of a stack of it. JAX stacks the index
/// and the weight for the backward pass if a loop slices its weights itself
/// (StackOrigins.cpp).
bool readOrigin(DynamicSliceOp slice);

/// Lets readers of stacks that are copies of arrays read the arrays. Returns
/// whether there are any.
bool readCopiedArrays(WhileOp loop);

} // namespace stablehlo
} // namespace mlir

#endif // FP8_LIB_DIALECT_STABLEHLO_TRANSFORMS_LOOPREWRITING_H
