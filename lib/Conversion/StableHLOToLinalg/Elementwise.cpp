//===- Elementwise.cpp - Elementwise ops to linalg ------------------------===//

#include "Builders.h"
#include "Patterns.h"
#include "ScalarOps.h"
#include "fp8/Dialect/StableHLO/IR/CHLO.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Support/InternalErrors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

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

} // namespace

void fp8::populateElementwisePatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<BitcastLowering, ElementwiseLowering, EmptyResultLowering,
               MapLowering>(converter, patterns.getContext());
}
