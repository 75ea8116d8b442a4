//===- FoldUniformInput.cpp - Uniform inputs as scalars -------------------===//

#include "Patterns.h"

#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Turns a uniform input (a splat constant or a fill) into a scalar of the
/// payload. If no other operand determines the extent of some loops, the input
/// stays, but shrinks to these loops.
struct FoldUniformInput : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (isDot(op))
      return failure();
    for (OpOperand *operand : op.getDpsInputOperands()) {
      TypedAttr scalar = uniformValue(operand->get());
      if (!scalar)
        continue;
      SmallVector<AffineMap> maps = op.getIndexingMapsArray();
      unsigned number = operand->getOperandNumber();
      maps.erase(maps.begin() + number);
      if (!inversePermutation(concatAffineMaps(maps, op.getContext()))) {
        if (shrink(op, *operand, scalar, maps, rewriter))
          return success();
        continue;
      }
      rewriter.modifyOpInPlace(op, [&] {
        BlockArgument arg = op.getBody()->getArgument(number);
        OpBuilder::InsertionGuard guard(rewriter);
        rewriter.setInsertionPointToStart(op.getBody());
        arg.replaceAllUsesWith(
            arith::ConstantOp::create(rewriter, op.getLoc(), scalar));
        op.getBody()->eraseArgument(number);
        op.getInputsMutable().erase(number);
        op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
      });
      return success();
    }
    return failure();
  }

  /// Shrinks `operand` to the loops whose extent none of the `others`
  /// determines, if these are fewer.
  static bool shrink(linalg::GenericOp op, OpOperand &operand, TypedAttr scalar,
                     ArrayRef<AffineMap> others, PatternRewriter &rewriter) {
    llvm::SmallBitVector known(op.getNumLoops());
    for (AffineMap map : others)
      for (AffineExpr expr : map.getResults())
        if (auto loop = dyn_cast<AffineDimExpr>(expr))
          known.set(loop.getPosition());
    SmallVector<int64_t> ranges = op.getStaticLoopRanges(), shape;
    SmallVector<AffineExpr> exprs;
    for (unsigned loop : llvm::seq(op.getNumLoops()))
      if (!known[loop]) {
        shape.push_back(ranges[loop]);
        exprs.push_back(rewriter.getAffineDimExpr(loop));
      }
    auto type = cast<RankedTensorType>(operand.get().getType());
    auto smaller = type.clone(shape);
    if (smaller.getNumElements() >= type.getNumElements())
      return false;
    rewriter.setInsertionPoint(op);
    Value constant = arith::ConstantOp::create(
        rewriter, op.getLoc(), SplatElementsAttr::get(smaller, scalar));
    rewriter.modifyOpInPlace(op, [&] {
      operand.set(constant);
      setIndexingMap(
          operand, AffineMap::get(op.getNumLoops(), 0, exprs, op.getContext()));
    });
    return true;
  }

  static TypedAttr uniformValue(Value value) {
    auto constant = value.getDefiningOp<arith::ConstantOp>();
    // A scalar i64 constant is the number of a stochastically rounded tensor.
    // Inlined, it would give every layer kernels of its own.
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (constant && type && type.getRank() == 0 &&
        type.getElementType().isInteger(64))
      return {};
    if (auto fill = value.getDefiningOp<linalg::FillOp>())
      constant = fill.getInputs()[0].getDefiningOp<arith::ConstantOp>();
    if (!constant)
      return {};
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
      return cast<TypedAttr>(splat.getSplatValue<Attribute>());
    return isa<TensorType>(constant.getType()) ? TypedAttr()
                                               : constant.getValue();
  }
};

} // namespace

void fp8::populateFoldUniformInputPatterns(RewritePatternSet &patterns) {
  patterns.add<FoldUniformInput>(patterns.getContext());
}
