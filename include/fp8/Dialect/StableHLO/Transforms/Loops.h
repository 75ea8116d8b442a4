//===- Loops.h - What is known of a loop's counter --------------*- C++ -*-===//

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

/// The counter of `loop` if its bounds and step are constant: the condition
/// compares one carry with a constant, the body adds a constant to that carry.
std::optional<CountedLoop> matchCountedLoop(WhileOp loop);

/// A rank-0 integer `scale * counter + offset`, with the values it has in the
/// iterations of the counter's loop, `min` to `max`.
struct AffineIndex {
  BlockArgument counter; ///< An argument of the body of a counted loop.
  int64_t scale;
  int64_t offset;
  int64_t min;
  int64_t max;
};

/// How `value` follows from the counter of one counted loop around it, through
/// additions, multiplications by constants and conversions that don't overflow.
std::optional<AffineIndex> matchAffineIndex(Value value);

/// The value of a constant rank-0 (or one-element) integer.
std::optional<int64_t> matchConstantInteger(Value value);

/// Visits the values that an op reads, those that its regions read included.
void forEachRead(Operation *op, function_ref<void(Value)> visit);

/// How many leading dimensions of `type` a part of the shape `part` cuts so
/// that it is contiguous: all dimensions after the first one with more than one
/// element are whole. None if the part is not contiguous.
std::optional<unsigned> countCutDims(ArrayRef<int64_t> shape,
                                     ArrayRef<int64_t> part);

/// Where a part of a stack lies: the offset in each dimension is constant or
/// follows from a counter.
struct StackOffset {
  int64_t constant = 0;
  std::optional<AffineIndex> index; ///< Set: the constant means nothing.
};

/// The place that a dynamic_slice reads or a dynamic_update_slice writes, if it
/// is one contiguous part of the stack, known to lie inside of it (no start is
/// clamped), and at least one offset follows from a loop's counter.
std::optional<SmallVector<StackOffset>> matchStackPart(DynamicSliceOp op);
std::optional<SmallVector<StackOffset>> matchStackPart(DynamicUpdateSliceOp op);

} // namespace stablehlo
} // namespace mlir

#endif // FP8_DIALECT_STABLEHLO_TRANSFORMS_LOOPS_H
