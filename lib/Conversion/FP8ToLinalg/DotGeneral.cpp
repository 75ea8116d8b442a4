//===- DotGeneral.cpp - Lowering of the scaled dot ------------------------===//
//
// Scales that are constant along the contraction multiply the sums, in an
// elementwise op after it. Other scales are inputs of the contraction, whose
// body multiplies the decoded operand by them; the emitter of contractions sums
// block by block and applies them to partial sums.
//
//===----------------------------------------------------------------------===//

#include "../Tensors.h"
#include "Scalars.h"

#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// One operand of the dot, in the loops batch, m, n, k.
struct Side {
  Value payload, scale;
  ScaledType type;
  /// The loop of each dimension.
  SmallVector<AffineExpr> place;
  /// Whether the scale is applied inside of the contraction.
  bool scaledInside = false;

  AffineMap payloadMap(int64_t loops) const {
    return AffineMap::get(loops, 0, place, type.getContext());
  }
  AffineMap scaleMap(int64_t loops) const {
    return AffineMap::get(loops, 0,
                          getScalePlace(type.getShape(), type.getTile(), place,
                                        type.getContext()),
                          type.getContext());
  }
};

Side makeSide(ValueRange values, ScaledType type, ArrayRef<int64_t> batching,
              ArrayRef<int64_t> contracting, int64_t firstFree,
              int64_t resultRank) {
  Side side{values[0], values[1], type, {}};
  MLIRContext *context = type.getContext();
  side.place.resize(type.getRank());
  for (auto [index, dim] : llvm::enumerate(batching))
    side.place[dim] = getAffineDimExpr(index, context);
  for (auto [index, dim] : llvm::enumerate(contracting)) {
    side.place[dim] = getAffineDimExpr(resultRank + index, context);
    side.scaledInside |= type.variesAlong(dim);
  }
  for (AffineExpr &expr : side.place)
    if (!expr)
      expr = getAffineDimExpr(firstFree++, context);
  return side;
}

struct ScaledDotLowering : OpConversionPattern<DotGeneralOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(DotGeneralOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(op.getType());
    int64_t rank = type.getRank();
    int64_t loops = rank + op.getLhsContractingDims().size();
    int64_t batches = op.getLhsBatchingDims().size();
    int64_t lhsFree = op.getLhs().getType().getRank() - batches -
                      op.getLhsContractingDims().size();
    Side lhs = makeSide(adaptor.getLhs(), op.getLhs().getType(),
                        op.getLhsBatchingDims(), op.getLhsContractingDims(),
                        batches, rank);
    Side rhs = makeSide(adaptor.getRhs(), op.getRhs().getType(),
                        op.getRhsBatchingDims(), op.getRhsContractingDims(),
                        batches + lhsFree, rank);

    SmallVector<Value> inputs{lhs.payload, rhs.payload};
    SmallVector<AffineMap> maps{lhs.payloadMap(loops), rhs.payloadMap(loops)};
    for (const Side *side : {&lhs, &rhs})
      if (side->scaledInside) {
        inputs.push_back(side->scale);
        maps.push_back(side->scaleMap(loops));
      }
    // (getMajorSubMap gives a null map for a scalar.)
    maps.push_back(rewriter.getMultiDimIdentityMap(loops).getSliceMap(0, rank));
    SmallVector<utils::IteratorType> iterators(rank,
                                               utils::IteratorType::parallel);
    iterators.resize(loops, utils::IteratorType::reduction);
    auto sumType =
        RankedTensorType::get(type.getShape(), rewriter.getF32Type());
    Value init = filledWithZero(rewriter, loc, sumType);
    Value sums;
    if (op.getAccumulatorBits()) {
      sums = sumNarrowly(rewriter, op, init, inputs, maps, iterators);
    } else {
      auto sum = linalg::GenericOp::create(
          rewriter, loc, sumType, inputs, init, maps, iterators,
          [&](OpBuilder &b, Location loc, ValueRange args) {
            Body body{b, loc};
            Value x = body.toF32(args[0]), y = body.toF32(args[1]);
            unsigned scale = 2;
            if (lhs.scaledInside)
              x = body.binary<arith::MulFOp>(x, body.toF32(args[scale++]));
            if (rhs.scaledInside)
              y = body.binary<arith::MulFOp>(y, body.toF32(args[scale++]));
            Value product = body.binary<arith::MulFOp>(x, y);
            Value next = body.binary<arith::AddFOp>(args.back(), product);
            linalg::YieldOp::create(b, loc, next);
          });
      if (IntegerAttr every = op.getPromoteEveryAttr())
        sum->setAttr(FP8Dialect::kPromoteEveryAttrName, every);
      sums = sum.getResult(0);
    }
    rewriter.replaceOp(op, scaleSums(rewriter, loc, sums, type, {&lhs, &rhs}));
    return success();
  }

  /// Sums in an accumulator of few bits: a reduction in order, with a second
  /// result for the partial sums since the last promotion.
  static Value sumNarrowly(OpBuilder &b, DotGeneralOp op, Value init,
                           ArrayRef<Value> inputs, SmallVector<AffineMap> maps,
                           ArrayRef<utils::IteratorType> iterators) {
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(init.getType());
    int64_t bits = *op.getAccumulatorBits();
    int64_t every = op.getPromoteEvery().value_or(0);
    maps.push_back(maps.back());
    auto cut = [&](Body &b, Value x) {
      return b.fromBits(b.binary<arith::AndIOp>(
          b.bits(x), b.i32(-(int64_t(1) << (24 - bits)))));
    };
    auto generic = linalg::GenericOp::create(
        b, loc, {type, type}, inputs, {init, filledWithZero(b, loc, type)},
        maps, iterators, [&](OpBuilder &nested, Location loc, ValueRange args) {
          Body b{nested, loc};
          Value total = args[args.size() - 2], partial = args.back();
          Value product =
              b.binary<arith::MulFOp>(b.toF32(args[0]), b.toF32(args[1]));
          partial = cut(b, b.binary<arith::AddFOp>(partial, product));
          if (every) {
            Value scaled = partial;
            for (Value scale : args.drop_front(2).drop_back(2))
              scaled = b.binary<arith::MulFOp>(scaled, b.toF32(scale));
            Value promote = isLastOf(b, every, op, type.getRank());
            Value promoted = b.binary<arith::AddFOp>(total, scaled);
            total = b.select(promote, promoted, total);
            partial = b.select(promote, b.f32(0.0), partial);
          }
          linalg::YieldOp::create(nested, loc, ValueRange{total, partial});
        });
    return generic.getResult(every ? 0 : 1);
  }

  /// Returns whether the current product is the last of `every` products, or of
  /// all.
  static Value isLastOf(Body &b, int64_t every, DotGeneralOp op,
                        int64_t firstLoop) {
    Value place;
    int64_t count = 1;
    for (auto [index, dim] : llvm::enumerate(op.getLhsContractingDims())) {
      int64_t size = op.getLhs().getType().getShape()[dim];
      Value loop = linalg::IndexOp::create(b.b, b.loc, firstLoop + index);
      if (place) {
        place = b.binary<arith::MulIOp>(place, b.index(size));
        place = b.binary<arith::AddIOp>(place, loop);
      } else {
        place = loop;
      }
      count *= size;
    }
    if (!place) // no sum: the first product is the last one, too
      place = b.index(0);
    Value rest = b.binary<arith::RemUIOp>(place, b.index(every));
    Value lastOfBlock =
        b.cmp(arith::CmpIPredicate::eq, rest, b.index(every - 1));
    Value last = b.cmp(arith::CmpIPredicate::eq, place, b.index(count - 1));
    return b.binary<arith::OrIOp>(lastOfBlock, last);
  }

  /// Applies the scales that are not inputs of the contraction, and converts
  /// the sums.
  static Value scaleSums(OpBuilder &b, Location loc, Value sums,
                         RankedTensorType type, ArrayRef<const Side *> sides) {
    SmallVector<Value> inputs{sums};
    SmallVector<AffineMap> maps{b.getMultiDimIdentityMap(type.getRank())};
    for (const Side *side : sides)
      if (!side->scaledInside) {
        inputs.push_back(side->scale);
        maps.push_back(side->scaleMap(type.getRank()));
      }
    if (inputs.size() == 1 && type.getElementType().isF32())
      return sums;
    return elementwise(b, loc, type, inputs, maps,
                       [&](Body &b, ValueRange args) -> SmallVector<Value> {
                         Value result = args[0];
                         if (inputs.size() > 1) {
                           Value scale = b.toF32(args[1]);
                           if (inputs.size() > 2)
                             scale = b.binary<arith::MulFOp>(scale,
                                                             b.toF32(args[2]));
                           result = b.binary<arith::MulFOp>(result, scale);
                         }
                         return {b.fromF32(result, type.getElementType())};
                       })
        .getResult(0);
  }
};

} // namespace

void fp8::populateDotPatterns(const TypeConverter &converter,
                              RewritePatternSet &patterns) {
  patterns.add<ScaledDotLowering>(converter, patterns.getContext());
}
