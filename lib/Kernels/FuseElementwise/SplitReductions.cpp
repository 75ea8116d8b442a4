//===- SplitReductions.cpp - Partial reductions ---------------------------===//

#include "Patterns.h"

#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::fp8;

/// Splits a reduction into partials, for which the reduction loops in `outer`
/// are parallel, too, and a reduction of the partials.
static void splitReduction(PatternRewriter &rewriter, linalg::GenericOp op,
                           const llvm::SmallBitVector &outer,
                           Operation *combiner) {
  Location loc = op.getLoc();
  MLIRContext *ctx = op.getContext();
  SmallVector<int64_t> extents = op.getStaticLoopRanges(), shape;
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray(), last;
  // The loops of the partials, and the place of each among them.
  SmallVector<AffineExpr> loops, places(extents.size());
  auto addLoop = [&](unsigned loop) {
    places[loop] = getAffineDimExpr(loops.size(), ctx);
    loops.push_back(getAffineDimExpr(loop, ctx));
    shape.push_back(extents[loop]);
    last.push_back(iterators[loop]);
  };
  for (unsigned loop : outer.set_bits())
    addLoop(loop);
  for (unsigned loop = 0; loop < extents.size(); ++loop)
    if (linalg::isParallelIterator(iterators[loop]))
      addLoop(loop);
  for (unsigned loop : outer.set_bits())
    iterators[loop] = utils::IteratorType::parallel;

  Value identity = arith::ConstantOp::create(
      rewriter, loc, *arith::getNeutralElement(combiner));
  Value empty = tensor::EmptyOp::create(
      rewriter, loc, shape, getElementTypeOrSelf(op.getResult(0).getType()));
  Value init = linalg::FillOp::create(rewriter, loc, identity, empty).result();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap result = maps.back();
  maps.back() = AffineMap::get(extents.size(), 0, loops, ctx);
  auto partial = linalg::GenericOp::create(
      rewriter, loc, TypeRange{init.getType()}, op.getInputs(),
      ValueRange{init}, maps, iterators);
  rewriter.cloneRegionBefore(op.getRegion(), partial.getRegion(),
                             partial.getRegion().begin());

  auto whole = linalg::GenericOp::create(
      rewriter, loc, op->getResultTypes(), ValueRange{partial.getResult(0)},
      op.getOutputs(),
      ArrayRef<AffineMap>{
          AffineMap::getMultiDimIdentityMap(loops.size(), ctx),
          result.replaceDimsAndSymbols(places, {}, loops.size(), 0)},
      last, [&](OpBuilder &b, Location l, ValueRange args) {
        IRMapping mapping;
        for (Value operand : combiner->getOperands())
          mapping.map(operand, operand == op.getRegionOutputArgs()[0]
                                   ? args[1]
                                   : args[0]);
        Operation *combined = b.clone(*combiner, mapping);
        linalg::YieldOp::create(b, l, combined->getResults());
      });
  for (NamedAttribute attr : op->getDiscardableAttrs()) {
    partial->setDiscardableAttr(attr.getName(), attr.getValue());
    whole->setDiscardableAttr(attr.getName(), attr.getValue());
  }
  rewriter.replaceOp(op, whole.getResults());
}

namespace {

/// Splits the only loop of a long reduction into rows, so that it can have
/// partials: otherwise one task would do all of it.
struct SplitLongLoop : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  /// Shorter reductions keep the order of their sums.
  static constexpr int64_t kMinVolume = 1 << 18;
  static constexpr int64_t kMinRow = 64, kMaxRow = 4096;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getNumLoops() != 1 || op.getNumReductionLoops() != 1 ||
        iterationVolume(op) < kMinVolume || op.hasIndexSemantics())
      return failure();
    int64_t extent = op.getStaticLoopRanges()[0], row = rowOf(extent);
    if (row == 0)
      return failure();
    SmallVector<AffineMap> maps;
    AffineMap rows = rewriter.getMultiDimIdentityMap(2);
    for (AffineMap map : op.getIndexingMapsArray()) {
      if (!map.isIdentity() && map.getNumResults() != 0)
        return failure();
      maps.push_back(map.isIdentity() ? rows
                                      : AffineMap::get(2, 0, getContext()));
    }
    SmallVector<Value> inputs;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      Value input = operand->get();
      if (op.getMatchingIndexingMap(operand).isIdentity()) {
        auto type = cast<RankedTensorType>(input.getType());
        input = tensor::ExpandShapeOp::create(
            rewriter, op.getLoc(), type.clone({extent / row, row}), input,
            ArrayRef<ReassociationIndices>{{0, 1}});
      }
      inputs.push_back(input);
    }
    auto split = linalg::GenericOp::create(
        rewriter, op.getLoc(), op->getResultTypes(), inputs, op.getOutputs(),
        maps,
        SmallVector<utils::IteratorType>(2, utils::IteratorType::reduction));
    split->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    rewriter.inlineRegionBefore(op.getRegion(), split.getRegion(),
                                split.getRegion().begin());
    rewriter.replaceOp(op, split.getResults());
    return success();
  }

  /// Returns the longest row that divides `extent`; 0 if there is none.
  static int64_t rowOf(int64_t extent) {
    for (int64_t row = kMaxRow; row >= kMinRow; --row)
      if (extent % row == 0)
        return row;
    return 0;
  }
};

/// Splits a reduction without a parallel loop into partials over its leading
/// loops and a reduction of the partials.
struct SplitWholeReduction : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  /// With fewer elements, one task computes the whole reduction.
  static constexpr int64_t kMinVolume = 8192;
  /// Rows shorter than this are not worth a partial of their own.
  static constexpr int64_t kMinInner = 64;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getNumParallelLoops() != 0 || op->getNumResults() != 1 ||
        iterationVolume(op) < kMinVolume)
      return failure();
    // A single element of a larger result (the amax of a partial tile) is not
    // split.
    if (cast<RankedTensorType>(op->getResult(0).getType()).getRank() != 0)
      return failure();
    Operation *combiner = reductionCombiner(op, 0);
    if (!combiner)
      return failure();
    // Leading loops become parallel as long as rows stay long enough.
    SmallVector<int64_t> extents = op.getStaticLoopRanges();
    int64_t inner = iterationVolume(op);
    llvm::SmallBitVector outer(extents.size());
    for (unsigned loop = 0;
         loop + 1 < extents.size() && inner / extents[loop] >= kMinInner;
         ++loop) {
      outer.set(loop);
      inner /= extents[loop];
    }
    if (outer.none())
      return failure();
    splitReduction(rewriter, op, outer, combiner);
    return success();
  }
};

/// Splits a long reduction of columns into partials over blocks of rows, which
/// the outermost dimension of its input separates, and a reduction of the
/// partials: a task that computes what is reduced then has few rows, and not
/// all rows of a few columns, which do not fit into a cache.
struct SplitColumnReduction : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  /// Shorter reductions keep the order of their sums.
  static constexpr int64_t kMinRows = 1024;
  /// The fewest rows of a partial.
  static constexpr int64_t kMinInner = 64;
  /// Fewer columns, with all rows, fit into a cache.
  static constexpr int64_t kMinColumns = 64;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    // An attention sums its scores block by block.
    if (op.getNumParallelLoops() == 0 || op->getNumResults() != 1 ||
        op->getParentOfType<AttentionOp>() ||
        op->getParentOfType<AttentionBackwardOp>())
      return failure();
    // Partial sums would be rounded to a narrow type.
    auto element =
        dyn_cast<FloatType>(getElementTypeOrSelf(op->getResult(0).getType()));
    if (element && element.getWidth() < 32)
      return failure();
    std::optional<unsigned> loop = rowsOf(op);
    Operation *combiner = loop ? reductionCombiner(op, 0) : nullptr;
    if (!combiner)
      return failure();
    int64_t rows = 1, extent = op.getStaticLoopRanges()[*loop];
    for (auto [size, kind] :
         llvm::zip_equal(op.getStaticLoopRanges(), op.getIteratorTypesArray()))
      if (linalg::isReductionIterator(kind))
        rows *= size;
    if (extent == 1 || rows < kMinRows || rows / extent < kMinInner ||
        iterationVolume(op) / rows < kMinColumns)
      return failure();
    llvm::SmallBitVector outer(op.getNumLoops());
    outer.set(*loop);
    splitReduction(rewriter, op, outer, combiner);
    return success();
  }

  /// Returns the loop over the outermost dimension of the input, if that has
  /// all loops, the outermost being a reduction and the innermost parallel.
  static std::optional<unsigned> rowsOf(linalg::GenericOp op) {
    auto iterators = op.getIteratorTypesArray();
    for (OpOperand *operand : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(operand);
      if (!map.isPermutation())
        continue;
      unsigned first = map.getDimPosition(0);
      unsigned last = map.getDimPosition(map.getNumResults() - 1);
      if (linalg::isReductionIterator(iterators[first]) &&
          linalg::isParallelIterator(iterators[last]))
        return first;
    }
    return std::nullopt;
  }
};

} // namespace

void fp8::populateSplitReductionPatterns(RewritePatternSet &patterns) {
  patterns.add<SplitLongLoop, SplitWholeReduction, SplitColumnReduction>(
      patterns.getContext());
}
