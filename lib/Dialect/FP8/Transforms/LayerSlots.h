//===- LayerSlots.h - Which layer of a loop an op works for -----*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_LAYERSLOTS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_LAYERSLOTS_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

namespace mlir {
namespace fp8 {

/// One layer of a loop over layers: the loop's counter gives it as
/// `scale * counter + offset`.
struct LayerSlot {
  BlockArgument counter;
  int64_t scale, offset;
  int64_t count; ///< How many there are.
  bool operator==(const LayerSlot &other) const {
    return counter == other.counter && scale == other.scale &&
           offset == other.offset && count == other.count;
  }
};

/// The layers that `weight`, an operand of a dot, belongs to: where it is cut
/// from stacks, the outermost first. In a loop over micro-batches weights do
/// not change.
SmallVector<LayerSlot> getSlotsOfWeight(Value weight);

/// The layers that the result of a wgrad dot belongs to: where it goes.
SmallVector<LayerSlot> getSlotsOfGradient(Value result);

/// The slot of `stack`'s first dimension that begins at `start`, if a loop's
/// counter gives it.
std::optional<LayerSlot> matchSlot(Value start, Type stack);

/// Where the slots begin in a stack of this rank.
SmallVector<Value> getStartIndices(OpBuilder &at, Location loc,
                                   ArrayRef<LayerSlot> slots, int64_t rank);

/// What `stack` holds for the slots, in the shape of `type`.
Value sliceSlots(OpBuilder &at, Location loc, Value stack,
                 ArrayRef<LayerSlot> slots, RankedTensorType type);

/// `stack` with `part` in the place of the slots.
Value updateSlots(OpBuilder &at, Location loc, Value stack,
                  ArrayRef<LayerSlot> slots, Value part);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_LAYERSLOTS_H
