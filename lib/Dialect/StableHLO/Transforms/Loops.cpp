//===- Loops.cpp - Counters of loops --------------------------------------===//

#include "fp8/Dialect/StableHLO/Transforms/Loops.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"

#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::stablehlo;

namespace {

/// The smallest and largest value of an integer type, limited to the range of
/// i64.
struct Limits {
  int64_t min, max;
  explicit Limits(Type type) {
    auto integer = cast<IntegerType>(getElementTypeOrSelf(type));
    unsigned width = integer.getWidth();
    bool isUnsigned = integer.isUnsigned();
    min = isUnsigned ? 0 : llvm::minIntN(width);
    max = isUnsigned && width < 64 ? int64_t(llvm::maxUIntN(width))
                                   : llvm::maxIntN(width);
  }
  bool contain(int64_t value) const { return min <= value && value <= max; }
};

bool isInteger(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getNumElements() == 1 &&
         isa<IntegerType>(type.getElementType()) &&
         !type.getElementType().isInteger(1);
}

/// Returns the comparison that holds with exchanged operands.
ComparisonDirection exchanged(ComparisonDirection direction) {
  switch (direction) {
  case ComparisonDirection::LT:
    return ComparisonDirection::GT;
  case ComparisonDirection::LE:
    return ComparisonDirection::GE;
  case ComparisonDirection::GT:
    return ComparisonDirection::LT;
  case ComparisonDirection::GE:
    return ComparisonDirection::LE;
  default:
    return direction;
  }
}

/// Returns how often a counter that starts at `lower` and steps by `step`
/// satisfies `direction bound`.
std::optional<int64_t> countTrips(int64_t lower, int64_t step, int64_t bound,
                                  ComparisonDirection direction) {
  // Stay far from overflow, so that plain arithmetic suffices.
  constexpr int64_t kFar = int64_t(1) << 61;
  for (int64_t value : {lower, step, bound})
    if (value > kFar || value < -kFar)
      return std::nullopt;
  switch (direction) {
  case ComparisonDirection::LE:
    return countTrips(lower, step, bound + 1, ComparisonDirection::LT);
  case ComparisonDirection::GE:
    return countTrips(lower, step, bound - 1, ComparisonDirection::GT);
  case ComparisonDirection::GT:
    return countTrips(-lower, -step, -bound, ComparisonDirection::LT);
  case ComparisonDirection::LT:
    if (lower >= bound)
      return 0;
    if (step <= 0)
      return std::nullopt;
    return llvm::divideCeilSigned(bound - lower, step);
  case ComparisonDirection::NE:
    if (lower == bound)
      return 0;
    if (step == 0 || (bound - lower) % step != 0 || (bound - lower) / step < 0)
      return std::nullopt;
    return (bound - lower) / step;
  case ComparisonDirection::EQ:
    // The counter equals the bound at most once, or forever.
    if (lower != bound)
      return 0;
    return step == 0 ? std::nullopt : std::optional<int64_t>(1);
  }
  return std::nullopt;
}

/// Returns the index of the carry that `value` is in the region of a loop.
std::optional<unsigned> carryOf(Value value, Region &region) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner()->getParent() != &region)
    return std::nullopt;
  return argument.getArgNumber();
}

/// Returns the constant that the body adds to the carry `index` in every
/// iteration.
std::optional<int64_t> matchStep(WhileOp loop, unsigned index) {
  Operation *next =
      loop.getBody().front().getTerminator()->getOperand(index).getDefiningOp();
  if (!isa_and_nonnull<AddOp, SubtractOp>(next))
    return std::nullopt;
  Value lhs = next->getOperand(0), rhs = next->getOperand(1);
  if (isa<AddOp>(next) && matchConstantInteger(lhs))
    std::swap(lhs, rhs);
  std::optional<int64_t> amount = matchConstantInteger(rhs);
  if (!amount || carryOf(lhs, loop.getBody()) != index)
    return std::nullopt;
  // An addition of -1 that wraps around is a step down.
  return isa<SubtractOp>(next) ? -*amount : *amount;
}

} // namespace

void stablehlo::forEachRead(Operation *op, function_ref<void(Value)> visit) {
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      visit(operand);
  });
}

std::optional<int64_t> stablehlo::matchConstantInteger(Value value) {
  DenseElementsAttr attr;
  if (!isInteger(value) || !matchPattern(value, m_Constant(&attr)))
    return std::nullopt;
  APInt element = *attr.value_begin<APInt>();
  bool isUnsigned = attr.getElementType().isUnsignedInteger();
  if (isUnsigned && element.getActiveBits() > 63)
    return std::nullopt;
  return isUnsigned ? int64_t(element.getZExtValue()) : element.getSExtValue();
}

std::optional<CountedLoop> stablehlo::matchCountedLoop(WhileOp loop) {
  auto compare = loop.getCond()
                     .front()
                     .getTerminator()
                     ->getOperand(0)
                     .getDefiningOp<CompareOp>();
  if (!compare)
    return std::nullopt;
  Value lhs = compare.getLhs(), rhs = compare.getRhs();
  ComparisonDirection direction = compare.getComparisonDirection();
  if (matchConstantInteger(lhs)) {
    std::swap(lhs, rhs);
    direction = exchanged(direction);
  }
  std::optional<int64_t> bound = matchConstantInteger(rhs);
  std::optional<unsigned> counter = carryOf(lhs, loop.getCond());
  if (!bound || !counter || !isInteger(loop.getOperand()[*counter]))
    return std::nullopt;
  std::optional<int64_t> lower =
      matchConstantInteger(loop.getOperand()[*counter]);
  std::optional<int64_t> step = matchStep(loop, *counter);
  if (!lower || !step)
    return std::nullopt;
  std::optional<int64_t> trips = countTrips(*lower, *step, *bound, direction);
  if (!trips)
    return std::nullopt;
  // Neither the last value nor any before it may wrap around.
  int64_t span, upper;
  if (llvm::MulOverflow(*trips, *step, span) ||
      llvm::AddOverflow(*lower, span, upper) ||
      !Limits(lhs.getType()).contain(upper))
    return std::nullopt;
  return CountedLoop{*counter, *lower, upper, *step, *trips};
}

std::optional<AffineIndex> stablehlo::matchAffineIndex(Value value) {
  if (!isInteger(value))
    return std::nullopt;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<WhileOp>(argument.getOwner()->getParentOp());
    if (!loop || argument.getOwner()->getParent() != &loop.getBody())
      return std::nullopt;
    std::optional<CountedLoop> counted = matchCountedLoop(loop);
    if (!counted || counted->counter != argument.getArgNumber() ||
        counted->trips == 0)
      return std::nullopt;
    int64_t last = counted->upper - counted->step;
    return AffineIndex{argument, 1, 0, std::min(counted->lower, last),
                       std::max(counted->lower, last)};
  }
  Operation *op = value.getDefiningOp();
  if (!isa<AddOp, SubtractOp, MulOp, NegOp, ConvertOp, ReshapeOp,
           BroadcastInDimOp>(op))
    return std::nullopt;
  // result = scale * operand + offset
  int64_t scale = 1, offset = 0;
  Value operand = op->getOperand(0);
  if (op->getNumOperands() == 2) {
    std::optional<int64_t> constant = matchConstantInteger(op->getOperand(1));
    bool first = !constant;
    if (first) {
      constant = matchConstantInteger(operand);
      operand = op->getOperand(1);
    }
    if (!constant)
      return std::nullopt;
    if (isa<MulOp>(op)) {
      scale = *constant;
    } else if (isa<AddOp>(op)) {
      offset = *constant;
    } else {
      scale = first ? -1 : 1;
      offset = first ? *constant : -*constant;
    }
  } else if (isa<NegOp>(op)) {
    scale = -1;
  }
  std::optional<AffineIndex> index = matchAffineIndex(operand);
  if (!index)
    return std::nullopt;
  auto apply = [&](int64_t &number, bool shift) {
    return llvm::MulOverflow(number, scale, number) ||
           (shift && llvm::AddOverflow(number, offset, number));
  };
  if (apply(index->scale, false) || apply(index->offset, true) ||
      apply(index->min, true) || apply(index->max, true))
    return std::nullopt;
  if (index->min > index->max)
    std::swap(index->min, index->max);
  Limits limits(value.getType());
  if (!limits.contain(index->min) || !limits.contain(index->max))
    return std::nullopt;
  return index;
}

/// Returns the range of a sum, difference or product of values in two ranges.
static std::optional<IndexRange> combineRanges(Operation *op, IndexRange lhs,
                                               IndexRange rhs) {
  auto apply = [&](int64_t a, int64_t b, int64_t &result) {
    return isa<AddOp>(op)        ? llvm::AddOverflow(a, b, result)
           : isa<SubtractOp>(op) ? llvm::SubOverflow(a, b, result)
                                 : llvm::MulOverflow(a, b, result);
  };
  std::optional<IndexRange> range;
  for (int64_t a : {lhs.min, lhs.max})
    for (int64_t b : {rhs.min, rhs.max}) {
      int64_t value;
      if (apply(a, b, value))
        return std::nullopt;
      range = range ? IndexRange{std::min(range->min, value),
                                 std::max(range->max, value)}
                    : IndexRange{value, value};
    }
  return range;
}

static std::optional<IndexRange> rangeOf(Value value, unsigned depth) {
  if (std::optional<int64_t> constant = matchConstantInteger(value))
    return IndexRange{*constant, *constant};
  if (std::optional<AffineIndex> index = matchAffineIndex(value))
    return IndexRange{index->min, index->max};
  Operation *op = value.getDefiningOp();
  if (depth == 0 || !isInteger(value) ||
      !isa_and_nonnull<AddOp, SubtractOp, MulOp, ConvertOp, ReshapeOp,
                       BroadcastInDimOp>(op))
    return std::nullopt;
  std::optional<IndexRange> range = rangeOf(op->getOperand(0), depth - 1);
  if (range && op->getNumOperands() == 2) {
    std::optional<IndexRange> other = rangeOf(op->getOperand(1), depth - 1);
    range = other ? combineRanges(op, *range, *other) : std::nullopt;
  }
  Limits limits(value.getType());
  if (!range || !limits.contain(range->min) || !limits.contain(range->max))
    return std::nullopt;
  return range;
}

std::optional<IndexRange> stablehlo::rangeOf(Value value) {
  // Indices of nested loops have a few terms.
  return ::rangeOf(value, /*depth=*/8);
}

std::optional<unsigned> stablehlo::countCutDims(ArrayRef<int64_t> shape,
                                                ArrayRef<int64_t> part) {
  unsigned cut = 0;
  while (cut < part.size() && part[cut] == 1)
    ++cut;
  if (cut < part.size())
    ++cut; // The first dimension with several elements may be cut.
  for (unsigned i = cut; i < part.size(); ++i)
    if (part[i] != shape[i])
      return std::nullopt;
  return cut;
}

Value stablehlo::getReshapeSource(Value value) {
  if (auto reshape = value.getDefiningOp<ReshapeOp>())
    return reshape->getOperand(0);
  auto broadcast = value.getDefiningOp<BroadcastInDimOp>();
  if (!broadcast || !llvm::is_sorted(broadcast.getBroadcastDimensions()))
    return nullptr;
  Value source = broadcast->getOperand(0);
  return cast<ShapedType>(source.getType()).getNumElements() ==
                 cast<ShapedType>(value.getType()).getNumElements()
             ? source
             : Value();
}

Value stablehlo::stripReshapes(Value value) {
  while (Value source = getReshapeSource(value))
    value = source;
  return value;
}

bool stablehlo::isLayer(ArrayRef<int64_t> part, ArrayRef<int64_t> stack) {
  return !part.empty() && part.front() == 1 &&
         part.drop_front() == stack.drop_front();
}

Value StackedIteration::makeCounter(OpBuilder &builder, Location loc) const {
  Type type = counter.getType();
  Value value = index;
  if (value.getType() != type)
    value = ConvertOp::create(builder, loc, type, value);
  if (scale == -1)
    value = NegOp::create(builder, loc, value);
  // counter = scale * index - scale * offset
  if (offset != 0)
    value = AddOp::create(builder, loc, value,
                          integerConstant(builder, loc, type, -scale * offset));
  return value;
}

std::optional<StackingLoop> stablehlo::matchStackingLoop(Value stack) {
  auto loop = stack.getDefiningOp<WhileOp>();
  std::optional<CountedLoop> counted;
  if (loop)
    counted = matchCountedLoop(loop);
  auto type = cast<RankedTensorType>(stack.getType());
  if (!counted || type.getRank() == 0 || counted->trips != type.getDimSize(0))
    return std::nullopt;
  unsigned carry = cast<OpResult>(stack).getResultNumber();
  Block &body = loop.getBody().front();
  auto update = body.getTerminator()
                    ->getOperand(carry)
                    .getDefiningOp<DynamicUpdateSliceOp>();
  if (!update || update.getOperand() != body.getArgument(carry) ||
      update->getBlock() != &body ||
      !isLayer(cast<RankedTensorType>(update.getUpdate().getType()).getShape(),
               type.getShape()))
    return std::nullopt;
  std::optional<AffineIndex> slot =
      matchAffineIndex(update.getStartIndices().front());
  if (!slot || slot->counter != body.getArgument(counted->counter) ||
      std::abs(slot->scale) != 1 || slot->min != 0 ||
      slot->max != type.getDimSize(0) - 1)
    return std::nullopt;
  return StackingLoop{update, *slot};
}

Value stablehlo::matchSlot(DynamicSliceOp slice) {
  auto type = cast<RankedTensorType>(slice.getOperand().getType());
  if (!isLayer(slice.getSliceSizes(), type.getShape()))
    return nullptr;
  Value start = slice.getStartIndices().front();
  std::optional<IndexRange> range = rangeOf(start);
  return range && range->isInside(type.getDimSize(0)) ? start : Value();
}

bool stablehlo::isVisible(Value value, Operation *op) {
  Operation *ancestor = value.getParentBlock()->findAncestorOpInBlock(*op);
  Operation *def = value.getDefiningOp();
  return ancestor && (!def || def->isBeforeInBlock(ancestor));
}

static std::optional<SmallVector<StackOffset>>
matchPart(ArrayRef<int64_t> shape, ArrayRef<int64_t> part, ValueRange starts) {
  if (!countCutDims(shape, part))
    return std::nullopt;
  SmallVector<StackOffset> offsets(shape.size());
  bool moves = false;
  for (auto [offset, start, size, extent] :
       llvm::zip(offsets, starts, part, shape)) {
    if (size == extent)
      continue; // The start is clamped to 0.
    if (std::optional<int64_t> constant = matchConstantInteger(start)) {
      offset.constant = std::clamp<int64_t>(*constant, 0, extent - size);
      continue;
    }
    offset.index = matchAffineIndex(start);
    if (!offset.index || offset.index->min < 0 ||
        offset.index->max > extent - size)
      return std::nullopt;
    moves = true;
  }
  if (!moves)
    return std::nullopt;
  return offsets;
}

std::optional<SmallVector<StackOffset>>
stablehlo::matchStackPart(DynamicSliceOp op) {
  return matchPart(cast<RankedTensorType>(op.getOperand().getType()).getShape(),
                   cast<RankedTensorType>(op.getType()).getShape(),
                   op.getStartIndices());
}

std::optional<SmallVector<StackOffset>>
stablehlo::matchStackPart(DynamicUpdateSliceOp op) {
  return matchPart(cast<RankedTensorType>(op.getType()).getShape(),
                   cast<RankedTensorType>(op.getUpdate().getType()).getShape(),
                   op.getStartIndices());
}
