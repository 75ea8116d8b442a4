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
/// The part of an index vector that counts rows.
struct RowIndex {
  unsigned component; ///< Which of the vector's elements it is.
  int64_t indicesDim; ///< The dimension of the indices that it counts.
  Value otherIndices; ///< The indices without it.
};
} // namespace

/// Finds an element of the index vectors that counts all rows of the operand.
/// `sizeOf` returns the size of the dimension that an element indexes, or -1 if
/// the dimension stays in the result.
static std::optional<RowIndex>
findRowIndex(PatternRewriter &rewriter, Value indices, int64_t vectorDim,
             function_ref<int64_t(unsigned)> sizeOf) {
  auto vectors = indices.getDefiningOp<stablehlo::ConcatenateOp>();
  if (!vectors || static_cast<int64_t>(vectors.getDimension()) != vectorDim ||
      vectors.getInputs().size() < 2)
    return std::nullopt;
  unsigned component = 0;
  for (auto [i, part] : llvm::enumerate(vectors.getInputs())) {
    std::optional<int64_t> dim = countedDim(part);
    if (shapeOf(part)[vectorDim] == 1 && dim && *dim != vectorDim &&
        shapeOf(part)[*dim] == sizeOf(component)) {
      SmallVector<Value> others(vectors.getInputs());
      others.erase(others.begin() + i);
      Value rest = others.front();
      if (others.size() > 1) {
        SmallVector<int64_t> shape(shapeOf(indices));
        --shape[vectorDim];
        rest = stablehlo::ConcatenateOp::create(rewriter, vectors.getLoc(),
                                                tensorOf(indices).clone(shape),
                                                others, vectorDim);
      }
      return RowIndex{component, *dim, rest};
    }
    component += shapeOf(part)[vectorDim];
  }
  return std::nullopt;
}

/// Moves a dimension of the operand from those that are indexed to those that
/// are batches.
static void makeBatch(unsigned component, int64_t indicesDim,
                      SmallVector<int64_t> &indexed, SmallVector<int64_t> &cut,
                      SmallVector<int64_t> &batches,
                      SmallVector<int64_t> &indicesBatches) {
  int64_t dim = indexed[component];
  indexed.erase(indexed.begin() + component);
  cut.erase(llvm::find(cut, dim));
  auto place = llvm::lower_bound(batches, dim) - batches.begin();
  batches.insert(batches.begin() + place, dim);
  indicesBatches.insert(indicesBatches.begin() + place, indicesDim);
}

namespace {

struct GatherOfRows : public OpRewritePattern<stablehlo::GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::GatherOp op,
                                PatternRewriter &rewriter) const override {
    auto dims = op.getDimensionNumbers();
    SmallVector<int64_t> indexed(dims.getStartIndexMap()),
        cut(dims.getCollapsedSliceDims()),
        batches(dims.getOperandBatchingDims()),
        indicesBatches(dims.getStartIndicesBatchingDims());
    auto rows = findRowIndex(rewriter, op.getStartIndices(),
                             dims.getIndexVectorDim(), [&](unsigned i) {
                               return llvm::is_contained(cut, indexed[i])
                                          ? shapeOf(op.getOperand())[indexed[i]]
                                          : -1;
                             });
    if (!rows || llvm::is_contained(indicesBatches, rows->indicesDim))
      return failure();
    makeBatch(rows->component, rows->indicesDim, indexed, cut, batches,
              indicesBatches);
    rewriter.replaceOpWithNewOp<stablehlo::GatherOp>(
        op, op.getType(), op.getOperand(), rows->otherIndices,
        stablehlo::GatherDimensionNumbersAttr::get(
            op.getContext(), dims.getOffsetDims(), cut, batches, indicesBatches,
            indexed, dims.getIndexVectorDim()),
        op.getSliceSizesAttr(), rewriter.getBoolAttr(false));
    return success();
  }
};

struct ScatterToRows : public OpRewritePattern<stablehlo::ScatterOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::ScatterOp op,
                                PatternRewriter &rewriter) const override {
    auto dims = op.getScatterDimensionNumbers();
    SmallVector<int64_t> indexed(dims.getScatterDimsToOperandDims()),
        cut(dims.getInsertedWindowDims()), batches(dims.getInputBatchingDims()),
        indicesBatches(dims.getScatterIndicesBatchingDims());
    auto rows =
        findRowIndex(rewriter, op.getScatterIndices(), dims.getIndexVectorDim(),
                     [&](unsigned i) {
                       return llvm::is_contained(cut, indexed[i])
                                  ? shapeOf(op.getInputs().front())[indexed[i]]
                                  : -1;
                     });
    if (!rows || llvm::is_contained(indicesBatches, rows->indicesDim))
      return failure();
    makeBatch(rows->component, rows->indicesDim, indexed, cut, batches,
              indicesBatches);
    rewriter.modifyOpInPlace(op, [&] {
      op.getScatterIndicesMutable().assign(rows->otherIndices);
      op.setScatterDimensionNumbersAttr(
          stablehlo::ScatterDimensionNumbersAttr::get(
              op.getContext(), dims.getUpdateWindowDims(), cut, batches,
              indicesBatches, indexed, dims.getIndexVectorDim()));
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
