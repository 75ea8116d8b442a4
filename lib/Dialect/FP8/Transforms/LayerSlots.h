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

/// The slot of dimension `dim` of `stack` that a part of `size` elements which
/// begins at `start` takes, if a loop's counter gives it.
std::optional<LayerSlot> matchSlot(Value start, Type stack, int64_t dim = 0,
                                   int64_t size = 1);

/// The layers that `weight`, an operand of a dot, belongs to: where it, or what
/// it is made from, is cut from stacks. In a loop over micro-batches weights do
/// not change.
SmallVector<LayerSlot> getSlotsOfWeight(Value weight);

/// The layers that the result of a wgrad dot belongs to: where it goes.
SmallVector<LayerSlot> getSlotsOfGradient(Value result);

/// Whether `block` is in the loop whose layer the slot is.
bool isAround(const LayerSlot &slot, Block *block);

/// The loops over layers of a function: those in which weights are cut from
/// stacks. Whatever is quantized in such a loop has an entry for each layer,
/// also what no stack tells the layer of: the activations of a wgrad dot whose
/// result goes another way, or those of a weight that all layers share.
class LayerLoops {
public:
  /// The slots that a dot tells by its weight or, if it has none, by its
  /// result.
  struct Evidence {
    SmallVector<LayerSlot> ofWeights, ofGradients;
    void add(const Evidence &other);
  };
  static Evidence getEvidence(Value weight, Value result);

  void add(const Evidence &evidence) { all.add(evidence); }

  /// The slots of what is computed in `block`, those of the outermost loop
  /// first. Where `own` says which layer it is, that holds.
  SmallVector<LayerSlot> getSlots(Block *block, const Evidence &own = {}) const;

private:
  Evidence all;
};

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
