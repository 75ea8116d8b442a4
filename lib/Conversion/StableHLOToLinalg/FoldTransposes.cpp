//===- FoldTransposes.cpp - Folding of transposes into dots ---------------===//

#include "DotDims.h"

#include "fp8/Conversion/StableHLOToLinalg/StableHLOToLinalg.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/DotOperands.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FOLDTRANSPOSES
#include "fp8/Conversion/StableHLOToLinalg/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using fp8::DotDims;

namespace {

/// Replaces `op` by a copy of `dot` with other operands and dimensions.
void replaceByDot(PatternRewriter &rewriter, Operation *op, Operation *dot,
                  Type result, Value lhs, Value rhs, const DotDims &dims,
                  bool swap) {
  rewriter.setInsertionPoint(op);
  Operation *created =
      rewriter.create(dot->getLoc(), dot->getName().getIdentifier(),
                      ValueRange{lhs, rhs}, TypeRange{result}, dot->getAttrs());
  if (auto newDot = dyn_cast<stablehlo::DotGeneralOp>(created)) {
    newDot.setDotDimensionNumbersAttr(stablehlo::DotDimensionNumbersAttr::get(
        op->getContext(), dims.batching[0], dims.batching[1],
        dims.contracting[0], dims.contracting[1]));
    // Attributes of each operand move with it.
    if (auto config = newDot.getPrecisionConfigAttr(); config && swap)
      newDot.setPrecisionConfigAttr(rewriter.getArrayAttr(
          SmallVector<Attribute>(llvm::reverse(config.getValue()))));
    if (auto algorithm = newDot.getAlgorithmAttr(); algorithm && swap)
      newDot.setAlgorithmAttr(stablehlo::DotAlgorithmAttr::get(
          op->getContext(), algorithm.getRhsPrecisionType(),
          algorithm.getLhsPrecisionType(), algorithm.getAccumulationType(),
          algorithm.getRhsComponentCount(), algorithm.getLhsComponentCount(),
          algorithm.getNumPrimitiveOperations(),
          algorithm.getAllowImpreciseAccumulation()));
  } else {
    auto scaled = cast<fp8::DotGeneralOp>(created);
    scaled.setLhsBatchingDims(dims.batching[0]);
    scaled.setRhsBatchingDims(dims.batching[1]);
    scaled.setLhsContractingDims(dims.contracting[0]);
    scaled.setRhsContractingDims(dims.contracting[1]);
  }
  rewriter.replaceOp(op, created);
}

struct TransposeOfDot : OpRewritePattern<stablehlo::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::TransposeOp op,
                                PatternRewriter &rewriter) const override {
    Operation *dot = op.getOperand().getDefiningOp();
    if (!dot || !dot->hasOneUse())
      return failure();
    auto dims = DotDims::of(dot);
    if (!dims)
      return failure();
    int64_t batch = dims->batching[0].size();
    int64_t rank = op.getPermutation().size();
    auto rankOf = [](Type type) -> int64_t {
      if (auto scaled = dyn_cast<fp8::ScaledType>(type))
        return scaled.getShape().size();
      return cast<RankedTensorType>(type).getRank();
    };
    int64_t m = rankOf(dot->getOperand(0).getType()) - batch -
                dims->contracting[0].size();
    // Batch dimensions in place, then all columns, then all rows.
    for (int64_t i = 0; i < rank; ++i) {
      int64_t expected = i < batch      ? i
                         : i < rank - m ? i + m
                                        : i - (rank - batch - m);
      if (op.getPermutation()[i] != expected)
        return failure();
    }
    DotDims swapped = *dims;
    std::swap(swapped.batching[0], swapped.batching[1]);
    std::swap(swapped.contracting[0], swapped.contracting[1]);
    replaceByDot(rewriter, op, dot, op.getType(), dot->getOperand(1),
                 dot->getOperand(0), swapped, /*swap=*/true);
    return success();
  }
};

/// Moves a transpose before the rescaling of a dot, towards the dot.
struct TransposeOfRescale : OpRewritePattern<stablehlo::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::TransposeOp op,
                                PatternRewriter &rewriter) const override {
    auto rescale = op.getOperand().getDefiningOp<fp8::RescaleOp>();
    if (!rescale || !rescale->hasOneUse())
      return failure();
    Operation *dot = rescale.getInput().getDefiningOp();
    if (!dot || !dot->hasOneUse() || !DotDims::of(dot))
      return failure();
    Value input = stablehlo::TransposeOp::create(
        rewriter, op.getLoc(), op.getType(), rescale.getInput(),
        op.getPermutationAttr());
    SmallVector<int64_t> dims;
    for (int64_t dim : rescale.getDims())
      dims.push_back(llvm::find(op.getPermutation(), dim) -
                     op.getPermutation().begin());
    rewriter.replaceOpWithNewOp<fp8::RescaleOp>(
        op, op.getType(), input, rescale.getFactor(),
        rewriter.getDenseI64ArrayAttr(dims));
    return success();
  }
};

/// Returns the transpose that `operand` comes from; a conversion may follow it.
stablehlo::TransposeOp getTranspose(Value operand) {
  if (auto convert = operand.getDefiningOp<stablehlo::ConvertOp>())
    operand = convert.getOperand();
  return operand.getDefiningOp<stablehlo::TransposeOp>();
}

/// Returns what `transpose` reads, converted if `operand`, which comes from it,
/// is.
Value readSource(PatternRewriter &rewriter, Value operand,
                 stablehlo::TransposeOp transpose) {
  auto convert = operand.getDefiningOp<stablehlo::ConvertOp>();
  if (!convert)
    return transpose.getOperand();
  return stablehlo::ConvertOp::create(rewriter, convert.getLoc(),
                                      transpose.getOperand(),
                                      convert.getType().getElementType());
}

struct DotOfTranspose : OpRewritePattern<stablehlo::DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::DotGeneralOp op,
                                PatternRewriter &rewriter) const override {
    DotDims dims = *DotDims::of(op);
    Value operands[] = {op.getLhs(), op.getRhs()};
    // Features that a convolution has moved to the end stay there.
    if (llvm::any_of(operands, [](Value operand) {
          return operand.getDefiningOp<fp8::WindowsOp>();
        }))
      return failure();
    bool changed = false;
    for (int side = 0; side < 2; ++side) {
      stablehlo::TransposeOp transpose = getTranspose(operands[side]);
      if (!transpose)
        continue;
      if (!stablehlo::readBeforeTranspose(transpose, dims.batching[side],
                                          dims.contracting[side]))
        continue;
      operands[side] = readSource(rewriter, operands[side], transpose);
      changed = true;
    }
    if (!changed)
      return failure();
    replaceByDot(rewriter, op, op, op.getType(), operands[0], operands[1], dims,
                 /*swap=*/false);
    return success();
  }
};

/// Moves the transpose of an operand that only dots read into the body of an
/// attention, where it folds into them. A conversion may follow the transpose.
template <typename OpTy> struct AttentionOfTranspose : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    bool changed = false;
    for (OpOperand &operand : op->getOpOperands()) {
      BlockArgument argument =
          op.getBody().getArgument(operand.getOperandNumber());
      stablehlo::TransposeOp transpose = getTranspose(operand.get());
      if (!transpose || !operand.get().hasOneUse() || !transpose->hasOneUse() ||
          !llvm::all_of(argument.getUses(), [&](OpOperand &use) {
            return foldsInto(transpose, use);
          }))
        continue;
      Value source = readSource(rewriter, operand.get(), transpose);
      rewriter.modifyOpInPlace(op, [&] {
        Type type = argument.getType();
        operand.set(source);
        argument.setType(source.getType());
        OpBuilder::InsertionGuard guard(rewriter);
        rewriter.setInsertionPointToStart(argument.getOwner());
        auto inside = stablehlo::TransposeOp::create(
            rewriter, transpose.getLoc(), type, argument,
            transpose.getPermutationAttr());
        rewriter.replaceAllUsesExcept(argument, inside, inside);
      });
      changed = true;
    }
    return success(changed);
  }

  /// Returns whether `use` is of a dot that may as well read the operand of
  /// `transpose`.
  static bool foldsInto(stablehlo::TransposeOp transpose, OpOperand &use) {
    auto dot = dyn_cast<stablehlo::DotGeneralOp>(use.getOwner());
    if (!dot)
      return false;
    DotDims dims = *DotDims::of(dot);
    unsigned side = use.getOperandNumber();
    return stablehlo::readBeforeTranspose(transpose, dims.batching[side],
                                          dims.contracting[side]);
  }
};

struct FoldTransposesPass : fp8::impl::FoldTransposesBase<FoldTransposesPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<TransposeOfDot, TransposeOfRescale, DotOfTranspose,
                 AttentionOfTranspose<fp8::AttentionOp>,
                 AttentionOfTranspose<fp8::AttentionBackwardOp>>(&getContext());
    // Every region is one block: there is no control flow to simplify.
    if (failed(applyPatternsGreedily(
            getOperation(), std::move(patterns),
            GreedyRewriteConfig().setRegionSimplificationLevel(
                GreedySimplifyRegionLevel::Disabled))))
      signalPassFailure();
  }
};

} // namespace
