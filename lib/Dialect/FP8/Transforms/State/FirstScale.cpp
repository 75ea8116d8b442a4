//===- FirstScale.cpp - The first scale of a value ------------------------===//

#include "FirstScale.h"
#include "../SmallTensors.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::fp8;

/// If more ops would be cloned, the value is read instead.
static constexpr size_t kMaxOps = 512;

static bool isDot(Operation *op) {
  return isa<stablehlo::DotGeneralOp, fp8::DotGeneralOp>(op);
}

/// Whether an op costs no more than reading its operands.
static bool isCheap(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() ||
         isa<stablehlo::ConstantOp, stablehlo::BroadcastInDimOp,
             stablehlo::ReshapeOp, stablehlo::TransposeOp, stablehlo::SliceOp,
             stablehlo::IotaOp, stablehlo::ConvertOp, stablehlo::SelectOp,
             stablehlo::ClampOp, stablehlo::CompareOp, DequantizeOp, UnpackOp,
             PackOp, RescaleOp>(op);
}

FirstScaleClone::FirstScaleClone(Value value)
    : value(value), block(value.getParentBlock()) {
  collect(/*throughDots=*/true);
  // Other values that are read may come after a dot, as the norm of all
  // gradients does. Then the dot's result exists anyway.
  if (llvm::any_of(ops, [&](Operation *op) {
        return isDot(op) && last && op->isBeforeInBlock(last);
      }))
    collect(/*throughDots=*/false);
}

void FirstScaleClone::collect(bool throughDots) {
  ops.clear();
  last = nullptr;
  visit(value, throughDots);
}

void FirstScaleClone::noteRead(Value value) {
  Operation *op = value.getDefiningOp();
  if (op && op->getBlock() == block && (!last || last->isBeforeInBlock(op)))
    last = op;
}

void FirstScaleClone::visit(Value value, bool throughDots) {
  Operation *op = value.getDefiningOp();
  if (op && ops.contains(op))
    return;
  bool isCloned = op && op->getBlock() == block && ops.size() < kMaxOps &&
                  (isCheap(op) || (throughDots && isDot(op)));
  if (!isCloned)
    return noteRead(value);
  for (Value operand : op->getOperands())
    isDot(op) ? noteRead(operand) : visit(operand, throughDots);
  ops.insert(op);
}

void FirstScaleClone::setInsertionPoint(OpBuilder &builder) const {
  if (last)
    builder.setInsertionPointAfter(last);
  else
    builder.setInsertionPointToStart(block);
}

Value FirstScaleClone::clone(OpBuilder &builder) const {
  IRMapping mapping;
  for (Operation *op : ops) {
    // The report and traces list the original dot, not this copy.
    Operation *copy = builder.clone(*op, mapping);
    copy->removeAttr(FP8Dialect::kTensorsAttrName);
    copy->removeAttr(FP8Dialect::kVerdictAttrName);
  }
  return mapping.lookupOrDefault(value);
}

DelayedScaling::Scale
fp8::makeFirstScale(OpBuilder &builder, Location loc, Value unset,
                    RankedTensorType type,
                    function_ref<ComputeScaleOp()> makeScale) {
  OperationState state(loc, stablehlo::IfOp::getOperationName(), unset,
                       TypeRange{type, type});
  state.addRegion();
  state.addRegion();
  Operation *branch = builder.create(state);
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&branch->getRegion(0));
  stablehlo::ReturnOp::create(builder, loc, makeScale()->getResults());
  builder.createBlock(&branch->getRegion(1));
  Value one = makeSplat(builder, loc, type, 1);
  stablehlo::ReturnOp::create(builder, loc, ValueRange{one, one});
  return {branch->getResult(0), branch->getResult(1)};
}

DelayedScaling::Scale fp8::makeFirstScale(OpBuilder &builder, Value unset,
                                          const FirstScaleClone &value,
                                          ScaledType scaled,
                                          ComputeScaleOp current) {
  Location loc = current.getLoc();
  return makeFirstScale(
      builder, loc, unset, tensorOf(current.getQuantizer()), [&]() {
        Value amax = AmaxOp::create(builder, loc, value.clone(builder), scaled);
        auto own = cast<ComputeScaleOp>(builder.clone(*current));
        own.getAmaxMutable().assign(amax);
        return own;
      });
}
