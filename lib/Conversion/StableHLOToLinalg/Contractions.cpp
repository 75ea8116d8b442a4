//===- Contractions.cpp - Dots and convolutions to linalg -----------------===//

#include "Builders.h"
#include "Patterns.h"
#include "ScalarOps.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns the type in which products are summed.
static Type accumulatorType(OpBuilder &b, Type result) {
  return isNarrowFloat(result) ? b.getF32Type() : result;
}

/// Returns acc + l * r in the accumulator's type.
static Value multiplyAccumulate(OpBuilder &b, Location loc, Value acc, Value l,
                                Type lType, Value r, Type rType) {
  Type type = acc.getType();
  if (isa<FloatType>(type)) {
    // Even an f64 operand of an f32 result is converted to the accumulator's
    // type.
    l = emitConvert(b, loc, l, lType, type);
    r = emitConvert(b, loc, r, rType, type);
    return arith::AddFOp::create(b, loc, acc,
                                 arith::MulFOp::create(b, loc, l, r));
  }
  if (type.isInteger(1))
    return arith::OrIOp::create(b, loc, acc,
                                arith::AndIOp::create(b, loc, l, r));
  l = emitConvert(b, loc, l, lType, type);
  r = emitConvert(b, loc, r, rType, type);
  return arith::AddIOp::create(b, loc, acc,
                               arith::MulIOp::create(b, loc, l, r));
}

static Value contraction(OpBuilder &b, Location loc, RankedTensorType type,
                         Value lhs, Type lhsType, Value rhs, Type rhsType,
                         ArrayRef<AffineMap> maps,
                         ArrayRef<utils::IteratorType> loops,
                         stablehlo::DotAlgorithmAttr algorithm = {}) {
  Type element = type.getElementType();
  Type accumulator = accumulatorType(b, element);
  // Any other accumulation type that an algorithm may ask for is no better than
  // f32.
  if (algorithm && algorithm.getAccumulationType().isF64() &&
      isa<FloatType>(element))
    accumulator = b.getF64Type();
  Value destination = filledWithZero(b, loc, type.clone(accumulator));
  Value result =
      generic(b, loc, {lhs, rhs}, destination, maps, loops,
              [&](OpBuilder &inner, Location innerLoc, ValueRange args) {
                linalg::YieldOp::create(
                    inner, innerLoc,
                    multiplyAccumulate(inner, innerLoc, args[2], args[0],
                                       lhsType, args[1], rhsType));
              })
          .getResult(0);
  return element == accumulator ? result
                                : convertFloats(b, loc, result, element);
}

namespace {

struct DotGeneralLowering : OpConversionPattern<stablehlo::DotGeneralOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::DotGeneralOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value lhs = adaptor.getLhs(), rhs = adaptor.getRhs();
    auto numbers = op.getDotDimensionNumbers();
    RankedTensorType type = convertedType(op.getResult());
    unsigned outputs = type.getRank();
    unsigned contracted = numbers.getLhsContractingDimensions().size();
    unsigned loops = outputs + contracted;
    SmallVector<AffineExpr> lhsExprs(tensorType(lhs).getRank());
    SmallVector<AffineExpr> rhsExprs(tensorType(rhs).getRank());
    unsigned next = 0;
    for (auto [l, r] : llvm::zip(numbers.getLhsBatchingDimensions(),
                                 numbers.getRhsBatchingDimensions()))
      lhsExprs[l] = rhsExprs[r] = rewriter.getAffineDimExpr(next++);
    for (auto [i, l] : llvm::enumerate(numbers.getLhsContractingDimensions())) {
      unsigned r = numbers.getRhsContractingDimensions()[i];
      lhsExprs[l] = rhsExprs[r] = rewriter.getAffineDimExpr(outputs + i);
    }
    for (AffineExpr &expr : lhsExprs)
      if (!expr)
        expr = rewriter.getAffineDimExpr(next++);
    for (AffineExpr &expr : rhsExprs)
      if (!expr)
        expr = rewriter.getAffineDimExpr(next++);
    MLIRContext *context = rewriter.getContext();
    SmallVector<AffineMap> maps = {AffineMap::get(loops, 0, lhsExprs, context),
                                   AffineMap::get(loops, 0, rhsExprs, context),
                                   leadingDims(rewriter, loops, outputs)};
    Type lhsType = getElementTypeOrSelf(op.getLhs().getType());
    Type rhsType = getElementTypeOrSelf(op.getRhs().getType());
    if (contracted == 0) {
      // A product of elements without contraction is not a sum.
      Type element = type.getElementType();
      Type computed = accumulatorType(rewriter, element);
      Value result = elementwise(
          rewriter, loc, type, {lhs, rhs}, ArrayRef(maps).drop_back(),
          [&](OpBuilder &b, Location bodyLoc, ValueRange args) -> Value {
            if (element.isInteger(1))
              return arith::AndIOp::create(b, bodyLoc, args[0], args[1]);
            Value l = emitConvert(b, bodyLoc, args[0], lhsType, computed);
            Value r = emitConvert(b, bodyLoc, args[1], rhsType, computed);
            if (isa<IntegerType>(element))
              return arith::MulIOp::create(b, bodyLoc, l, r);
            Value product = arith::MulFOp::create(b, bodyLoc, l, r);
            return emitConvert(b, bodyLoc, product, computed, element);
          });
      rewriter.replaceOp(op, result);
      return success();
    }
    rewriter.replaceOp(op, contraction(rewriter, loc, type, lhs, lhsType, rhs,
                                       rhsType, maps,
                                       iterators(outputs, contracted),
                                       op.getAlgorithm().value_or(nullptr)));
    return success();
  }
};

struct ConvolutionLowering : OpConversionPattern<stablehlo::ConvolutionOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::ConvolutionOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto numbers = op.getDimensionNumbers();
    Value lhs = adaptor.getLhs(), rhs = adaptor.getRhs();
    RankedTensorType type = convertedType(op.getResult());
    RankedTensorType rhsTensor = tensorType(rhs);
    unsigned rank = type.getRank(), spatial = rank - 2;
    SmallVector<int64_t> strides =
        stablehlo::orOnes(op.getWindowStrides(), spatial);
    SmallVector<int64_t> spread =
        stablehlo::orOnes(op.getLhsDilation(), spatial);
    SmallVector<int64_t> dilation =
        stablehlo::orOnes(op.getRhsDilation(), spatial);
    auto pad = stablehlo::paddings(op.getPadding(), spatial);

    SmallVector<std::pair<int64_t, int64_t>> lhsPad(rank, {0, 0});
    SmallVector<int64_t> lhsSpread(rank, 1);
    for (auto [i, dim] : llvm::enumerate(numbers.getInputSpatialDimensions())) {
      lhsPad[dim] = pad[i];
      lhsSpread[dim] = spread[i];
    }
    RankedTensorType lhsTensor = tensorType(lhs);
    Type lhsElement = lhsTensor.getElementType();
    Value zero =
        splatConstant(rewriter, loc, RankedTensorType::get({}, lhsElement),
                      rewriter.getZeroAttr(lhsElement));
    lhs = dilated(rewriter, loc, lhs, zero, lhsPad, lhsSpread);

    // Loops: the result's dimensions, the window, the input features.
    unsigned loops = rank + spatial + 1;
    auto dim = [&](unsigned i) { return rewriter.getAffineDimExpr(i); };
    AffineExpr batch = dim(numbers.getOutputBatchDimension());
    AffineExpr feature = dim(numbers.getOutputFeatureDimension());
    AffineExpr channel = dim(rank + spatial);
    int64_t features = type.getDimSize(numbers.getOutputFeatureDimension());
    int64_t groups = op.getFeatureGroupCount();
    int64_t batchGroups = op.getBatchGroupCount();
    int64_t channels =
        rhsTensor.getDimSize(numbers.getKernelInputFeatureDimension());
    SmallVector<AffineExpr> lhsExprs(rank), rhsExprs(rank);
    lhsExprs[numbers.getInputBatchDimension()] =
        batchGroups == 1
            ? batch
            : feature.floorDiv(features / batchGroups) *
                      (lhsTensor.getDimSize(numbers.getInputBatchDimension()) /
                       batchGroups) +
                  batch;
    lhsExprs[numbers.getInputFeatureDimension()] =
        groups == 1 ? channel
                    : feature.floorDiv(features / groups) * channels + channel;
    rhsExprs[numbers.getKernelInputFeatureDimension()] = channel;
    rhsExprs[numbers.getKernelOutputFeatureDimension()] = feature;
    for (unsigned i = 0; i < spatial; ++i) {
      AffineExpr out = dim(numbers.getOutputSpatialDimensions()[i]);
      AffineExpr tap = dim(rank + i);
      unsigned kernelDim = numbers.getKernelSpatialDimensions()[i];
      rhsExprs[kernelDim] = tap;
      if (op.getWindowReversal() && (*op.getWindowReversal())[i])
        tap = -tap + (rhsTensor.getDimSize(kernelDim) - 1);
      lhsExprs[numbers.getInputSpatialDimensions()[i]] =
          out * strides[i] + tap * dilation[i];
    }
    MLIRContext *context = rewriter.getContext();
    SmallVector<AffineMap> maps = {AffineMap::get(loops, 0, lhsExprs, context),
                                   AffineMap::get(loops, 0, rhsExprs, context),
                                   leadingDims(rewriter, loops, rank)};
    rewriter.replaceOp(
        op, contraction(rewriter, loc, type, lhs,
                        getElementTypeOrSelf(op.getLhs().getType()), rhs,
                        getElementTypeOrSelf(op.getRhs().getType()), maps,
                        iterators(rank, spatial + 1)));
    return success();
  }
};

} // namespace

void fp8::populateContractionPatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<ConvolutionLowering, DotGeneralLowering>(converter,
                                                        patterns.getContext());
}
