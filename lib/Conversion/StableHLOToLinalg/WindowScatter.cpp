//===- WindowScatter.cpp - Lowering of select_and_scatter -----------------===//
//
// Uses two parallel loops instead of a scatter. First, every window selects its
// element, as an index into the operand. Then every element of the result
// gathers from the windows that cover it and have selected it, in their order.
//
//===----------------------------------------------------------------------===//

#include "Builders.h"
#include "Patterns.h"
#include "ScalarOps.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Builds index arithmetic for one element.
struct Indices {
  OpBuilder &b;
  Location loc;

  Value constant(int64_t value) const { return constantIndex(b, loc, value); }
  Value loop(unsigned dim) const {
    return linalg::IndexOp::create(b, loc, dim);
  }
  Value add(Value l, Value r) const {
    return arith::AddIOp::create(b, loc, l, r);
  }
  Value sub(Value l, Value r) const {
    return arith::SubIOp::create(b, loc, l, r);
  }
  Value scale(Value l, int64_t by) const {
    return by == 1 ? l
                   : arith::MulIOp::create(b, loc, l, constant(by)).getResult();
  }
  /// Returns 0 <= index < bound; negative numbers are large unsigned ones.
  Value inside(Value index, int64_t bound) const {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index,
                                 constant(bound));
  }
  Value both(Value l, Value r) const {
    return l ? arith::AndIOp::create(b, loc, l, r).getResult() : r;
  }
  /// Returns the number of an element in row-major order.
  Value flatten(ArrayRef<Value> where, ArrayRef<int64_t> shape) const {
    Value flat = constant(0);
    for (auto [index, size] : llvm::zip(where, shape))
      flat = add(scale(flat, size), index);
    return arith::IndexCastOp::create(b, loc, b.getI64Type(), flat);
  }
};

class SelectAndScatterLowering
    : public OpConversionPattern<stablehlo::SelectAndScatterOp> {
public:
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(stablehlo::SelectAndScatterOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType type = tensorType(adaptor.getOperand());
    unsigned rank = type.getRank();
    if (tensorType(adaptor.getSource()).getNumElements() == 0 ||
        type.getNumElements() == 0) {
      rewriter.replaceOp(
          op, filled(rewriter, op.getLoc(), type, adaptor.getInitValue()));
      return success();
    }
    Windows windows{stablehlo::orOnes(op.getWindowDimensions(), rank),
                    stablehlo::orOnes(op.getWindowStrides(), rank),
                    {}};
    for (auto [low, high] : stablehlo::paddings(op.getPadding(), rank))
      windows.low.push_back(low);
    FailureOr<Value> selected = select(op, adaptor, windows, rewriter);
    if (failed(selected))
      return failure();
    FailureOr<Value> result = gather(op, adaptor, windows, *selected, rewriter);
    if (failed(result))
      return failure();
    rewriter.replaceOp(op, *result);
    return success();
  }

private:
  struct Windows {
    SmallVector<int64_t> size, stride, low;
  };

  /// Creates a tensor that only determines the extents of reduction loops. (It
  /// is a constant, because kernels only take values that are written.)
  static Value extents(OpBuilder &b, Location loc, ArrayRef<int64_t> shape) {
    Type byte = b.getI8Type();
    return splatConstant(b, loc, RankedTensorType::get(shape, byte),
                         b.getZeroAttr(byte));
  }

  /// Returns the number of the element that each window selects; -1 if it
  /// covers none.
  FailureOr<Value> select(stablehlo::SelectAndScatterOp op, OpAdaptor adaptor,
                          const Windows &windows, OpBuilder &rewriter) const {
    Location loc = op.getLoc();
    Value operand = adaptor.getOperand();
    RankedTensorType type = tensorType(operand);
    RankedTensorType source = tensorType(adaptor.getSource());
    unsigned rank = type.getRank();
    Type i64 = rewriter.getI64Type();
    Value minusOne = arith::ConstantOp::create(rewriter, loc,
                                               rewriter.getI64IntegerAttr(-1));
    Value none =
        linalg::FillOp::create(rewriter, loc, minusOne,
                               emptyTensor(rewriter, loc, source.clone(i64)))
            .getResult(0);
    Type element = type.getElementType();
    Type carried = element.isBF16() ? rewriter.getI16Type() : element;
    Value anything = filledWithZero(rewriter, loc, source.clone(carried));
    bool unsupported = false;
    SmallVector<AffineMap> maps = {
        AffineMap::getMinorIdentityMap(2 * rank, rank, rewriter.getContext()),
        leadingDims(rewriter, 2 * rank, rank),
        leadingDims(rewriter, 2 * rank, rank)};
    auto body = [&](OpBuilder &b, Location at, ValueRange args) {
      Indices index{b, at};
      Value best = args[1], inside;
      Value bestValue = bitcastTo(b, at, args[2], element);
      SmallVector<Value> where, clamped;
      for (unsigned i = 0; i < rank; ++i) {
        Value place = index.add(
            index.scale(index.loop(i), windows.stride[i]),
            index.sub(index.loop(rank + i), index.constant(windows.low[i])));
        where.push_back(place);
        inside = index.both(inside, index.inside(place, type.getDimSize(i)));
        clamped.push_back(clampIndex(b, at, place, type.getDimSize(i) - 1));
      }
      Value value = tensor::ExtractOp::create(b, at, operand, clamped);
      auto keep = emitBody(b, at, op.getSelect().front(), {bestValue, value});
      unsupported |= failed(keep);
      Value isFirst = arith::CmpIOp::create(
          b, at, arith::CmpIPredicate::slt, best,
          arith::ConstantOp::create(b, at, b.getI64IntegerAttr(0)));
      Value always = arith::ConstantOp::create(b, at, b.getBoolAttr(true));
      Value moves = arith::XOrIOp::create(
          b, at, failed(keep) ? isFirst : keep->front(), always);
      moves = arith::OrIOp::create(b, at, isFirst, moves);
      if (inside)
        moves = arith::AndIOp::create(b, at, moves, inside);
      best = arith::SelectOp::create(
          b, at, moves, index.flatten(where, type.getShape()), best);
      bestValue = arith::SelectOp::create(b, at, moves, value, bestValue);
      bestValue = bitcastTo(b, at, bestValue, carried);
      linalg::YieldOp::create(b, at, ValueRange{best, bestValue});
    };
    auto loop = generic(rewriter, loc, extents(rewriter, loc, windows.size),
                        {none, anything}, maps, iterators(rank, rank), body);
    if (unsupported)
      return failure();
    return loop.getResult(0);
  }

  /// Combines the init value with the source of each window that has selected
  /// the element.
  FailureOr<Value> gather(stablehlo::SelectAndScatterOp op, OpAdaptor adaptor,
                          const Windows &windows, Value selected,
                          OpBuilder &rewriter) const {
    Location loc = op.getLoc();
    Value source = adaptor.getSource();
    RankedTensorType type = tensorType(adaptor.getOperand());
    RankedTensorType sourceType = tensorType(source);
    unsigned rank = type.getRank();
    // The largest number of windows that cover an element along each dimension.
    SmallVector<int64_t> covering;
    for (unsigned i = 0; i < rank; ++i)
      covering.push_back(llvm::divideCeil(windows.size[i], windows.stride[i]));
    bool unsupported = false;
    SmallVector<AffineMap> maps = {
        AffineMap::getMinorIdentityMap(2 * rank, rank, rewriter.getContext()),
        leadingDims(rewriter, 2 * rank, rank)};
    auto body = [&](OpBuilder &b, Location at, ValueRange args) {
      Indices index{b, at};
      Value hit;
      SmallVector<Value> here, window;
      for (unsigned i = 0; i < rank; ++i) {
        here.push_back(index.loop(i));
        // Visit the last `covering` windows that start at or before the
        // element, in order. (The shift makes the dividend nonnegative.)
        int64_t stride = windows.stride[i], low = windows.low[i];
        int64_t shift = low < 0 ? llvm::divideCeil(-low, stride) : 0;
        Value place =
            index.add(here.back(), index.constant(low + shift * stride));
        Value latest =
            stride == 1
                ? place
                : arith::DivUIOp::create(b, at, place, index.constant(stride))
                      .getResult();
        Value from = index.add(
            latest, index.sub(index.loop(rank + i),
                              index.constant(covering[i] - 1 + shift)));
        hit = index.both(hit, index.inside(from, sourceType.getDimSize(i)));
        window.push_back(clampIndex(b, at, from, sourceType.getDimSize(i) - 1));
      }
      Value choice = tensor::ExtractOp::create(b, at, selected, window);
      Value same =
          arith::CmpIOp::create(b, at, arith::CmpIPredicate::eq, choice,
                                index.flatten(here, type.getShape()));
      hit = index.both(hit, same);
      Value update = tensor::ExtractOp::create(b, at, source, window);
      Value running = bitcastTo(b, at, args[1], type.getElementType());
      auto combined =
          emitBody(b, at, op.getScatter().front(), {running, update});
      unsupported |= failed(combined);
      Value next =
          bitcastTo(b, at, failed(combined) ? update : combined->front(),
                    args[1].getType());
      linalg::YieldOp::create(
          b, at,
          arith::SelectOp::create(b, at, hit, next, args[1]).getResult());
    };
    Value init = asCarried(rewriter, loc, adaptor.getInitValue());
    RankedTensorType carried = type.clone(tensorType(init).getElementType());
    Value result = generic(rewriter, loc, extents(rewriter, loc, covering),
                           filled(rewriter, loc, carried, init), maps,
                           iterators(rank, rank), body)
                       .getResult(0);
    result = fromCarried(rewriter, loc, result, type.getElementType());
    if (unsupported)
      return failure();
    return result;
  }
};

} // namespace

void fp8::populateWindowScatterPatterns(const TypeConverter &converter,
                                        RewritePatternSet &patterns) {
  patterns.add<SelectAndScatterLowering>(converter, patterns.getContext());
}
