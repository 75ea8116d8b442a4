//===- InitialValues.cpp - Initial values as fills ------------------------===//

#include "Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Turns a splat constant that is written into later (the operand of a scatter
/// or of a reduction) into a fill. Elsewhere fusion turns it into a scalar.
struct SplatInitToFill
    : OpInterfaceRewritePattern<DestinationStyleOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(DestinationStyleOpInterface op,
                                PatternRewriter &rewriter) const override {
    bool changed = false;
    for (OpOperand &init : op.getDpsInitsMutable())
      changed |= replaceSplat(init, op.getLoc(), rewriter);
    return success(changed);
  }

  static bool replaceSplat(OpOperand &operand, Location loc,
                           RewriterBase &rewriter) {
    auto constant = operand.get().getDefiningOp<arith::ConstantOp>();
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    if (!constant || !type)
      return false;
    auto elements = dyn_cast<SplatElementsAttr>(constant.getValue());
    if (!elements)
      return false;
    rewriter.setInsertionPoint(operand.getOwner());
    Value scalar = arith::ConstantOp::create(
        rewriter, loc, cast<TypedAttr>(elements.getSplatValue<Attribute>()));
    Value empty = tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                          type.getElementType());
    Value fill = linalg::FillOp::create(rewriter, loc, scalar, empty).result();
    rewriter.modifyOpInPlace(operand.getOwner(), [&] { operand.set(fill); });
    return true;
  }
};

/// Does the same for tensors that a loop carries.
struct SplatLoopInitToFill : OpRewritePattern<scf::ForOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(scf::ForOp op,
                                PatternRewriter &rewriter) const override {
    bool changed = false;
    for (OpOperand &init : op.getInitArgsMutable())
      changed |= SplatInitToFill::replaceSplat(init, op.getLoc(), rewriter);
    return success(changed);
  }
};

/// Drops the initial value of a stack that a loop fills slot by slot.
struct DropOverwrittenInit : OpRewritePattern<scf::ForOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(scf::ForOp loop,
                                PatternRewriter &rewriter) const override {
    bool changed = false;
    for (auto [index, init] : llvm::enumerate(loop.getInitArgsMutable())) {
      if (init.get().getDefiningOp<tensor::EmptyOp>() || !isFilled(loop, index))
        continue;
      auto type = cast<RankedTensorType>(init.get().getType());
      rewriter.setInsertionPoint(loop);
      Value empty = tensor::EmptyOp::create(
          rewriter, loop.getLoc(), type.getShape(), type.getElementType());
      rewriter.modifyOpInPlace(loop,
                               [&init = init, empty] { init.set(empty); });
      changed = true;
    }
    return success(changed);
  }

  /// Returns true if the only use of carried value `index` is to write slot `c
  /// + i` or `c - i` of it in iteration `i`, and if these are all of its slots.
  static bool isFilled(scf::ForOp loop, unsigned index) {
    BlockArgument carry = loop.getRegionIterArg(index);
    auto insert =
        loop.getYieldedValues()[index].getDefiningOp<tensor::InsertSliceOp>();
    if (!insert || !carry.hasOneUse() || insert.getDest() != carry ||
        !insert->hasOneUse() || insert->getBlock() != loop.getBody())
      return false;
    RankedTensorType type = insert.getDestType();
    ArrayRef<int64_t> sizes = insert.getStaticSizes();
    if (type.getRank() == 0 || sizes[0] != 1 || !insert.hasUnitStride() ||
        sizes.drop_front() != type.getShape().drop_front() ||
        loop.getStaticTripCount() != APInt(64, type.getDimSize(0)) ||
        getConstantIntValue(loop.getStep()) != 1)
      return false;
    // The slots of all iterations differ and lie in bounds, so each slot is
    // written.
    auto slot = dyn_cast<Value>(insert.getMixedOffsets()[0]);
    for (Operation *def; slot && slot != loop.getInductionVar();) {
      def = slot.getDefiningOp();
      if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp>(def))
        return false;
      bool left = matchPattern(def->getOperand(0), m_Constant());
      if (!left && !matchPattern(def->getOperand(1), m_Constant()))
        return false;
      slot = def->getOperand(left ? 1 : 0);
    }
    return slot != nullptr;
  }
};

} // namespace

void fp8::fillReturnedSplats(func::ReturnOp op) {
  IRRewriter rewriter(op);
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    if (type && type.getNumElements() > 1)
      SplatInitToFill::replaceSplat(operand, op.getLoc(), rewriter);
  }
}

void fp8::populateInitialValuePatterns(RewritePatternSet &patterns) {
  patterns.add<SplatInitToFill, SplatLoopInitToFill>(patterns.getContext());
}

void fp8::populateOverwrittenInitPatterns(RewritePatternSet &patterns) {
  patterns.add<DropOverwrittenInit>(patterns.getContext());
}
