//===- StoredProducts.cpp - Products that the forward loop stores ---------===//

#include "Smoother.h"

#include "../LayerStacks.h"

#include "fp8/Support/Shapes.h"

#include "llvm/ADT/STLExtras.h"

namespace mlir::fp8::smooth {

namespace {
/// A slice of a stack that nothing else reads.
struct StoredSlot {
  stablehlo::WhileOp loop;
  LayerStack stack;
};
} // namespace

static std::optional<StoredSlot> matchStored(Value value) {
  auto slice = value.getDefiningOp<stablehlo::DynamicSliceOp>();
  auto result = slice ? dyn_cast<OpResult>(slice.getOperand()) : OpResult();
  auto loop = result ? dyn_cast<stablehlo::WhileOp>(result.getOwner())
                     : stablehlo::WhileOp();
  std::optional<LayerStack> stack;
  if (loop && result.hasOneUse())
    stack = matchLayerStack(loop, result.getResultNumber());
  if (!stack)
    return std::nullopt;
  return StoredSlot{loop, *stack};
}

/// If the backward loop reads a product that the forward loop has stored, makes
/// the forward loop store the rescaled product instead, so that nothing has to
/// be rescaled before it is quantized. Returns the factor as the backward loop
/// can read it.
std::optional<Factor> Smoother::storeSmoothed(Unit &unit, const View &product,
                                              ArrayRef<LayerSlot> slots) {
  std::optional<StoredSlot> slot = matchStored(product.root);
  if (!slot)
    return std::nullopt;
  auto stored = llvm::find_if(unit.products, [&](const auto &entry) {
    return entry.first == slot->stack.getValue();
  });
  if (stored == unit.products.end())
    return std::nullopt;
  bool readOnce = product.root.hasOneUse();
  for (OpResult step : product.steps)
    readOnce &= step.hasOneUse();
  if (!readOnce)
    return std::nullopt;
  Value smoothed = rescaler.lookup(stored->first, stored->second.quantizer);
  stablehlo::DynamicUpdateSliceOp update = slot->stack.update;
  stablehlo::DynamicSliceOp slice = slot->stack.slices.front();
  builder.setInsertionPoint(update);
  update->setOperand(
      1, stablehlo::ReshapeOp::create(builder, smoothed.getLoc(),
                                      update.getUpdate().getType(), smoothed));
  Block *block = slice->getBlock();
  std::optional<Factor> factor;
  if (llvm::all_of(slots, [&](const LayerSlot &layer) {
        return isAround(layer, block);
      }))
    factor =
        factors.readState(unit, block, slots, shapeOf(stored->second.scale));
  if (!factor) {
    unsigned carry = slot->loop->getNumResults();
    positions.forget(slot->loop); // it is replaced
    stablehlo::WhileOp loop = addParallelStacks(
        slot->loop, update, {stored->second.scale, stored->second.quantizer});
    builder.setInsertionPoint(slice);
    factor =
        Factor{readParallelSlot(builder, slice, loop->getResult(carry)),
               readParallelSlot(builder, slice, loop->getResult(carry + 1))};
  }
  unit.factors.push_back(*factor);
  return factor;
}

} // namespace mlir::fp8::smooth
