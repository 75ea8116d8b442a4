//===- SavedUses.cpp - What reads a saved value ---------------------------===//

#include "SavedUses.h"

#include "Recomputation.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/Barriers.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

static bool isLayout(Operation *op) {
  return isa<stablehlo::ReshapeOp, stablehlo::TransposeOp,
             stablehlo::OptimizationBarrierOp>(op);
}

/// Returns the result of a layout op that corresponds to this operand.
static Value getLayoutResult(OpOperand &use) {
  Operation *user = use.getOwner();
  return user->getResult(user->getNumResults() == 1 ? 0
                                                    : use.getOperandNumber());
}

bool fp8::isComparedEqual(OpOperand &use) {
  Operation *user = use.getOwner();
  if (comparesEqual(user))
    return true;
  return (isLayout(user) || isa<stablehlo::BroadcastInDimOp>(user)) &&
         llvm::any_of(getLayoutResult(use).getUses(), isComparedEqual);
}

/// Returns the stack that a loop writes `use` to, slot by slot, as the loop's
/// result; null if there is none.
static Value getStack(OpOperand &use) {
  Operation *user = use.getOwner();
  if (isa<stablehlo::ReshapeOp, stablehlo::BroadcastInDimOp>(user))
    return user->hasOneUse() ? getStack(*user->use_begin()) : Value();
  auto update = dyn_cast<stablehlo::DynamicUpdateSliceOp>(user);
  if (!update || use.getOperandNumber() != 1 || !update->hasOneUse())
    return nullptr;
  OpOperand &next = *update->use_begin();
  auto loop = dyn_cast<stablehlo::WhileOp>(next.getOwner()->getParentOp());
  if (!loop || !isa<stablehlo::ReturnOp>(next.getOwner()))
    return nullptr;
  return loop->getResult(next.getOperandNumber());
}

bool fp8::feedsOnly(OpOperand &use,
                    llvm::function_ref<bool(Operation *)> isReader) {
  Operation *user = use.getOwner();
  if (isReader(user))
    return true;
  if (Value stack = getStack(use))
    return feedsOnly(stack, isReader);
  if (isa<stablehlo::DynamicSliceOp>(user) && use.getOperandNumber() == 0)
    return feedsOnly(user->getResult(0), isReader);
  return isLayout(user) && feedsOnly(getLayoutResult(use), isReader);
}

bool fp8::feedsOnly(Value value,
                    llvm::function_ref<bool(Operation *)> isReader) {
  return !value.use_empty() &&
         llvm::all_of(value.getUses(),
                      [&](OpOperand &use) { return feedsOnly(use, isReader); });
}

int64_t fp8::getLargestOperand(OpOperand &use) {
  Operation *user = use.getOwner();
  if (isa<stablehlo::DotGeneralOp>(user))
    return numElements(use.get());
  Value next = getStack(use);
  bool isSlice =
      isa<stablehlo::DynamicSliceOp>(user) && use.getOperandNumber() == 0;
  if (!next && (isSlice || isLayout(user) || isa<stablehlo::ConvertOp>(user)))
    next = getLayoutResult(use);
  int64_t largest = 0;
  if (next)
    for (OpOperand &nextUse : next.getUses())
      largest = std::max(largest, getLargestOperand(nextUse));
  return largest;
}

bool fp8::collectStackWrites(OpOperand &use, const LinearLayers &layers,
                             llvm::SetVector<OpOperand *> &writes) {
  if (getStack(use)) {
    writes.insert(&use);
    return true;
  }
  Operation *user = use.getOwner();
  if (!user->getParentOfType<stablehlo::WhileOp>() ||
      user->getNumResults() != 1 || layers.isForward(user) ||
      !(stablehlo::worksByElement(user) || keepsElements(user)))
    return false;
  bool found = false;
  for (OpOperand &next : user->getUses())
    found |= collectStackWrites(next, layers, writes);
  return found;
}

bool fp8::anySource(Value value, llvm::function_ref<bool(Operation *)> passes,
                    llvm::function_ref<bool(Value)> isFound) {
  llvm::SetVector<Value> sources;
  sources.insert(stablehlo::skipBarriers(value));
  for (size_t i = 0; i < sources.size(); ++i) {
    if (isFound(sources[i]))
      return true;
    Operation *op = sources[i].getDefiningOp();
    if (op && (stablehlo::worksByElement(op) || isLayout(op) || passes(op)))
      for (Value operand : op->getOperands())
        sources.insert(stablehlo::skipBarriers(operand));
  }
  return false;
}

/// Whether `value` is the result of a dot, scaled, masked or in another layout.
static bool comesFromDot(Value value) {
  return anySource(
      value, [](Operation *) { return false; },
      [&](Value source) {
        return source.getDefiningOp<stablehlo::DotGeneralOp>() &&
               numElements(source) == numElements(value);
      });
}

/// Whether an exponential reads `value`, or what is computed from it element by
/// element.
static bool feedsExponential(Value value) {
  llvm::SetVector<Value> values;
  values.insert(value);
  for (size_t i = 0; i < values.size(); ++i)
    for (OpOperand &use : values[i].getUses()) {
      Operation *user = use.getOwner();
      if (isa<stablehlo::ExpOp>(user))
        return true;
      if (stablehlo::worksByElement(user) || isLayout(user))
        values.insert(getLayoutResult(use));
    }
  return false;
}

bool fp8::isAddedToScores(OpOperand &use) {
  Operation *user = use.getOwner();
  if (isa<stablehlo::AddOp, stablehlo::SubtractOp>(user)) {
    Value other = user->getOperand(1 - use.getOperandNumber());
    return other != use.get() && comesFromDot(other) &&
           feedsExponential(user->getResult(0));
  }
  return (isLayout(user) || isa<stablehlo::BroadcastInDimOp>(user)) &&
         llvm::any_of(getLayoutResult(use).getUses(), isAddedToScores);
}
