//===- RepeatedValues.cpp - Values that broadcasts make -------------------===//

#include "RepeatedValues.h"

#include "../LayerStacks.h"
#include "../SmallTensors.h"
#include "Recomputation.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::fp8;
using stablehlo::DynamicSliceOp;
using stablehlo::DynamicUpdateSliceOp;
using stablehlo::WhileOp;

/// Returns the operand of the op that changes the layout of `value`; null if
/// there is none.
static Value getSource(Value value) {
  Operation *op = value.getDefiningOp();
  return op && keepsElements(op) ? op->getOperand(0) : Value();
}

Value fp8::getRepeated(Value value) {
  Value repeated;
  for (Value source = getSource(value); source; source = getSource(source))
    // What stands before the broadcast in another layout is as large.
    if (!repeated || numElements(source) < numElements(repeated))
      repeated = source;
  if (!repeated || 2 * numElements(repeated) > numElements(value) ||
      !repeated.getDefiningOp() || isConstant(repeated))
    return nullptr;
  return repeated;
}

/// Computes `value` from `slot`, which holds what it repeats.
static Value repeat(OpBuilder &builder, Value value, Value repeated,
                    Value slot) {
  if (value == repeated)
    return slot;
  Operation *op = value.getDefiningOp();
  IRMapping operands;
  operands.map(op->getOperand(0),
               repeat(builder, op->getOperand(0), repeated, slot));
  return builder.clone(*op, operands)->getResult(0);
}

/// Returns the carry that stacks `value` in the slots that `update` writes.
static std::optional<unsigned> findStack(WhileOp loop, Value value,
                                         DynamicUpdateSliceOp update) {
  for (unsigned i = 0, e = loop->getNumResults(); i < e; ++i) {
    std::optional<LayerStack> stack = matchLayerStack(loop, i);
    if (stack && stack->getValue() == value &&
        stack->update.getStartIndices().front() ==
            update.getStartIndices().front() &&
        tensorOf(stack->update).getDimSize(0) == tensorOf(update).getDimSize(0))
      return i;
  }
  return std::nullopt;
}

/// Stacks what the values of a stack repeat, `repeated`. Returns the loop that
/// replaces `loop`.
static WhileOp replaceStack(WhileOp loop, const LayerStack &stack,
                            Value repeated) {
  Value value = stack.getValue();
  std::optional<unsigned> carry = findStack(loop, repeated, stack.update);
  if (!carry) {
    carry = loop->getNumResults();
    loop = addParallelStacks(loop, stack.update, repeated);
  }
  for (DynamicSliceOp slice : stack.slices) {
    OpBuilder builder(slice);
    Value slot = readParallelSlot(builder, slice, loop->getResult(*carry));
    Value result = repeat(builder, value, repeated, slot);
    slice.replaceAllUsesWith(makeReshape(builder, slice.getLoc(), result,
                                         slice.getType().getShape()));
    slice.erase();
  }
  DynamicUpdateSliceOp update = stack.update;
  update.replaceAllUsesWith(update.getOperand());
  update.erase();
  return loop;
}

void fp8::stackUnrepeated(func::FuncOp function,
                          llvm::function_ref<bool(Value)> isPayload) {
  SmallVector<WhileOp> loops;
  function.walk([&](WhileOp loop) { loops.push_back(loop); });
  for (WhileOp loop : loops) {
    bool changed = false;
    for (unsigned i = 0, e = loop->getNumResults(); i < e; ++i) {
      std::optional<LayerStack> stack = matchLayerStack(loop, i);
      if (!stack || stack->slices.empty() || isPayload(loop->getResult(i)))
        continue;
      Value repeated = getRepeated(stack->getValue());
      if (!repeated || !loop->isAncestor(repeated.getDefiningOp()))
        continue;
      loop = replaceStack(loop, *stack, repeated);
      changed = true;
    }
    if (!changed)
      continue;
    // Later steps ask who reads a value: nothing that is dead should.
    IRRewriter rewriter(loop);
    (void)runRegionDCE(rewriter, loop->getRegions());
  }
}
