//===- StableHLOToLinalg.cpp - StableHLO to linalg ------------------------===//
//
// Ops that move elements become generics whose maps do the moving, so that
// later stages fuse and tile them like any other op.
//
//===----------------------------------------------------------------------===//

#include "fp8/Conversion/StableHLOToLinalg/StableHLOToLinalg.h"
#include "Builders.h"
#include "Patterns.h"
#include "ScalarOps.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/IR/Irregular.h"
#include "fp8/Dialect/StableHLO/IR/CHLO.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Support/InternalErrors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Func/Transforms/FuncConversions.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_CONVERTSTABLEHLOTOLINALG
#include "fp8/Conversion/StableHLOToLinalg/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

//===----------------------------------------------------------------------===//
// Results without elements
//===----------------------------------------------------------------------===//

/// Replaces results without elements, so that no map has to index them.
struct EmptyResultLowering : ConversionPattern {
  EmptyResultLowering(const TypeConverter &converter, MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/2,
                          context) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                  ConversionPatternRewriter &rewriter) const override {
    StringRef dialect = op->getName().getDialectNamespace();
    if ((dialect != "stablehlo" && dialect != "chlo") || !isPure(op) ||
        op->getNumResults() == 0 || isa<stablehlo::ConstantOp>(op))
      return failure();
    for (Type type : op->getResultTypes()) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || !llvm::is_contained(tensor.getShape(), 0))
        return failure();
    }
    SmallVector<Value> results;
    for (Value result : op->getResults())
      results.push_back(
          emptyTensor(rewriter, op->getLoc(), convertedType(result)));
    rewriter.replaceOp(op, results);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

struct ElementwiseLowering : ConversionPattern {
  ElementwiseLowering(const TypeConverter &converter, MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isElementwise(op))
      return failure();
    Location loc = op->getLoc();
    RankedTensorType type = convertedType(op->getResult(0));
    // A change of signedness does not change the elements.
    if (isa<stablehlo::ConvertOp, stablehlo::BitcastConvertOp>(op) &&
        operands[0].getType() == type &&
        (isa<IntegerType>(type.getElementType()) ||
         op->getOperand(0).getType() == op->getResult(0).getType())) {
      rewriter.replaceOp(op, operands[0]);
      return success();
    }
    SmallVector<AffineMap> maps;
    for (Value operand : operands)
      maps.push_back(tensorType(operand).getRank() == type.getRank()
                         ? rewriter.getMultiDimIdentityMap(type.getRank())
                         : scalarMap(rewriter, type.getRank()));
    bool unsupported = false;
    Value result = elementwise(
        rewriter, loc, type, operands, maps,
        [&](OpBuilder &b, Location bodyLoc, ValueRange args) -> Value {
          Value value =
              emitScalar(b, bodyLoc, op, args.take_front(operands.size()));
          unsupported |= !value;
          return value ? value : args.back();
        });
    if (unsupported)
      return emitRefusal(op, "is not supported on ")
             << op->getOperand(0).getType();
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct MapLowering : OpConversionPattern<stablehlo::MapOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::MapOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType type = convertedType(op.getResult());
    SmallVector<AffineMap> maps(
        adaptor.getInputs().size(),
        rewriter.getMultiDimIdentityMap(type.getRank()));
    bool unsupported = false;
    Value result = elementwise(
        rewriter, op.getLoc(), type, adaptor.getInputs(), maps,
        [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
          auto values =
              emitBody(b, loc, op.getComputation().front(), args.drop_back());
          unsupported |= failed(values);
          return failed(values) ? args.back() : values->front();
        });
    if (unsupported)
      return failure();
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// Splits elements into several parts, or joins parts to elements.
struct BitcastLowering : OpConversionPattern<stablehlo::BitcastConvertOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::BitcastConvertOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value input = adaptor.getOperand();
    RankedTensorType from = tensorType(input);
    RankedTensorType to = convertedType(op.getResult());
    if (from.getRank() == to.getRank())
      return failure();
    unsigned rank = to.getRank();
    unsigned fromWidth = from.getElementTypeBitWidth();
    unsigned toWidth = to.getElementTypeBitWidth();
    Type fromBits = rewriter.getIntegerType(fromWidth);
    Type toBits = rewriter.getIntegerType(toWidth);
    auto bitcast = [](OpBuilder &b, Location loc, Value value, Type type) {
      return value.getType() == type
                 ? value
                 : arith::BitcastOp::create(b, loc, type, value).getResult();
    };
    Value result;
    if (from.getRank() < to.getRank()) {
      // The part with index 0 holds the low bits.
      AffineMap map = leadingDims(rewriter, rank, rank - 1);
      result = elementwise(
          rewriter, op.getLoc(), to, input, map,
          [&](OpBuilder &b, Location loc, ValueRange args) {
            Value part = arith::IndexCastOp::create(
                b, loc, fromBits, linalg::IndexOp::create(b, loc, rank - 1));
            Value amount = arith::MulIOp::create(
                b, loc, part,
                arith::ConstantOp::create(b, loc,
                                          b.getIntegerAttr(fromBits, toWidth)));
            Value bits = arith::ShRUIOp::create(
                b, loc, bitcast(b, loc, args[0], fromBits), amount);
            bits = arith::TruncIOp::create(b, loc, toBits, bits);
            return bitcast(b, loc, bits, to.getElementType());
          });
    } else {
      int64_t parts = from.getShape().back();
      SmallVector<AffineMap> maps;
      for (int64_t i = 0; i < parts; ++i)
        maps.push_back(rewriter.getMultiDimIdentityMap(rank).insertResult(
            rewriter.getAffineConstantExpr(i), rank));
      result = elementwise(
          rewriter, op.getLoc(), to, SmallVector<Value>(parts, input), maps,
          [&](OpBuilder &b, Location loc, ValueRange args) {
            Value whole;
            for (int64_t i = 0; i < parts; ++i) {
              Value bits = arith::ExtUIOp::create(
                  b, loc, toBits, bitcast(b, loc, args[i], fromBits));
              if (i)
                bits = arith::ShLIOp::create(
                    b, loc, bits,
                    arith::ConstantOp::create(
                        b, loc, b.getIntegerAttr(toBits, i * fromWidth)));
              whole = whole ? arith::OrIOp::create(b, loc, whole, bits) : bits;
            }
            return bitcast(b, loc, whole, to.getElementType());
          });
    }
    rewriter.replaceOp(op, result);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Constants and moves
//===----------------------------------------------------------------------===//

struct ConstantLowering : OpConversionPattern<stablehlo::ConstantOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::ConstantOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TypedAttr attr = signlessAttr(cast<ElementsAttr>(op.getValue()));
    if (!attr)
      return emitRefusal(op, "expected a dense constant but got ")
             << op.getValue();
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, attr);
    return success();
  }
};

struct IotaLowering : OpConversionPattern<stablehlo::IotaOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::IotaOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType type = convertedType(op.getResult());
    uint64_t dimension = op.getIotaDimension();
    Value result = elementwise(
        rewriter, op.getLoc(), type, {}, {},
        [&](OpBuilder &b, Location loc, ValueRange) -> Value {
          Value index = linalg::IndexOp::create(b, loc, dimension);
          Type element = type.getElementType();
          if (isa<IntegerType>(element))
            return arith::IndexCastOp::create(b, loc, element, index);
          Value integer =
              arith::IndexCastOp::create(b, loc, b.getI32Type(), index);
          return emitConvert(b, loc, integer, b.getI32Type(), element);
        });
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct BroadcastLowering : OpConversionPattern<stablehlo::BroadcastInDimOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::BroadcastInDimOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType type = convertedType(op.getResult());
    Value input = adaptor.getOperand();
    if (TypedAttr element = splatElement(input)) {
      rewriter.replaceOp(op,
                         splatConstant(rewriter, op.getLoc(), type, element));
      return success();
    }
    RankedTensorType from = tensorType(input);
    SmallVector<AffineExpr> exprs;
    for (auto [i, dim] : llvm::enumerate(op.getBroadcastDimensions()))
      exprs.push_back(from.getDimSize(i) == 1 && type.getDimSize(dim) != 1
                          ? rewriter.getAffineConstantExpr(0)
                          : rewriter.getAffineDimExpr(dim));
    AffineMap map =
        AffineMap::get(type.getRank(), 0, exprs, rewriter.getContext());
    if (from == type && map.isIdentity())
      rewriter.replaceOp(op, input);
    else
      rewriter.replaceOp(op,
                         copyThrough(rewriter, op.getLoc(), input, map, type));
    return success();
  }
};

struct ReshapeLowering : OpConversionPattern<stablehlo::ReshapeOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::ReshapeOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType type = convertedType(op.getResult());
    DenseElementsAttr attr;
    if (matchPattern(adaptor.getOperand(), m_Constant(&attr)))
      rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, attr.reshape(type));
    else
      rewriter.replaceOp(
          op, reshaped(rewriter, op.getLoc(), adaptor.getOperand(), type));
    return success();
  }
};

struct TransposeLowering : OpConversionPattern<stablehlo::TransposeOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::TransposeOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType type = convertedType(op.getResult());
    SmallVector<AffineExpr> exprs(type.getRank());
    for (auto [i, from] : llvm::enumerate(op.getPermutation()))
      exprs[from] = rewriter.getAffineDimExpr(i);
    AffineMap map =
        AffineMap::get(type.getRank(), 0, exprs, rewriter.getContext());
    if (map.isIdentity())
      rewriter.replaceOp(op, adaptor.getOperand());
    else
      rewriter.replaceOp(op, copyThrough(rewriter, op.getLoc(),
                                         adaptor.getOperand(), map, type));
    return success();
  }
};

struct SliceLowering : OpConversionPattern<stablehlo::SliceOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::SliceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType type = convertedType(op.getResult());
    if (tensorType(adaptor.getOperand()) == type) {
      rewriter.replaceOp(op, adaptor.getOperand());
      return success();
    }
    // An empty slice may begin at the end of the operand.
    if (type.getNumElements() == 0) {
      rewriter.replaceOpWithNewOp<tensor::EmptyOp>(op, type.getShape(),
                                                   type.getElementType());
      return success();
    }
    SmallVector<AffineExpr> exprs;
    for (int64_t i = 0; i < type.getRank(); ++i)
      exprs.push_back(placeOf(rewriter, i, type.getDimSize(i),
                              tensorType(adaptor.getOperand()).getDimSize(i),
                              op.getStartIndices()[i], op.getStrides()[i]));
    AffineMap map =
        AffineMap::get(type.getRank(), 0, exprs, rewriter.getContext());
    rewriter.replaceOp(op, copyThrough(rewriter, op.getLoc(),
                                       adaptor.getOperand(), map, type));
    return success();
  }
};

struct ReverseLowering : OpConversionPattern<stablehlo::ReverseOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::ReverseOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType type = convertedType(op.getResult());
    SmallVector<AffineExpr> exprs;
    for (int64_t i = 0; i < type.getRank(); ++i) {
      AffineExpr dim = rewriter.getAffineDimExpr(i);
      exprs.push_back(llvm::is_contained(op.getDimensions(), i)
                          ? -dim + (type.getDimSize(i) - 1)
                          : dim);
    }
    AffineMap map =
        AffineMap::get(type.getRank(), 0, exprs, rewriter.getContext());
    rewriter.replaceOp(op, copyThrough(rewriter, op.getLoc(),
                                       adaptor.getOperand(), map, type));
    return success();
  }
};

struct ConcatenateLowering : OpConversionPattern<stablehlo::ConcatenateOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::ConcatenateOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    RankedTensorType type = convertedType(op.getResult());
    unsigned dimension = op.getDimension();
    Value result;
    int64_t offset = 0;
    for (Value input : adaptor.getInputs()) {
      int64_t size = tensorType(input).getDimSize(dimension);
      if (size == type.getDimSize(dimension))
        result = input;
      if (size == 0 || size == type.getDimSize(dimension))
        continue;
      if (!result)
        result = emptyTensor(rewriter, loc, type);
      SmallVector<AffineExpr> exprs;
      for (int64_t i = 0; i < type.getRank(); ++i)
        exprs.push_back(placeOf(rewriter, i, tensorType(input).getDimSize(i),
                                type.getDimSize(i),
                                i == dimension ? offset : 0));
      result = place(
          rewriter, loc, input, result,
          AffineMap::get(type.getRank(), 0, exprs, rewriter.getContext()));
      offset += size;
    }
    if (!result)
      result = emptyTensor(rewriter, loc, type);
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct PadLowering : OpConversionPattern<stablehlo::PadOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::PadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType type = convertedType(op.getResult());
    rewriter.replaceOp(op,
                       padded(rewriter, op.getLoc(), adaptor.getOperand(),
                              adaptor.getPaddingValue(), type,
                              op.getEdgePaddingLow(), op.getInteriorPadding()));
    return success();
  }
};

/// Keeps the barrier on signless integers: CSE runs before fp8-drop-barriers.
struct BarrierLowering : OpConversionPattern<stablehlo::OptimizationBarrierOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::OptimizationBarrierOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<stablehlo::OptimizationBarrierOp>(
        op, TypeRange(adaptor.getOperand()), adaptor.getOperand());
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Reduces with `body`; a single operation on narrow floats is computed in f32.
/// Maps and loops are those of the inputs; `extent` is an input that only
/// determines extents.
FailureOr<SmallVector<Value>>
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

struct ReduceLowering : OpConversionPattern<stablehlo::ReduceOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::ReduceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
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

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

/// Returns the type in which products are summed.
Type accumulatorType(OpBuilder &b, Type result) {
  return isNarrowFloat(result) ? b.getF32Type() : result;
}

/// Returns acc + l * r in the accumulator's type.
Value multiplyAccumulate(OpBuilder &b, Location loc, Value acc, Value l,
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

Value contraction(OpBuilder &b, Location loc, RankedTensorType type, Value lhs,
                  Type lhsType, Value rhs, Type rhsType,
                  ArrayRef<AffineMap> maps, ArrayRef<utils::IteratorType> loops,
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

//===----------------------------------------------------------------------===//
// Signless types
//===----------------------------------------------------------------------===//

/// Retypes a view of a stack of unsigned integers; other tensor ops that exist
/// before this pass have signless types.
template <typename OpTy> struct RetypeView : OpConversionPattern<OpTy> {
  using OpConversionPattern<OpTy>::OpConversionPattern;
  LogicalResult
  matchAndRewrite(OpTy op, typename OpTy::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<OpTy>(
        op, this->getTypeConverter()->convertType(op.getType()),
        adaptor.getOperands(), op->getAttrs());
    return success();
  }
};

/// Retypes an attention whose inputs, results or body have unsigned integers.
template <typename OpTy> struct RetypeAttention : OpConversionPattern<OpTy> {
  using OpConversionPattern<OpTy>::OpConversionPattern;
  LogicalResult
  matchAndRewrite(OpTy op, typename OpTy::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Type> types;
    if (failed(this->getTypeConverter()->convertTypes(op->getResultTypes(),
                                                      types)))
      return failure();
    auto retyped =
        OpTy::create(rewriter, op.getLoc(), types, adaptor.getInputs());
    rewriter.inlineRegionBefore(op.getBody(), retyped.getBody(),
                                retyped.getBody().end());
    if (failed(rewriter.convertRegionTypes(&retyped.getBody(),
                                           *this->getTypeConverter())))
      return failure();
    rewriter.replaceOp(op, retyped);
    return success();
  }
};

template <typename OpT> struct RetypeCollective : OpConversionPattern<OpT> {
  using OpConversionPattern<OpT>::OpConversionPattern;
  LogicalResult
  matchAndRewrite(OpT op, typename OpT::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Type> types;
    if (failed(this->getTypeConverter()->convertTypes(op->getResultTypes(),
                                                      types)))
      return failure();
    rewriter.replaceOpWithNewOp<OpT>(op, types, adaptor.getOperands(),
                                     op->getAttrs());
    return success();
  }
};

struct RetypeYield : OpConversionPattern<fp8::YieldOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(fp8::YieldOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.modifyOpInPlace(op,
                             [&] { op->setOperands(adaptor.getOperands()); });
    return success();
  }
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

struct ConvertStableHLOToLinalgPass
    : fp8::impl::ConvertStableHLOToLinalgBase<ConvertStableHLOToLinalgPass> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    TypeConverter converter;
    populateSignlessTypeConversions(converter);
    RewritePatternSet patterns(context);
    populateStableHLOToLinalgPatterns(converter, patterns);
    populateFunctionOpInterfaceTypeConversionPattern<func::FuncOp>(patterns,
                                                                   converter);
    populateCallOpTypeConversionPattern(patterns, converter);
    populateReturnOpTypeConversionPattern(patterns, converter);

    ConversionTarget target(*context);
    target.addIllegalDialect("stablehlo", "chlo");
    target.addDynamicallyLegalOp<stablehlo::OptimizationBarrierOp>(
        [&](Operation *op) { return converter.isLegal(op); });
    target.addDynamicallyLegalOp<func::FuncOp>([&](func::FuncOp op) {
      return converter.isSignatureLegal(op.getFunctionType()) &&
             converter.isLegal(&op.getBody());
    });
    target.addDynamicallyLegalOp<func::CallOp, func::ReturnOp>(
        [&](Operation *op) { return converter.isLegal(op); });
    patterns.add<RetypeView<tensor::ExtractSliceOp>,
                 RetypeView<tensor::InsertSliceOp>>(converter, context);
    target.addDynamicallyLegalOp<tensor::ExtractSliceOp, tensor::InsertSliceOp>(
        [&](Operation *op) { return converter.isLegal(op); });
    patterns.add<RetypeAttention<fp8::AttentionOp>,
                 RetypeAttention<fp8::AttentionBackwardOp>,
                 RetypeCollective<fp8::AllReduceOp>,
                 RetypeCollective<fp8::ExchangeOp>, RetypeYield>(converter,
                                                                 context);
    target.addDynamicallyLegalOp<fp8::AttentionOp, fp8::AttentionBackwardOp>(
        [&](Operation *op) {
          return converter.isLegal(op) && converter.isLegal(&op->getRegion(0));
        });
    target
        .addDynamicallyLegalOp<fp8::YieldOp, fp8::AllReduceOp, fp8::ExchangeOp>(
            [&](Operation *op) { return converter.isLegal(op); });
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                         target);
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });

    if (failed(checkSupported(patterns)) ||
        failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      signalPassFailure();
  }

  /// Emits one clear error for each op without a lowering, before anything
  /// changes.
  LogicalResult checkSupported(RewritePatternSet &patterns) {
    llvm::DenseSet<OperationName> known;
    for (auto &pattern : patterns.getNativePatterns())
      if (auto root = pattern->getRootKind())
        known.insert(*root);
    WalkResult result = getOperation()->walk<WalkOrder::PreOrder>(
        [&](Operation *op) -> WalkResult {
          StringRef dialect = op->getName().getDialectNamespace();
          if (dialect != "stablehlo" && dialect != "chlo")
            return WalkResult::advance();
          if (!known.contains(op->getName()) && !isElementwise(op)) {
            emitRefusal(op, "has no lowering to linalg; "
                            "docs/StableHLOSubset.md lists the ops that have");
            return WalkResult::interrupt();
          }
          // Bodies are checked when they are emitted.
          return op->getNumRegions() ? WalkResult::skip()
                                     : WalkResult::advance();
        });
    return failure(result.wasInterrupted());
  }
};

} // namespace

void fp8::populateSignlessTypeConversions(TypeConverter &converter) {
  converter.addConversion([](Type type) { return type; });
  converter.addConversion(
      [](RankedTensorType type) -> Type { return signlessType(type); });
  auto cast = [](OpBuilder &b, Type type, ValueRange inputs, Location loc) {
    return UnrealizedConversionCastOp::create(b, loc, type, inputs)
        .getResult(0);
  };
  converter.addSourceMaterialization(cast);
  converter.addTargetMaterialization(cast);
}

void fp8::populateStableHLOToLinalgPatterns(const TypeConverter &converter,
                                            RewritePatternSet &patterns) {
  patterns.add<BarrierLowering, BitcastLowering, BroadcastLowering,
               ConcatenateLowering, ConstantLowering, ConvolutionLowering,
               DotGeneralLowering, ElementwiseLowering, EmptyResultLowering,
               IotaLowering, MapLowering, PadLowering, ReduceLowering,
               ReduceWindowLowering, ReshapeLowering, ReverseLowering,
               SliceLowering, TransposeLowering>(converter,
                                                 patterns.getContext());
  populateIndexedAccessPatterns(converter, patterns);
  populatePaddedSumPatterns(converter, patterns);
  populateRandomBitsPatterns(converter, patterns);
  populateSortPatterns(converter, patterns);
  populateTopKPatterns(converter, patterns);
  populateWindowScatterPatterns(converter, patterns);
}
