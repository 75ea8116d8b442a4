//===- Sort.cpp - Lowering of sort and top_k ------------------------------===//
//
// A bottom-up merge sort: runs of 1, 2, 4, ... elements are merged pairwise,
// from the tensors into a scratch row and back. A merge takes from its left run
// unless the comparator puts the right element first, so the sort is stable. It
// makes no assumption about the comparator: whatever it does with NaN, each
// element is kept exactly once.
//
// The first few elements of a long row are selected in one pass over it, which
// inserts each element that comes before the last one so far.
//
//===----------------------------------------------------------------------===//

#include "Builders.h"
#include "Patterns.h"
#include "ScalarOps.h"
#include "fp8/Dialect/StableHLO/IR/CHLO.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Emits whether the first elements come before the second ones.
using Comparator =
    function_ref<Value(OpBuilder &, Location, ValueRange, ValueRange)>;

/// Returns the indices in a tensor of element `t` of the row that is sorted.
using Row = function_ref<SmallVector<Value>(Value)>;

SmallVector<Value> extractAll(OpBuilder &b, Location loc, ValueRange tensors,
                              ValueRange where) {
  SmallVector<Value> elements;
  for (Value tensor : tensors)
    elements.push_back(tensor::ExtractOp::create(b, loc, tensor, where));
  return elements;
}

/// Returns the extents of the loops over the rows along a dimension. Loops of
/// one iteration are left out, because they would be folded.
SmallVector<int64_t> extentsOfRows(RankedTensorType type, unsigned dimension) {
  SmallVector<int64_t> extents;
  for (auto [dim, extent] : llvm::enumerate(type.getShape()))
    if (dim != dimension && extent > 1)
      extents.push_back(extent);
  return extents;
}

/// Returns the indices of element `t` of the row at these indices of the loops
/// over the rows.
SmallVector<Value> placeInRow(OpBuilder &b, Location loc, RankedTensorType type,
                              unsigned dimension, ArrayRef<Value> rows,
                              Value t) {
  SmallVector<Value> where;
  unsigned next = 0;
  for (auto [dim, extent] : llvm::enumerate(type.getShape()))
    where.push_back(dim == dimension ? t
                    : extent > 1     ? rows[next++]
                                     : constantIndex(b, loc, 0));
  return where;
}

/// Merges the runs of `width` elements of `from` pairwise into `to`.
SmallVector<Value> mergeRuns(OpBuilder &builder, Location location, int64_t n,
                             Value width, ValueRange from, Row fromRow,
                             ValueRange to, Row toRow, Comparator comesFirst) {
  Value zero = constantIndex(builder, location, 0);
  Value one = constantIndex(builder, location, 1);
  Value count = constantIndex(builder, location, n);
  Value last = constantIndex(builder, location, n - 1);
  Value both = arith::AddIOp::create(builder, location, width, width);
  Value mask = arith::SubIOp::create(builder, location, both, one);
  // Loop-carried: the next element of the left and of the right run.
  SmallVector<Value> carried = {zero, zero};
  llvm::append_range(carried, to);
  auto loop = scf::ForOp::create(
      builder, location, zero, count, one, carried,
      [&](OpBuilder &b, Location loc, Value t, ValueRange args) {
        auto less = [&](Value l, Value r) -> Value {
          return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, l, r);
        };
        Value offset = arith::AndIOp::create(b, loc, t, mask);
        Value begin = arith::SubIOp::create(b, loc, t, offset);
        Value middle = arith::MinSIOp::create(
            b, loc, arith::AddIOp::create(b, loc, begin, width), count);
        Value end = arith::MinSIOp::create(
            b, loc, arith::AddIOp::create(b, loc, begin, both), count);
        Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                              offset, zero);
        Value left = arith::SelectOp::create(b, loc, isFirst, begin, args[0]);
        Value right = arith::SelectOp::create(b, loc, isFirst, middle, args[1]);
        // An exhausted run is still read, at some position in bounds.
        SmallVector<Value> lefts = extractAll(
            b, loc, from, fromRow(arith::MinSIOp::create(b, loc, left, last)));
        SmallVector<Value> rights = extractAll(
            b, loc, from, fromRow(arith::MinSIOp::create(b, loc, right, last)));
        Value hasLeft = less(left, middle);
        Value hasRight = less(right, end);
        Value mayPass = comesFirst(b, loc, rights, lefts);
        Value leftIsDone = arith::XOrIOp::create(
            b, loc, hasLeft,
            arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
        Value takeRight = arith::AndIOp::create(
            b, loc, hasRight,
            arith::OrIOp::create(b, loc, leftIsDone, mayPass));
        Value nextLeft = arith::AddIOp::create(b, loc, left, one);
        Value nextRight = arith::AddIOp::create(b, loc, right, one);
        SmallVector<Value> next = {
            arith::SelectOp::create(b, loc, takeRight, left, nextLeft),
            arith::SelectOp::create(b, loc, takeRight, nextRight, right)};
        SmallVector<Value> where = toRow(t);
        for (auto [l, r, tensor] :
             llvm::zip(lefts, rights, args.drop_front(2))) {
          Value taken = arith::SelectOp::create(b, loc, takeRight, r, l);
          next.push_back(
              tensor::InsertOp::create(b, loc, taken, tensor, where));
        }
        scf::YieldOp::create(b, loc, next);
      });
  return llvm::to_vector(ValueRange(loop.getResults()).drop_front(2));
}

/// Sorts `inputs` together along `dimension`.
SmallVector<Value> mergeSort(OpBuilder &builder, Location location,
                             ValueRange inputs, unsigned dimension,
                             Comparator comesFirst) {
  RankedTensorType type = tensorType(inputs[0]);
  int64_t n = type.getDimSize(dimension);
  unsigned count = inputs.size();
  if (n <= 1 || type.getNumElements() == 0)
    return SmallVector<Value>(inputs);
  SmallVector<int64_t> extents = extentsOfRows(type, dimension);
  // Two merges, into the scratch row and back, quadruple the width of a run.
  // The outermost loop must not be folded.
  int64_t rounds = llvm::divideCeil(llvm::Log2_64_Ceil(n), 2);
  extents.push_back(extents.empty() ? std::max<int64_t>(rounds, 2) : rounds);

  SmallVector<Value> carried(inputs), indices;
  for (Value input : inputs)
    carried.push_back(emptyTensor(
        builder, location,
        RankedTensorType::get({n}, tensorType(input).getElementType())));
  SmallVector<Value> results = loopNest(
      builder, location, extents, carried, indices,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        auto inRow = [&](Value t) {
          return placeInRow(b, loc, type, dimension, indices, t);
        };
        auto inScratch = [](Value t) { return SmallVector<Value>{t}; };
        Value one = constantIndex(b, loc, 1);
        Value shift = arith::ShLIOp::create(b, loc, indices.back(), one);
        Value width = arith::ShLIOp::create(b, loc, one, shift);
        Value twice = arith::AddIOp::create(b, loc, width, width);
        ValueRange tensors = args.take_front(count);
        SmallVector<Value> scratch =
            mergeRuns(b, loc, n, width, tensors, inRow, args.drop_front(count),
                      inScratch, comesFirst);
        SmallVector<Value> next = mergeRuns(
            b, loc, n, twice, scratch, inScratch, tensors, inRow, comesFirst);
        llvm::append_range(next, scratch);
        return next;
      });
  results.resize(count);
  return results;
}

struct SortLowering : OpConversionPattern<stablehlo::SortOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::SortOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    int64_t rank = tensorType(adaptor.getInputs()[0]).getRank();
    int64_t dimension = op.getDimension();
    if (rank == 0) {
      rewriter.replaceOp(op, adaptor.getInputs());
      return success();
    }
    // A tensor that is sorted twice would be written in place by two results.
    llvm::SmallSetVector<Value, 4> inputs(adaptor.getInputs().begin(),
                                          adaptor.getInputs().end());
    SmallVector<unsigned> place;
    for (Value input : adaptor.getInputs())
      place.push_back(llvm::find(inputs, input) - inputs.begin());
    bool unsupported = false;
    SmallVector<Value> sorted = mergeSort(
        rewriter, op.getLoc(), inputs.getArrayRef(),
        dimension < 0 ? dimension + rank : dimension,
        [&](OpBuilder &b, Location loc, ValueRange l, ValueRange r) -> Value {
          SmallVector<Value> arguments;
          for (unsigned i : place)
            arguments.append({l[i], r[i]});
          auto answer = emitBody(b, loc, op.getComparator().front(), arguments);
          unsupported |= failed(answer);
          if (failed(answer))
            return arith::ConstantOp::create(b, loc, b.getBoolAttr(false));
          return answer->front();
        });
    if (unsupported)
      return failure();
    rewriter.replaceOp(
        op, llvm::map_to_vector(place, [&](unsigned i) { return sorted[i]; }));
    return success();
  }
};

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
  for (RankedTensorType kind : types)
    kept.push_back(emptyTensor(builder, location, kind));
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

void fp8::populateSortPatterns(const TypeConverter &converter,
                               RewritePatternSet &patterns) {
  patterns.add<SortLowering, TopKLowering>(converter, patterns.getContext());
}
