//===- ThinStacks.cpp - Recomputing what loops would stack ----------------===//

#include "ThinStacks.h"

#include "../SmallTensors.h"
#include "Recomputation.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::fp8;
using stablehlo::DynamicSliceOp;
using stablehlo::WhileOp;

namespace {

/// The stacks of one loop.
class Thinner {
public:
  using Predicate = llvm::function_ref<bool(Value)>;

  Thinner(WhileOp loop, Predicate isPayload);
  void run();

private:
  bool isLarge(Value value) const;
  bool isGiven(Value value) const;
  unsigned countOps(Value value);
  bool isComputed(Value value);
  Value compute(Value value, DynamicSliceOp slice, OpBuilder &builder,
                IRMapping &known);

  WhileOp loop;
  /// The values of an iteration that the backward pass reads from stacks.
  llvm::MapVector<Value, LayerStack> stacks;
  DenseMap<Value, unsigned> ops;
  int64_t largest = 0;
};

} // namespace

/// Returns the slot that an iteration of `loop` writes, if one iteration writes
/// each slot.
static std::optional<stablehlo::AffineIndex>
matchSlots(WhileOp loop, const LayerStack &stack) {
  std::optional<stablehlo::CountedLoop> counted =
      stablehlo::matchCountedLoop(loop);
  stablehlo::DynamicUpdateSliceOp update = stack.update;
  std::optional<stablehlo::AffineIndex> index =
      stablehlo::matchAffineIndex(update.getStartIndices().front());
  int64_t slots = tensorOf(update).getDimSize(0);
  if (!counted || !index || index->counter.getOwner() != update->getBlock() ||
      counted->trips != slots || index->min != 0 || index->max != slots - 1)
    return std::nullopt;
  return index;
}

Thinner::Thinner(WhileOp loop, Predicate isPayload) : loop(loop) {
  std::optional<stablehlo::AffineIndex> first;
  for (unsigned i = 0; i < loop->getNumResults(); ++i) {
    std::optional<LayerStack> stack = matchLayerStack(loop, i);
    if (!stack || stack->slices.empty())
      continue;
    std::optional<stablehlo::AffineIndex> slot = matchSlots(loop, *stack);
    if (!slot)
      continue;
    // The same slot of two stacks must belong to the same iteration.
    if (!first)
      first = slot;
    if (slot->scale != first->scale || slot->offset != first->offset)
      continue;
    Value value = stack->getValue();
    largest = std::max(largest, tensorOf(value).getNumElements());
    if (!isPayload(loop->getResult(i)))
      stacks.insert({value, *stack});
  }
}

bool Thinner::isLarge(Value value) const {
  return tensorOf(value).getNumElements() * kSmallPart > largest;
}

/// Whether a value is available to the later loop without a stack.
bool Thinner::isGiven(Value value) const {
  return isConstant(value) ||
         !loop->isAncestor(value.getParentBlock()->getParentOp());
}

/// Returns the number of ops that compute a value from stacked and available
/// ones.
unsigned Thinner::countOps(Value value) {
  return countRecomputedOps(
      value, ops,
      [](Value result) {
        return isRecomputable(result.getDefiningOp()) ? kMaxRecomputed : 0;
      },
      [&](Value operand) {
        return isGiven(operand) ||
               (stacks.contains(operand) && !isComputed(operand));
      });
}

/// Whether a value is recomputed instead of stacked.
bool Thinner::isComputed(Value value) {
  return isLarge(value) && countOps(value) > 0;
}

/// Computes `value` for the iteration whose slots `slice` reads.
Value Thinner::compute(Value value, DynamicSliceOp slice, OpBuilder &builder,
                       IRMapping &known) {
  if (Value copy = known.lookupOrNull(value))
    return copy;
  Operation *op = value.getDefiningOp();
  Value result = value;
  auto stack = stacks.find(value);
  if (stack != stacks.end() && !isComputed(value)) {
    Value slot =
        readParallelSlot(builder, slice, loop->getResult(stack->second.carry));
    result =
        makeReshape(builder, slice.getLoc(), slot, tensorOf(value).getShape());
  } else if (op && loop->isAncestor(op)) {
    IRMapping operands;
    for (Value operand : op->getOperands())
      operands.map(operand, compute(operand, slice, builder, known));
    result = builder.clone(*op, operands)->getResult(0);
  }
  known.map(value, result);
  return result;
}

void Thinner::run() {
  for (auto &[value, stack] : stacks) {
    if (!isComputed(value))
      continue;
    for (DynamicSliceOp slice : stack.slices) {
      OpBuilder builder(slice);
      IRMapping known;
      Value result = compute(value, slice, builder, known);
      slice.replaceAllUsesWith(makeReshape(builder, slice.getLoc(), result,
                                           slice.getType().getShape()));
      slice.erase();
    }
  }
}

void fp8::thinStacks(func::FuncOp function,
                     llvm::function_ref<bool(Value)> isPayload) {
  SmallVector<WhileOp> loops;
  function.walk([&](WhileOp loop) { loops.push_back(loop); });
  for (WhileOp loop : loops)
    Thinner(loop, isPayload).run();
}
