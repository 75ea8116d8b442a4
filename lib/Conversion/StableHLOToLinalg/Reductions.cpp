//===- Reductions.cpp - Reductions to linalg ------------------------------===//

#include "Builders.h"
#include "Patterns.h"
#include "ScalarOps.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace mlir::fp8;

/// Reduces with `body`; a single operation on narrow floats is computed in f32.
/// Maps and loops are those of the inputs; `extent` is an input that only
/// determines extents.
static FailureOr<SmallVector<Value>>
reduceWith(OpBuilder &b, Location loc, Block &body, ValueRange inputs,
           ValueRange inits, TypeRange types, AffineMap inputMap,
           AffineMap outputMap, ArrayRef<utils::IteratorType> loops,
           Value extent = {}, AffineMap extentMap = {}) {
  bool wide = inputs.size() == 1 && isPlainReduction(body) &&
              isNarrowFloat(getElementTypeOrSelf(types[0]));
  SmallVector<Value> operands(inputs), destinations;
  SmallVector<AffineMap> maps(inputs.size(), inputMap);
  if (extent) {
    operands.push_back(extent);
    maps.push_back(extentMap);
  }
  for (auto [init, type] : llvm::zip(inits, types)) {
    auto resultType = cast<RankedTensorType>(type);
    if (wide) {
      resultType = resultType.clone(b.getF32Type());
      init = convertFloats(b, loc, init, b.getF32Type());
    } else {
      init = asCarried(b, loc, init);
      resultType = resultType.clone(getElementTypeOrSelf(init.getType()));
    }
    destinations.push_back(filled(b, loc, resultType, init));
    maps.push_back(outputMap);
  }
  bool unsupported = false;
  linalg::GenericOp op = generic(
      b, loc, operands, destinations, maps, loops,
      [&](OpBuilder &inner, Location innerLoc, ValueRange args) {
        // The body takes the running values first.
        ValueRange running = args.take_back(inputs.size());
        SmallVector<Value> arguments;
        for (auto [value, type] : llvm::zip(running, types))
          arguments.push_back(wide ? value
                                   : bitcastTo(inner, innerLoc, value,
                                               getElementTypeOrSelf(type)));
        for (Value element : args.take_front(inputs.size()))
          arguments.push_back(wide ? arith::ExtFOp::create(inner, innerLoc,
                                                           b.getF32Type(),
                                                           element)
                                   : element);
        FailureOr<SmallVector<Value>> results =
            wide ? SmallVector<Value>{emitWideReduction(inner, innerLoc, body,
                                                        arguments)}
                 : emitBody(inner, innerLoc, body, arguments);
        unsupported |= failed(results);
        SmallVector<Value> yielded(running);
        if (succeeded(results))
          for (auto [value, result] : llvm::zip(yielded, *results))
            value = bitcastTo(inner, innerLoc, result, value.getType());
        linalg::YieldOp::create(inner, innerLoc, yielded);
      });
  if (unsupported)
    return failure();
  SmallVector<Value> results(op.getResults());
  for (auto [result, type] : llvm::zip(results, types))
    result = wide ? convertFloats(b, loc, result, getElementTypeOrSelf(type))
                  : fromCarried(b, loc, result, getElementTypeOrSelf(type));
  return results;
}

namespace {

struct ReduceLowering : OpConversionPattern<stablehlo::ReduceOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::ReduceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    // The initial value of a reduction is its neutral element, so that over no
    // dimensions it gives its input. (No loop would add anything up.)
    if (op.getDimensions().empty()) {
      rewriter.replaceOp(op, adaptor.getInputs());
      return success();
    }
    RankedTensorType from = tensorType(adaptor.getInputs()[0]);
    unsigned rank = from.getRank();
    unsigned parallel = rank - op.getDimensions().size();
    SmallVector<AffineExpr> exprs;
    unsigned nextParallel = 0, nextReduced = parallel;
    for (int64_t i = 0; i < rank; ++i)
      exprs.push_back(rewriter.getAffineDimExpr(
          llvm::is_contained(op.getDimensions(), i) ? nextReduced++
                                                    : nextParallel++));
    SmallVector<Type> types;
    for (Value result : op.getResults())
      types.push_back(convertedType(result));
    auto results =
        reduceWith(rewriter, op.getLoc(), op.getBody().front(),
                   adaptor.getInputs(), adaptor.getInitValues(), types,
                   AffineMap::get(rank, 0, exprs, rewriter.getContext()),
                   leadingDims(rewriter, rank, parallel),
                   iterators(parallel, rank - parallel));
    if (failed(results))
      return failure();
    rewriter.replaceOp(op, *results);
    return success();
  }
};

struct ReduceWindowLowering : OpConversionPattern<stablehlo::ReduceWindowOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::ReduceWindowOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    RankedTensorType from = tensorType(adaptor.getInputs()[0]);
    unsigned rank = from.getRank();
    ArrayRef<int64_t> window = op.getWindowDimensions();
    SmallVector<int64_t> strides =
        stablehlo::orOnes(op.getWindowStrides(), rank);
    SmallVector<int64_t> spread =
        stablehlo::orOnes(op.getBaseDilations(), rank);
    SmallVector<int64_t> dilation =
        stablehlo::orOnes(op.getWindowDilations(), rank);
    auto pad = stablehlo::paddings(op.getPadding(), rank);
    SmallVector<Value> inputs;
    for (auto [input, init] :
         llvm::zip(adaptor.getInputs(), adaptor.getInitValues()))
      inputs.push_back(dilated(rewriter, loc, input, init, pad, spread));
    SmallVector<AffineExpr> exprs;
    for (unsigned i = 0; i < rank; ++i)
      exprs.push_back(rewriter.getAffineDimExpr(i) * strides[i] +
                      rewriter.getAffineDimExpr(rank + i) * dilation[i]);
    SmallVector<Type> types;
    for (Value result : op.getResults())
      types.push_back(convertedType(result));
    // No other operand determines the extents of the window. (It is a constant,
    // because kernels only take values that are written.)
    Type byte = rewriter.getI8Type();
    Value extent =
        splatConstant(rewriter, loc, RankedTensorType::get(window, byte),
                      rewriter.getZeroAttr(byte));
    auto results = reduceWith(
        rewriter, loc, op.getBody().front(), inputs, adaptor.getInitValues(),
        types, AffineMap::get(2 * rank, 0, exprs, rewriter.getContext()),
        leadingDims(rewriter, 2 * rank, rank), iterators(rank, rank), extent,
        AffineMap::getMinorIdentityMap(2 * rank, rank, rewriter.getContext()));
    if (failed(results))
      return failure();
    rewriter.replaceOp(op, *results);
    return success();
  }
};

} // namespace

void fp8::populateReductionPatterns(const TypeConverter &converter,
                                    RewritePatternSet &patterns) {
  patterns.add<ReduceLowering, ReduceWindowLowering>(converter,
                                                     patterns.getContext());
}
