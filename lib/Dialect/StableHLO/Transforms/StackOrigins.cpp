//===- StackOrigins.cpp - Reading origins instead of stacks ---------------===//

#include "LoopRewriting.h"

#include "fp8/Dialect/StableHLO/IR/Constants.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::stablehlo;

namespace {
/// The origin of a part of a stack: the value that a loop stacked, and the
/// iterations of the loops around it that the part belongs to.
struct Stacked {
  Value value;
  SmallVector<StackedIteration> iterations;
};
} // namespace

/// Returns the value that a loop stacked for `slice`, if each iteration of the
/// loop fills one slot of the stack.
static std::optional<Stacked> findStacked(DynamicSliceOp slice) {
  Value stack = slice.getOperand();
  auto type = cast<RankedTensorType>(stack.getType());
  Value start = matchSlot(slice);
  if (!start)
    return std::nullopt;
  Stacked result;
  if (auto outer = stripReshapes(stack).getDefiningOp<DynamicSliceOp>()) {
    std::optional<Stacked> found = findStacked(outer);
    if (!found)
      return std::nullopt;
    result = *found;
    stack = found->value;
  }
  if (stack.getType() != type)
    return std::nullopt;
  std::optional<StackingLoop> loop = matchStackingLoop(stack);
  if (!loop)
    return std::nullopt;
  result.iterations.push_back(
      {loop->slot.counter, start, loop->slot.scale, loop->slot.offset});
  result.value = stripReshapes(loop->update.getUpdate());
  return result;
}

namespace {
/// Recomputes, before `reader`, a value that is sliced from arrays that the
/// reader could slice itself, or that is computed from counters.
class Recomputer {
public:
  Recomputer(Operation *reader, const Stacked &stacked)
      : reader(reader), stacked(stacked), builder(reader) {}

  /// Returns null if the value cannot, or should not, be recomputed.
  Value get(Value value) {
    // Check first, without changing anything.
    return check(value, /*depth=*/8) ? make(value) : Value();
  }

private:
  const StackedIteration *getIteration(Value value) const {
    auto found = llvm::find_if(stacked.iterations, [&](const auto &iteration) {
      return iteration.counter == value;
    });
    return found == stacked.iterations.end() ? nullptr : found;
  }
  bool isReadable(Value value) const { return isVisible(value, reader); }
  bool check(Value value, unsigned depth) const {
    if (getIteration(value) || isReadable(value))
      return true;
    Operation *op = value.getDefiningOp();
    if (!op || depth == 0)
      return false;
    auto type = cast<RankedTensorType>(value.getType());
    bool isIndex = isa<IntegerType>(type.getElementType()) &&
                   !type.getElementType().isInteger(1) &&
                   type.getNumElements() == 1;
    if (!isa<DynamicSliceOp, ReshapeOp>(op) &&
        !(isIndex && isa<ConstantOp, AddOp, SubtractOp, MulOp, NegOp, ConvertOp,
                         BroadcastInDimOp>(op)))
      return false;
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      return check(operand, depth - 1);
    });
  }
  Value make(Value value) {
    if (const StackedIteration *iteration = getIteration(value))
      return iteration->makeCounter(builder, reader->getLoc());
    if (isReadable(value))
      return value;
    IRMapping operands;
    for (Value operand : value.getDefiningOp()->getOperands())
      operands.map(operand, make(operand));
    return builder.clone(*value.getDefiningOp(), operands)->getResult(0);
  }

  Operation *reader;
  const Stacked &stacked;
  OpBuilder builder;
};
} // namespace

namespace {
/// The integers `first + i * by`, which wrap around as those of their type do.
struct Progression {
  uint64_t first, by;
};
} // namespace

/// Matches a constant array of integers with constant differences.
static std::optional<Progression>
matchConstantProgression(DenseElementsAttr constant, IntegerType element) {
  SmallVector<uint64_t> numbers;
  for (const APInt &number : constant.getValues<APInt>())
    numbers.push_back(element.isUnsigned() ? number.getZExtValue()
                                           : number.getSExtValue());
  Progression found{numbers.front(),
                    numbers.size() > 1 ? numbers[1] - numbers[0] : 0};
  for (auto [i, number] : llvm::enumerate(numbers))
    if (number != found.first + found.by * i)
      return std::nullopt;
  return found;
}

/// Matches an array of integers with constant differences: what `arange` makes,
/// also reversed, or in arithmetic with constants.
static std::optional<Progression>
matchProgression(Value array, IntegerType element, unsigned depth = 8) {
  DenseElementsAttr constant;
  if (matchPattern(array, m_Constant(&constant)))
    return matchConstantProgression(constant, element);
  Operation *op = array.getDefiningOp();
  if (isa_and_nonnull<IotaOp>(op))
    return Progression{0, 1};
  if (depth == 0 ||
      !isa_and_nonnull<ReverseOp, NegOp, AddOp, SubtractOp, MulOp>(op))
    return std::nullopt;
  auto lhs = matchProgression(op->getOperand(0), element, depth - 1);
  if (!lhs)
    return std::nullopt;
  uint64_t last = cast<ShapedType>(array.getType()).getNumElements() - 1;
  if (isa<ReverseOp>(op))
    return Progression{lhs->first + lhs->by * last, -lhs->by};
  if (isa<NegOp>(op))
    return Progression{-lhs->first, -lhs->by};
  auto rhs = matchProgression(op->getOperand(1), element, depth - 1);
  if (!rhs)
    return std::nullopt;
  if (isa<AddOp>(op))
    return Progression{lhs->first + rhs->first, lhs->by + rhs->by};
  if (isa<SubtractOp>(op))
    return Progression{lhs->first - rhs->first, lhs->by - rhs->by};
  if (lhs->by != 0 && rhs->by != 0)
    return std::nullopt;
  return Progression{lhs->first * rhs->first,
                     lhs->by * rhs->first + rhs->by * lhs->first};
}

/// Computes an element of an array of integers with constant differences, such
/// as `arange` makes, from its index.
static Value readProgression(DynamicSliceOp slice) {
  auto type = cast<RankedTensorType>(slice.getOperand().getType());
  auto element = dyn_cast<IntegerType>(type.getElementType());
  if (type.getRank() != 1 || !element || element.getWidth() < 32)
    return {};
  Value start = matchSlot(slice);
  if (!start)
    return {};
  std::optional<Progression> numbers =
      matchProgression(slice.getOperand(), element);
  if (!numbers)
    return {};
  OpBuilder b(slice);
  Location loc = slice.getLoc();
  auto scalar = RankedTensorType::get({}, element);
  Value index = start;
  if (index.getType() != scalar)
    index = ConvertOp::create(b, loc, scalar, index);
  index = MulOp::create(b, loc, index,
                        integerConstant(b, loc, scalar, numbers->by));
  return AddOp::create(b, loc, index,
                       integerConstant(b, loc, scalar, numbers->first));
}

bool stablehlo::readOrigin(DynamicSliceOp slice) {
  Value value = readProgression(slice);
  if (!value)
    if (std::optional<Stacked> stacked = findStacked(slice))
      value = Recomputer(slice, *stacked).get(stacked->value);
  if (!value)
    return false;
  OpBuilder b(slice);
  if (value.getType() != slice.getType())
    value = ReshapeOp::create(b, slice.getLoc(), slice.getType(), value);
  slice.replaceAllUsesWith(value);
  slice.erase();
  return true;
}

/// Returns the array whose slices a loop stacks in their order; null if `stack`
/// is no copy.
static Value findCopiedArray(Value stack) {
  std::optional<StackingLoop> loop = matchStackingLoop(stack);
  auto slice = loop ? stripReshapes(loop->update.getUpdate())
                          .getDefiningOp<DynamicSliceOp>()
                    : DynamicSliceOp();
  Value start = slice ? matchSlot(slice) : Value();
  std::optional<AffineIndex> index;
  if (start)
    index = matchAffineIndex(start);
  bool isSame = index && index->counter == loop->slot.counter &&
                index->scale == loop->slot.scale &&
                index->offset == loop->slot.offset;
  return isSame && slice.getOperand().getType() == stack.getType() &&
                 isVisible(slice.getOperand(), stack.getDefiningOp())
             ? slice.getOperand()
             : Value();
}

bool stablehlo::readCopiedArrays(WhileOp loop) {
  bool changed = false;
  for (OpResult result : loop->getResults()) {
    Value array = result.use_empty() ? Value() : findCopiedArray(result);
    if (!array)
      continue;
    result.replaceAllUsesWith(array);
    changed = true;
  }
  return changed;
}
