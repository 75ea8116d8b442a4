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

std::optional<LayerSlot> fp8::matchSlot(Value start, Type stack, int64_t dim,
                                        int64_t size) {
  int64_t extent = cast<RankedTensorType>(stack).getDimSize(dim);
  if (size == extent)
    return std::nullopt; // The part is the whole dimension.
  std::optional<stablehlo::AffineIndex> index =
      stablehlo::matchAffineIndex(start);
  if (!index)
    return std::nullopt;
  LayerSlot slot{index->counter, index->scale, index->offset, extent};
  if (slot.scale % size == 0 && slot.offset % size == 0 && extent % size == 0) {
    slot.scale /= size;
    slot.offset /= size;
    slot.count /= size;
  }
  return slot;
}

/// Adds a slot unless its loop already has one.
static void addSlot(const std::optional<LayerSlot> &slot,
                    SmallVectorImpl<LayerSlot> &slots) {
  if (slot && llvm::none_of(slots, [&](const LayerSlot &other) {
        return other.counter == slot->counter;
      }))
    slots.push_back(*slot);
}

/// Adds a slot for every counter that an index is computed from. Layers may be
/// in an order of their own (`w[order[i]]`) or in nested loops
/// (`w[2 * i + j]`): the iterations are then the layers.
static void addCounters(Value index, SmallVectorImpl<LayerSlot> &slots) {
  SmallVector<Value> open{index};
  DenseSet<Value> seen;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (auto affine = stablehlo::matchAffineIndex(value)) {
      int64_t by = std::abs(affine->scale);
      if (by != 0)
        addSlot(LayerSlot{affine->counter, affine->scale / by,
                          (affine->offset - affine->min) / by,
                          (affine->max - affine->min) / by + 1},
                slots);
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (auto slice = dyn_cast_or_null<stablehlo::DynamicSliceOp>(op))
      llvm::append_range(open, slice.getStartIndices());
    else if (isa_and_nonnull<stablehlo::OptimizationBarrierOp>(op))
      open.push_back(op->getOperand(cast<OpResult>(value).getResultNumber()));
    else if (isa_and_nonnull<stablehlo::AddOp, stablehlo::SubtractOp,
                             stablehlo::MulOp, stablehlo::DivOp,
                             stablehlo::RemOp, stablehlo::NegOp,
                             stablehlo::MinOp, stablehlo::MaxOp,
                             stablehlo::ClampOp, stablehlo::SelectOp,
                             stablehlo::ConvertOp, stablehlo::ReshapeOp>(op))
      llvm::append_range(open, op->getOperands());
  }
}

/// Adds the slots of a part of `stack` that is read or written at `starts`.
static void addSlots(ValueRange starts, Type part, Type stack,
                     SmallVectorImpl<LayerSlot> &slots) {
  for (auto [dim, start] : llvm::enumerate(starts)) {
    int64_t size = cast<RankedTensorType>(part).getDimSize(dim);
    if (size == cast<RankedTensorType>(stack).getDimSize(dim))
      continue;
    if (std::optional<LayerSlot> slot = matchSlot(start, stack, dim, size))
      addSlot(slot, slots);
    else
      addCounters(start, slots);
  }
}

SmallVector<LayerSlot> fp8::getSlotsOfWeight(Value weight) {
  SmallVector<LayerSlot> slots;
  SmallVector<Value> open{weight};
  DenseSet<Value> seen;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    Operation *op = value.getDefiningOp();
    // Outside all loops no counter cuts anything, and the results of an inner
    // loop depend on all that it reads.
    if (!op || !seen.insert(value).second ||
        !op->getParentOfType<stablehlo::WhileOp>() ||
        isa<stablehlo::WhileOp, stablehlo::IfOp, stablehlo::CaseOp>(op))
      continue;
    if (auto slice = dyn_cast<stablehlo::DynamicSliceOp>(op)) {
      addSlots(slice.getStartIndices(), slice.getType(),
               slice.getOperand().getType(), slots);
      open.push_back(slice.getOperand());
    } else if (isa<RescaleOp, QuantizeOp, DequantizeOp, PackOp>(op)) {
      open.push_back(op->getOperand(0)); // Scales may depend on data.
    } else if (isa<stablehlo::OptimizationBarrierOp>(op)) {
      open.push_back(op->getOperand(cast<OpResult>(value).getResultNumber()));
    } else {
      llvm::append_range(open, op->getOperands());
    }
  }
  return slots;
}

SmallVector<LayerSlot> fp8::getSlotsOfGradient(Value result) {
  SmallVector<LayerSlot> slots;
  while (result.hasOneUse()) {
    Operation *user = *result.user_begin();
    if (auto update = dyn_cast<stablehlo::DynamicUpdateSliceOp>(user)) {
      addSlots(update.getStartIndices(), update.getUpdate().getType(),
               update.getType(), slots);
      break;
    }
    if (!isa<stablehlo::ReshapeOp, stablehlo::TransposeOp, stablehlo::ConvertOp,
             stablehlo::BroadcastInDimOp, RescaleOp>(user))
      break;
    result = user->getResult(0);
  }
  return slots;
}

bool fp8::isAround(const LayerSlot &slot, Block *block) {
  return slot.counter.getOwner()->getParent()->isAncestor(block->getParent());
}

//===----------------------------------------------------------------------===//
// Loops over layers
//===----------------------------------------------------------------------===//

void LayerLoops::Evidence::add(const Evidence &other) {
  for (const LayerSlot &slot : other.ofWeights)
    addSlot(slot, ofWeights);
  for (const LayerSlot &slot : other.ofGradients)
    addSlot(slot, ofGradients);
}

LayerLoops::Evidence LayerLoops::getEvidence(Value weight, Value result) {
  Evidence evidence;
  if (weight)
    evidence.ofWeights = getSlotsOfWeight(weight);
  else
    evidence.ofGradients = getSlotsOfGradient(result);
  return evidence;
}

/// Returns the number of regions around a slot's loop.
static unsigned getDepth(const LayerSlot &slot) {
  unsigned depth = 0;
  for (Operation *op = slot.counter.getOwner()->getParentOp(); op;
       op = op->getParentOp())
    ++depth;
  return depth;
}

SmallVector<LayerSlot> LayerLoops::getSlots(Block *block,
                                            const Evidence &own) const {
  SmallVector<LayerSlot> slots;
  for (ArrayRef<LayerSlot> found :
       {ArrayRef(own.ofWeights), ArrayRef(own.ofGradients),
        ArrayRef(all.ofWeights), ArrayRef(all.ofGradients)})
    for (const LayerSlot &slot : found)
      if (isAround(slot, block))
        addSlot(slot, slots);
  llvm::sort(slots, [](const LayerSlot &a, const LayerSlot &b) {
    return getDepth(a) < getDepth(b);
  });
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
