//===- Loops.h - Counters of loops ------------------------------*- C++ -*-===//

#ifndef FP8_DIALECT_STABLEHLO_TRANSFORMS_LOOPS_H
#define FP8_DIALECT_STABLEHLO_TRANSFORMS_LOOPS_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include <optional>

namespace mlir {
namespace stablehlo {

/// A loop that runs a constant number of times. In iteration t the carry
/// `counter` has the value `lower + t * step`, which never overflows.
struct CountedLoop {
  unsigned counter; ///< Which carry counts.
  int64_t lower;    ///< Its value in the first iteration.
  int64_t upper;    ///< Its value after the last one.
  int64_t step;     ///< What an iteration adds; negative if it counts down.
  int64_t trips;
};

/// Matches a loop whose counter has constant bounds and step: the condition
/// compares one carry with a constant, and the body adds a constant to that
/// carry.
std::optional<CountedLoop> matchCountedLoop(WhileOp loop);

/// A rank-0 integer `scale * counter + offset`. Over the iterations of the
/// counter's loop its values lie from `min` to `max`.
struct AffineIndex {
  BlockArgument counter; ///< An argument of the body of a counted loop.
  int64_t scale;
  int64_t offset;
  int64_t min;
  int64_t max;
};

/// Matches a value that follows from the counter of one counted loop around it,
/// through additions, multiplications by constants and conversions that don't
/// overflow.
std::optional<AffineIndex> matchAffineIndex(Value value);

/// Returns the value that `value` repeats with another shape and the same
/// elements in the same order: the operand of a reshape, or of a broadcast that
/// only adds dimensions of one element; null if there is none.
Value getReshapeSource(Value value);

/// Returns the value before such reshapes.
Value stripReshapes(Value value);

/// Whether a part of a stack is one index of the first dimension and all of the
/// others.
bool isLayer(ArrayRef<int64_t> part, ArrayRef<int64_t> stack);

/// A loop that fills one slot of a stack in each iteration.
struct StackingLoop {
  DynamicUpdateSliceOp update; ///< Writes a slot.
  AffineIndex slot;            ///< The slot that it fills.
};

/// Returns the loop that makes `stack`, if each of its iterations fills one
/// slot.
std::optional<StackingLoop> matchStackingLoop(Value stack);

/// An iteration of such a loop, by the slot that it filled: `index` is
/// `scale * counter + offset`, and `scale` is 1 or -1.
struct StackedIteration {
  BlockArgument counter;
  Value index;
  int64_t scale, offset;

  /// Computes the counter from the index.
  Value makeCounter(OpBuilder &builder, Location loc) const;

  bool operator==(const StackedIteration &other) const {
    return counter == other.counter && index == other.index &&
           scale == other.scale && offset == other.offset;
  }
};

/// Returns the index of the slot that `slice` reads; null if it reads anything
/// but one slot, or if the index may be clamped.
Value matchSlot(DynamicSliceOp slice);

/// The values that a rank-0 integer takes.
struct IndexRange {
  int64_t min, max;

  /// Whether all values are indices into `size` elements.
  bool isInside(int64_t size) const { return min >= 0 && max < size; }
};

/// Returns the range of a constant, of a counter of a counted loop, or of what
/// sums, differences and products make of them without overflow.
std::optional<IndexRange> rangeOf(Value value);

/// Matches a constant rank-0 (or one-element) integer.
std::optional<int64_t> matchConstantInteger(Value value);

/// Returns whether `op` and what is inside of it can read `value`.
bool isVisible(Value value, Operation *op);

/// Visits the values that an op reads, including those that its regions read.
void forEachRead(Operation *op, function_ref<void(Value)> visit);

/// Returns how many leading dimensions of `shape` a contiguous part cuts: all
/// up to its first dimension with more than one element, that one included. All
/// later dimensions must be whole. Returns none if the part is not contiguous.
std::optional<unsigned> countCutDims(ArrayRef<int64_t> shape,
                                     ArrayRef<int64_t> part);

/// The offset of a part of a stack in one dimension: constant, or computed from
/// a counter.
struct StackOffset {
  int64_t constant = 0;
  std::optional<AffineIndex> index; ///< If set, `constant` is unused.
};

/// Matches a dynamic_slice or dynamic_update_slice of one contiguous part of
/// the stack. The part must be known to lie inside the stack (no start is
/// clamped), and at least one offset must follow from a loop's counter. Returns
/// the offset in each dimension.
std::optional<SmallVector<StackOffset>> matchStackPart(DynamicSliceOp op);
std::optional<SmallVector<StackOffset>> matchStackPart(DynamicUpdateSliceOp op);

} // namespace stablehlo
} // namespace mlir

#endif // FP8_DIALECT_STABLEHLO_TRANSFORMS_LOOPS_H
