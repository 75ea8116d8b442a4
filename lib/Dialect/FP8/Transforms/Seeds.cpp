//===- Seeds.cpp - Seeds of stochastic rounding ---------------------------===//

#include "Seeds.h"

#include "State/StateFunctions.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Counters of the step
//===----------------------------------------------------------------------===//

static Value skipCopies(Value value) {
  while (
      isa_and_nonnull<stablehlo::OptimizationBarrierOp, stablehlo::ReshapeOp>(
          value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(
        isa<stablehlo::ReshapeOp>(value.getDefiningOp())
            ? 0
            : cast<OpResult>(value).getResultNumber());
  return value;
}

static bool isCounterType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == 0 &&
         (tensor.getElementType().isInteger(32) ||
          tensor.getElementType().isInteger(64));
}

static APInt getLargest(IntegerType type) {
  return type.isUnsigned() ? APInt::getMaxValue(type.getWidth())
                           : APInt::getSignedMaxValue(type.getWidth());
}

/// Whether `op` selects the largest value of its type once `counter` has
/// reached it, as optax's safe_increment does.
static bool isSaturation(stablehlo::SelectOp op, Value counter) {
  auto isLargest = [&](Value value) {
    APInt number;
    return matchPattern(value, m_ConstantInt(&number)) &&
           number == getLargest(cast<IntegerType>(getElementTypeOrSelf(value)));
  };
  auto compare = op->getOperand(0).getDefiningOp<stablehlo::CompareOp>();
  return compare && skipCopies(compare.getLhs()) == counter &&
         compare.getComparisonDirection() ==
             stablehlo::ComparisonDirection::LT &&
         isLargest(compare.getRhs()) && isLargest(op->getOperand(2));
}

/// Whether `value` is larger than `counter` on all paths of the step.
static bool advances(Value value, Value counter) {
  value = skipCopies(value);
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return false;
  Operation *op = result.getOwner();
  unsigned index = result.getResultNumber();
  auto isOrAdvances = [&](Value part) {
    return skipCopies(part) == counter || advances(part, counter);
  };
  if (isa<stablehlo::AddOp>(op))
    return llvm::any_of(llvm::seq(2u), [&](unsigned i) {
      std::optional<int64_t> more =
          stablehlo::matchConstantInteger(op->getOperand(1 - i));
      return more && *more > 0 && isOrAdvances(op->getOperand(i));
    });
  if (auto select = dyn_cast<stablehlo::SelectOp>(op))
    return advances(op->getOperand(1), counter) &&
           (advances(op->getOperand(2), counter) ||
            isSaturation(select, counter));
  if (stablehlo::isBranch(op))
    return llvm::all_of(op->getRegions(), [&](Region &region) {
      return advances(yielded(region, index), counter);
    });
  auto loop = dyn_cast<stablehlo::WhileOp>(op);
  if (!loop || !isOrAdvances(op->getOperand(index)))
    return false;
  Value carried = loop.getBody().getArgument(index);
  Value next = yielded(loop.getBody(), index);
  if (advances(op->getOperand(index), counter))
    return skipCopies(next) == carried || advances(next, carried);
  auto counted = stablehlo::matchCountedLoop(loop);
  return counted && counted->trips > 0 && advances(next, carried);
}

/// Returns the carry of a loop that counts its iterations. A loop that ends on
/// another condition, such as a line search, may have one, too.
static std::optional<unsigned> findCounter(stablehlo::WhileOp loop) {
  if (auto counted = stablehlo::matchCountedLoop(loop))
    return counted->counter;
  for (BlockArgument carried : loop.getBody().getArguments()) {
    if (isCounterType(carried.getType()) &&
        advances(yielded(loop.getBody(), carried.getArgNumber()), carried))
      return carried.getArgNumber();
  }
  return std::nullopt;
}

/// Whether an argument of the step counts all of its calls. A counter of
/// updates, or of the micro-batches of one update, stands still or restarts.
static bool countsCalls(func::FuncOp function, BlockArgument arg) {
  auto attr = [&](StringRef name) {
    return function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), name);
  };
  if (stateKindOf(arg) != StateKind::Step || !isCounterType(arg.getType()))
    return false;
  Operation *ret = function.getBody().front().getTerminator();
  return llvm::any_of(llvm::seq(function.getNumResults()), [&](unsigned i) {
    return attr(FP8Dialect::kPathAttrName) &&
           function.getResultAttr(i, FP8Dialect::kStateAttrName) ==
               attr(FP8Dialect::kPathAttrName) &&
           advances(ret->getOperand(i), arg);
  });
}

/// Adds a counter to the state of a step that has none.
static Value addCounter(func::FuncOp function) {
  OpBuilder builder(function.getContext());
  Location loc = function.getLoc();
  auto type = RankedTensorType::get({}, builder.getI64Type());
  StringAttr path = builder.getStringAttr("fp8.step");
  auto named = [&](StringRef name, Attribute value) {
    return builder.getNamedAttr(name, value);
  };
  unsigned index = function.getNumArguments();
  (void)function.insertArgument(
      index, type,
      builder.getDictionaryAttr(
          {named(FP8Dialect::kPathAttrName, path),
           named(FP8Dialect::kRoleAttrName, builder.getStringAttr("state")),
           named(FP8Dialect::kKindAttrName,
                 builder.getStringAttr(stringifyEnum(StateKind::Step))),
           named(FP8Dialect::kZeroInitAttrName, builder.getUnitAttr())}),
      loc);
  Value counter = function.getArgument(index);
  Operation *ret = function.getBody().front().getTerminator();
  builder.setInsertionPoint(ret);
  Value one = stablehlo::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(type, int64_t(1)));
  Value next = stablehlo::AddOp::create(builder, loc, counter, one);
  (void)function.insertResult(
      function.getNumResults(), type,
      builder.getDictionaryAttr({named(FP8Dialect::kPathAttrName, path),
                                 named(FP8Dialect::kStateAttrName, path)}));
  ret->insertOperands(ret->getNumOperands(), next);
  return counter;
}

//===----------------------------------------------------------------------===//
// Seeds
//===----------------------------------------------------------------------===//

/// Returns the seed for a value of a counter, which may be unsigned.
static Value mix(OpBuilder &b, Location loc, Value seed, Value counter) {
  auto element = cast<IntegerType>(getElementTypeOrSelf(counter));
  if (element.isUnsigned())
    counter = stablehlo::BitcastConvertOp::create(
        b, loc, RankedTensorType::get({}, b.getIntegerType(element.getWidth())),
        counter);
  return MixSeedOp::create(b, loc, seed.getType(), seed, counter);
}

/// Returns the seed of the whole function.
Value Seeds::getOuter() {
  Block &block = function.getBody().front();
  Location loc = function.getLoc();
  Value counter;
  if (replacesState(function)) {
    auto found = llvm::find_if(block.getArguments(), [&](BlockArgument arg) {
      return countsCalls(function, arg);
    });
    counter =
        found == block.getArguments().end() ? addCounter(function) : *found;
  }
  builder.setInsertionPointToStart(&block);
  auto type = RankedTensorType::get({}, builder.getI64Type());
  Value base = stablehlo::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(type, seed));
  // A function that is not a step draws the same numbers in every call.
  return counter ? mix(builder, loc, base, counter) : base;
}

FailureOr<Value> Seeds::get(Block *block) {
  if (Value known = seeds.lookup(block))
    return known;
  Operation *parent = block->getParentOp();
  if (parent == function)
    return seeds[block] = getOuter();
  FailureOr<Value> outer = get(parent->getBlock());
  if (failed(outer))
    return failure();
  auto loop = dyn_cast<stablehlo::WhileOp>(parent);
  if (!loop)
    return seeds[block] = *outer;
  std::optional<unsigned> counter = findCounter(loop);
  if (!counter)
    return loop->emitError() << "rounding: stochastic draws other numbers each "
                                "iteration, but this loop has no counter";
  builder.setInsertionPointToStart(block);
  return seeds[block] = mix(builder, function.getLoc(), *outer,
                            block->getArgument(*counter));
}
