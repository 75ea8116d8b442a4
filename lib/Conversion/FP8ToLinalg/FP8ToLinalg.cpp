//===- FP8ToLinalg.cpp - fp8 to linalg ------------------------------------===//
//
// Scaled tensors become payload and scale, ops become linalg.generic. All the
// arithmetic of scaling is written down here once, in f32, so that fusion and
// vectorization cannot change a bit of it.
//
//===----------------------------------------------------------------------===//

#include "fp8/Conversion/FP8ToLinalg/FP8ToLinalg.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_CONVERTFP8TOLINALG
#include "fp8/Conversion/FP8ToLinalg/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

namespace {

/// Writes scalar f32 and i32 arithmetic for the body of a generic.
struct Body {
  OpBuilder &b;
  Location loc;

  Value f32(APFloat value) {
    return arith::ConstantOp::create(b, loc,
                                     b.getFloatAttr(b.getF32Type(), value));
  }
  Value f32(double value) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  }
  Value i32(int32_t value) {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
  }
  Value infinity() { return f32(APFloat::getInf(APFloat::IEEEsingle())); }
  Value nan() { return f32(APFloat::getQNaN(APFloat::IEEEsingle())); }

  /// A float of any width as f32.
  Value toF32(Value value) {
    if (value.getType().isF32())
      return value;
    return arith::ExtFOp::create(b, loc, b.getF32Type(), value);
  }
  /// An f32 as a float of any width.
  Value fromF32(Value value, Type type) {
    if (type.isF32())
      return value;
    return arith::TruncFOp::create(b, loc, type, value);
  }
  Value cmp(arith::CmpFPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpFOp::create(b, loc, predicate, lhs, rhs);
  }
  Value select(Value condition, Value lhs, Value rhs) {
    return arith::SelectOp::create(b, loc, condition, lhs, rhs);
  }
  template <typename OpTy> Value binary(Value lhs, Value rhs) {
    return OpTy::create(b, loc, lhs, rhs);
  }
  Value bits(Value value) {
    return arith::BitcastOp::create(b, loc, b.getI32Type(), value);
  }
  Value fromBits(Value value) {
    return arith::BitcastOp::create(b, loc, b.getF32Type(), value);
  }
};

} // namespace

static Value emptyLike(OpBuilder &b, Location loc, RankedTensorType type) {
  return tensor::EmptyOp::create(b, loc, type.getShape(),
                                 type.getElementType());
}

/// An elementwise generic over the shape of the results; inputs of rank 0 are
/// read as scalars.
static linalg::GenericOp
elementwise(OpBuilder &b, Location loc, ArrayRef<RankedTensorType> results,
            ValueRange inputs,
            function_ref<SmallVector<Value>(Body &, ValueRange)> body) {
  int64_t rank = results.front().getRank();
  SmallVector<AffineMap> maps;
  for (Value input : inputs)
    maps.push_back(cast<RankedTensorType>(input.getType()).getRank() == 0
                       ? AffineMap::get(rank, 0, b.getContext())
                       : b.getMultiDimIdentityMap(rank));
  maps.append(results.size(), b.getMultiDimIdentityMap(rank));
  SmallVector<Value> outs;
  SmallVector<Type> types;
  for (RankedTensorType type : results) {
    outs.push_back(emptyLike(b, loc, type));
    types.push_back(type);
  }
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
      b, loc, types, inputs, outs, maps, iterators,
      [&](OpBuilder &nested, Location loc, ValueRange args) {
        Body builder{nested, loc};
        linalg::YieldOp::create(nested, loc, body(builder, args));
      });
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

namespace {

struct AmaxLowering : OpConversionPattern<AmaxOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(AmaxOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    int64_t rank = op.getInput().getType().getRank();
    Value zero =
        arith::ConstantOp::create(rewriter, loc, rewriter.getF32FloatAttr(0.0));
    Value init =
        linalg::FillOp::create(
            rewriter, loc, zero,
            emptyLike(rewriter, loc, cast<RankedTensorType>(op.getType())))
            .getResult(0);
    AffineMap maps[] = {rewriter.getMultiDimIdentityMap(rank),
                        AffineMap::get(rank, 0, getContext())};
    SmallVector<utils::IteratorType> iterators(rank,
                                               utils::IteratorType::reduction);
    rewriter.replaceOpWithNewOp<linalg::GenericOp>(
        op, op.getType(), adaptor.getInput(), init, maps, iterators,
        [](OpBuilder &b, Location loc, ValueRange args) {
          Body body{b, loc};
          Value x = body.toF32(args[0]);
          Value abs = math::AbsFOp::create(b, loc, x);
          // maximumf: a NaN must be seen.
          Value max = body.binary<arith::MaximumFOp>(args[1], abs);
          linalg::YieldOp::create(b, loc, max);
        });
    return success();
  }
};

/// The quantizer of Transformer Engine: max / amax / 2^margin in f32, the
/// largest float where that overflows, 1 for an amax of zero or not finite.
SmallVector<Value> exactScale(Body &b, Value amax, FloatType format,
                              int64_t margin) {
  Value q = b.binary<arith::DivFOp>(b.f32(getLargestFinite(format)), amax);
  if (margin != 0)
    q = b.binary<arith::MulFOp>(q, b.f32(std::ldexp(1.0, -margin)));
  Value largest = b.f32(APFloat::getLargest(APFloat::IEEEsingle()));
  q = b.select(b.cmp(arith::CmpFPredicate::OGT, q, largest), largest, q);
  Value valid = b.binary<arith::AndIOp>(
      b.cmp(arith::CmpFPredicate::OGT, amax, b.f32(0.0)),
      b.cmp(arith::CmpFPredicate::OLT, amax, b.infinity()));
  Value one = b.f32(1.0);
  q = b.select(valid, q, one);
  return {b.binary<arith::DivFOp>(one, q), q};
}

/// The powers of two: the exponent of amax / max, rounded up (pow2) or without
/// a look at the significands (ocp_floor). All in integers: log2 and division
/// would round next to the powers of two.
SmallVector<Value> powerOfTwoScale(Body &b, Value amax, FloatType format,
                                   int64_t margin, bool roundUp) {
  // Subnormals become normal first.
  Value subnormal =
      b.cmp(arith::CmpFPredicate::OLT, amax, b.f32(std::ldexp(1.0, -126)));
  Value normal =
      b.select(subnormal,
               b.binary<arith::MulFOp>(amax, b.f32(std::ldexp(1.0, 32))), amax);
  Value bits = b.bits(normal);
  // amax >= 0, so no sign is in the way.
  Value exponent = b.binary<arith::ShRUIOp>(bits, b.i32(23));
  Value offset =
      b.select(subnormal, b.i32(margin - 127 - 32 - getLargestExponent(format)),
               b.i32(margin - 127 - getLargestExponent(format)));
  Value k = b.binary<arith::AddIOp>(exponent, offset);
  if (roundUp) {
    Value significand = b.binary<arith::AndIOp>(bits, b.i32(0x7fffff));
    APFloat max(static_cast<float>(getLargestFinite(format)));
    int32_t maxSignificand = max.bitcastToAPInt().getZExtValue() & 0x7fffff;
    Value above = arith::CmpIOp::create(b.b, b.loc, arith::CmpIPredicate::ugt,
                                        significand, b.i32(maxSignificand));
    k = b.binary<arith::AddIOp>(
        k, arith::ExtUIOp::create(b.b, b.loc, b.b.getI32Type(), above));
  }
  // Both 2^k and 2^-k are normal floats.
  k = b.binary<arith::MaxSIOp>(k, b.i32(-126));
  k = b.binary<arith::MinSIOp>(k, b.i32(126));
  Value valid = b.binary<arith::AndIOp>(
      b.cmp(arith::CmpFPredicate::OGT, amax, b.f32(0.0)),
      b.cmp(arith::CmpFPredicate::OLT, amax, b.infinity()));
  k = b.select(valid, k, b.i32(0));
  auto power = [&](Value biased) {
    return b.fromBits(b.binary<arith::ShLIOp>(biased, b.i32(23)));
  };
  return {power(b.binary<arith::AddIOp>(b.i32(127), k)),
          power(b.binary<arith::SubIOp>(b.i32(127), k))};
}

struct ComputeScaleLowering : OpConversionPattern<ComputeScaleOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(ComputeScaleOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getQuantizer().getType());
    auto format = cast<FloatType>(op.getFormat());
    int64_t margin = op.getMarginAttr().getInt();
    auto generic =
        elementwise(rewriter, op.getLoc(), {type, type}, adaptor.getAmax(),
                    [&](Body &b, ValueRange args) {
                      if (op.getRule() == ScaleRule::Exact)
                        return exactScale(b, args[0], format, margin);
                      return powerOfTwoScale(b, args[0], format, margin,
                                             op.getRule() == ScaleRule::Pow2);
                    });
    rewriter.replaceOp(op, generic);
    return success();
  }
};

struct QuantizeLowering : OpConversionPattern<QuantizeOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(QuantizeOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType type = cast<ScaledType>(op.getType()).getPayloadType();
    auto format = cast<FloatType>(type.getElementType());
    auto body = [&](Body &b, ValueRange args) -> SmallVector<Value> {
      Value x = b.toF32(args[0]);
      Value y = b.binary<arith::MulFOp>(x, args[1]);
      Value keep;
      if (op.getOverflow() == Overflow::Saturate) {
        // A finite x whose product overflows saturates too: ask x, not y. The
        // comparisons are the ones of x86 min and max, which let a NaN through.
        Value abs = math::AbsFOp::create(b.b, b.loc, x);
        keep = b.cmp(arith::CmpFPredicate::OLT, abs, b.infinity());
        Value max = b.f32(getLargestFinite(format));
        Value min = b.f32(-getLargestFinite(format));
        y = b.select(b.cmp(arith::CmpFPredicate::OGT, y, max), max, y);
        y = b.select(b.cmp(arith::CmpFPredicate::OLT, y, min), min, y);
      } else {
        keep = b.cmp(arith::CmpFPredicate::ORD, y, y);
      }
      return {b.fromF32(b.select(keep, y, b.nan()), format)};
    };
    auto generic =
        elementwise(rewriter, op.getLoc(), type,
                    {adaptor.getInput(), adaptor.getQuantizer()}, body);
    SmallVector<SmallVector<Value>> results = {
        {generic.getResult(0), adaptor.getScale()}};
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

struct DequantizeLowering : OpConversionPattern<DequantizeOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(DequantizeOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    auto body = [&](Body &b, ValueRange args) -> SmallVector<Value> {
      Value x = b.binary<arith::MulFOp>(b.toF32(args[0]), args[1]);
      return {b.fromF32(x, type.getElementType())};
    };
    rewriter.replaceOp(
        op, elementwise(rewriter, op.getLoc(), type, adaptor.getInput(), body));
    return success();
  }
};

struct PackLowering : OpConversionPattern<PackOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(PackOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<SmallVector<Value>> results = {
        {adaptor.getPayload(), adaptor.getScale()}};
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

struct UnpackLowering : OpConversionPattern<UnpackOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(UnpackOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, adaptor.getInput());
    return success();
  }
};

struct DotGeneralLowering : OpConversionPattern<DotGeneralOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(DotGeneralOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value lhs = adaptor.getLhs()[0], rhs = adaptor.getRhs()[0];
    auto type = cast<RankedTensorType>(op.getType());
    auto sumType = type.clone(rewriter.getF32Type());
    int64_t numLoops = type.getRank() +
                       static_cast<int64_t>(op.getLhsContractingDims().size());

    // Loops: the result's dimensions (batch, m, n), then the contracted ones.
    auto mapOf = [&](Value operand, ArrayRef<int64_t> batching,
                     ArrayRef<int64_t> contracting, int64_t firstFree) {
      int64_t rank = cast<RankedTensorType>(operand.getType()).getRank();
      SmallVector<AffineExpr> exprs(rank);
      for (auto [index, dim] : llvm::enumerate(batching))
        exprs[dim] = rewriter.getAffineDimExpr(index);
      for (auto [index, dim] : llvm::enumerate(contracting))
        exprs[dim] = rewriter.getAffineDimExpr(type.getRank() + index);
      for (AffineExpr &expr : exprs)
        if (!expr)
          expr = rewriter.getAffineDimExpr(firstFree++);
      return AffineMap::get(numLoops, 0, exprs, getContext());
    };
    int64_t batches = op.getLhsBatchingDims().size();
    int64_t lhsFree = cast<RankedTensorType>(lhs.getType()).getRank() -
                      batches - op.getLhsContractingDims().size();
    AffineMap maps[] = {
        mapOf(lhs, op.getLhsBatchingDims(), op.getLhsContractingDims(),
              batches),
        mapOf(rhs, op.getRhsBatchingDims(), op.getRhsContractingDims(),
              batches + lhsFree),
        AffineMap::getMultiDimIdentityMap(numLoops, getContext())
            .getMajorSubMap(type.getRank())};
    SmallVector<utils::IteratorType> iterators(type.getRank(),
                                               utils::IteratorType::parallel);
    iterators.resize(numLoops, utils::IteratorType::reduction);

    Value zero =
        arith::ConstantOp::create(rewriter, loc, rewriter.getF32FloatAttr(0.0));
    Value init = linalg::FillOp::create(rewriter, loc, zero,
                                        emptyLike(rewriter, loc, sumType))
                     .getResult(0);
    auto sum = linalg::GenericOp::create(
        rewriter, loc, sumType, {lhs, rhs}, init, maps, iterators,
        [](OpBuilder &b, Location loc, ValueRange args) {
          Body body{b, loc};
          Value product = body.binary<arith::MulFOp>(body.toF32(args[0]),
                                                     body.toF32(args[1]));
          Value next = body.binary<arith::AddFOp>(args[2], product);
          linalg::YieldOp::create(b, loc, next);
        });
    auto body = [&](Body &b, ValueRange args) -> SmallVector<Value> {
      Value scale = b.binary<arith::MulFOp>(args[1], args[2]);
      return {b.fromF32(b.binary<arith::MulFOp>(args[0], scale),
                        type.getElementType())};
    };
    rewriter.replaceOp(op, elementwise(rewriter, loc, type,
                                       {sum.getResult(0), adaptor.getLhs()[1],
                                        adaptor.getRhs()[1]},
                                       body));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// The attributes of the values that one value of a signature becomes. A scale
/// gets what our dialect says of its payload, under its own name; what others
/// say (donation, layouts) stays with the payload.
void splitAttributes(DictionaryAttr attrs, size_t count,
                     SmallVectorImpl<DictionaryAttr> &result) {
  result.push_back(attrs);
  if (count < 2)
    return;
  SmallVector<NamedAttribute> scale;
  if (attrs)
    for (NamedAttribute attr : attrs) {
      if (!attr.getName().strref().starts_with("fp8."))
        continue;
      Attribute value = attr.getValue();
      if (attr.getName() == FP8Dialect::kPathAttrName ||
          attr.getName() == FP8Dialect::kStateAttrName)
        if (auto path = dyn_cast<StringAttr>(value))
          value =
              StringAttr::get(path.getContext(), path.getValue() + ".scale");
      scale.emplace_back(attr.getName(), value);
    }
  result.push_back(attrs ? DictionaryAttr::get(attrs.getContext(), scale)
                         : DictionaryAttr());
}

struct FuncLowering : OpConversionPattern<func::FuncOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(func::FuncOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FunctionType type = op.getFunctionType();
    const TypeConverter &converter = *getTypeConverter();
    TypeConverter::SignatureConversion inputs(type.getNumInputs());
    SmallVector<Type> results;
    SmallVector<DictionaryAttr> argAttrs, resultAttrs;
    auto orEmpty = [&](DictionaryAttr attrs) {
      return attrs ? attrs : rewriter.getDictionaryAttr({});
    };
    for (auto [index, input] : llvm::enumerate(type.getInputs())) {
      SmallVector<Type> types;
      if (failed(converter.convertType(input, types)))
        return failure();
      inputs.addInputs(index, types);
      splitAttributes(orEmpty(op.getArgAttrDict(index)), types.size(),
                      argAttrs);
    }
    for (auto [index, result] : llvm::enumerate(type.getResults())) {
      size_t before = results.size();
      if (failed(converter.convertType(result, results)))
        return failure();
      splitAttributes(orEmpty(op.getResultAttrDict(index)),
                      results.size() - before, resultAttrs);
    }
    if (!op.isExternal() &&
        failed(rewriter.convertRegionTypes(&op.getBody(), converter, &inputs)))
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.setType(rewriter.getFunctionType(inputs.getConvertedTypes(), results));
      op.setAllArgAttrs(argAttrs);
      op.setAllResultAttrs(resultAttrs);
    });
    return success();
  }
};

SmallVector<Value> flatten(ArrayRef<ValueRange> values) {
  SmallVector<Value> result;
  for (ValueRange range : values)
    llvm::append_range(result, range);
  return result;
}

struct ReturnLowering : OpConversionPattern<func::ReturnOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(func::ReturnOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<func::ReturnOp>(op,
                                                flatten(adaptor.getOperands()));
    return success();
  }
};

struct CallLowering : OpConversionPattern<func::CallOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(func::CallOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Type> types;
    SmallVector<size_t> sizes;
    for (Type type : op.getResultTypes()) {
      size_t before = types.size();
      if (failed(getTypeConverter()->convertType(type, types)))
        return failure();
      sizes.push_back(types.size() - before);
    }
    auto call = func::CallOp::create(rewriter, op.getLoc(), op.getCallee(),
                                     types, flatten(adaptor.getOperands()));
    call->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    SmallVector<SmallVector<Value>> results;
    ResultRange rest = call.getResults();
    for (size_t size : sizes) {
      results.emplace_back(rest.take_front(size));
      rest = rest.drop_front(size);
    }
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

} // namespace

void fp8::populateFP8TypeConversions(TypeConverter &converter) {
  converter.addConversion([](Type type) { return type; });
  converter.addConversion(
      [](ScaledType type, SmallVectorImpl<Type> &results) -> LogicalResult {
        results.push_back(type.getPayloadType());
        results.push_back(type.getScaleTensorType());
        return success();
      });
}

void fp8::populateFP8ToLinalgPatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<AmaxLowering, ComputeScaleLowering, QuantizeLowering,
               DequantizeLowering, PackLowering, UnpackLowering,
               DotGeneralLowering, FuncLowering, ReturnLowering, CallLowering>(
      converter, patterns.getContext());
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

/// Says what of a valid fp8 op is not lowered yet.
static LogicalResult checkSupported(Operation *op) {
  auto tileError = [&](ArrayRef<int64_t> tile) {
    auto name = [](int64_t extent) {
      return extent == ScaledType::kWhole ? std::string("*")
                                          : std::to_string(extent);
    };
    SmallVector<std::string> whole(tile.size(), "*");
    return op->emitOpError()
           << "expected a per-tensor tile [" << llvm::join(whole, ", ")
           << "] but got [" << llvm::join(llvm::map_to_vector(tile, name), ", ")
           << "]";
  };
  if (auto amax = dyn_cast<AmaxOp>(op)) {
    if (auto tile = amax.getTile())
      if (llvm::any_of(*tile,
                       [](int64_t t) { return t != ScaledType::kWhole; }))
        return tileError(*tile);
    return success();
  }
  if (auto compute = dyn_cast<ComputeScaleOp>(op)) {
    Type scale = getElementTypeOrSelf(compute.getScale());
    if (!scale.isF32())
      return op->emitOpError() << "expected scales of f32 but got " << scale;
    return success();
  }
  if (auto quantize = dyn_cast<QuantizeOp>(op))
    if (quantize.getRounding() != Rounding::NearestEven)
      return op->emitOpError() << "expected rounding nearest_even but got "
                               << stringifyRounding(quantize.getRounding());
  if (!isa<QuantizeOp, DequantizeOp, DotGeneralOp>(op))
    return success();
  for (ValueRange values :
       {ValueRange(op->getOperands()), ValueRange(op->getResults())})
    for (Type type : values.getTypes())
      if (auto scaled = dyn_cast<ScaledType>(type))
        if (!scaled.isPerTensor())
          return tileError(scaled.getTile());
  return success();
}

namespace {

struct ConvertFP8ToLinalg
    : fp8::impl::ConvertFP8ToLinalgBase<ConvertFP8ToLinalg> {
  void runOnOperation() override {
    WalkResult checked = getOperation().walk(
        [](Operation *op) { return WalkResult(checkSupported(op)); });
    if (checked.wasInterrupted())
      return signalPassFailure();

    MLIRContext *context = &getContext();
    TypeConverter converter;
    populateFP8TypeConversions(converter);
    RewritePatternSet patterns(context);
    populateFP8ToLinalgPatterns(converter, patterns);
    ConversionTarget target(*context);
    target.addIllegalDialect<FP8Dialect>();
    target.addLegalDialect<arith::ArithDialect, linalg::LinalgDialect,
                           math::MathDialect, tensor::TensorDialect>();
    target.addDynamicallyLegalOp<func::FuncOp>([&](func::FuncOp op) {
      return converter.isSignatureLegal(op.getFunctionType());
    });
    target.addDynamicallyLegalOp<func::ReturnOp, func::CallOp>(
        [&](Operation *op) { return converter.isLegal(op); });
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                         target);
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
