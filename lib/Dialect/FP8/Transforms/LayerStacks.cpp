//===- LayerStacks.cpp - Stacks that a later loop reads -------------------===//

#include "LayerStacks.h"

#include "SmallTensors.h"
#include "TakenUpdate.h"

#include "fp8/Dialect/StableHLO/IR/Constants.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;
using stablehlo::DynamicSliceOp;
using stablehlo::DynamicUpdateSliceOp;
using stablehlo::WhileOp;

static bool isSlot(Type part, Type stack) {
  return stablehlo::isLayer(cast<RankedTensorType>(part).getShape(),
                            cast<RankedTensorType>(stack).getShape());
}

Value LayerStack::getValue() const {
  return stablehlo::stripReshapes(DynamicUpdateSliceOp(update).getUpdate());
}

std::optional<LayerStack> fp8::matchLayerStack(WhileOp loop, unsigned carry) {
  Block &cond = loop.getCond().front(), &body = loop.getBody().front();
  auto update = body.getTerminator()
                    ->getOperand(carry)
                    .getDefiningOp<DynamicUpdateSliceOp>();
  if (!update || update.getOperand() != body.getArgument(carry) ||
      !body.getArgument(carry).hasOneUse() || !update->hasOneUse() ||
      !cond.getArgument(carry).use_empty() ||
      !isSlot(update.getUpdate().getType(), update.getType()) ||
      !stablehlo::isZeros(loop->getOperand(carry)))
    return std::nullopt;
  LayerStack stack{carry, update, {}};
  for (Operation *user : loop->getResult(carry).getUsers()) {
    auto slice = dyn_cast<DynamicSliceOp>(user);
    if (!slice || !isSlot(slice.getType(), update.getType()))
      return std::nullopt;
    stack.slices.push_back(slice);
  }
  return stack;
}

/// Returns the start indices of the slot at `starts`, in a stack of this rank.
static SmallVector<Value> getStarts(OpBuilder &builder, Location loc,
                                    ValueRange starts, int64_t rank) {
  SmallVector<Value> result{starts.front()};
  if (rank > 1)
    result.append(rank - 1, makeZeros(builder, loc, starts.front().getType()));
  return result;
}

WhileOp fp8::addParallelStacks(WhileOp loop, DynamicUpdateSliceOp update,
                               ValueRange values) {
  OpBuilder builder(loop);
  Block &body = loop.getBody().front();
  SmallVector<Value> operands(loop->getOperands());
  for (Value value : values) {
    Location loc = value.getLoc();
    SmallVector<int64_t> slot{1}, whole{tensorOf(update).getDimSize(0)};
    llvm::append_range(slot, tensorOf(value).getShape());
    llvm::append_range(whole, tensorOf(value).getShape());
    RankedTensorType type = tensorOf(value).clone(whole);
    builder.setInsertionPoint(loop);
    operands.push_back(makeZeros(builder, loc, type));
    for (Region &region : loop->getRegions())
      region.addArgument(type, loc);
    builder.setInsertionPoint(update);
    Value next = DynamicUpdateSliceOp::create(
        builder, loc, type, body.getArguments().back(),
        makeReshape(builder, loc, value, slot),
        getStarts(builder, loc, update.getStartIndices(), type.getRank()));
    Operation *yield = body.getTerminator();
    yield->insertOperands(yield->getNumOperands(), next);
  }
  Operation *copy =
      cloneAroundRegions(builder, loop, operands,
                         llvm::to_vector(ValueRange(operands).getTypes()));
  loop->erase();
  return cast<WhileOp>(copy);
}

Value fp8::readParallelSlot(OpBuilder &builder, DynamicSliceOp slice,
                            Value stack) {
  Location loc = slice.getLoc();
  RankedTensorType type = tensorOf(stack);
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = 1;
  Value part = DynamicSliceOp::create(
      builder, loc, type.clone(shape), stack,
      getStarts(builder, loc, slice.getStartIndices(), type.getRank()),
      builder.getDenseI64ArrayAttr(shape));
  return makeReshape(builder, loc, part, type.getShape().drop_front());
}
