//===- PositionConstants.cpp - Constants that follow from positions -------===//
//
// JAX prints positions and masks that a program has computed with NumPy as
// constants. Computed from iotas they take no memory, move into the kernels
// that read them, and show which keys a mask hides.
//
//===----------------------------------------------------------------------===//

#include "PositionConstants.h"

#include "fp8/Dialect/StableHLO/IR/Constants.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

/// Smaller constants stay, for other passes read their elements.
static constexpr int64_t kSmallest = 64;

/// Returns the elements of a large constant; null if they are all equal.
static DenseElementsAttr largeElements(stablehlo::ConstantOp op) {
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  return elements && !elements.isSplat() &&
                 elements.getNumElements() >= kSmallest
             ? elements
             : DenseElementsAttr();
}

/// Moves `index` to the next element of a tensor of this shape.
static void advance(MutableArrayRef<int64_t> index, ArrayRef<int64_t> shape) {
  for (size_t dim = shape.size(); dim-- > 0;) {
    if (++index[dim] < shape[dim])
      return;
    index[dim] = 0;
  }
}

namespace {

/// Integers that are a sum of indices, each times a factor, and of a constant.
struct PositionsFromIotas : public OpRewritePattern<stablehlo::ConstantOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::ConstantOp op,
                                PatternRewriter &rewriter) const override {
    DenseElementsAttr elements = largeElements(op);
    auto type = cast<RankedTensorType>(op.getType());
    if (!elements || !isa<IntegerType>(type.getElementType()) ||
        type.getElementType().isInteger(1))
      return failure();
    SmallVector<APInt> steps = stepsOf(elements, type.getShape());
    if (!isSum(elements, type.getShape(), steps))
      return failure();
    auto splat = [&](const APInt &value) {
      return stablehlo::makeSplat(
          rewriter, op.getLoc(), type,
          rewriter.getIntegerAttr(type.getElementType(), value));
    };
    Value sum;
    for (auto [dim, step] : llvm::enumerate(steps)) {
      if (step.isZero())
        continue;
      Value term = stablehlo::IotaOp::create(rewriter, op.getLoc(), type, dim);
      if (!step.isOne())
        term =
            stablehlo::MulOp::create(rewriter, op.getLoc(), term, splat(step));
      sum = sum ? stablehlo::AddOp::create(rewriter, op.getLoc(), sum, term)
                      .getResult()
                : term;
    }
    APInt first = *elements.value_begin<APInt>();
    if (!first.isZero())
      sum = stablehlo::AddOp::create(rewriter, op.getLoc(), sum, splat(first));
    rewriter.replaceOp(op, sum);
    return success();
  }

private:
  /// Returns by how much elements grow along each dimension, at its start.
  static SmallVector<APInt> stepsOf(DenseElementsAttr elements,
                                    ArrayRef<int64_t> shape) {
    auto values = elements.getValues<APInt>();
    APInt first = values[0];
    SmallVector<APInt> steps(shape.size(), APInt(first.getBitWidth(), 0));
    int64_t stride = 1;
    for (size_t dim = shape.size(); dim-- > 0; stride *= shape[dim])
      if (shape[dim] > 1)
        steps[dim] = values[stride] - first;
    return steps;
  }

  static bool isSum(DenseElementsAttr elements, ArrayRef<int64_t> shape,
                    ArrayRef<APInt> steps) {
    SmallVector<int64_t> index(shape.size(), 0);
    APInt first = *elements.value_begin<APInt>();
    for (const APInt &value : elements.getValues<APInt>()) {
      APInt sum = first;
      for (auto [step, i] : llvm::zip_equal(steps, index))
        sum += step * i;
      if (sum != value)
        return false;
      advance(index, shape);
    }
    return true;
  }
};

/// Two values, one of them where the difference of two indices is in a range:
/// causal masks and windows.
struct BandsFromIotas : public OpRewritePattern<stablehlo::ConstantOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::ConstantOp op,
                                PatternRewriter &rewriter) const override {
    DenseElementsAttr elements = largeElements(op);
    auto type = cast<RankedTensorType>(op.getType());
    if (!elements || !type.getElementType().isIntOrFloat())
      return failure();
    SmallVector<unsigned, 2> dims;
    for (auto [dim, size] : llvm::enumerate(type.getShape()))
      if (size > 1)
        dims.push_back(dim);
    if (dims.size() != 2)
      return failure();
    std::optional<Band> band =
        isa<FloatType>(type.getElementType())
            ? bandOf<APFloat>(elements, type.getDimSize(dims[0]),
                              type.getDimSize(dims[1]))
            : bandOf<APInt>(elements, type.getDimSize(dims[0]),
                            type.getDimSize(dims[1]));
    if (!band)
      return failure();
    Value mask = makeMask(rewriter, op.getLoc(), type, dims, *band);
    auto valueAt = [&](int64_t place) {
      return elements.getValues<Attribute>()[place];
    };
    if (!type.getElementType().isInteger(1))
      rewriter.replaceOpWithNewOp<stablehlo::SelectOp>(
          op, mask,
          stablehlo::makeSplat(rewriter, op.getLoc(), type, valueAt(band->in)),
          stablehlo::makeSplat(rewriter, op.getLoc(), type,
                               valueAt(band->out)));
    else if (cast<IntegerAttr>(valueAt(band->in)).getValue().isZero())
      rewriter.replaceOpWithNewOp<stablehlo::NotOp>(op, type, mask);
    else
      rewriter.replaceOp(op, mask);
    return success();
  }

private:
  struct Band {
    /// The second index minus the first one, in the band.
    std::optional<int64_t> low, high;
    /// The place of a value in the band, and of one outside.
    int64_t in, out;
  };

  /// Returns the band of the distances whose element is inside, if they follow
  /// each other. `places` has the place of an element of each distance.
  static std::optional<Band> bandAt(ArrayRef<int64_t> places, int64_t rows,
                                    function_ref<bool(int64_t)> isInside) {
    const int64_t *begin = llvm::find_if(places, isInside);
    const int64_t *end = std::find_if_not(begin, places.end(), isInside);
    if (std::any_of(end, places.end(), isInside))
      return std::nullopt;
    Band band;
    if (begin != places.begin())
      band.low = begin - places.begin() - (rows - 1);
    if (end != places.end())
      band.high = end - places.begin() - rows;
    band.in = *begin;
    band.out = begin != places.begin() ? places.front() : *end;
    return band;
  }

  template <typename Number>
  static std::optional<Band> bandOf(DenseElementsAttr elements, int64_t rows,
                                    int64_t columns) {
    auto values = elements.getValues<Number>();
    auto same = [](const Number &a, const Number &b) {
      if constexpr (std::is_same_v<Number, APFloat>)
        return a.bitwiseIsEqual(b);
      else
        return a == b;
    };
    // The first place of each distance, from the last row on.
    SmallVector<int64_t> places;
    for (int64_t row = rows; row-- > 0;)
      places.push_back(row * columns);
    for (int64_t column = 1; column < columns; ++column)
      places.push_back(column);
    Number first = values[places.front()];
    const int64_t *second = llvm::find_if(
        places, [&](int64_t place) { return !same(values[place], first); });
    if (second == places.end())
      return std::nullopt;
    Number other = values[*second];
    int64_t place = 0;
    for (const Number &value : values) {
      int64_t row = place / columns, column = place % columns;
      if (!same(value, values[places[column - row + rows - 1]]) ||
          (!same(value, first) && !same(value, other)))
        return std::nullopt;
      ++place;
    }
    for (const Number &inside : {other, first})
      if (std::optional<Band> band = bandAt(places, rows, [&](int64_t at) {
            return same(values[at], inside);
          }))
        return band;
    return std::nullopt;
  }

  static Value makeMask(PatternRewriter &rewriter, Location loc,
                        RankedTensorType type, ArrayRef<unsigned> dims,
                        const Band &band) {
    using stablehlo::ComparisonDirection;
    auto integers = type.clone(rewriter.getI32Type());
    Value row = stablehlo::IotaOp::create(rewriter, loc, integers, dims[0]),
          column = stablehlo::IotaOp::create(rewriter, loc, integers, dims[1]);
    auto compare = [&](int64_t distance, ComparisonDirection direction) {
      Value limit = row;
      if (distance != 0)
        limit = stablehlo::AddOp::create(
            rewriter, loc, row,
            stablehlo::makeSplat(rewriter, loc, integers,
                                 rewriter.getI32IntegerAttr(distance)));
      return stablehlo::CompareOp::create(rewriter, loc, column, limit,
                                          direction);
    };
    Value above =
              band.low ? compare(*band.low, ComparisonDirection::GE) : Value(),
          below = band.high ? compare(*band.high, ComparisonDirection::LE)
                            : Value();
    if (!above || !below)
      return above ? above : below;
    return stablehlo::AndOp::create(rewriter, loc, above, below);
  }
};

} // namespace

void stablehlo::populatePositionConstants(RewritePatternSet &patterns) {
  patterns.add<PositionsFromIotas, BandsFromIotas>(patterns.getContext());
}
