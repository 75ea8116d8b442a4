//===- CounterArithmetic.cpp - Simplification by counter ranges -----------===//

#include "LoopRewriting.h"

#include "fp8/Dialect/StableHLO/IR/Constants.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::stablehlo;

/// Returns the result of a comparison if it is the same for all values of both
/// sides.
static std::optional<bool> compareRanges(ComparisonDirection direction,
                                         IndexRange lhs, IndexRange rhs) {
  switch (direction) {
  case ComparisonDirection::LT:
    if (lhs.max < rhs.min)
      return true;
    if (lhs.min >= rhs.max)
      return false;
    return std::nullopt;
  case ComparisonDirection::LE:
    if (lhs.max <= rhs.min)
      return true;
    if (lhs.min > rhs.max)
      return false;
    return std::nullopt;
  case ComparisonDirection::GT:
    return compareRanges(ComparisonDirection::LT, rhs, lhs);
  case ComparisonDirection::GE:
    return compareRanges(ComparisonDirection::LE, rhs, lhs);
  case ComparisonDirection::EQ:
    if (lhs.max < rhs.min || rhs.max < lhs.min)
      return false;
    if (lhs.min == lhs.max && rhs.min == rhs.max)
      return true;
    return std::nullopt;
  case ComparisonDirection::NE:
    if (auto equal = compareRanges(ComparisonDirection::EQ, lhs, rhs))
      return !*equal;
    return std::nullopt;
  }
  return std::nullopt;
}

/// Returns the operand that is the result of a minimum, a maximum, a remainder
/// or a clamp for all values of its operands; null if this is unknown.
static Value findResult(Operation *op, IndexRange lhs, IndexRange rhs) {
  bool lhsIsLess = lhs.max <= rhs.min, rhsIsLess = rhs.max <= lhs.min;
  if (isa<MaxOp>(op))
    return lhsIsLess   ? op->getOperand(1)
           : rhsIsLess ? op->getOperand(0)
                       : Value();
  if (isa<MinOp>(op))
    return lhsIsLess   ? op->getOperand(0)
           : rhsIsLess ? op->getOperand(1)
                       : Value();
  if (isa<RemOp>(op))
    return lhs.min >= 0 && lhs.max < rhs.min ? op->getOperand(0) : Value();
  auto clamp = dyn_cast<ClampOp>(op);
  if (!clamp || !lhsIsLess)
    return {};
  std::optional<IndexRange> max = rangeOf(clamp.getMax());
  return max && rhs.max <= max->min ? Value(clamp.getOperand()) : Value();
}

bool stablehlo::simplifyByRange(Operation *op) {
  if (op->getNumOperands() < 2)
    return false;
  std::optional<IndexRange> lhs = rangeOf(op->getOperand(0));
  std::optional<IndexRange> rhs =
      lhs ? rangeOf(op->getOperand(1)) : std::nullopt;
  if (!lhs || !rhs)
    return false;
  Value result;
  if (auto compare = dyn_cast<CompareOp>(op)) {
    std::optional<bool> known =
        compareRanges(compare.getComparisonDirection(), *lhs, *rhs);
    OpBuilder b(op);
    if (known)
      result = ConstantOp::create(
          b, op->getLoc(), DenseElementsAttr::get(compare.getType(), *known));
  } else {
    result = findResult(op, *lhs, *rhs);
  }
  if (!result)
    return false;
  op->replaceAllUsesWith(ValueRange(result));
  op->erase();
  return true;
}

/// Combines the old value (`old`) with the scattered value, both as whole
/// tensors. Returns the scattered value itself, or one op on both; null if the
/// body is anything else.
static Value combineAll(OpBuilder &b, Location loc, Block &body, Value old,
                        Value update) {
  Value result = body.getTerminator()->getOperand(0);
  if (result == body.getArgument(1))
    return update;
  Operation *op = result.getDefiningOp();
  if (!isa_and_nonnull<AddOp, MulOp, MaxOp, MinOp>(op))
    return {};
  IRMapping mapping;
  mapping.map(body.getArgument(0), old);
  mapping.map(body.getArgument(1), update);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    if (operand != body.getArgument(0) && operand != body.getArgument(1))
      return {};
    operands.push_back(mapping.lookup(operand));
  }
  return b
      .create(loc, op->getName().getIdentifier(), operands, update.getType())
      ->getResult(0);
}

/// Returns the shape of a scatter's only window, including the dimensions of
/// size one that the update omits.
static SmallVector<int64_t> windowOf(ScatterOp op) {
  auto updateType = cast<RankedTensorType>(op.getUpdates()[0].getType());
  auto type = cast<RankedTensorType>(op.getInputs()[0].getType());
  ArrayRef<int64_t> inserted =
      op.getScatterDimensionNumbers().getInsertedWindowDims();
  SmallVector<int64_t> window;
  for (int64_t i = 0, next = 0; i < type.getRank(); ++i)
    window.push_back(
        llvm::is_contained(inserted, i) ? 1 : updateType.getDimSize(next++));
  return window;
}

/// Returns the dimension that the only index of a scatter refers to, if the
/// scatter has one input, one index and one window.
static std::optional<int64_t> matchOneWindow(ScatterOp op) {
  if (op.getInputs().size() != 1)
    return std::nullopt;
  auto updateType = cast<RankedTensorType>(op.getUpdates()[0].getType());
  auto numbers = op.getScatterDimensionNumbers();
  ArrayRef<int64_t> dims = numbers.getScatterDimsToOperandDims();
  if (dims.size() != 1 || !numbers.getInputBatchingDims().empty() ||
      int64_t(numbers.getUpdateWindowDims().size()) != updateType.getRank())
    return std::nullopt;
  return dims[0];
}

/// Returns the scalar that indices are a copy of; null if there is none.
static Value getScalarIndex(Value indices) {
  if (cast<RankedTensorType>(indices.getType()).getNumElements() != 1)
    return {};
  while (isa_and_nonnull<BroadcastInDimOp, ReshapeOp>(indices.getDefiningOp()))
    indices = indices.getDefiningOp()->getOperand(0);
  bool isScalar = cast<RankedTensorType>(indices.getType()).getRank() == 0;
  return isScalar ? indices : Value();
}

/// Returns start indices that are zero but for one dimension.
static SmallVector<Value> getStarts(OpBuilder &b, Location loc, Value index,
                                    int64_t dim, int64_t rank) {
  SmallVector<Value> starts(rank, index);
  for (int64_t i = 0; i < rank; ++i)
    if (i != dim)
      starts[i] = integerConstant(b, loc, index.getType(), 0);
  return starts;
}

bool stablehlo::gatherToSlice(GatherOp op) {
  auto numbers = op.getDimensionNumbers();
  ArrayRef<int64_t> dims = numbers.getStartIndexMap();
  Value index = getScalarIndex(op.getStartIndices());
  if (!index || dims.size() != 1 || !numbers.getOperandBatchingDims().empty() ||
      !op->getParentOfType<WhileOp>())
    return false;
  OpBuilder b(op);
  auto type = cast<RankedTensorType>(op.getOperand().getType());
  Value slice = DynamicSliceOp::create(
      b, op.getLoc(), type.clone(op.getSliceSizes()), op.getOperand(),
      getStarts(b, op.getLoc(), index, dims[0], type.getRank()),
      op.getSliceSizesAttr());
  if (slice.getType() != op.getType())
    slice = ReshapeOp::create(b, op.getLoc(), op.getType(), slice);
  op.getResult().replaceAllUsesWith(slice);
  op.erase();
  return true;
}

bool stablehlo::scatterToUpdate(ScatterOp op) {
  std::optional<int64_t> dim = matchOneWindow(op);
  Value index = dim ? getScalarIndex(op.getScatterIndices()) : Value();
  std::optional<AffineIndex> affine =
      index ? matchAffineIndex(index) : std::nullopt;
  if (!affine)
    return false;
  Value input = op.getInputs()[0], update = op.getUpdates()[0];
  auto type = cast<RankedTensorType>(input.getType());
  SmallVector<int64_t> window = windowOf(op);
  if (affine->min < 0 || affine->max > type.getDimSize(*dim) - window[*dim])
    return false;
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto windowType = type.clone(window);
  SmallVector<Value> starts = getStarts(b, loc, index, *dim, type.getRank());
  if (update.getType() != windowType)
    update = ReshapeOp::create(b, loc, windowType, update);
  Value old = DynamicSliceOp::create(b, loc, windowType, input, starts,
                                     b.getDenseI64ArrayAttr(window));
  Value combined =
      combineAll(b, loc, op.getUpdateComputation().front(), old, update);
  if (!combined)
    return false;
  op->getResult(0).replaceAllUsesWith(
      DynamicUpdateSliceOp::create(b, loc, type, input, combined, starts));
  op.erase();
  return true;
}
