//===- FoldReshapes.cpp - Reshapes in indexing maps -----------------------===//

#include "Patterns.h"

#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fp8;

bool fp8::canReadThrough(AffineMap map, Value operand,
                         ArrayRef<int64_t> ranges) {
  auto type = dyn_cast<RankedTensorType>(operand.getType());
  if (!type)
    return true;
  return llvm::all_of(llvm::enumerate(map.getResults()), [&](auto result) {
    auto loop = dyn_cast<AffineDimExpr>(result.value());
    return !loop ||
           ranges[loop.getPosition()] == type.getDimSize(result.index());
  });
}

/// Returns the map to places of an `expanded` tensor as one to places of the
/// tensor whose dimensions are its `groups` of dimensions. Dimensions of one
/// element have no part in it: `d0 + d1`, with d1 zero, would be no loop that
/// kernels share.
static AffineMap collapseResults(AffineMap map, RankedTensorType expanded,
                                 ArrayRef<ReassociationIndices> groups) {
  SmallVector<AffineExpr> exprs;
  for (const ReassociationIndices &group : groups) {
    AffineExpr expr = getAffineConstantExpr(0, map.getContext());
    for (int64_t dim : group)
      if (int64_t size = expanded.getDimSize(dim); size != 1)
        expr = expr * size + map.getResult(dim);
    exprs.push_back(expr);
  }
  return AffineMap::get(map.getNumDims(), 0, exprs, map.getContext());
}

namespace {

/// Reads an expanded tensor through a map of the tensor before expansion.
struct FoldExpandShapeIntoMap : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!allParallel(op))
      return failure();
    for (OpOperand *operand : op.getDpsInputOperands()) {
      auto expand = operand->get().getDefiningOp<tensor::ExpandShapeOp>();
      if (!expand)
        continue;
      SmallVector<AffineMap> maps = op.getIndexingMapsArray();
      AffineMap &map = maps[operand->getOperandNumber()];
      map = collapseResults(map, expand.getResultType(),
                            expand.getReassociationIndices());
      if (!inversePermutation(concatAffineMaps(maps, op.getContext())) ||
          !canReadThrough(map, expand.getSrc(), op.getStaticLoopRanges()))
        continue;
      rewriter.modifyOpInPlace(op, [&] {
        operand->set(expand.getSrc());
        op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
      });
      return success();
    }
    return failure();
  }
};

/// Removes roundings of what was of the same type before, as values are that
/// the backward pass reads. What is left may be no more than a copy, which the
/// patterns of linalg erase as long as it has the shape of its operand.
struct FoldRoundTrip : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    for (auto rounding : op.getBody()->getOps<arith::TruncFOp>()) {
      auto extension = rounding.getIn().getDefiningOp<arith::ExtFOp>();
      if (!extension || extension.getIn().getType() != rounding.getType())
        continue;
      rewriter.modifyOpInPlace(op, [&] {
        rewriter.replaceOp(rounding, extension.getIn());
        if (extension->use_empty())
          rewriter.eraseOp(extension);
      });
      return success();
    }
    return failure();
  }
};

/// Writes a result through the map of its collapsed form if nothing else reads
/// it.
struct FoldCollapseShapeIntoMap : OpRewritePattern<tensor::CollapseShapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::CollapseShapeOp collapse,
                                PatternRewriter &rewriter) const override {
    auto op = collapse.getSrc().getDefiningOp<linalg::GenericOp>();
    if (!op || op->getNumResults() != 1 || !op->hasOneUse() ||
        !allParallel(op) ||
        !op.getOutputs()[0].getDefiningOp<tensor::EmptyOp>())
      return failure();
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    AffineMap &map = maps.back();
    if (!map.isPermutation())
      return failure();
    map = collapseResults(map, collapse.getSrcType(),
                          collapse.getReassociationIndices());
    if (!inversePermutation(concatAffineMaps(maps, op.getContext())))
      return failure();
    rewriter.setInsertionPoint(op);
    RankedTensorType type = collapse.getResultType();
    Value empty = tensor::EmptyOp::create(
        rewriter, op.getLoc(), type.getShape(), type.getElementType());
    auto generic = linalg::GenericOp::create(
        rewriter, op.getLoc(), TypeRange{type}, op.getInputs(),
        ValueRange{empty}, maps, op.getIteratorTypesArray());
    generic->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    rewriter.inlineRegionBefore(op.getRegion(), generic.getRegion(),
                                generic.getRegion().begin());
    rewriter.replaceOp(collapse, generic.getResults());
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void fp8::populateFoldExpandedPatterns(RewritePatternSet &patterns) {
  patterns.add<FoldRoundTrip, FoldExpandShapeIntoMap>(patterns.getContext());
}

void fp8::populateFoldCollapsedPatterns(RewritePatternSet &patterns) {
  patterns.add<FoldCollapseShapeIntoMap>(patterns.getContext());
}
