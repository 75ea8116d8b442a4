//===- Moves.cpp - Constants and moves of elements to linalg --------------===//
//
// Ops that move elements become generics whose maps do the moving, so that
// later stages fuse and tile them like any other op.
//
//===----------------------------------------------------------------------===//

#include "Builders.h"
#include "Patterns.h"
#include "ScalarOps.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Support/InternalErrors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

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

} // namespace

void fp8::populateMovePatterns(const TypeConverter &converter,
                               RewritePatternSet &patterns) {
  patterns.add<BarrierLowering, BroadcastLowering, ConcatenateLowering,
               ConstantLowering, IotaLowering, PadLowering, ReshapeLowering,
               ReverseLowering, SliceLowering, TransposeLowering>(
      converter, patterns.getContext());
}
