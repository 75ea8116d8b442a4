//===- Vocabulary.cpp - The table that an argument indexes ----------------===//

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Analysis/Signature.h"

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

std::optional<int64_t> fp8::findVocabulary(func::FuncOp func,
                                           unsigned argIndex) {
  std::optional<int64_t> gathered, compared;
  auto keepSmallest = [](std::optional<int64_t> &into, int64_t size) {
    into = into ? std::min(*into, size) : size;
  };
  ValueSet seen;
  SmallVector<Value> stack;
  auto push = [&](Value value) {
    if (seen.insert(value).second)
      stack.push_back(value);
  };
  push(func.getArgument(argIndex));
  while (!stack.empty()) {
    Value value = stack.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      Operation *op = use.getOwner();
      unsigned i = use.getOperandNumber();
      if (auto gather = dyn_cast<stablehlo::GatherOp>(op)) {
        ArrayRef<int64_t> map = gather.getDimensionNumbers().getStartIndexMap();
        if (i == 1 && map.size() == 1 &&
            gather.getSliceSizes()[map.front()] == 1)
          keepSmallest(gathered,
                       shapeOf(gather.getOperand().getType())[map.front()]);
        continue;
      }
      if (auto compare = dyn_cast<stablehlo::CompareOp>(op)) {
        // one_hot compares an iota for equality; other comparisons are masks.
        if (compare.getComparisonDirection() !=
                stablehlo::ComparisonDirection::EQ ||
            !feedsDot(compare.getResult()))
          continue;
        Value other = op->getOperand(1 - i);
        SmallVector<int64_t> dims;
        while (auto spread = other.getDefiningOp<stablehlo::BroadcastInDimOp>())
          other = spread.getOperand();
        if (auto iota = other.getDefiningOp<stablehlo::IotaOp>())
          keepSmallest(compared,
                       shapeOf(iota.getType())[iota.getIotaDimension()]);
        continue;
      }
      if (isa<stablehlo::WhileOp>(op)) {
        push(op->getResult(i));
        for (Region &region : op->getRegions())
          push(region.getArgument(i));
        continue;
      }
      if (isa<stablehlo::OptimizationBarrierOp>(op)) {
        push(op->getResult(i));
        continue;
      }
      if (auto select = dyn_cast<stablehlo::SelectOp>(op)) {
        if (i == 2 && wrapsNegatives(select))
          push(op->getResult(0));
        continue;
      }
      if (isa<stablehlo::SliceOp, stablehlo::DynamicSliceOp,
              stablehlo::ReshapeOp, stablehlo::TransposeOp,
              stablehlo::ConvertOp, stablehlo::BroadcastInDimOp,
              stablehlo::MaxOp, stablehlo::PadOp, stablehlo::ConcatenateOp>(
              op) &&
          !isFloat(op->getResult(0).getType()))
        push(op->getResult(0));
    }
  }
  return gathered ? gathered : compared;
}
