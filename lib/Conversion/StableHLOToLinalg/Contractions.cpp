//===- Contractions.cpp - Dots and convolutions to linalg -----------------===//

#include "Builders.h"
#include "Patterns.h"
#include "ScalarOps.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Support/Shapes.h"

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

/// Returns the indexing maps of the operands and of the result of a dot. Its
/// loops are the dimensions of the result, then the contracted ones.
static SmallVector<AffineMap> mapsOf(stablehlo::DotGeneralOp op,
                                     unsigned outputs) {
  auto numbers = op.getDotDimensionNumbers();
  Builder builder(op.getContext());
  SmallVector<AffineExpr> lhs(shapeOf(op.getLhs()).size());
  SmallVector<AffineExpr> rhs(shapeOf(op.getRhs()).size());
  unsigned next = 0;
  for (auto [l, r] : llvm::zip(numbers.getLhsBatchingDimensions(),
                               numbers.getRhsBatchingDimensions()))
    lhs[l] = rhs[r] = builder.getAffineDimExpr(next++);
  unsigned loops = outputs;
  for (auto [l, r] : llvm::zip(numbers.getLhsContractingDimensions(),
                               numbers.getRhsContractingDimensions()))
    lhs[l] = rhs[r] = builder.getAffineDimExpr(loops++);
  for (SmallVector<AffineExpr> *exprs : {&lhs, &rhs})
    for (AffineExpr &expr : *exprs)
      if (!expr)
        expr = builder.getAffineDimExpr(next++);
  MLIRContext *context = op.getContext();
  return {AffineMap::get(loops, 0, lhs, context),
          AffineMap::get(loops, 0, rhs, context),
          leadingDims(builder, loops, outputs)};
}

/// Creates the product of each element of a tensor with one of another. Without
/// contraction it is not a sum.
static Value productOf(OpBuilder &builder, Location loc, RankedTensorType type,
                       Value lhs, Type lhsType, Value rhs, Type rhsType,
                       ArrayRef<AffineMap> maps) {
  Type element = type.getElementType();
  Type computed = accumulatorType(builder, element);
  return elementwise(
      builder, loc, type, {lhs, rhs}, maps,
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
}

/// Returns the image of a convolution with its padding, and zeros between its
/// elements.
static Value dilatedImage(OpBuilder &builder, stablehlo::ConvolutionOp op,
                          Value image) {
  RankedTensorType type = tensorType(image);
  auto dims = op.getDimensionNumbers().getInputSpatialDimensions();
  SmallVector<int64_t> spread =
      stablehlo::orOnes(op.getLhsDilation(), dims.size());
  auto pad = stablehlo::paddings(op.getPadding(), dims.size());
  SmallVector<std::pair<int64_t, int64_t>> padOfDims(type.getRank(), {0, 0});
  SmallVector<int64_t> spreadOfDims(type.getRank(), 1);
  for (auto [i, dim] : llvm::enumerate(dims)) {
    padOfDims[dim] = pad[i];
    spreadOfDims[dim] = spread[i];
  }
  Type element = type.getElementType();
  Value zero =
      splatConstant(builder, op.getLoc(), RankedTensorType::get({}, element),
                    builder.getZeroAttr(element));
  return dilated(builder, op.getLoc(), image, zero, padOfDims, spreadOfDims);
}

/// Returns the indexing maps of the dilated image, the kernel and the result of
/// a convolution. Its loops are the dimensions of the result, the window, and
/// the input features.
static SmallVector<AffineMap> mapsOf(stablehlo::ConvolutionOp op) {
  auto numbers = op.getDimensionNumbers();
  ArrayRef<int64_t> image = shapeOf(op.getLhs()), kernel = shapeOf(op.getRhs());
  unsigned rank = image.size(), spatial = rank - 2, loops = rank + spatial + 1;
  Builder builder(op.getContext());
  auto dim = [&](unsigned i) { return builder.getAffineDimExpr(i); };
  AffineExpr batch = dim(numbers.getOutputBatchDimension());
  AffineExpr feature = dim(numbers.getOutputFeatureDimension());
  AffineExpr channel = dim(rank + spatial);
  int64_t features =
      shapeOf(op.getResult())[numbers.getOutputFeatureDimension()];
  int64_t groups = op.getFeatureGroupCount();
  int64_t batchGroups = op.getBatchGroupCount();
  int64_t channels = kernel[numbers.getKernelInputFeatureDimension()];
  int64_t batches = image[numbers.getInputBatchDimension()];
  SmallVector<AffineExpr> lhs(rank), rhs(rank);
  lhs[numbers.getInputBatchDimension()] =
      batchGroups == 1
          ? batch
          : feature.floorDiv(features / batchGroups) * (batches / batchGroups) +
                batch;
  lhs[numbers.getInputFeatureDimension()] =
      groups == 1 ? channel
                  : feature.floorDiv(features / groups) * channels + channel;
  rhs[numbers.getKernelInputFeatureDimension()] = channel;
  rhs[numbers.getKernelOutputFeatureDimension()] = feature;
  SmallVector<int64_t> strides =
      stablehlo::orOnes(op.getWindowStrides(), spatial);
  SmallVector<int64_t> dilation =
      stablehlo::orOnes(op.getRhsDilation(), spatial);
  for (unsigned i = 0; i < spatial; ++i) {
    AffineExpr out = dim(numbers.getOutputSpatialDimensions()[i]);
    AffineExpr tap = dim(rank + i);
    unsigned kernelDim = numbers.getKernelSpatialDimensions()[i];
    rhs[kernelDim] = tap;
    if (op.getWindowReversal() && (*op.getWindowReversal())[i])
      tap = -tap + (kernel[kernelDim] - 1);
    lhs[numbers.getInputSpatialDimensions()[i]] =
        out * strides[i] + tap * dilation[i];
  }
  MLIRContext *context = op.getContext();
  return {AffineMap::get(loops, 0, lhs, context),
          AffineMap::get(loops, 0, rhs, context),
          leadingDims(builder, loops, rank)};
}

namespace {

struct DotGeneralLowering : OpConversionPattern<stablehlo::DotGeneralOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::DotGeneralOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value lhs = adaptor.getLhs(), rhs = adaptor.getRhs();
    RankedTensorType type = convertedType(op.getResult());
    unsigned contracted =
        op.getDotDimensionNumbers().getLhsContractingDimensions().size();
    SmallVector<AffineMap> maps = mapsOf(op, type.getRank());
    Type lhsType = getElementTypeOrSelf(op.getLhs().getType());
    Type rhsType = getElementTypeOrSelf(op.getRhs().getType());
    if (contracted == 0)
      rewriter.replaceOp(op, productOf(rewriter, loc, type, lhs, lhsType, rhs,
                                       rhsType, ArrayRef(maps).drop_back()));
    else
      rewriter.replaceOp(op, contraction(rewriter, loc, type, lhs, lhsType, rhs,
                                         rhsType, maps,
                                         iterators(type.getRank(), contracted),
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
    RankedTensorType type = convertedType(op.getResult());
    unsigned rank = type.getRank();
    Value image = dilatedImage(rewriter, op, adaptor.getLhs());
    // The window and the input features are contracted.
    rewriter.replaceOp(op,
                       contraction(rewriter, loc, type, image,
                                   getElementTypeOrSelf(op.getLhs().getType()),
                                   adaptor.getRhs(),
                                   getElementTypeOrSelf(op.getRhs().getType()),
                                   mapsOf(op), iterators(rank, rank - 1)));
    return success();
  }
};

} // namespace

void fp8::populateContractionPatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<ConvolutionLowering, DotGeneralLowering>(converter,
                                                        patterns.getContext());
}
