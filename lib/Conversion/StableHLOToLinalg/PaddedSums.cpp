//===- PaddedSums.cpp - Sums of values that are padded with zeros ---------===//
//
// An associative scan puts its even and its odd elements together as the sum
// of two values that are padded with zeros, and its gradient adds several such
// values. Padded one by one, each would be a pass over zeros, a pass that
// writes the elements among them, and a pass that adds. Here every element of
// the sum is computed once, from the terms that have an element there.
//
//===----------------------------------------------------------------------===//

#include "Builders.h"
#include "Patterns.h"
#include "ScalarOps.h"

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/MapVector.h"

#include <set>

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// A term: its elements are at `low`, `low + step`, ... along the padded
/// dimension of the sum.
struct Term {
  Value value;
  int64_t low = 0, step = 1, size = 0;

  bool has(int64_t at) const {
    int64_t place = at - low;
    return place >= 0 && place % step == 0 && place / step < size;
  }
};

/// Elements at `begin`, `begin + step`, ... of the sum, to which the same terms
/// contribute.
struct Run {
  int64_t begin, step, size;
};

/// Terms of additions that only the next addition reads, of which one or more
/// are padded with zeros along the same dimension.
class PaddedSum {
public:
  static std::optional<PaddedSum> find(stablehlo::AddOp root);

  /// Computes the sum, of a converted type.
  FailureOr<Value> build(ConversionPatternRewriter &rewriter,
                         RankedTensorType type);

private:
  /// More terms and runs than autodiff makes of a scan are not worth it.
  static constexpr unsigned kMostTerms = 16, kMostRuns = 16;

  explicit PaddedSum(stablehlo::AddOp root)
      : root(root), shape(root.getType().getShape()) {}

  bool collect(Value value);
  bool addPad(stablehlo::PadOp pad);
  bool findRuns();
  AffineMap mapOf(Builder &b, const Run &run, int64_t low, int64_t step,
                  int64_t size);
  FailureOr<Value> buildRun(ConversionPatternRewriter &rewriter, const Run &run,
                            Value destination);
  Value emitSum(OpBuilder &b, Location loc, Value value,
                const llvm::DenseMap<Value, Value> &elements);

  stablehlo::AddOp root;
  ArrayRef<int64_t> shape;
  std::optional<int64_t> dimension;
  llvm::MapVector<Value, Term> terms; // by the operand of the addition
  SmallVector<Run> runs;
};

} // namespace

/// Returns the dimension along which `pad` adds zeros; nullopt if there are
/// several, or other values, or if it cuts elements off.
static std::optional<int64_t> paddedDimension(stablehlo::PadOp pad) {
  TypedAttr padding = splatElement(pad.getPaddingValue());
  bool isZero = false;
  if (auto value = dyn_cast_or_null<FloatAttr>(padding))
    isZero = value.getValue().isPosZero();
  else if (auto value = dyn_cast_or_null<IntegerAttr>(padding))
    isZero = value.getValue().isZero();
  ArrayRef<int64_t> from = pad.getOperand().getType().getShape(),
                    to = pad.getType().getShape();
  std::optional<int64_t> dimension;
  for (size_t i = 0; i < to.size(); ++i) {
    int64_t low = pad.getEdgePaddingLow()[i],
            high = pad.getEdgePaddingHigh()[i];
    if (from[i] == to[i] && low == 0 && high == 0)
      continue;
    if (dimension || low < 0 || high < 0)
      return std::nullopt;
    dimension = i;
  }
  return isZero ? dimension : std::nullopt;
}

/// Returns whether another addition, the only reader, computes `add`, too.
static bool isInner(stablehlo::AddOp add) {
  if (!add->hasOneUse())
    return false;
  auto reader = dyn_cast<stablehlo::AddOp>(*add->getUsers().begin());
  return reader && reader->getBlock() == add->getBlock();
}

bool PaddedSum::addPad(stablehlo::PadOp pad) {
  std::optional<int64_t> padded = paddedDimension(pad);
  if (!padded || padded != dimension.value_or(*padded))
    return false;
  dimension = padded;
  terms[pad] = {pad.getOperand(), pad.getEdgePaddingLow()[*padded],
                pad.getInteriorPadding()[*padded] + 1,
                pad.getOperand().getType().getShape()[*padded]};
  return true;
}

/// Collects the terms below `value`; returns false if they are too many.
bool PaddedSum::collect(Value value) {
  auto add = value.getDefiningOp<stablehlo::AddOp>();
  if (add && (add == root || isInner(add)))
    return collect(add.getLhs()) && collect(add.getRhs());
  auto pad = value.getDefiningOp<stablehlo::PadOp>();
  if (!pad || !addPad(pad))
    terms[value] = {value};
  return terms.size() <= kMostTerms;
}

/// Divides the padded dimension into runs; returns false if there are too many.
bool PaddedSum::findRuns() {
  int64_t extent = shape[*dimension], step = 1;
  for (auto &[value, term] : terms)
    step = std::max(step, term.step);
  for (auto &[value, term] : terms)
    if (step % term.step != 0)
      return false;
  auto areSame = [&](int64_t at, int64_t other) {
    return llvm::all_of(terms, [&](const auto &entry) {
      return entry.second.has(at) == entry.second.has(other);
    });
  };
  // Between two of these, elements that are `step` apart have the same terms.
  std::set<int64_t> ends = {extent};
  for (auto &[value, term] : terms)
    ends.insert({term.low, std::min(term.low + term.size * term.step, extent)});
  for (int64_t first = 0; first < std::min(step, extent); ++first) {
    int64_t at = first;
    for (int64_t end : ends) {
      if (end <= at)
        continue;
      int64_t size = llvm::divideCeil(end - at, step);
      if (at != first && areSame(at, at - step))
        runs.back().size += size;
      else if (runs.size() < kMostRuns)
        runs.push_back({at, step, size});
      else
        return false;
      at += size * step;
    }
  }
  return true;
}

std::optional<PaddedSum> PaddedSum::find(stablehlo::AddOp root) {
  PaddedSum sum(root);
  Type element = root.getType().getElementType();
  bool isNumber =
      isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(element) ||
      (isa<IntegerType>(element) && !element.isInteger(1));
  if (!isNumber || isInner(root) || !sum.collect(root) || !sum.dimension)
    return std::nullopt;
  for (auto &[value, term] : sum.terms)
    if (term.size == 0 && term.value == value)
      term.size = sum.shape[*sum.dimension];
  // Elements that are not next to each other are no vectors.
  bool isApart = llvm::any_of(
      sum.terms, [](const auto &entry) { return entry.second.step > 1; });
  if ((isApart && *sum.dimension + 1 == int64_t(sum.shape.size())) ||
      !sum.findRuns())
    return std::nullopt;
  return sum;
}

/// Returns the map from a run to the elements of a value that has `size`
/// elements along the padded dimension, `step` apart from `low` on.
AffineMap PaddedSum::mapOf(Builder &b, const Run &run, int64_t low,
                           int64_t step, int64_t size) {
  SmallVector<AffineExpr> exprs;
  for (unsigned i = 0; i < shape.size(); ++i)
    exprs.push_back(b.getAffineDimExpr(i));
  bool isWhole = run.size == 1 && size == 1;
  if (!isWhole)
    exprs[*dimension] = placeOf(b, *dimension, run.size, size,
                                (run.begin - low) / step, run.step / step);
  return AffineMap::get(shape.size(), 0, exprs, b.getContext());
}

/// Emits the additions below `value` of the elements that are there; returns
/// null if there is none.
Value PaddedSum::emitSum(OpBuilder &b, Location loc, Value value,
                         const llvm::DenseMap<Value, Value> &elements) {
  if (terms.contains(value))
    return elements.lookup(value);
  auto add = value.getDefiningOp<stablehlo::AddOp>();
  Value lhs = emitSum(b, loc, add.getLhs(), elements);
  Value rhs = emitSum(b, loc, add.getRhs(), elements);
  if (!lhs || !rhs)
    return lhs ? lhs : rhs;
  return emitScalar(b, loc, add, {lhs, rhs});
}

FailureOr<Value> PaddedSum::buildRun(ConversionPatternRewriter &rewriter,
                                     const Run &run, Value destination) {
  Location loc = root.getLoc();
  SmallVector<Value> found, inputs;
  SmallVector<AffineMap> maps;
  for (auto &[value, term] : terms) {
    if (!term.has(run.begin))
      continue;
    found.push_back(value);
    inputs.push_back(rewriter.getRemappedValue(term.value));
    maps.push_back(mapOf(rewriter, run, term.low, term.step, term.size));
    if (!inputs.back())
      return failure();
  }
  AffineMap output = mapOf(rewriter, run, 0, 1,
                           tensorType(destination).getDimSize(*dimension));
  auto loop = rewriter.getAffineDimExpr(*dimension);
  auto hasLoop = [&](AffineMap map) {
    return map.getResult(*dimension) == loop;
  };
  // (Without terms the destination alone says how long the run is.)
  if (!hasLoop(output) && llvm::none_of(maps, hasLoop)) {
    SmallVector<int64_t> part(shape);
    part[*dimension] = run.size;
    RankedTensorType type = tensorType(destination).clone(part);
    if (inputs.empty()) {
      inputs.push_back(filledWithZero(rewriter, loc, type));
      maps.push_back(rewriter.getMultiDimIdentityMap(shape.size()));
    } else {
      inputs[0] = copyThrough(rewriter, loc, inputs[0], maps[0], type);
      maps[0] = rewriter.getMultiDimIdentityMap(shape.size());
    }
  }
  maps.push_back(output);
  Type element = tensorType(destination).getElementType();
  return generic(rewriter, loc, inputs, destination, maps,
                 iterators(shape.size()),
                 [&](OpBuilder &b, Location at, ValueRange arguments) {
                   llvm::DenseMap<Value, Value> elements;
                   for (auto [value, argument] :
                        llvm::zip(found, arguments.take_front(found.size())))
                     elements[value] = argument;
                   Value sum = emitSum(b, at, root, elements);
                   Value zero;
                   if (!sum || isa<FloatType>(element))
                     zero = arith::ConstantOp::create(b, at,
                                                      b.getZeroAttr(element));
                   // The sum of -0.0 and a zero that is left out is 0.0.
                   if (!sum)
                     sum = zero;
                   else if (zero && found.size() < terms.size())
                     sum = emitScalar(b, at, root, {sum, zero});
                   linalg::YieldOp::create(b, at, sum);
                 })
      .getResult(0);
}

FailureOr<Value> PaddedSum::build(ConversionPatternRewriter &rewriter,
                                  RankedTensorType type) {
  FailureOr<Value> result = emptyTensor(rewriter, root.getLoc(), type);
  for (const Run &run : runs) {
    result = buildRun(rewriter, run, *result);
    if (failed(result))
      return failure();
  }
  return result;
}

namespace {

struct PaddedSumLowering : OpConversionPattern<stablehlo::AddOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(stablehlo::AddOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    std::optional<PaddedSum> sum = PaddedSum::find(op);
    if (!sum)
      return failure();
    FailureOr<Value> result =
        sum->build(rewriter, convertedType(op.getResult()));
    if (failed(result))
      return failure();
    rewriter.replaceOp(op, *result);
    return success();
  }
};

} // namespace

void fp8::populatePaddedSumPatterns(const TypeConverter &converter,
                                    RewritePatternSet &patterns) {
  patterns.add<PaddedSumLowering>(converter, patterns.getContext(),
                                  /*benefit=*/2);
}
