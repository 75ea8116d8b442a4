//===- Windows.cpp - Lowering of windows ----------------------------------===//
//
// Windows become a copy whose index map adds the window and its tap, of a
// tensor that has the zeros around.
//
//===----------------------------------------------------------------------===//

#include "Scalars.h"

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns the input with the zeros between and around its elements.
static Value padInput(OpBuilder &builder, WindowsOp op, Value input) {
  SmallVector<int64_t> low(cast<RankedTensorType>(input.getType()).getRank(),
                           0),
      high(low), interior(low);
  for (auto [i, dim] : llvm::enumerate(op.getDims())) {
    low[dim] = op.getLow()[i];
    high[dim] = op.getHigh()[i];
    interior[dim] = op.getInterior()[i];
  }
  return stablehlo::padWithZeros(builder, op.getLoc(), input, low, high,
                                 interior);
}

/// Returns where each element of the result is in the padded input.
static AffineMap getPlaces(WindowsOp op) {
  MLIRContext *context = op.getContext();
  int64_t rank = cast<RankedTensorType>(op.getInput().getType()).getRank();
  SmallVector<AffineExpr> places;
  for (int64_t dim : llvm::seq(rank))
    places.push_back(getAffineDimExpr(op.getResultDim(dim), context));
  for (auto [i, dim] : llvm::enumerate(op.getDims())) {
    AffineExpr tap = getAffineDimExpr(op.getResultDim(dim) + 1, context);
    if (op.getReversed()[i])
      tap = op.getSizes()[i] - 1 - tap;
    places[dim] = places[dim] * op.getStrides()[i] + tap * op.getDilations()[i];
  }
  return AffineMap::get(rank + op.getDims().size(), 0, places, context);
}

namespace {
struct WindowsLowering : OpConversionPattern<WindowsOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(WindowsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value input = padInput(rewriter, op, adaptor.getInput());
    rewriter.replaceOp(op,
                       elementwise(rewriter, op.getLoc(),
                                   cast<RankedTensorType>(op.getType()), input,
                                   getPlaces(op), [](Body &, ValueRange args) {
                                     return SmallVector<Value>{args[0]};
                                   }));
    return success();
  }
};
} // namespace

void fp8::populateWindowsPatterns(const TypeConverter &converter,
                                  RewritePatternSet &patterns) {
  patterns.add<WindowsLowering>(converter, patterns.getContext());
}
