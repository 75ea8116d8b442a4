//===- SplitPrefixSums.cpp - Prefix sums in blocks ------------------------===//
//
// JAX writes a cumulative sum along a dimension of n elements as windows of n
// elements over the padded dimension, which takes n additions for each element.
// Here the dimension is divided into blocks: an element is the sum of its block
// up to it, and of the totals of the blocks before, which are a shorter
// cumulative sum.
//
//===----------------------------------------------------------------------===//

#include "fp8/Conversion/StableHLOToLinalg/StableHLOToLinalg.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"
#include "fp8/Dialect/StableHLO/IR/Reductions.h"

#include "llvm/Support/MathExtras.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_SPLITPREFIXSUMS
#include "fp8/Conversion/StableHLOToLinalg/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// The elements of a block. Each is the sum of up to so many.
constexpr int64_t kBlock = 16;

/// Splits one cumulative sum.
class PrefixSum {
public:
  explicit PrefixSum(stablehlo::ReduceWindowOp op)
      : op(op), b(op), loc(op.getLoc()) {}

  /// Returns false if the op is no cumulative sum, or a short one.
  bool find();
  void replace();

private:
  Value sumOf(Value x);
  Value sumInBlocks(Value blocks);
  Value totalsOf(Value sums);
  Value maskOf(RankedTensorType wide);
  Value convert(Value x, Type element);
  /// Moves elements by one place towards the later ones.
  Value shifted(Value x);
  Value padded(Value x, int64_t low, int64_t high);
  Value broadcast(Value x, RankedTensorType type, ArrayRef<int64_t> dims);
  Value reshape(Value x, ArrayRef<int64_t> shape);
  SmallVector<int64_t> dimsWithOneMore(int64_t rank) const;

  stablehlo::ReduceWindowOp op;
  OpBuilder b;
  Location loc;
  int64_t dim = 0;
  /// Whether an element is the sum of those from it on.
  bool isReversed = false;
};

} // namespace

static bool areOnes(std::optional<ArrayRef<int64_t>> values, unsigned rank) {
  return llvm::all_of(stablehlo::orOnes(values, rank),
                      [](int64_t value) { return value == 1; });
}

bool PrefixSum::find() {
  if (op.getInputs().size() != 1 || op.getWindowDimensions().empty() ||
      !isa_and_nonnull<stablehlo::AddOp>(
          stablehlo::getCombiner(op.getBody())) ||
      !stablehlo::isZeros(op.getInitValues()[0]))
    return false;
  ArrayRef<int64_t> window = op.getWindowDimensions();
  unsigned rank = window.size();
  const int64_t *longest = llvm::max_element(window);
  dim = longest - window.begin();
  auto pad = stablehlo::paddings(op.getPadding(), rank);
  for (unsigned i = 0; i < rank; ++i)
    if (i != dim && (window[i] != 1 || pad[i] != std::pair<int64_t, int64_t>()))
      return false;
  int64_t extent = shapeOf(op.getInputs()[0])[dim];
  isReversed = pad[dim].first == 0;
  auto whole = isReversed ? std::pair<int64_t, int64_t>(0, extent - 1)
                          : std::pair<int64_t, int64_t>(extent - 1, 0);
  return extent > 2 * kBlock && *longest == extent && pad[dim] == whole &&
         areOnes(op.getWindowStrides(), rank) &&
         areOnes(op.getBaseDilations(), rank) &&
         areOnes(op.getWindowDilations(), rank);
}

Value PrefixSum::convert(Value x, Type element) {
  return tensorOf(x).getElementType() == element
             ? x
             : stablehlo::ConvertOp::create(b, loc, x, element);
}

Value PrefixSum::padded(Value x, int64_t low, int64_t high) {
  SmallVector<int64_t> lows(tensorOf(x).getRank(), 0), highs = lows,
                                                       none = lows;
  lows[dim] = low;
  highs[dim] = high;
  return stablehlo::padWithZeros(b, loc, x, lows, highs, none);
}

Value PrefixSum::shifted(Value x) {
  return isReversed ? padded(x, -1, 1) : padded(x, 1, -1);
}

Value PrefixSum::broadcast(Value x, RankedTensorType type,
                           ArrayRef<int64_t> dims) {
  return stablehlo::BroadcastInDimOp::create(
      b, loc, type.clone(tensorOf(x).getElementType()), x, dims);
}

Value PrefixSum::reshape(Value x, ArrayRef<int64_t> shape) {
  return stablehlo::ReshapeOp::create(b, loc, tensorOf(x).clone(shape), x);
}

/// Returns where `rank` dimensions are if there is one more behind `dim`.
SmallVector<int64_t> PrefixSum::dimsWithOneMore(int64_t rank) const {
  SmallVector<int64_t> dims;
  for (int64_t i = 0; i < rank; ++i)
    dims.push_back(i > dim ? i + 1 : i);
  return dims;
}

/// Returns which elements of a block (the second one of two dimensions) belong
/// to the sum up to each of them.
Value PrefixSum::maskOf(RankedTensorType wide) {
  auto square = RankedTensorType::get({kBlock, kBlock}, b.getI32Type());
  Value sum = stablehlo::IotaOp::create(b, loc, square, 0);
  Value element = stablehlo::IotaOp::create(b, loc, square, 1);
  using Direction = stablehlo::ComparisonDirection;
  Value belongs = stablehlo::CompareOp::create(
      b, loc, sum, element, isReversed ? Direction::LE : Direction::GE);
  return broadcast(belongs, wide, {dim + 1, dim + 2});
}

/// Sums up the blocks' elements, which are dimension `dim + 1`. A product with
/// ones and zeros would spread infinities.
Value PrefixSum::sumInBlocks(Value blocks) {
  SmallVector<int64_t> shape(shapeOf(blocks));
  SmallVector<int64_t> dims = dimsWithOneMore(shape.size());
  shape.insert(shape.begin() + dim + 1, kBlock);
  auto wide = tensorOf(blocks).clone(shape);
  Value zero = convert(op.getInitValues()[0], wide.getElementType());
  Value chosen = stablehlo::SelectOp::create(b, loc, maskOf(wide),
                                             broadcast(blocks, wide, dims),
                                             broadcast(zero, wide, {}));
  return makeReduction<stablehlo::AddOp>(b, loc, chosen, zero, {dim + 2});
}

/// Returns the total of each block, from the sums in the blocks.
Value PrefixSum::totalsOf(Value sums) {
  SmallVector<int64_t> limits(shapeOf(sums)), starts(limits.size(), 0);
  starts[dim + 1] = isReversed ? 0 : kBlock - 1;
  limits[dim + 1] = starts[dim + 1] + 1;
  SmallVector<int64_t> shape = limits, ones(limits.size(), 1);
  shape.erase(shape.begin() + dim + 1);
  Value totals = stablehlo::SliceOp::create(b, loc, sums, starts, limits, ones);
  return reshape(totals, shape);
}

Value PrefixSum::sumOf(Value x) {
  SmallVector<int64_t> shape(shapeOf(x));
  int64_t extent = shape[dim], blocks = llvm::divideCeil(extent, kBlock);
  // Zeros that are behind all elements change no sum.
  int64_t more = blocks * kBlock - extent;
  x = isReversed ? padded(x, more, 0) : padded(x, 0, more);
  SmallVector<int64_t> divided = shape;
  divided[dim] = blocks;
  divided.insert(divided.begin() + dim + 1, kBlock);
  Value sums = sumInBlocks(reshape(x, divided));
  if (blocks > 1) {
    SmallVector<int64_t> dims = dimsWithOneMore(shape.size());
    Value before = shifted(sumOf(totalsOf(sums)));
    sums = stablehlo::AddOp::create(b, loc, sums,
                                    broadcast(before, tensorOf(sums), dims));
  }
  Value all = reshape(sums, shapeOf(x));
  return isReversed ? padded(all, -more, 0) : padded(all, 0, -more);
}

void PrefixSum::replace() {
  Value x = op.getInputs()[0];
  Type element = tensorOf(x).getElementType();
  // Partial sums of bf16 are not rounded.
  bool isNarrow =
      isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32;
  Value sum = sumOf(convert(x, isNarrow ? Type(b.getF32Type()) : element));
  op.getResult(0).replaceAllUsesWith(convert(sum, element));
  op.erase();
}

namespace {
struct SplitPrefixSumsPass
    : fp8::impl::SplitPrefixSumsBase<SplitPrefixSumsPass> {
  void runOnOperation() override {
    SmallVector<stablehlo::ReduceWindowOp> ops;
    getOperation()->walk(
        [&](stablehlo::ReduceWindowOp op) { ops.push_back(op); });
    for (stablehlo::ReduceWindowOp op : ops) {
      PrefixSum sum(op);
      if (!sum.find())
        continue;
      sum.replace();
      ++numSplit;
    }
  }
};
} // namespace
