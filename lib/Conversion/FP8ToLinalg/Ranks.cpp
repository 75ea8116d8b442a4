//===- Ranks.cpp - Lowering of ops that depend on the rank ----------------===//

#include "Scalars.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Returns a tensor filled with this rank's number times a constant.
Value rankTimes(OpBuilder &builder, Location loc, int64_t factor,
                RankedTensorType type) {
  Value number = tensor::FromElementsOp::create(
      builder, loc, RankedTensorType::get({}, builder.getI64Type()),
      RankOp::create(builder, loc, builder.getI64Type()).getResult());
  auto scalar = RankedTensorType::get({}, type.getElementType());
  auto wide = RankedTensorType::get({}, builder.getI64Type());
  Value by = stablehlo::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(wide, builder.getI64IntegerAttr(factor)));
  number = stablehlo::MulOp::create(builder, loc, number, by);
  number = stablehlo::ConvertOp::create(builder, loc, scalar, number);
  return stablehlo::BroadcastInDimOp::create(builder, loc, type, number,
                                             ArrayRef<int64_t>{});
}

struct RowIotaLowering : OpConversionPattern<RowIotaOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(RowIotaOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    Location loc = op.getLoc();
    Value own = stablehlo::IotaOp::create(rewriter, loc, type, op.getDim());
    Value before =
        rankTimes(rewriter, loc,
                  type.getDimSize(static_cast<unsigned>(op.getDim())), type);
    rewriter.replaceOpWithNewOp<stablehlo::AddOp>(op, before, own);
    return success();
  }
};

struct RowStateLowering : OpConversionPattern<RowStateOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(RowStateOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    Location loc = op.getLoc();
    Value blocks = rankTimes(
        rewriter, loc, static_cast<int64_t>(op.getBlocks()), type.clone({1}));
    Value shift = stablehlo::padWithZeros(rewriter, loc, blocks, 1,
                                          type.getDimSize(0) - 2, 0);
    rewriter.replaceOpWithNewOp<stablehlo::AddOp>(op, adaptor.getState(),
                                                  shift);
    return success();
  }
};

} // namespace

void fp8::populateRankPatterns(const TypeConverter &converter,
                               RewritePatternSet &patterns) {
  patterns.add<RowIotaLowering, RowStateLowering>(converter,
                                                  patterns.getContext());
}
