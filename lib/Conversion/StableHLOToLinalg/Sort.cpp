//===- Sort.cpp - Lowering of sort ----------------------------------------===//
//
// A bottom-up merge sort: runs of 1, 2, 4, ... elements are merged pairwise,
// from the tensors into a scratch row and back. A merge takes from its left run
// unless the comparator puts the right element first, so the sort is stable. It
// makes no assumption about the comparator: whatever it does with NaN, each
// element is kept exactly once.
//
//===----------------------------------------------------------------------===//

#include "Sort.h"

#include "Builders.h"
#include "Patterns.h"
#include "ScalarOps.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::fp8;

SmallVector<Value> fp8::extractAll(OpBuilder &b, Location loc,
                                   ValueRange tensors, ValueRange where) {
  SmallVector<Value> elements;
  for (Value tensor : tensors)
    elements.push_back(tensor::ExtractOp::create(b, loc, tensor, where));
  return elements;
}

SmallVector<int64_t> fp8::extentsOfRows(RankedTensorType type,
                                        unsigned dimension) {
  SmallVector<int64_t> extents;
  for (auto [dim, extent] : llvm::enumerate(type.getShape()))
    if (dim != dimension && extent > 1)
      extents.push_back(extent);
  return extents;
}

SmallVector<Value> fp8::placeInRow(OpBuilder &b, Location loc,
                                   RankedTensorType type, unsigned dimension,
                                   ArrayRef<Value> rows, Value t) {
  SmallVector<Value> where;
  unsigned next = 0;
  for (auto [dim, extent] : llvm::enumerate(type.getShape()))
    where.push_back(dim == dimension ? t
                    : extent > 1     ? rows[next++]
                                     : constantIndex(b, loc, 0));
  return where;
}

namespace {
/// The sizes and bounds of a merge of runs of `width` of `count` elements.
struct MergeSizes {
  Value zero, one, count, last, width;
  /// Two runs, and the bits of a position within them.
  Value both, mask;
};

/// The two runs that an element is taken from: the next element of each, and
/// where each ends.
struct Runs {
  Value left, leftEnd, right, rightEnd;
};
} // namespace

/// Returns the runs that element `t` is taken from. `next` are the next
/// elements of those of the element before.
static Runs placeRuns(OpBuilder &b, Location loc, const MergeSizes &sizes,
                      Value t, ValueRange next) {
  Value offset = arith::AndIOp::create(b, loc, t, sizes.mask);
  Value begin = arith::SubIOp::create(b, loc, t, offset);
  Value middle = arith::MinSIOp::create(
      b, loc, arith::AddIOp::create(b, loc, begin, sizes.width), sizes.count);
  Value end = arith::MinSIOp::create(
      b, loc, arith::AddIOp::create(b, loc, begin, sizes.both), sizes.count);
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                        offset, sizes.zero);
  Value left = arith::SelectOp::create(b, loc, isFirst, begin, next[0]);
  Value right = arith::SelectOp::create(b, loc, isFirst, middle, next[1]);
  return {left, middle, right, end};
}

/// Returns whether the right run's element is taken: if it comes first, or if
/// the left run is exhausted.
static Value chooseRight(OpBuilder &b, Location loc, const Runs &runs,
                         ValueRange lefts, ValueRange rights,
                         Comparator comesFirst) {
  auto less = [&](Value l, Value r) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, l, r);
  };
  Value hasLeft = less(runs.left, runs.leftEnd);
  Value hasRight = less(runs.right, runs.rightEnd);
  Value mayPass = comesFirst(b, loc, rights, lefts);
  Value leftIsDone = arith::XOrIOp::create(
      b, loc, hasLeft, arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
  return arith::AndIOp::create(
      b, loc, hasRight, arith::OrIOp::create(b, loc, leftIsDone, mayPass));
}

/// Inserts the elements of the run that is taken from into the tensors.
static SmallVector<Value> insertTaken(OpBuilder &b, Location loc,
                                      Value takeRight, ValueRange lefts,
                                      ValueRange rights, ValueRange tensors,
                                      ValueRange where) {
  SmallVector<Value> inserted;
  for (auto [l, r, tensor] : llvm::zip(lefts, rights, tensors)) {
    Value taken = arith::SelectOp::create(b, loc, takeRight, r, l);
    inserted.push_back(tensor::InsertOp::create(b, loc, taken, tensor, where));
  }
  return inserted;
}

/// Merges the runs of `width` elements of `from` pairwise into `to`.
static SmallVector<Value> mergeRuns(OpBuilder &builder, Location location,
                                    int64_t n, Value width, ValueRange from,
                                    Row fromRow, ValueRange to, Row toRow,
                                    Comparator comesFirst) {
  MergeSizes sizes;
  sizes.width = width;
  sizes.zero = constantIndex(builder, location, 0);
  sizes.one = constantIndex(builder, location, 1);
  sizes.count = constantIndex(builder, location, n);
  sizes.last = constantIndex(builder, location, n - 1);
  sizes.both = arith::AddIOp::create(builder, location, width, width);
  sizes.mask = arith::SubIOp::create(builder, location, sizes.both, sizes.one);
  // Loop-carried: the next element of the left and of the right run.
  SmallVector<Value> carried = {sizes.zero, sizes.zero};
  llvm::append_range(carried, to);
  auto loop = scf::ForOp::create(
      builder, location, sizes.zero, sizes.count, sizes.one, carried,
      [&](OpBuilder &b, Location loc, Value t, ValueRange args) {
        Runs runs = placeRuns(b, loc, sizes, t, args.take_front(2));
        // An exhausted run is still read, at some position in bounds.
        auto extract = [&](Value element) {
          return extractAll(
              b, loc, from,
              fromRow(arith::MinSIOp::create(b, loc, element, sizes.last)));
        };
        SmallVector<Value> lefts = extract(runs.left);
        SmallVector<Value> rights = extract(runs.right);
        Value takeRight = chooseRight(b, loc, runs, lefts, rights, comesFirst);
        Value nextLeft = arith::AddIOp::create(b, loc, runs.left, sizes.one);
        Value nextRight = arith::AddIOp::create(b, loc, runs.right, sizes.one);
        SmallVector<Value> next = {
            arith::SelectOp::create(b, loc, takeRight, runs.left, nextLeft),
            arith::SelectOp::create(b, loc, takeRight, nextRight, runs.right)};
        llvm::append_range(next, insertTaken(b, loc, takeRight, lefts, rights,
                                             args.drop_front(2), toRow(t)));
        scf::YieldOp::create(b, loc, next);
      });
  return llvm::to_vector(ValueRange(loop.getResults()).drop_front(2));
}

SmallVector<Value> fp8::mergeSort(OpBuilder &builder, Location location,
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

namespace {
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
} // namespace

void fp8::populateSortPatterns(const TypeConverter &converter,
                               RewritePatternSet &patterns) {
  patterns.add<SortLowering>(converter, patterns.getContext());
}
