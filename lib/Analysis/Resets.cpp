//===- Resets.cpp - State that is reset to zero ---------------------------===//

#include "Resets.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns true if a number for the whole tensor depends on one condition
/// alone: a flag as a number, or one minus it.
static bool followsFromFlag(Value value) {
  if (getElementTypeOrSelf(value.getType()).isInteger(1))
    return true;
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<stablehlo::BroadcastInDimOp>(op) &&
      cast<RankedTensorType>(op->getOperand(0).getType()).getRank() != 0)
    return false;
  if (isa_and_nonnull<stablehlo::BroadcastInDimOp, stablehlo::ConvertOp,
                      stablehlo::ReshapeOp>(op))
    return followsFromFlag(op->getOperand(0));
  auto isOne = [](Value value) {
    return matchPattern(value, m_OneFloat()) || matchPattern(value, m_One());
  };
  return isa_and_nonnull<stablehlo::SubtractOp>(op) &&
         isOne(op->getOperand(0)) && followsFromFlag(op->getOperand(1));
}

Value fp8::getBeforeReset(Value next) {
  Operation *op = next.getDefiningOp();
  if (!op)
    return nullptr;
  if (isa<stablehlo::ConvertOp, stablehlo::ReshapeOp>(op))
    return getBeforeReset(op->getOperand(0));
  if (isa<stablehlo::MulOp>(op)) {
    for (unsigned i : {0, 1})
      if (followsFromFlag(op->getOperand(i)))
        return op->getOperand(1 - i);
    return nullptr;
  }
  SmallVector<Value> choices = choicesOf(next);
  Value other;
  bool resets = false;
  for (Value choice : choices)
    if (isZero(choice))
      resets = true;
    else
      other = choice;
  if (resets)
    return other;
  // If a call that is not taken keeps the old state, the reset is in another
  // choice.
  for (Value choice : choices)
    if (Value before = getBeforeReset(choice))
      return before;
  return nullptr;
}
