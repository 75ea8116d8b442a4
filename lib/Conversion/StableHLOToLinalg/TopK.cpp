//===- TopK.cpp - Lowering of top_k ---------------------------------------===//
//
// The first few elements of a long row are selected in one pass over it, which
// inserts each element that comes before the last one so far. Otherwise the row
// is sorted.
//
//===----------------------------------------------------------------------===//

#include "../Tensors.h"
#include "Builders.h"
#include "Patterns.h"
#include "Sort.h"
#include "fp8/Dialect/StableHLO/IR/CHLO.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Puts element `t` of a row and its index into their place among the first `k`
/// of those before it, which `kept` holds in order: it pushes those behind its
/// place back by one.
SmallVector<Value> keepIfFirst(OpBuilder &b, Location loc, Value t, int64_t k,
                               Value element, Row row, ValueRange kept,
                               Comparator comesFirst) {
  auto compare = [&](arith::CmpIPredicate predicate, Value l, Value r) {
    return arith::CmpIOp::create(b, loc, predicate, l, r);
  };
  Value zero = constantIndex(b, loc, 0), one = constantIndex(b, loc, 1);
  Value most = constantIndex(b, loc, k), last = constantIndex(b, loc, k - 1);
  Value isFull = compare(arith::CmpIPredicate::sge, t, most);
  Value passes =
      comesFirst(b, loc, element, extractAll(b, loc, kept[0], row(last)));
  // The places that are filled afterwards. Most elements pass none of them.
  Value filled = arith::MinSIOp::create(
      b, loc, arith::AddIOp::create(b, loc, t, one), most);
  Value places = arith::SelectOp::create(
      b, loc, isFull, arith::SelectOp::create(b, loc, passes, filled, zero),
      filled);
  Value index = arith::IndexCastOp::create(
      b, loc, getElementTypeOrSelf(kept[1].getType()), t);
  // Loop-carried: what is to be placed, and whether it was pushed back.
  SmallVector<Value> carried = {
      element, index, arith::ConstantOp::create(b, loc, b.getBoolAttr(false))};
  llvm::append_range(carried, kept);
  auto loop = scf::ForOp::create(
      b, loc, zero, places, one, carried,
      [&](OpBuilder &inner, Location at, Value place, ValueRange now) {
        SmallVector<Value> where = row(place), next, tensors;
        SmallVector<Value> old = extractAll(inner, at, now.take_back(2), where);
        // The place behind all elements is empty.
        Value goes = arith::CmpIOp::create(inner, at, arith::CmpIPredicate::eq,
                                           place, t);
        for (Value why : {comesFirst(inner, at, now[0], old[0]), now[2]})
          goes = arith::OrIOp::create(inner, at, goes, why);
        for (unsigned i : {0, 1}) {
          Value here = arith::SelectOp::create(inner, at, goes, now[i], old[i]);
          next.push_back(
              arith::SelectOp::create(inner, at, goes, old[i], now[i]));
          tensors.push_back(
              tensor::InsertOp::create(inner, at, here, now[3 + i], where));
        }
        next.push_back(goes);
        llvm::append_range(next, tensors);
        scf::YieldOp::create(inner, at, next);
      });
  return llvm::to_vector(ValueRange(loop.getResults()).take_back(2));
}

/// Returns the first `k` elements of each row along the last dimension, in
/// order, and their indices.
SmallVector<Value> selectFirst(OpBuilder &builder, Location location,
                               Value input, ArrayRef<RankedTensorType> types,
                               Comparator comesFirst) {
  RankedTensorType type = tensorType(input);
  unsigned last = type.getRank() - 1;
  SmallVector<int64_t> extents = extentsOfRows(type, last);
  extents.push_back(type.getDimSize(last));
  SmallVector<Value> kept, indices;
  // Places that are empty are read, though no result depends on them.
  for (RankedTensorType kind : types)
    kept.push_back(filledWithZero(builder, location, kind));
  return loopNest(builder, location, extents, kept, indices,
                  [&](OpBuilder &b, Location loc, ValueRange args) {
                    auto inRow = [&](Value t) {
                      return placeInRow(b, loc, type, last, indices, t);
                    };
                    Value t = indices.back();
                    return keepIfFirst(b, loc, t, types[0].getDimSize(last),
                                       extractAll(b, loc, input, inRow(t))[0],
                                       inRow, args, comesFirst);
                  });
}

/// Maps the bits of floats to integers with the same order: -NaN < -inf < ... <
/// -0 < +0 < ... < inf < NaN.
Value totalOrder(OpBuilder &b, Location loc, Value x) {
  unsigned width = x.getType().getIntOrFloatBitWidth();
  Type type = b.getIntegerType(width);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
  };
  Value bits = arith::BitcastOp::create(b, loc, type, x);
  Value sign = arith::ShRSIOp::create(b, loc, bits, constant(width - 1));
  Value magnitude = arith::ShRUIOp::create(b, loc, sign, constant(1));
  return arith::XOrIOp::create(b, loc, bits, magnitude);
}

/// Whether to select the first `k` of `n` elements rather than to sort them: if
/// they come in the worst order, each one passes all of the k places.
bool isSelected(int64_t n, int64_t k) {
  constexpr int64_t kPlacesOfMerge = 8;
  return n > 1 && k > 0 && k <= kPlacesOfMerge * llvm::Log2_64_Ceil(n);
}

struct TopKLowering : OpConversionPattern<chlo::TopKOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(chlo::TopKOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value input = adaptor.getOperand();
    RankedTensorType type = tensorType(input);
    RankedTensorType indexType = convertedType(op.getIndices());
    unsigned rank = type.getRank();
    Type element = getElementTypeOrSelf(op.getOperand().getType());
    auto comesFirst = [&](OpBuilder &b, Location at, ValueRange l,
                          ValueRange r) -> Value {
      Value first = l[0], second = r[0];
      if (isa<FloatType>(element)) {
        first = totalOrder(b, at, first);
        second = totalOrder(b, at, second);
      }
      auto greater = element.isUnsignedInteger() || element.isInteger(1)
                         ? arith::CmpIPredicate::ugt
                         : arith::CmpIPredicate::sgt;
      return arith::CmpIOp::create(b, at, greater, first, second);
    };
    int64_t n = type.getShape().back(), k = indexType.getShape().back();
    if (isSelected(n, k) && type.getNumElements() > 0) {
      rewriter.replaceOp(op,
                         selectFirst(rewriter, loc, input,
                                     {convertedType(op.getValues()), indexType},
                                     comesFirst));
      return success();
    }
    Value indices =
        elementwise(rewriter, loc, type.clone(indexType.getElementType()), {},
                    {}, [&](OpBuilder &b, Location at, ValueRange) -> Value {
                      return arith::IndexCastOp::create(
                          b, at, indexType.getElementType(),
                          linalg::IndexOp::create(b, at, rank - 1));
                    });
    SmallVector<Value> sorted =
        mergeSort(rewriter, loc, {input, indices}, rank - 1, comesFirst);
    SmallVector<AffineExpr> exprs;
    for (unsigned i = 0; i < rank; ++i)
      exprs.push_back(
          placeOf(rewriter, i, indexType.getDimSize(i), type.getDimSize(i), 0));
    AffineMap map = AffineMap::get(rank, 0, exprs, rewriter.getContext());
    for (auto [value, result] : llvm::zip(sorted, op.getResults()))
      if (value.getType() != convertedType(result))
        value = copyThrough(rewriter, loc, value, map, convertedType(result));
    rewriter.replaceOp(op, sorted);
    return success();
  }
};

} // namespace

void fp8::populateTopKPatterns(const TypeConverter &converter,
                               RewritePatternSet &patterns) {
  patterns.add<TopKLowering>(converter, patterns.getContext());
}
