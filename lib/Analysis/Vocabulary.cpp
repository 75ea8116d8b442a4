//===- Vocabulary.cpp - The table that an argument indexes ----------------===//

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"

using namespace mlir;
using namespace mlir::fp8;

/// Whether a dot reads the elements of a comparison, as the one-hot rows of
/// tokens that select rows of a table. (Labels with rows of zeros are ignored
/// by a loss.)
static bool feedsDot(Value oneHot) {
  return llvm::any_of(oneHot.getUsers(), [](Operation *user) {
    return isa<stablehlo::DotGeneralOp>(user) ||
           (isa<stablehlo::ConvertOp, stablehlo::ReshapeOp,
                stablehlo::TransposeOp>(user) &&
            feedsDot(user->getResult(0)));
  });
}

/// Whether a selection makes negative indices count from the end. Any other
/// selection may replace numbers that are no index.
static bool wrapsNegatives(stablehlo::SelectOp select) {
  auto isNegative = select.getPred().getDefiningOp<stablehlo::CompareOp>();
  return isNegative &&
         isNegative.getComparisonDirection() ==
             stablehlo::ComparisonDirection::LT &&
         isNegative.getLhs() == select.getOnFalse() &&
         isZero(isNegative.getRhs());
}

/// Returns the number of rows of the table that `use` indexes; none if it is
/// not the index of a gather of rows.
static std::optional<int64_t> sizeByGather(OpOperand &use) {
  auto gather = dyn_cast<stablehlo::GatherOp>(use.getOwner());
  if (!gather || use.getOperandNumber() != 1)
    return std::nullopt;
  ArrayRef<int64_t> map = gather.getDimensionNumbers().getStartIndexMap();
  if (map.size() != 1 || gather.getSliceSizes()[map.front()] != 1)
    return std::nullopt;
  return shapeOf(gather.getOperand().getType())[map.front()];
}

/// Returns the iota with which a comparison makes one-hot rows of `use`; null
/// if it makes none. one_hot compares for equality; other comparisons are
/// masks.
static stablehlo::IotaOp makesOneHot(OpOperand &use) {
  auto compare = dyn_cast<stablehlo::CompareOp>(use.getOwner());
  if (!compare ||
      compare.getComparisonDirection() != stablehlo::ComparisonDirection::EQ)
    return nullptr;
  Value other = compare->getOperand(1 - use.getOperandNumber());
  return stablehlo::skipBroadcasts(other).getDefiningOp<stablehlo::IotaOp>();
}

/// Returns the size of the one-hot rows that a comparison makes of `use` for a
/// dot; none if it makes none.
static std::optional<int64_t> sizeByComparison(OpOperand &use) {
  stablehlo::IotaOp iota = makesOneHot(use);
  if (!iota || !feedsDot(use.getOwner()->getResult(0)))
    return std::nullopt;
  return shapeOf(iota.getType())[iota.getIotaDimension()];
}

/// Calls `visit` with the values that hold the same indices as `use`.
static void followIndices(OpOperand &use, function_ref<void(Value)> visit) {
  Operation *op = use.getOwner();
  if (forEachCarry(use, visit))
    return;
  if (auto select = dyn_cast<stablehlo::SelectOp>(op)) {
    if (use.getOperandNumber() == 2 && wrapsNegatives(select))
      visit(op->getResult(0));
  } else if (isa<stablehlo::SliceOp, stablehlo::DynamicSliceOp,
                 stablehlo::ReshapeOp, stablehlo::TransposeOp,
                 stablehlo::ConvertOp, stablehlo::BroadcastInDimOp,
                 stablehlo::MaxOp, stablehlo::PadOp, stablehlo::ConcatenateOp>(
                 op) &&
             !isFloat(op->getResult(0).getType())) {
    visit(op->getResult(0));
  }
}

/// Calls `visit` once for each use of a value and of what it hands to `push`,
/// its second argument.
template <typename Visit> static void walkUses(Value value, Visit visit) {
  ValueSet seen;
  SmallVector<Value> stack;
  auto push = [&](Value next) {
    if (seen.insert(next).second)
      stack.push_back(next);
  };
  push(value);
  while (!stack.empty())
    for (OpOperand &use : stack.pop_back_val().getUses())
      visit(use, push);
}

std::optional<int64_t> fp8::findVocabulary(func::FuncOp func,
                                           unsigned argIndex) {
  std::optional<int64_t> gathered, compared;
  auto keepSmallest = [](std::optional<int64_t> &into,
                         std::optional<int64_t> size) {
    if (size)
      into = into ? std::min(*into, *size) : *size;
  };
  walkUses(func.getArgument(argIndex), [&](OpOperand &use, auto push) {
    keepSmallest(gathered, sizeByGather(use));
    keepSmallest(compared, sizeByComparison(use));
    followIndices(use, push);
  });
  return gathered ? gathered : compared;
}

namespace {
/// Whether an array of integers chooses among values that follow from data, and
/// whether among others, a table's.
struct Choices {
  bool ofData = false, ofTable = false;
};
} // namespace

/// Finds what the one-hot rows of a comparison choose from: the other operands
/// of the ops that read them.
static void findChoices(Value oneHot, const Dependence &onData, Choices &into) {
  for (Operation *user : oneHot.getUsers()) {
    if (isa<stablehlo::ConvertOp, stablehlo::ReshapeOp, stablehlo::TransposeOp,
            stablehlo::BroadcastInDimOp>(user)) {
      findChoices(user->getResult(0), onData, into);
      continue;
    }
    for (Value other : user->getOperands()) {
      if (other == oneHot)
        continue;
      if (onData.dependsOnAny(other))
        into.ofData = true;
      else if (isa<stablehlo::DotGeneralOp>(user))
        into.ofTable = true;
    }
  }
}

bool fp8::areLabels(func::FuncOp func, unsigned argIndex,
                    const Dependence &onData) {
  Choices choices;
  walkUses(func.getArgument(argIndex), [&](OpOperand &use, auto push) {
    Operation *op = use.getOwner();
    if (forEachCarry(use, push))
      return;
    if (makesOneHot(use)) {
      findChoices(op->getResult(0), onData, choices);
    } else if (isa<stablehlo::GatherOp>(op) && use.getOperandNumber() == 1) {
      (onData.dependsOnAny(op->getOperand(0)) ? choices.ofData
                                              : choices.ofTable) = true;
    } else {
      // Indices are computed from integers: clamped, shifted, put together.
      for (Value result : op->getResults())
        if (isa<IntegerType>(elementOf(result)) &&
            !elementOf(result).isInteger(1))
          push(result);
    }
  });
  return choices.ofData && !choices.ofTable;
}
