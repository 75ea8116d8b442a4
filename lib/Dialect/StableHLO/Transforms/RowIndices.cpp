//===- RowIndices.cpp - Indices that count rows ---------------------------===//
//
// `x[jnp.arange(n), i]` picks an element of each row: its indices are pairs of
// a row's number and of what `i` says. With the rows as batching dimensions the
// same gather shows that each row is read alone, as `take_along_axis` does.
//
//===----------------------------------------------------------------------===//

#include "RowIndices.h"

#include "fp8/Dialect/StableHLO/IR/Constants.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Support/Shapes.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using fp8::shapeOf;
using fp8::tensorOf;

/// Returns the dimension along which `value` counts from zero, if it is the
/// same along all others; nullopt for other values.
static std::optional<int64_t> countedDim(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto iota = dyn_cast_or_null<stablehlo::IotaOp>(op)) {
    int64_t dim = iota.getIotaDimension();
    auto element = dyn_cast<IntegerType>(tensorOf(value).getElementType());
    bool fits = element && APInt::getSignedMaxValue(element.getWidth())
                               .sge(shapeOf(value)[dim] - 1);
    return fits ? std::optional<int64_t>(dim) : std::nullopt;
  }
  if (!isa_and_nonnull<stablehlo::BroadcastInDimOp, stablehlo::ReshapeOp>(op))
    return std::nullopt;
  Value source = op->getOperand(0);
  std::optional<int64_t> counted = countedDim(source);
  if (!counted || shapeOf(source)[*counted] == 1)
    return std::nullopt;
  int64_t dim;
  if (auto broadcast = dyn_cast<stablehlo::BroadcastInDimOp>(op)) {
    dim = broadcast.getBroadcastDimensions()[*counted];
  } else {
    // A reshape that only adds or drops dimensions of one element.
    auto isNoUnit = [](int64_t size) { return size != 1; };
    SmallVector<int64_t> before, after;
    llvm::copy_if(shapeOf(source), std::back_inserter(before), isNoUnit);
    llvm::copy_if(shapeOf(value), std::back_inserter(after), isNoUnit);
    if (before != after)
      return std::nullopt;
    int64_t place =
        llvm::count_if(shapeOf(source).take_front(*counted), isNoUnit);
    for (dim = 0; shapeOf(value)[dim] == 1 || place-- > 0; ++dim)
      ;
  }
  return shapeOf(value)[dim] == shapeOf(source)[*counted]
             ? std::optional<int64_t>(dim)
             : std::nullopt;
}

namespace {
/// The dimension numbers that gathers and scatters have in common.
struct IndexedDims {
  SmallVector<int64_t> indexed;        ///< By the elements of an index vector.
  SmallVector<int64_t> cut;            ///< Those that no window has.
  SmallVector<int64_t> batches;        ///< Those of the operand ...
  SmallVector<int64_t> indicesBatches; ///< ... and of the indices.
};
} // namespace

/// Leaves an element out of the index vectors that `vectors` concatenates.
static Value leaveOut(PatternRewriter &rewriter,
                      stablehlo::ConcatenateOp vectors, unsigned part) {
  SmallVector<Value> others(vectors.getInputs());
  others.erase(others.begin() + part);
  if (others.size() == 1)
    return others.front();
  SmallVector<int64_t> shape(shapeOf(vectors));
  --shape[vectors.getDimension()];
  return stablehlo::ConcatenateOp::create(rewriter, vectors.getLoc(),
                                          tensorOf(vectors).clone(shape),
                                          others, vectors.getDimension());
}

/// Looks for an element of the index vectors that counts all rows of the
/// operand. Makes these rows a batch, and returns the indices without it; null
/// if there is none.
static Value makeRowsBatches(PatternRewriter &rewriter, Value indices,
                             int64_t vectorDim, ArrayRef<int64_t> operandShape,
                             IndexedDims &dims) {
  auto vectors = indices.getDefiningOp<stablehlo::ConcatenateOp>();
  if (!vectors || static_cast<int64_t>(vectors.getDimension()) != vectorDim ||
      vectors.getInputs().size() < 2)
    return nullptr;
  unsigned component = 0;
  for (auto [i, part] : llvm::enumerate(vectors.getInputs())) {
    int64_t dim = dims.indexed[component];
    std::optional<int64_t> rows = countedDim(part);
    if (shapeOf(part)[vectorDim] == 1 && rows && *rows != vectorDim &&
        shapeOf(part)[*rows] == operandShape[dim] &&
        llvm::is_contained(dims.cut, dim) &&
        !llvm::is_contained(dims.indicesBatches, *rows)) {
      dims.indexed.erase(dims.indexed.begin() + component);
      dims.cut.erase(llvm::find(dims.cut, dim));
      auto place = llvm::lower_bound(dims.batches, dim) - dims.batches.begin();
      dims.batches.insert(dims.batches.begin() + place, dim);
      dims.indicesBatches.insert(dims.indicesBatches.begin() + place, *rows);
      return leaveOut(rewriter, vectors, i);
    }
    component += shapeOf(part)[vectorDim];
  }
  return nullptr;
}

namespace {

struct GatherOfRows : public OpRewritePattern<stablehlo::GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::GatherOp op,
                                PatternRewriter &rewriter) const override {
    auto old = op.getDimensionNumbers();
    IndexedDims dims{SmallVector<int64_t>(old.getStartIndexMap()),
                     SmallVector<int64_t>(old.getCollapsedSliceDims()),
                     SmallVector<int64_t>(old.getOperandBatchingDims()),
                     SmallVector<int64_t>(old.getStartIndicesBatchingDims())};
    Value indices =
        makeRowsBatches(rewriter, op.getStartIndices(), old.getIndexVectorDim(),
                        shapeOf(op.getOperand()), dims);
    if (!indices)
      return failure();
    rewriter.replaceOpWithNewOp<stablehlo::GatherOp>(
        op, op.getType(), op.getOperand(), indices,
        stablehlo::GatherDimensionNumbersAttr::get(
            op.getContext(), old.getOffsetDims(), dims.cut, dims.batches,
            dims.indicesBatches, dims.indexed, old.getIndexVectorDim()),
        op.getSliceSizesAttr(), rewriter.getBoolAttr(false));
    return success();
  }
};

struct ScatterToRows : public OpRewritePattern<stablehlo::ScatterOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::ScatterOp op,
                                PatternRewriter &rewriter) const override {
    auto old = op.getScatterDimensionNumbers();
    IndexedDims dims{SmallVector<int64_t>(old.getScatterDimsToOperandDims()),
                     SmallVector<int64_t>(old.getInsertedWindowDims()),
                     SmallVector<int64_t>(old.getInputBatchingDims()),
                     SmallVector<int64_t>(old.getScatterIndicesBatchingDims())};
    Value indices = makeRowsBatches(rewriter, op.getScatterIndices(),
                                    old.getIndexVectorDim(),
                                    shapeOf(op.getInputs().front()), dims);
    if (!indices)
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.getScatterIndicesMutable().assign(indices);
      op.setScatterDimensionNumbersAttr(
          stablehlo::ScatterDimensionNumbersAttr::get(
              op.getContext(), old.getUpdateWindowDims(), dims.cut,
              dims.batches, dims.indicesBatches, dims.indexed,
              old.getIndexVectorDim()));
      op.setIndicesAreSortedAttr(rewriter.getBoolAttr(false));
    });
    return success();
  }
};

/// `select(i < 0, i + n, i)`, which JAX writes for any index, of one that
/// counts.
struct CountIsNotNegative : public OpRewritePattern<stablehlo::SelectOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::SelectOp op,
                                PatternRewriter &rewriter) const override {
    auto compare = op.getPred().getDefiningOp<stablehlo::CompareOp>();
    if (!compare ||
        compare.getComparisonDirection() !=
            stablehlo::ComparisonDirection::LT ||
        !countedDim(compare.getLhs()))
      return failure();
    auto bound = dyn_cast_or_null<IntegerAttr>(
        stablehlo::getSplat(stablehlo::skipBroadcasts(compare.getRhs())));
    if (!bound || !bound.getValue().isZero())
      return failure();
    rewriter.replaceOp(op, op.getOnFalse());
    return success();
  }
};

} // namespace

void stablehlo::populateRowIndices(RewritePatternSet &patterns) {
  patterns.add<GatherOfRows, ScatterToRows, CountIsNotNegative>(
      patterns.getContext());
}
