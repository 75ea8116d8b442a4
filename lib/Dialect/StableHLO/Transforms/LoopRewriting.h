//===- LoopRewriting.h - The parts of stablehlo-canonicalize-loops -*- C++
//-*-===//
//
// Each part rewrites one kind of thing; CanonicalizeLoops.cpp runs them until
// none finds anything left. All of them keep every value, bit for bit.
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

/// A constant of `type`, every element of which is `value`.
Value integerConstant(OpBuilder &b, Location loc, Type type, int64_t value);

/// Whether `value` is computed outside of the regions of `op`.
bool isOutside(Value value, Operation *op);

/// Puts a copy of `block`, with `arguments` for its arguments, before `op`, and
/// returns what its terminator returned.
SmallVector<Value> cloneBefore(Operation *op, Block &block,
                               ValueRange arguments);

/// Moves the ops of `block` before `op`, with `arguments` for its arguments.
SmallVector<Value> moveBefore(Operation *op, Block &block,
                              ValueRange arguments);

bool eraseDeadOps(Block &block);

/// The values an index has: a constant or those of a counter.
struct IndexRange {
  int64_t min, max;

  /// Whether all of them are an index into so many elements.
  bool isInside(int64_t size) const { return min >= 0 && max < size; }
};
std::optional<IndexRange> rangeOf(Value value);

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// Removes the carries that a loop need not have, and returns the loop that is
/// left (LoopCarries.cpp).
WhileOp simplifyCarries(WhileOp loop, bool &changed);

/// Moves out what is the same in every iteration: small results, and expensive
/// ones with what they need. Other large results would only live longer
/// (LoopInvariants.cpp).
bool hoistInvariantOps(WhileOp loop, bool runsAtLeastOnce);

/// Branches whose predicate is known, and results that branches need not have
/// (Branches.cpp).
bool canonicalizeIf(IfOp op);
bool canonicalizeCase(CaseOp op);

/// An op on counters whose result their ranges tell (CounterArithmetic.cpp).
bool simplifyByRange(Operation *op);

/// A scatter of one window at a counter, which JAX writes for `x.at[i].set`, is
/// an update of a slice where the counter never runs out of the tensor
/// (CounterArithmetic.cpp).
bool scatterToUpdate(ScatterOp op);

/// Reads what is there anyway instead of a stack of it. JAX stacks the index
/// and the weight for the backward pass where a loop cuts its weights itself
/// (StackOrigins.cpp).
bool readOrigin(DynamicSliceOp slice);

} // namespace stablehlo
} // namespace mlir

#endif // FP8_LIB_DIALECT_STABLEHLO_TRANSFORMS_LOOPREWRITING_H
