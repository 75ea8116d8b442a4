//===- ScoreDims.cpp - Batches and heads of scores ------------------------===//

#include "Analyzer.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Dialect/StableHLO/IR/DotOperands.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns the dimension of the operand that dimension `dim` of the only result
/// of `op` is, with the same extent; -1 if it is none, or not known.
static int64_t dimBefore(Operation *op, int64_t dim) {
  Value from = op->getOperand(0), to = op->getResult(0);
  if (auto reduce = dyn_cast<stablehlo::ReduceOp>(op)) {
    for (int64_t before : llvm::seq<int64_t>(shapeOf(from).size()))
      if (!llvm::is_contained(reduce.getDimensions(), before) && dim-- == 0)
        return before;
    return -1;
  }
  if (!isa<stablehlo::TransposeOp, stablehlo::BroadcastInDimOp,
           stablehlo::ReshapeOp, stablehlo::SliceOp, stablehlo::DynamicSliceOp>(
          op))
    return -1;
  llvm::SmallBitVector before = getDimSets({to, from})[dim];
  int64_t first = before.find_first();
  bool isWhole =
      before.count() == 1 && (!isa<stablehlo::ReshapeOp>(op) ||
                              shapeOf(from)[first] == shapeOf(to)[dim]);
  return isWhole ? first : -1;
}

/// Whether an elementwise op normalizes what it computes along a dimension: an
/// operand of it is the same for all elements along that dimension, of which it
/// is a statistic (the mean of a norm).
static bool isNormalizedAlong(Operation *op, int64_t dim) {
  constexpr unsigned kMostValues = 16;
  ArrayRef<int64_t> shape = shapeOf(op->getResult(0));
  llvm::SetVector<Value> seen;
  for (Value operand : op->getOperands())
    if (isSpreadAlong(operand, dim))
      seen.insert(operand);
  for (unsigned i = 0; i < std::min<size_t>(seen.size(), kMostValues); ++i) {
    Operation *source = seen[i].getDefiningOp();
    if (!source)
      continue;
    if (auto reduce = dyn_cast<stablehlo::ReduceOp>(source)) {
      if (shapeOf(reduce.getInputs()[0]) == shape &&
          llvm::is_contained(reduce.getDimensions(), dim))
        return true;
    } else if (stablehlo::worksByElement(source) ||
               isa<stablehlo::BroadcastInDimOp, stablehlo::ReshapeOp>(source)) {
      seen.insert_range(source->getOperands());
    }
  }
  return false;
}

/// Whether a dot contracts more than one element.
static bool hasSum(stablehlo::DotGeneralOp dot) {
  ArrayRef<int64_t> shape = shapeOf(dot.getLhs());
  return llvm::any_of(
      dot.getDotDimensionNumbers().getLhsContractingDimensions(),
      [&](int64_t dim) { return shape[dim] > 1; });
}

/// Whether a dimension of `value` is one of batches or heads of the scores from
/// which it follows: of a batched product of two activations that has several
/// rows and columns, or of such heads' mixture. A norm along the dimension
/// makes channels of it, as those of a product of pairs. A product without a
/// sum, as the gradient of a filter that multiplies each channel, has channels,
/// too.
bool Analyzer::isBatchOfScores(Value value, int64_t dim) const {
  // No more ops are between scores and what mixes them; a residual stream has
  // as many as the model has layers.
  constexpr unsigned kMostValues = 256;
  llvm::SetVector<std::pair<Value, int64_t>> seen;
  seen.insert({value, dim});
  for (unsigned i = 0; i < std::min<size_t>(seen.size(), kMostValues); ++i) {
    auto [from, place] = seen[i];
    for (Value source : getFlowSources(from))
      if (shapeOf(source) == shapeOf(from))
        seen.insert({source, place});
    Operation *op = from.getDefiningOp();
    if (!op || op->getNumResults() != 1)
      continue;
    if (auto dot = dyn_cast<stablehlo::DotGeneralOp>(op)) {
      auto numbers = dot.getDotDimensionNumbers();
      int64_t batch = numbers.getLhsBatchingDimensions().size(),
              rows = shapeOf(dot.getLhs()).size() - batch -
                     numbers.getLhsContractingDimensions().size();
      ArrayRef<int64_t> free = shapeOf(from).drop_front(batch);
      if (place < batch && hasSum(dot) &&
          ShapedType::getNumElements(free.take_front(rows)) > 1 &&
          ShapedType::getNumElements(free.drop_front(rows)) > 1 &&
          getOperandOrigin(dot, 0) == Origin::Data &&
          getOperandOrigin(dot, 1) == Origin::Data)
        return true;
      // The dimension of a mixture that comes from the weight is one of heads.
      if (mixers.contains(dot) && place >= batch &&
          getOperandOrigin(dot, place >= batch + rows) == Origin::Weight)
        return true;
      continue;
    }
    if (stablehlo::worksByElement(op)) {
      if (isNormalizedAlong(op, place))
        continue;
      for (Value operand : op->getOperands())
        if (shapeOf(operand) == shapeOf(from))
          seen.insert({operand, place});
    } else if (op->getNumOperands() > 0) {
      if (int64_t before = dimBefore(op, place); before >= 0)
        seen.insert({op->getOperand(0), before});
    }
  }
  return false;
}

/// Whether a dot of a weight and an activation contracts nothing but batches or
/// heads of scores, as talking heads do. Scores may be masked, and the mask's
/// constant would be the amax.
bool Analyzer::mixesHeads(stablehlo::DotGeneralOp dot,
                          unsigned activation) const {
  Value value = dot->getOperand(activation);
  return llvm::all_of(stablehlo::getOperandDims(dot, activation).contracting,
                      [&](int64_t dim) { return isBatchOfScores(value, dim); });
}
