//===- Simplify.cpp - Scalar constants and identities ---------------------===//

#include "PositionConstants.h"
#include "RowIndices.h"

#include "fp8/Dialect/StableHLO/IR/CHLO.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"
#include "fp8/Dialect/StableHLO/Transforms/Passes.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir {
namespace stablehlo {
#define GEN_PASS_DEF_SIMPLIFY
#include "fp8/Dialect/StableHLO/Transforms/Passes.h.inc"
} // namespace stablehlo
} // namespace mlir

using namespace mlir;

/// Returns the element of a splat constant of floats, broadcast or not.
static std::optional<APFloat> getFloatSplat(Value value) {
  Attribute splat = stablehlo::getSplat(stablehlo::skipBroadcasts(value));
  if (auto attr = dyn_cast_or_null<FloatAttr>(splat))
    return attr.getValue();
  return std::nullopt;
}

/// Returns the element of a splat constant of integers, broadcast or not.
static std::optional<APInt> getIntSplat(Value value) {
  Attribute splat = stablehlo::getSplat(stablehlo::skipBroadcasts(value));
  if (auto attr = dyn_cast_or_null<IntegerAttr>(splat))
    return attr.getValue();
  return std::nullopt;
}

static bool isFloatSplat(Value value, double expected) {
  std::optional<APFloat> splat = getFloatSplat(value);
  return splat && splat->isExactlyValue(expected);
}

/// Replaces `op` by a splat: a scalar constant, broadcast if needed.
static void replaceBySplat(PatternRewriter &rewriter, Operation *op,
                           Attribute value) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  auto scalarType = RankedTensorType::get({}, type.getElementType());
  Value scalar = stablehlo::ConstantOp::create(
      rewriter, op->getLoc(), DenseElementsAttr::get(scalarType, value));
  if (type.getRank() == 0)
    rewriter.replaceOp(op, scalar);
  else
    rewriter.replaceOpWithNewOp<stablehlo::BroadcastInDimOp>(
        op, type, scalar, rewriter.getDenseI64ArrayAttr({}));
}

/// Returns the value of an elementwise op on splats, or none. Rounds to nearest
/// even, as the op does. NaN results are left to run time.
static std::optional<APFloat> evaluate(Operation *op, ArrayRef<APFloat> in) {
  constexpr auto kRound = APFloat::rmNearestTiesToEven;
  APFloat out = in[0];
  if (isa<stablehlo::AddOp>(op))
    out.add(in[1], kRound);
  else if (isa<stablehlo::SubtractOp>(op))
    out.subtract(in[1], kRound);
  else if (isa<stablehlo::MulOp>(op))
    out.multiply(in[1], kRound);
  else if (isa<stablehlo::DivOp>(op))
    out.divide(in[1], kRound);
  else if (isa<stablehlo::NegOp>(op))
    out.changeSign();
  else if (isa<chlo::SquareOp>(op))
    out.multiply(in[0], kRound);
  else
    return std::nullopt;
  if (out.isNaN())
    return std::nullopt;
  return out;
}

static std::optional<APInt> evaluate(Operation *op, ArrayRef<APInt> in) {
  if (isa<stablehlo::AddOp>(op))
    return in[0] + in[1];
  if (isa<stablehlo::SubtractOp>(op))
    return in[0] - in[1];
  if (isa<stablehlo::MulOp>(op))
    return in[0] * in[1];
  if (isa<stablehlo::NegOp>(op))
    return -in[0];
  return std::nullopt;
}

namespace {
struct FoldSplats : public RewritePattern {
  FoldSplats(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!isa<stablehlo::AddOp, stablehlo::SubtractOp, stablehlo::MulOp,
             stablehlo::DivOp, stablehlo::NegOp, chlo::SquareOp>(op))
      return failure();
    SmallVector<APFloat> floats;
    SmallVector<APInt> ints;
    for (Value operand : op->getOperands()) {
      if (std::optional<APFloat> value = getFloatSplat(operand))
        floats.push_back(*value);
      else if (std::optional<APInt> value = getIntSplat(operand))
        ints.push_back(*value);
      else
        return failure();
    }
    Type element = getElementTypeOrSelf(op->getResult(0).getType());
    if (floats.size() == op->getNumOperands()) {
      std::optional<APFloat> value = evaluate(op, floats);
      if (!value)
        return failure();
      replaceBySplat(rewriter, op, FloatAttr::get(element, *value));
      return success();
    }
    if (ints.size() != op->getNumOperands() || element.isInteger(1))
      return failure();
    std::optional<APInt> value = evaluate(op, ints);
    if (!value)
      return failure();
    replaceBySplat(rewriter, op, IntegerAttr::get(element, *value));
    return success();
  }
};

/// Folds the conversion of a float or integer constant to a float.
struct FoldConvert : public OpRewritePattern<stablehlo::ConvertOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::ConvertOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getOperand().getType() == op.getResult().getType()) {
      rewriter.replaceOp(op, op.getOperand());
      return success();
    }
    Type from = getElementTypeOrSelf(op.getOperand().getType());
    auto to = dyn_cast<FloatType>(getElementTypeOrSelf(op.getType()));
    // Eight-bit formats have their own rules for saturation.
    if (!to || to.getWidth() < 16)
      return failure();
    APFloat out(to.getFloatSemantics());
    if (std::optional<APFloat> value = getFloatSplat(op.getOperand())) {
      bool inexact;
      out = *value;
      out.convert(to.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                  &inexact);
      if (out.isNaN())
        return failure();
    } else if (std::optional<APInt> value = getIntSplat(op.getOperand());
               value && from.getIntOrFloatBitWidth() > 1) {
      out.convertFromAPInt(*value, /*IsSigned=*/!from.isUnsignedInteger(),
                           APFloat::rmNearestTiesToEven);
    } else {
      return failure();
    }
    replaceBySplat(rewriter, op, FloatAttr::get(to, out));
    return success();
  }
};

/// `x * 1` and `1 * x`.
struct MultiplyByOne : public OpRewritePattern<stablehlo::MulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::MulOp op,
                                PatternRewriter &rewriter) const override {
    for (unsigned i : {0, 1}) {
      std::optional<APInt> value = getIntSplat(op->getOperand(i));
      if (isFloatSplat(op->getOperand(i), 1.0) ||
          (value && value->getBitWidth() > 1 && value->isOne())) {
        rewriter.replaceOp(op, op->getOperand(1 - i));
        return success();
      }
    }
    return failure();
  }
};

/// `x / 1`.
struct DivideByOne : public OpRewritePattern<stablehlo::DivOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::DivOp op,
                                PatternRewriter &rewriter) const override {
    if (!isFloatSplat(op.getRhs(), 1.0))
      return failure();
    rewriter.replaceOp(op, op.getLhs());
    return success();
  }
};

/// `x - 0`.
struct SubtractZero : public OpRewritePattern<stablehlo::SubtractOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::SubtractOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<APFloat> value = getFloatSplat(op.getRhs());
    std::optional<APInt> integer = getIntSplat(op.getRhs());
    if (!(value && value->isPosZero()) && !(integer && integer->isZero()))
      return failure();
    rewriter.replaceOp(op, op.getLhs());
    return success();
  }
};

/// `x + 0` for integers and for squares, which are never a negative zero.
struct AddZero : public OpRewritePattern<stablehlo::AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::AddOp op,
                                PatternRewriter &rewriter) const override {
    for (unsigned i : {0, 1}) {
      Value other = op->getOperand(1 - i);
      std::optional<APFloat> value = getFloatSplat(op->getOperand(i));
      std::optional<APInt> integer = getIntSplat(op->getOperand(i));
      if ((value && value->isZero() &&
           (value->isNegative() || other.getDefiningOp<chlo::SquareOp>())) ||
          (integer && integer->isZero() && integer->getBitWidth() > 1)) {
        rewriter.replaceOp(op, other);
        return success();
      }
    }
    return failure();
  }
};

/// A reshape to the same type, and a reshape of a reshape or of a broadcast
/// that adds dimensions of one element.
struct MergeReshapes : public OpRewritePattern<stablehlo::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getOperand().getType() == op.getType()) {
      rewriter.replaceOp(op, op.getOperand());
      return success();
    }
    Value source = stablehlo::getReshapeSource(op.getOperand());
    if (!source)
      return failure();
    rewriter.replaceOpWithNewOp<stablehlo::ReshapeOp>(op, op.getType(), source);
    return success();
  }
};

/// A transpose that keeps the order, and a transpose of a transpose.
struct MergeTransposes : public OpRewritePattern<stablehlo::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::TransposeOp op,
                                PatternRewriter &rewriter) const override {
    ArrayRef<int64_t> order = op.getPermutation();
    if (llvm::all_of(llvm::enumerate(order), [](auto entry) {
          return int64_t(entry.index()) == entry.value();
        })) {
      rewriter.replaceOp(op, op.getOperand());
      return success();
    }
    auto inner = op.getOperand().getDefiningOp<stablehlo::TransposeOp>();
    if (!inner)
      return failure();
    SmallVector<int64_t> both;
    for (int64_t dim : order)
      both.push_back(inner.getPermutation()[dim]);
    rewriter.replaceOpWithNewOp<stablehlo::TransposeOp>(
        op, op.getType(), inner.getOperand(),
        rewriter.getDenseI64ArrayAttr(both));
    return success();
  }
};

/// A broadcast to the same type, and a broadcast of a broadcast.
struct MergeBroadcasts : public OpRewritePattern<stablehlo::BroadcastInDimOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::BroadcastInDimOp op,
                                PatternRewriter &rewriter) const override {
    ArrayRef<int64_t> dims = op.getBroadcastDimensions();
    if (op.getOperand().getType() == op.getType() &&
        llvm::all_of(llvm::enumerate(dims), [](auto entry) {
          return int64_t(entry.index()) == entry.value();
        })) {
      rewriter.replaceOp(op, op.getOperand());
      return success();
    }
    auto inner = op.getOperand().getDefiningOp<stablehlo::BroadcastInDimOp>();
    if (!inner)
      return failure();
    SmallVector<int64_t> both;
    for (int64_t dim : inner.getBroadcastDimensions())
      both.push_back(dims[dim]);
    rewriter.replaceOpWithNewOp<stablehlo::BroadcastInDimOp>(
        op, op.getType(), inner.getOperand(),
        rewriter.getDenseI64ArrayAttr(both));
    return success();
  }
};

/// Returns true if `init` is the neutral element of `op`.
bool isNeutral(Operation &op, Value init) {
  if (isa<stablehlo::AddOp>(op)) {
    std::optional<APFloat> number = getFloatSplat(init);
    return number && number->isZero();
  }
  std::optional<APInt> flag = getIntSplat(init);
  return flag && ((isa<stablehlo::AndOp>(op) && flag->isAllOnes()) ||
                  (isa<stablehlo::OrOp>(op) && flag->isZero()));
}

/// Replaces a sum over dimensions of size one, or over none, by a reshape, and
/// so conjunctions and disjunctions. JAX sums the gradient of a bias over the
/// dimensions that it has added itself, and asks whether all indices are valid,
/// of which there may be one.
struct ReduceOfUnitDims : public OpRewritePattern<stablehlo::ReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::ReduceOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getInputs().size() != 1)
      return failure();
    Value input = op.getInputs().front();
    auto type = cast<RankedTensorType>(input.getType());
    if (llvm::any_of(op.getDimensions(),
                     [&](int64_t dim) { return type.getDimSize(dim) != 1; }))
      return failure();
    Block &body = op.getBody().front();
    Operation &first = body.front();
    if (!isNeutral(first, op.getInitValues().front()) ||
        body.getTerminator()->getOperands() != first.getResults() ||
        !((first.getOperand(0) == body.getArgument(0) &&
           first.getOperand(1) == body.getArgument(1)) ||
          (first.getOperand(0) == body.getArgument(1) &&
           first.getOperand(1) == body.getArgument(0))))
      return failure();
    rewriter.replaceOpWithNewOp<stablehlo::ReshapeOp>(
        op, op->getResult(0).getType(), input);
    return success();
  }
};

/// A gather of all of its operand: indices are clamped to zero, so they say
/// nothing. `take_along_axis(x, labels)[..., 0]` ends in one.
struct GatherOfAll : public OpRewritePattern<stablehlo::GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::GatherOp op,
                                PatternRewriter &rewriter) const override {
    auto dims = op.getDimensionNumbers();
    auto type = cast<RankedTensorType>(op.getOperand().getType());
    if (!dims.getOperandBatchingDims().empty() ||
        op.getSliceSizes() != type.getShape())
      return failure();
    SmallVector<int64_t> window;
    for (auto [dim, size] : llvm::enumerate(type.getShape()))
      if (!llvm::is_contained(dims.getCollapsedSliceDims(), dim))
        window.push_back(size);
    Value all = stablehlo::ReshapeOp::create(
        rewriter, op.getLoc(), type.clone(window), op.getOperand());
    rewriter.replaceOpWithNewOp<stablehlo::BroadcastInDimOp>(
        op, op.getType(), all,
        rewriter.getDenseI64ArrayAttr(dims.getOffsetDims()));
    return success();
  }
};

/// Adding one update to all of a tensor: the derivative of a gather of all.
struct ScatterToAll : public OpRewritePattern<stablehlo::ScatterOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::ScatterOp op,
                                PatternRewriter &rewriter) const override {
    auto dims = op.getScatterDimensionNumbers();
    std::optional<APInt> index = getIntSplat(op.getScatterIndices());
    if (op.getInputs().size() != 1 || !dims.getInputBatchingDims().empty() ||
        !index || !index->isZero())
      return failure();
    auto all = cast<RankedTensorType>(op.getInputs().front().getType());
    Value update = op.getUpdates().front();
    auto type = cast<RankedTensorType>(update.getType());
    // Each dimension of the window is as large as the input's, and there is one
    // window.
    SmallVector<int64_t> window;
    for (auto [dim, size] : llvm::enumerate(all.getShape())) {
      if (!llvm::is_contained(dims.getInsertedWindowDims(), dim))
        window.push_back(size);
      else if (size != 1)
        return failure();
    }
    SmallVector<int64_t> updated =
        llvm::map_to_vector(dims.getUpdateWindowDims(),
                            [&](int64_t dim) { return type.getDimSize(dim); });
    if (updated != window || type.getNumElements() != all.getNumElements() ||
        !isa_and_nonnull<stablehlo::AddOp>(
            stablehlo::getCombiner(op.getUpdateComputation())))
      return failure();
    Value shaped =
        stablehlo::ReshapeOp::create(rewriter, op.getLoc(), all, update);
    std::optional<APFloat> old = getFloatSplat(op.getInputs().front());
    if (old && old->isZero())
      rewriter.replaceOp(op, shaped);
    else
      rewriter.replaceOpWithNewOp<stablehlo::AddOp>(op, op.getInputs().front(),
                                                    shaped);
    return success();
  }
};

bool isEmpty(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements() == 0;
}

/// A reduction of no elements gives its initial value.
struct ReduceOfNothing : public OpRewritePattern<stablehlo::ReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::ReduceOp op,
                                PatternRewriter &rewriter) const override {
    if (!llvm::all_of(op.getInputs(), isEmpty) ||
        llvm::any_of(op.getResults(), isEmpty))
      return failure();
    SmallVector<Value> values;
    for (auto [init, type] : llvm::zip(op.getInitValues(), op.getResultTypes()))
      values.push_back(stablehlo::BroadcastInDimOp::create(
          rewriter, op.getLoc(), type, init,
          rewriter.getDenseI64ArrayAttr({})));
    rewriter.replaceOp(op, values);
    return success();
  }
};

struct PadOfNothing : public OpRewritePattern<stablehlo::PadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::PadOp op,
                                PatternRewriter &rewriter) const override {
    if (!isEmpty(op.getOperand()) || isEmpty(op.getResult()))
      return failure();
    rewriter.replaceOpWithNewOp<stablehlo::BroadcastInDimOp>(
        op, op.getType(), op.getPaddingValue(),
        rewriter.getDenseI64ArrayAttr({}));
    return success();
  }
};

/// Concatenations leave out what is empty.
struct ConcatenateOfNothing
    : public OpRewritePattern<stablehlo::ConcatenateOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::ConcatenateOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<Value> parts;
    llvm::copy_if(op.getInputs(), std::back_inserter(parts),
                  [](Value part) { return !isEmpty(part); });
    if (parts.empty() || parts.size() == op.getInputs().size())
      return failure();
    rewriter.replaceOpWithNewOp<stablehlo::ConcatenateOp>(
        op, op.getType(), parts, op.getDimension());
    return success();
  }
};

/// A slice of one part of a concatenation reads the part: the copies of the
/// body of an unrolled loop exchange values in this way.
struct SliceOfPart : public OpRewritePattern<stablehlo::SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::SliceOp op,
                                PatternRewriter &rewriter) const override {
    Value whole = op.getOperand();
    SmallVector<int64_t> starts(op.getStartIndices()),
        limits(op.getLimitIndices());
    auto move = [&](unsigned dim, int64_t distance) {
      starts[dim] += distance;
      limits[dim] += distance;
    };
    // The slice may be one of a slice that spans several parts.
    if (auto slice = whole.getDefiningOp<stablehlo::SliceOp>();
        slice && llvm::all_of(slice.getStrides(),
                              [](int64_t stride) { return stride == 1; })) {
      whole = slice.getOperand();
      for (auto [dim, start] : llvm::enumerate(slice.getStartIndices()))
        move(dim, start);
    }
    auto concatenate = whole.getDefiningOp<stablehlo::ConcatenateOp>();
    if (!concatenate)
      return failure();
    unsigned dim = concatenate.getDimension();
    for (Value part : concatenate.getInputs()) {
      int64_t size = cast<RankedTensorType>(part.getType()).getDimSize(dim);
      if (starts[dim] >= 0 && limits[dim] <= size) {
        rewriter.replaceOpWithNewOp<stablehlo::SliceOp>(
            op, op.getType(), part, rewriter.getDenseI64ArrayAttr(starts),
            rewriter.getDenseI64ArrayAttr(limits), op.getStridesAttr());
        return success();
      }
      move(dim, -size);
    }
    return failure();
  }
};

/// A dot that sums nothing, of an operand with batching dimensions alone, is an
/// elementwise product: einsum("bhqk,h->bhqk"), which masks heads.
struct ProductOfBatches : public OpRewritePattern<stablehlo::DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(stablehlo::DotGeneralOp op,
                                PatternRewriter &rewriter) const override {
    auto dims = op.getDotDimensionNumbers();
    ArrayRef<int64_t> batch[2] = {dims.getLhsBatchingDimensions(),
                                  dims.getRhsBatchingDimensions()};
    Value sides[2] = {op.getLhs(), op.getRhs()};
    auto rankOf = [](Value value) {
      return cast<RankedTensorType>(value.getType()).getRank();
    };
    if (!dims.getLhsContractingDimensions().empty() || batch[0].empty())
      return failure();
    unsigned whole = rankOf(sides[1]) == int64_t(batch[1].size()) ? 0 : 1;
    if (rankOf(sides[1 - whole]) != int64_t(batch[1 - whole].size()))
      return failure();
    auto type = cast<RankedTensorType>(op.getType());
    auto convert = [&](Value value) -> Value {
      auto from = cast<RankedTensorType>(value.getType());
      if (from.getElementType() == type.getElementType())
        return value;
      return stablehlo::ConvertOp::create(
          rewriter, op.getLoc(), from.clone(type.getElementType()), value);
    };
    SmallVector<int64_t> order(batch[whole]);
    for (int64_t dim = 0; dim < rankOf(sides[whole]); ++dim)
      if (!llvm::is_contained(batch[whole], dim))
        order.push_back(dim);
    Value a = stablehlo::TransposeOp::create(
        rewriter, op.getLoc(), type, convert(sides[whole]),
        rewriter.getDenseI64ArrayAttr(order));
    // Where each dimension of the other operand is among the batches.
    SmallVector<int64_t> places(batch[1 - whole].size());
    for (auto [place, dim] : llvm::enumerate(batch[1 - whole]))
      places[dim] = place;
    Value b = stablehlo::BroadcastInDimOp::create(
        rewriter, op.getLoc(), type, convert(sides[1 - whole]),
        rewriter.getDenseI64ArrayAttr(places));
    rewriter.replaceOpWithNewOp<stablehlo::MulOp>(op, a, b);
    return success();
  }
};

/// Sums of no products are zero.
template <typename OpTy>
struct ProductsOfNothing : public OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!llvm::any_of(op->getOperands(), isEmpty) || isEmpty(op.getResult()))
      return failure();
    Type element = cast<RankedTensorType>(op.getType()).getElementType();
    replaceBySplat(rewriter, op, rewriter.getZeroAttr(element));
    return success();
  }
};

struct Simplify : public stablehlo::impl::SimplifyBase<Simplify> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    stablehlo::populateSimplifyPatterns(patterns);
    stablehlo::populatePositionConstants(patterns);
    stablehlo::populateRowIndices(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

void stablehlo::populateSimplifyPatterns(RewritePatternSet &patterns) {
  patterns.add<FoldSplats, FoldConvert, MultiplyByOne, DivideByOne,
               SubtractZero, AddZero, MergeReshapes, MergeTransposes,
               MergeBroadcasts, ReduceOfUnitDims, GatherOfAll, ScatterToAll,
               ReduceOfNothing, PadOfNothing, ConcatenateOfNothing, SliceOfPart,
               ProductOfBatches, ProductsOfNothing<stablehlo::DotGeneralOp>,
               ProductsOfNothing<stablehlo::ConvolutionOp>>(
      patterns.getContext());
}
