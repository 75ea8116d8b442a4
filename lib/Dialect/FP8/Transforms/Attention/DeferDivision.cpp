//===- DeferDivision.cpp - Attentions that divide their results -----------===//
//
// A softmax divides the weights of a row by their sum. The dot that adds up
// values by these weights may do so before the division:
//
//   sum of (p[q, k] / s[q]) v[k, d] over k = (sum of p[q, k] v[k, d]) / s[q]
//
// This divides a row as long as a head, and not one as long as the context.
// FlashAttention does the same (arXiv 2205.14135, algorithm 1).
//
//===----------------------------------------------------------------------===//

#include "../SmallTensors.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"
#include "fp8/Dialect/StableHLO/IR/DotOperands.h"

#include "mlir/IR/Builders.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8DEFERDIVISION
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;
using Dot = stablehlo::DotGeneralOp;

/// Whether all elements are one number, which does not change magnitudes much.
static bool isModerate(Value value) {
  double magnitude = std::abs(getNumber(value).value_or(0));
  return magnitude >= 0x1p-10 && magnitude <= 0x1p10;
}

/// Whether both types have at least 16 bits: their errors are relative over all
/// weights that matter.
static bool hasFloats(stablehlo::ConvertOp convert) {
  auto isWide = [](Value value) {
    auto type = dyn_cast<FloatType>(tensorOf(value).getElementType());
    return type && type.getWidth() >= 16;
  };
  return isWide(convert.getOperand()) && isWide(convert.getResult());
}

/// Returns the operand of an op that its result is proportional to, element by
/// element; null if there is none.
static OpOperand *proportionalOperand(Operation *op) {
  if (auto convert = dyn_cast<stablehlo::ConvertOp>(op))
    return hasFloats(convert) ? &op->getOpOperand(0) : nullptr;
  if (isa<stablehlo::SelectOp>(op)) {
    for (unsigned other : {1, 2})
      if (isZero(op->getOperand(other)))
        return &op->getOpOperand(3 - other);
    return nullptr;
  }
  if (isa<stablehlo::MulOp>(op))
    for (unsigned other : {0, 1})
      if (isModerate(op->getOperand(other)))
        return &op->getOpOperand(1 - other);
  if (isa<stablehlo::DivOp>(op) && isModerate(op->getOperand(1)))
    return &op->getOpOperand(0);
  return nullptr;
}

/// Whether a reduction is the maximum of `row` over all dimensions but `kept`.
static bool isMaximumOf(stablehlo::ReduceOp reduce, Value row,
                        ArrayRef<int64_t> kept) {
  if (reduce->getNumResults() != 1 || reduce->getOperand(0) != row ||
      !isa_and_nonnull<stablehlo::MaxOp>(
          stablehlo::getCombiner(reduce.getBody())))
    return false;
  return ArrayRef<int64_t>(stablehlo::getFreeDims(
             tensorOf(row).getRank(), {}, reduce.getDimensions())) == kept;
}

/// Whether `value`, of which the dimensions are those of `row` that `dims`
/// names (all of them, before it is broadcast), is at least the maximum of each
/// row, or zero where that is not finite.
static bool isRowMaximum(Value value, Value row,
                         std::optional<ArrayRef<int64_t>> dims = std::nullopt) {
  Operation *op = value.getDefiningOp();
  if (auto reduce = dyn_cast_or_null<stablehlo::ReduceOp>(op))
    return dims && isMaximumOf(reduce, row, *dims);
  if (isa_and_nonnull<stablehlo::MaxOp>(op))
    return isRowMaximum(op->getOperand(0), row, dims) ||
           isRowMaximum(op->getOperand(1), row, dims);
  if (auto broadcast = dyn_cast_or_null<stablehlo::BroadcastInDimOp>(op))
    return !dims && isRowMaximum(broadcast.getOperand(), row,
                                 broadcast.getBroadcastDimensions());
  if (!isa_and_nonnull<stablehlo::SelectOp>(op) || !isZero(op->getOperand(2)))
    return false;
  auto isFinite = op->getOperand(0).getDefiningOp<stablehlo::IsFiniteOp>();
  return isFinite && isFinite.getOperand() == op->getOperand(1) &&
         isRowMaximum(op->getOperand(1), row, dims);
}

/// Whether no element exceeds one: an exponential of a row minus its maximum,
/// some of which may be zero. Undivided sums of others could overflow.
static bool isAtMostOne(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto exp = dyn_cast<stablehlo::ExpOp>(op)) {
      auto difference = exp.getOperand().getDefiningOp<stablehlo::SubtractOp>();
      return difference &&
             isRowMaximum(difference.getRhs(), difference.getLhs());
    }
    if (!isa<stablehlo::ConvertOp, stablehlo::SelectOp>(op))
      return false;
    OpOperand *operand = proportionalOperand(op);
    if (!operand)
      return false;
    value = operand->get();
  }
  return false;
}

namespace {

/// A dot whose operand `number` is weights that a divisor of their row divides.
struct DividedDot {
  Dot dot;
  unsigned number;
  /// The use of the quotient among the ops between it and the dot.
  OpOperand *quotient;
  /// Whether one of these ops is a selection, which may choose zeros.
  bool isSelected;

  stablehlo::DivOp division() const {
    return quotient->get().getDefiningOp<stablehlo::DivOp>();
  }
  stablehlo::BroadcastInDimOp divisor() const {
    return division().getRhs().getDefiningOp<stablehlo::BroadcastInDimOp>();
  }
};

class DeferDivision : public fp8::impl::FP8DeferDivisionBase<DeferDivision> {
public:
  void runOnOperation() override {
    SmallVector<DividedDot> found;
    getOperation().walk([&](AttentionOp attention) {
      for (auto dot : attention.getBody().front().getOps<Dot>())
        if (std::optional<DividedDot> divided = findDivision(dot))
          found.push_back(*divided);
    });
    for (const DividedDot &divided : found)
      defer(divided);
    numDeferred += found.size();
  }

private:
  static std::optional<DividedDot> findDivision(Dot dot);
  static void defer(const DividedDot &divided);
};

} // namespace

/// Whether the division of operand `number` can follow the dot, and divides
/// fewer elements there.
static bool mayFollow(stablehlo::DivOp division, Dot dot, unsigned number) {
  auto divisor = division.getRhs().getDefiningOp<stablehlo::BroadcastInDimOp>();
  if (!divisor || !isAtMostOne(division.getLhs()))
    return false;
  SmallVector<int64_t> dims = stablehlo::getResultDims(dot, number);
  return llvm::none_of(divisor.getBroadcastDimensions(),
                       [&](int64_t dim) { return dims[dim] < 0; }) &&
         tensorOf(dot.getResult()).getNumElements() <
             tensorOf(division.getResult()).getNumElements();
}

std::optional<DividedDot> DeferDivision::findDivision(Dot dot) {
  for (unsigned number : {0, 1}) {
    OpOperand *use = &dot->getOpOperand(number);
    bool isSelected = false;
    while (use) {
      Operation *op = use->get().getDefiningOp();
      if (!op || !op->hasOneUse())
        break;
      auto division = dyn_cast<stablehlo::DivOp>(op);
      if (division && mayFollow(division, dot, number))
        return DividedDot{dot, number, use, isSelected};
      isSelected |= isa<stablehlo::SelectOp>(op);
      use = proportionalOperand(op);
    }
  }
  return std::nullopt;
}

/// Returns the dimensions of the result of `last`, a dot or its transpose, that
/// the dimensions of the divisor become.
static SmallVector<int64_t> placesOfDivisor(const DividedDot &divided,
                                            Operation *last) {
  SmallVector<int64_t> dims =
      stablehlo::getResultDims(divided.dot, divided.number);
  SmallVector<int64_t> places;
  auto transpose = dyn_cast<stablehlo::TransposeOp>(last);
  for (int64_t dim : divided.divisor().getBroadcastDimensions()) {
    int64_t place = dims[dim];
    if (transpose)
      place = llvm::find(transpose.getPermutation(), place) -
              transpose.getPermutation().begin();
    places.push_back(place);
  }
  return places;
}

/// Returns the divisors of rows, and one in place of zero and NaN. These are
/// sums of rows without keys: a selection of zeros behind the division makes
/// such a row zero, and so must be the quotient of its sums, which are zero.
static Value withoutZeros(OpBuilder &builder, Location loc, Value divisor) {
  RankedTensorType type = tensorOf(divisor);
  auto number = [&](double value) {
    return stablehlo::makeSplat(
        builder, loc, type, builder.getFloatAttr(type.getElementType(), value));
  };
  Value isPositive = stablehlo::CompareOp::create(
      builder, loc, divisor, number(0), stablehlo::ComparisonDirection::GT);
  return stablehlo::SelectOp::create(builder, loc, isPositive, divisor,
                                     number(1));
}

void DeferDivision::defer(const DividedDot &divided) {
  Dot dot = divided.dot;
  stablehlo::DivOp division = divided.division();
  stablehlo::BroadcastInDimOp divisor = divided.divisor();
  // A dot may write its result in any order, so its transpose comes first.
  Operation *last = dot;
  if (dot->hasOneUse() && isa<stablehlo::TransposeOp>(*dot->user_begin()))
    last = *dot->user_begin();
  Type rounded = tensorOf(dot.getResult()).getElementType();
  // The sums are rounded once, behind the division.
  Type element = tensorOf(division.getResult()).getElementType();
  if (element.getIntOrFloatBitWidth() < 32)
    element = Float32Type::get(dot.getContext());
  for (Operation *op : {dot.getOperation(), last})
    op->getResult(0).setType(tensorOf(op->getResult(0)).clone(element));

  OpBuilder builder(last->getContext());
  builder.setInsertionPointAfter(last);
  Location loc = division.getLoc();
  auto convert = [&](Value value, Type element) -> Value {
    RankedTensorType type = tensorOf(value).clone(element);
    return type == value.getType()
               ? value
               : stablehlo::ConvertOp::create(builder, loc, type, value);
  };
  Value result = last->getResult(0);
  Value sums = convert(divisor.getOperand(), element);
  if (divided.isSelected)
    sums = withoutZeros(builder, loc, sums);
  Value row = stablehlo::BroadcastInDimOp::create(
      builder, loc, result.getType(), sums,
      builder.getDenseI64ArrayAttr(placesOfDivisor(divided, last)));
  Value quotient = stablehlo::DivOp::create(builder, loc, result, row);
  Value output = convert(quotient, rounded);
  result.replaceAllUsesExcept(output, quotient.getDefiningOp());
  divided.quotient->set(division.getLhs());
  division.erase();
  if (divisor->use_empty())
    divisor.erase();
}
