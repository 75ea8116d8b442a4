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
  int64_t count; ///< The number of layers.
  bool operator==(const LayerSlot &other) const {
    return counter == other.counter && scale == other.scale &&
           offset == other.offset && count == other.count;
  }
};

/// Matches the slot of dimension `dim` of `stack` that a part of `size`
/// elements starting at `start` takes, if a loop's counter gives it.
std::optional<LayerSlot> matchSlot(Value start, Type stack, int64_t dim = 0,
                                   int64_t size = 1);

/// Returns the layers that `weight`, an operand of a dot, belongs to: where the
/// weight, or a value that it is made from, is sliced from stacks. In a loop
/// over micro-batches weights do not change.
SmallVector<LayerSlot> getSlotsOfWeight(Value weight);

/// Returns the layers that the result of a wgrad dot belongs to: where it is
/// written.
SmallVector<LayerSlot> getSlotsOfGradient(Value result);

/// Whether `block` is in the loop that `slot` is a layer of.
bool isAround(const LayerSlot &slot, Block *block);

/// The loops over layers of a function: those in which weights are sliced from
/// stacks. Every tensor that is quantized in such a loop has an entry for each
/// layer, even if no stack shows its layer: the activations of a wgrad dot
/// whose result is not stacked, or those of a weight that all layers share.
class LayerLoops {
public:
  /// The slots that a dot's weight shows or, if it has none, its result.
  struct Evidence {
    SmallVector<LayerSlot> ofWeights, ofGradients;
    void add(const Evidence &other);
  };
  static Evidence getEvidence(Value weight, Value result);

  void add(const Evidence &evidence) { all.add(evidence); }

  /// Returns the slots of values computed in `block`, those of the outermost
  /// loop first. A layer that `own` gives takes precedence.
  SmallVector<LayerSlot> getSlots(Block *block, const Evidence &own = {}) const;

private:
  Evidence all;
};

/// Returns the start indices of the slots in a stack of this rank.
SmallVector<Value> getStartIndices(OpBuilder &at, Location loc,
                                   ArrayRef<LayerSlot> slots, int64_t rank);

/// Reads the slots of `stack`, in the shape of `type`.
Value sliceSlots(OpBuilder &at, Location loc, Value stack,
                 ArrayRef<LayerSlot> slots, RankedTensorType type);

/// Returns `stack` with the slots replaced by `part`.
Value updateSlots(OpBuilder &at, Location loc, Value stack,
                  ArrayRef<LayerSlot> slots, Value part);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_LAYERSLOTS_H
