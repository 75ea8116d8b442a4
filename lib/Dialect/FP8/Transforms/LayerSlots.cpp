//===- LayerSlots.cpp - Which layer of a loop an op works for -------------===//

#include "LayerSlots.h"

#include "SmallTensors.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Finding slots
//===----------------------------------------------------------------------===//

std::optional<LayerSlot> fp8::matchSlot(Value start, Type stack) {
  std::optional<stablehlo::AffineIndex> index =
      stablehlo::matchAffineIndex(start);
  if (!index)
    return std::nullopt;
  return LayerSlot{index->counter, index->scale, index->offset,
                   cast<RankedTensorType>(stack).getDimSize(0)};
}

static void addSlot(Value start, Type stack,
                    SmallVectorImpl<LayerSlot> &slots) {
  if (std::optional<LayerSlot> slot = matchSlot(start, stack))
    slots.insert(slots.begin(), *slot);
}

SmallVector<LayerSlot> fp8::getSlotsOfWeight(Value weight) {
  SmallVector<LayerSlot> slots;
  while (Operation *op = weight.getDefiningOp()) {
    if (auto slice = dyn_cast<stablehlo::DynamicSliceOp>(op))
      addSlot(slice.getStartIndices().front(), slice.getOperand().getType(),
              slots);
    else if (!isa<stablehlo::ReshapeOp, stablehlo::TransposeOp,
                  stablehlo::ConvertOp, stablehlo::BroadcastInDimOp,
                  stablehlo::SliceOp, stablehlo::OptimizationBarrierOp,
                  RescaleOp, QuantizeOp, DequantizeOp, PackOp, UnpackOp>(op))
      break;
    weight = op->getOperand(isa<stablehlo::OptimizationBarrierOp>(op)
                                ? cast<OpResult>(weight).getResultNumber()
                                : 0);
  }
  return slots;
}

SmallVector<LayerSlot> fp8::getSlotsOfGradient(Value result) {
  SmallVector<LayerSlot> slots;
  while (result.hasOneUse()) {
    Operation *user = *result.user_begin();
    if (auto update = dyn_cast<stablehlo::DynamicUpdateSliceOp>(user)) {
      addSlot(update.getStartIndices().front(), update.getType(), slots);
      break;
    }
    if (!isa<stablehlo::ReshapeOp, stablehlo::TransposeOp, stablehlo::ConvertOp,
             stablehlo::BroadcastInDimOp, RescaleOp>(user))
      break;
    result = user->getResult(0);
  }
  return slots;
}

//===----------------------------------------------------------------------===//
// Reading and writing slots
//===----------------------------------------------------------------------===//

SmallVector<Value> fp8::getStartIndices(OpBuilder &at, Location loc,
                                        ArrayRef<LayerSlot> slots,
                                        int64_t rank) {
  auto type = RankedTensorType::get({}, at.getI32Type());
  auto constant = [&](Type type, int64_t value) -> Value {
    auto tensor = cast<RankedTensorType>(type);
    return stablehlo::ConstantOp::create(
        at, loc,
        DenseElementsAttr::get(
            tensor, at.getIntegerAttr(tensor.getElementType(), value)));
  };
  SmallVector<Value> starts;
  for (const LayerSlot &slot : slots) {
    Value index = slot.counter;
    if (slot.scale != 1)
      index = stablehlo::MulOp::create(at, loc, index,
                                       constant(index.getType(), slot.scale));
    if (slot.offset != 0)
      index = stablehlo::AddOp::create(at, loc, index,
                                       constant(index.getType(), slot.offset));
    if (index.getType() != type)
      index = stablehlo::ConvertOp::create(at, loc, type, index);
    starts.push_back(index);
  }
  if (static_cast<int64_t>(starts.size()) < rank)
    starts.append(rank - starts.size(), constant(type, 0));
  return starts;
}

Value fp8::sliceSlots(OpBuilder &at, Location loc, Value stack,
                      ArrayRef<LayerSlot> slots, RankedTensorType type) {
  if (slots.empty())
    return stack;
  RankedTensorType stackType = tensorOf(stack);
  SmallVector<int64_t> sizes(stackType.getShape());
  std::fill_n(sizes.begin(), slots.size(), 1);
  Value part = stablehlo::DynamicSliceOp::create(
      at, loc, stackType.clone(sizes), stack,
      getStartIndices(at, loc, slots, stackType.getRank()),
      at.getDenseI64ArrayAttr(sizes));
  return makeReshape(at, loc, part, type.getShape());
}

Value fp8::updateSlots(OpBuilder &at, Location loc, Value stack,
                       ArrayRef<LayerSlot> slots, Value part) {
  if (slots.empty())
    return part;
  SmallVector<int64_t> shape(tensorOf(stack).getShape());
  std::fill_n(shape.begin(), slots.size(), 1);
  return stablehlo::DynamicUpdateSliceOp::create(
      at, loc, stack.getType(), stack, makeReshape(at, loc, part, shape),
      getStartIndices(at, loc, slots, tensorOf(stack).getRank()));
}
