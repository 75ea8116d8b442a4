//===- SavedScores.cpp - Recomputing scores that were saved ---------------===//

#include "SavedScores.h"

#include "SavedOrigins.h"

#include "../SavedActivations/Recomputation.h"
#include "../SmallTensors.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "mlir/IR/IRMapping.h"
#include <limits>

using namespace mlir;
using namespace mlir::fp8;
using Predicate = llvm::function_ref<bool(Value)>;

namespace {

/// Computes values of the forward pass again, before `reader`.
class ScoreRecomputation {
public:
  ScoreRecomputation(const ForwardPlace &place, Operation *reader,
                     Predicate isScore)
      : place(place), reader(reader), isScore(isScore), builder(reader) {}

  /// Whether a value is recomputed instead of saved.
  bool isComputed(Value value);
  Value make(Value value);

private:
  bool isGiven(Value value) const;
  bool isMask(Value value, unsigned steps = kMaxRecomputed) const;
  OpOperand *findSave(Value value) const;
  unsigned countOps(Value value);
  Value readSaved(Value value);

  const ForwardPlace &place;
  Operation *reader;
  Predicate isScore;
  OpBuilder builder;
  DenseMap<Value, unsigned> ops;
  IRMapping known;
};

} // namespace

/// Whether an op is cheap to compute again where its operands are.
static bool isCheapAgain(Operation *op) {
  return isRecomputable(op) ||
         isa<stablehlo::DynamicSliceOp, stablehlo::GatherOp, stablehlo::IotaOp,
             stablehlo::SliceOp>(op);
}

/// Whether the reader knows a value that was not saved for it.
bool ScoreRecomputation::isGiven(Value value) const {
  return isConstant(value) || stablehlo::isVisible(value, reader) ||
         llvm::any_of(place.iterations, [&](const auto &iteration) {
           return iteration.counter == value;
         });
}

/// Whether booleans follow from what the reader knows.
bool ScoreRecomputation::isMask(Value value, unsigned steps) const {
  if (isGiven(value))
    return true;
  Operation *op = value.getDefiningOp();
  return op && steps > 0 && isCheapAgain(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return isMask(operand, steps - 1);
         });
}

/// Returns the use of `value` from whose holder it can be read; null if it was
/// not saved.
OpOperand *ScoreRecomputation::findSave(Value value) const {
  for (OpOperand &use : value.getUses())
    if (Value holder = getHolder(use, place))
      if (stablehlo::isVisible(holder, reader) || findSave(holder))
        return &use;
  return nullptr;
}

/// Returns the number of ops that compute a value from saved and given ones.
/// Scores take as many as they need.
unsigned ScoreRecomputation::countOps(Value value) {
  return countRecomputedOps(
      value, ops,
      [&](Value result) -> unsigned {
        if (isScore(result))
          return std::numeric_limits<unsigned>::max();
        return isCheapAgain(result.getDefiningOp()) ? kMaxRecomputed : 0;
      },
      [&](Value operand) {
        return isGiven(operand) || (!isComputed(operand) && findSave(operand));
      });
}

bool ScoreRecomputation::isComputed(Value value) {
  bool isBoolean = tensorOf(value).getElementType().isInteger(1);
  return (isScore(value) || (isBoolean && isMask(value))) &&
         countOps(value) > 0;
}

Value ScoreRecomputation::readSaved(Value value) {
  OpOperand *use = findSave(value);
  Value holder = getHolder(*use, place);
  if (!stablehlo::isVisible(holder, reader))
    holder = readSaved(holder);
  return readFromHolder(builder, *use, holder, place);
}

Value ScoreRecomputation::make(Value value) {
  if (Value copy = known.lookupOrNull(value))
    return copy;
  Value result = value;
  if (stablehlo::isVisible(value, reader))
    return value;
  if (auto counter = dyn_cast<BlockArgument>(value);
      counter && place.getIteration(counter.getOwner()) &&
      place.getIteration(counter.getOwner())->counter == counter) {
    result = place.getIteration(counter.getOwner())
                 ->makeCounter(builder, reader->getLoc());
  } else if (!isConstant(value) && !isComputed(value) && findSave(value)) {
    result = readSaved(value);
  } else {
    IRMapping operands;
    for (Value operand : value.getDefiningOp()->getOperands())
      operands.map(operand, make(operand));
    Operation *copy = builder.clone(*value.getDefiningOp(), operands);
    if (isa<stablehlo::DotGeneralOp>(copy))
      copy->setAttr(FP8Dialect::kRecomputeAttrName, builder.getUnitAttr());
    result = copy->getResult(0);
  }
  known.map(value, result);
  return result;
}

/// Returns the recomputed value of `value`, of this origin, which `reader` can
/// read; null if it was not saved or should not be recomputed.
static Value recompute(Value value, const Origin &origin, Operation *reader,
                       Predicate isScore) {
  if (origin.place.isEmpty())
    return nullptr;
  ScoreRecomputation recomputation(origin.place, reader, isScore);
  if (!recomputation.isComputed(origin.value))
    return nullptr;
  Value result = recomputation.make(origin.value);
  OpBuilder builder(reader);
  return makeReshape(builder, value.getLoc(), result, shapeOf(value));
}

/// Lets a branch read what selects with its predicate yield there. JAX selects
/// what it saves of the operands of a branch: queries, keys and values.
static void readSelected(Block &branch) {
  auto op = dyn_cast<stablehlo::IfOp>(branch.getParentOp());
  if (!op)
    return;
  bool isTrue = branch.getParent() == &op.getTrueBranch();
  for (Operation *user : op.getPred().getUsers())
    if (auto select = dyn_cast<stablehlo::SelectOp>(user);
        select && select.getPred() == op.getPred())
      select.getResult().replaceUsesWithIf(
          isTrue ? select.getOnTrue() : select.getOnFalse(),
          [&](OpOperand &use) {
            return branch.findAncestorOpInBlock(*use.getOwner()) != nullptr;
          });
}

/// Recomputes what a branch reads of the values that were saved outside of it.
/// Returns whether there are any.
static bool recomputeInBranch(Block &branch, Predicate isScore) {
  llvm::SetVector<Value> read;
  branch.walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (operand.getParentBlock() != &branch &&
          stablehlo::isVisible(operand, &branch.front()))
        read.insert(operand);
  });
  bool changed = false;
  for (Value value : read)
    if (Value result = recompute(value, findOrigin(value, &branch.front()),
                                 &branch.front(), isScore)) {
      value.replaceUsesWithIf(result, [&](OpOperand &use) {
        return branch.findAncestorOpInBlock(*use.getOwner()) != nullptr;
      });
      changed = true;
    }
  if (changed)
    readSelected(branch);
  return changed;
}

bool fp8::recomputeSavedScores(func::FuncOp function, Predicate isScore,
                               Predicate isRow) {
  SmallVector<Operation *> slices;
  SmallVector<Block *> branches;
  function.walk([&](Operation *op) {
    if (isa<stablehlo::DynamicSliceOp, stablehlo::SliceOp>(op))
      slices.push_back(op);
    else if (stablehlo::isBranch(op))
      for (Region &region : op->getRegions())
        branches.push_back(&region.front());
  });
  // The blocks that read saved scores.
  DenseSet<Block *> reading;
  for (Operation *slice : slices)
    if (isScore(findOrigin(slice->getResult(0), slice).value))
      reading.insert(slice->getBlock());
  auto belongs = [&](Value value) { return isScore(value) || isRow(value); };
  bool changed = false;
  for (Operation *slice : slices) {
    Value value = slice->getResult(0);
    Origin origin = findOrigin(value, slice);
    if (!reading.contains(slice->getBlock()) && isRow(origin.value))
      continue;
    if (Value result = recompute(value, origin, slice, belongs)) {
      value.replaceAllUsesWith(result);
      slice->erase();
      changed = true;
    }
  }
  for (Block *branch : branches)
    changed |= recomputeInBranch(*branch, belongs);
  return changed;
}
