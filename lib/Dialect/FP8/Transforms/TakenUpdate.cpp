//===- TakenUpdate.cpp - Whether a step takes its update ------------------===//

#include "TakenUpdate.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <map>
#include <memory>

using namespace mlir;
using namespace mlir::fp8;

namespace {

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

/// The condition under which a value changes, or is not zero.
struct Condition {
  enum Kind {
    Never,
    Always,
    Choice, ///< The part that the predicate chooses.
    Any,    ///< Any of the parts.
    All,    ///< All of the parts.
    Loop    ///< The part, in any iteration.
  };
  Kind kind;
  /// A choice has a boolean (true is the first part) or the index of the part;
  /// a loop has the result of its condition.
  Value predicate = {};
  /// The branch or the loop, if the parts belong to its regions.
  Operation *op = nullptr;
  SmallVector<const Condition *> parts = {};
  /// Whether the predicate reads gradients; otherwise it counts calls.
  bool readsGradients = false;
};

/// Finds conditions; equal conditions are one object.
class Conditions {
public:
  /// Returns when `value` differs from `argument`.
  const Condition *changed(Value value, Value argument);
  /// Returns when `value` is not zero everywhere. If `assumesFinite`, a value
  /// that counts as zero may be NaN.
  const Condition *nonZero(Value value);

  const Condition *anyOf(ArrayRef<const Condition *> parts);

  /// Whether a product with zero or a quotient of zero was taken to be zero.
  bool assumesFinite() const { return assumedZero; }

private:
  using Find = function_ref<const Condition *(Value)>;
  const Condition *make(Condition condition);
  const Condition *allOf(ArrayRef<const Condition *> parts);
  const Condition *choose(Value predicate, ArrayRef<const Condition *> parts,
                          Operation *op = nullptr);
  const Condition *ofBranch(OpResult result, Find find);
  const Condition *ofLoop(OpResult result, Value argument);
  const Condition *findChanged(Value value, Value argument);
  const Condition *findNonZero(Value value);
  /// Returns when `value` is not one everywhere.
  const Condition *notOne(Value value);
  bool readsGradients(Value predicate);

  const Condition *never() { return make({Condition::Never}); }
  const Condition *always() { return make({Condition::Always}); }

  using Key = std::tuple<int, void *, Operation *,
                         std::vector<const Condition *>, bool>;
  std::map<Key, std::unique_ptr<Condition>> known;
  DenseMap<Value, const Condition *> nonZeros;
  DenseMap<std::pair<Value, Value>, const Condition *> changes;
  DenseMap<Value, bool> judging;
  bool assumedZero = false;
};

} // namespace

/// Returns the value of a constant boolean.
static std::optional<bool> getConstant(Value value) {
  if (auto flag = dyn_cast_or_null<BoolAttr>(stablehlo::getSplat(value)))
    return flag.getValue();
  return std::nullopt;
}

const Condition *Conditions::make(Condition condition) {
  Key key{condition.kind, condition.predicate.getAsOpaquePointer(),
          condition.op,
          std::vector<const Condition *>(condition.parts.begin(),
                                         condition.parts.end()),
          condition.readsGradients};
  std::unique_ptr<Condition> &entry = known[key];
  if (!entry)
    entry = std::make_unique<Condition>(std::move(condition));
  return entry.get();
}

const Condition *Conditions::anyOf(ArrayRef<const Condition *> parts) {
  SmallVector<const Condition *> kept;
  for (const Condition *part : parts) {
    if (part->kind == Condition::Always)
      return part;
    if (part->kind != Condition::Never && !llvm::is_contained(kept, part))
      kept.push_back(part);
  }
  if (kept.empty())
    return never();
  return kept.size() == 1 ? kept.front()
                          : make({Condition::Any, {}, nullptr, kept});
}

const Condition *Conditions::allOf(ArrayRef<const Condition *> parts) {
  SmallVector<const Condition *> kept;
  for (const Condition *part : parts) {
    if (part->kind == Condition::Never)
      return part;
    if (part->kind != Condition::Always && !llvm::is_contained(kept, part))
      kept.push_back(part);
  }
  if (kept.empty())
    return always();
  return kept.size() == 1 ? kept.front()
                          : make({Condition::All, {}, nullptr, kept});
}

/// Whether a predicate is computed from tensors of floats, not from scalars
/// alone.
bool Conditions::readsGradients(Value predicate) {
  auto [it, isNew] = judging.try_emplace(predicate, false);
  if (isNew)
    it->second = llvm::any_of(sliceOf({predicate}, {}), [](Value value) {
      return isFloat(value.getType()) && !isScalar(value.getType());
    });
  return it->second;
}

const Condition *Conditions::choose(Value predicate,
                                    ArrayRef<const Condition *> parts,
                                    Operation *op) {
  // A tensor of booleans is known only if it is broadcast from a scalar.
  predicate = stablehlo::skipBroadcasts(predicate);
  // Otherwise each element has its own predicate.
  if (!isScalar(predicate.getType()))
    return anyOf(parts);
  if (llvm::all_equal(parts) && parts.front()->kind <= Condition::Always)
    return parts.front();
  if (getElementTypeOrSelf(predicate.getType()).isInteger(1)) {
    if (std::optional<bool> known = getConstant(predicate))
      return parts[*known ? 0 : 1];
  } else if (std::optional<int64_t> index =
                 stablehlo::matchConstantInteger(predicate)) {
    int64_t last = parts.size() - 1;
    return parts[*index < 0 || *index > last ? last : *index];
  }
  return make({Condition::Choice, predicate, op,
               SmallVector<const Condition *>(parts),
               readsGradients(predicate)});
}

const Condition *Conditions::ofBranch(OpResult result, Find find) {
  Operation *op = result.getOwner();
  SmallVector<const Condition *> parts;
  for (Region &region : op->getRegions())
    parts.push_back(find(yielded(region, result.getResultNumber())));
  return choose(op->getOperand(0), parts, op);
}

/// Returns when a loop that carries the parameter changes it: when an iteration
/// does.
const Condition *Conditions::ofLoop(OpResult result, Value argument) {
  auto loop = cast<stablehlo::WhileOp>(result.getOwner());
  unsigned index = result.getResultNumber();
  const Condition *before = changed(loop->getOperand(index), argument);
  if (before->kind == Condition::Always)
    return before;
  Region &body = loop.getBody();
  const Condition *inside =
      changed(yielded(body, index), body.getArgument(index));
  auto counted = stablehlo::matchCountedLoop(loop);
  if (inside->kind == Condition::Never ||
      (inside->kind == Condition::Always && counted && counted->trips > 0))
    return anyOf({before, inside});
  Value runs = yielded(loop.getCond(), 0);
  const Condition *any = make({Condition::Loop,
                               runs,
                               loop,
                               {inside},
                               !counted && readsGradients(runs)});
  return anyOf({before, any});
}

const Condition *Conditions::changed(Value value, Value argument) {
  if (const Condition *found = changes.lookup({value, argument}))
    return found;
  const Condition *found = findChanged(value, argument);
  return changes[{value, argument}] = found;
}

/// Whether type `wide` can hold every value of type `narrow`.
static bool holds(Type wide, Type narrow) {
  wide = getElementTypeOrSelf(wide);
  narrow = getElementTypeOrSelf(narrow);
  if (wide == narrow)
    return true;
  auto to = dyn_cast<FloatType>(wide), from = dyn_cast<FloatType>(narrow);
  return to && from &&
         APFloat::isRepresentableBy(from.getFloatSemantics(),
                                    to.getFloatSemantics());
}

const Condition *Conditions::findChanged(Value value, Value argument) {
  if (value == argument)
    return never();
  auto same = [&](Value part) { return changed(part, argument); };
  Operation *op = value.getDefiningOp();
  // A type that cannot hold the old value changes it.
  if (!op || !holds(value.getType(), argument.getType()))
    return always();
  // The update may be computed in another type than it is stored in.
  if (isa<stablehlo::ConvertOp, stablehlo::ReshapeOp>(op))
    return same(op->getOperand(0));
  if (isa<stablehlo::OptimizationBarrierOp>(op))
    return same(op->getOperand(cast<OpResult>(value).getResultNumber()));
  if (isa<stablehlo::SelectOp>(op))
    return choose(op->getOperand(0),
                  {same(op->getOperand(1)), same(op->getOperand(2))});
  if (stablehlo::isBranch(op))
    return ofBranch(cast<OpResult>(value), same);
  if (isa<stablehlo::WhileOp>(op))
    return ofLoop(cast<OpResult>(value), argument);
  bool commutes = isa<stablehlo::AddOp, stablehlo::MulOp>(op);
  if (!commutes && !isa<stablehlo::SubtractOp>(op))
    return always();
  for (unsigned i = 0; i < (commutes ? 2 : 1); ++i) {
    const Condition *kept = same(op->getOperand(i));
    if (kept->kind == Condition::Always)
      continue;
    Value other = op->getOperand(1 - i);
    return anyOf(
        {kept, isa<stablehlo::MulOp>(op) ? notOne(other) : nonZero(other)});
  }
  return always();
}

const Condition *Conditions::nonZero(Value value) {
  if (const Condition *found = nonZeros.lookup(value))
    return found;
  const Condition *found = findNonZero(value);
  return nonZeros[value] = found;
}

/// Returns constant bounds of all elements of a value.
static std::optional<std::pair<double, double>> getRange(Value value) {
  while (isa_and_nonnull<stablehlo::BroadcastInDimOp, stablehlo::ReshapeOp>(
      value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  DenseFPElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) || elements.empty())
    return std::nullopt;
  auto asDouble = [](const APFloat &element) {
    return element.convertToDouble();
  };
  auto all = elements.getValues<APFloat>();
  auto different = elements.isSplat()
                       ? llvm::make_range(all.begin(), all.begin() + 1)
                       : llvm::make_range(all.begin(), all.end());
  auto numbers = llvm::map_range(different, asDouble);
  std::pair<double, double> range(*numbers.begin(), *numbers.begin());
  for (double number : numbers) {
    if (std::isnan(number))
      return std::nullopt;
    range = {std::min(range.first, number), std::max(range.second, number)};
  }
  return range;
}

static bool isAtMostZero(Value value) {
  auto range = getRange(value);
  return range && range->second <= 0;
}

static bool isAtLeastZero(Value value) {
  auto range = getRange(value);
  return range && range->first >= 0;
}

const Condition *Conditions::findNonZero(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return always();
  if (stablehlo::isZeros(value))
    return never();
  auto operand = [&](unsigned i) { return nonZero(op->getOperand(i)); };
  // The result is zero unless the other operand is infinite, NaN or zero
  // itself.
  auto unlessNaN = [&](const Condition *condition) {
    assumedZero |=
        isFloat(value.getType()) && condition->kind != Condition::Always;
    return condition;
  };
  if (isa<stablehlo::ConvertOp>(op)) {
    Value source = op->getOperand(0);
    if (getElementTypeOrSelf(source.getType()).isInteger(1))
      return choose(source, {always(), never()});
    // An integer converted from a value that may be NaN can be anything.
    return isFloat(source.getType()) && !isFloat(value.getType()) ? always()
                                                                  : operand(0);
  }
  if (isa<stablehlo::BroadcastInDimOp, stablehlo::ReshapeOp,
          stablehlo::TransposeOp, stablehlo::SliceOp, stablehlo::DynamicSliceOp,
          stablehlo::NegOp, stablehlo::AbsOp, stablehlo::SignOp,
          stablehlo::SqrtOp, stablehlo::TanhOp>(op))
    return operand(0);
  if (isa<stablehlo::DivOp>(op) && isFloat(value.getType()))
    return unlessNaN(operand(0));
  if (isa<stablehlo::OptimizationBarrierOp>(op))
    return operand(cast<OpResult>(value).getResultNumber());
  // A bound that lets zero pass does not matter.
  if (isa<stablehlo::ClampOp>(op))
    return anyOf({isAtMostZero(op->getOperand(0)) ? never() : operand(0),
                  operand(1),
                  isAtLeastZero(op->getOperand(2)) ? never() : operand(2)});
  if (isa<stablehlo::MaxOp, stablehlo::MinOp>(op)) {
    auto passesZero = isa<stablehlo::MaxOp>(op) ? isAtMostZero : isAtLeastZero;
    SmallVector<const Condition *> parts;
    for (Value bound : op->getOperands())
      if (!passesZero(bound))
        parts.push_back(nonZero(bound));
    // If both let zero pass, the result is zero if both operands are.
    return parts.empty() ? anyOf({operand(0), operand(1)}) : anyOf(parts);
  }
  if (isa<stablehlo::AddOp, stablehlo::SubtractOp>(op))
    return anyOf({operand(0), operand(1)});
  if (isa<stablehlo::MulOp>(op))
    return unlessNaN(allOf({operand(0), operand(1)}));
  if (isa<stablehlo::AndOp>(op))
    return allOf({operand(0), operand(1)});
  if (isa<stablehlo::SelectOp>(op))
    return choose(op->getOperand(0), {operand(1), operand(2)});
  if (stablehlo::isBranch(op))
    return ofBranch(cast<OpResult>(value),
                    [&](Value part) { return nonZero(part); });
  return always();
}

const Condition *Conditions::notOne(Value value) {
  Operation *op = value.getDefiningOp();
  if (matchPattern(value, m_OneFloat()) || matchPattern(value, m_One()))
    return never();
  if (isa_and_nonnull<stablehlo::ConvertOp, stablehlo::BroadcastInDimOp,
                      stablehlo::ReshapeOp>(op)) {
    Value source = op->getOperand(0);
    if (getElementTypeOrSelf(source.getType()).isInteger(1) &&
        isa<stablehlo::ConvertOp>(op))
      return choose(source, {never(), always()});
    return notOne(source);
  }
  // 1 - x
  if (isa_and_nonnull<stablehlo::SubtractOp>(op) &&
      notOne(op->getOperand(0))->kind == Condition::Never)
    return nonZero(op->getOperand(1));
  if (isa_and_nonnull<stablehlo::SelectOp>(op))
    return choose(op->getOperand(0),
                  {notOne(op->getOperand(1)), notOne(op->getOperand(2))});
  return always();
}

//===----------------------------------------------------------------------===//
// Conditions as values
//===----------------------------------------------------------------------===//

namespace {
/// Computes conditions at the ends of blocks.
class ConditionBuilder {
public:
  explicit ConditionBuilder(func::FuncOp function)
      : builder(function.getContext()), loc(function.getLoc()),
        type(RankedTensorType::get({}, builder.getI1Type())) {}

  /// Computes whether the condition holds. If not `strictly`, computes whether
  /// it holds or fails only because of predicates that count calls.
  Value make(const Condition *condition, Block *block, bool strictly);

  /// Returns the value as no result of a loop or a branch, because those may
  /// still be replaced.
  Value detach(Value value);

  /// Erases the loops and branches that have been replaced.
  void eraseReplaced();

private:
  Value makePart(const Condition *part, const Condition &parent, Block *block,
                 bool strictly);
  Value makeChoice(const Condition &choice, Block *block, bool strictly);
  Value makeBranch(const Condition &branch, bool strictly);
  Value makeLoop(const Condition &loop, bool strictly);
  Value makeConstant(bool value);
  Value select(Value predicate, Value whenTrue, Value whenFalse);
  Value current(Value value) const;
  Operation *current(Operation *op) const;

  OpBuilder builder;
  Location loc;
  RankedTensorType type;
  std::map<std::tuple<const Condition *, Block *, bool>, Value> made;
  /// Loops and branches, with those of more results that replace them.
  llvm::MapVector<Operation *, Operation *> replaced;
};
} // namespace

Operation *fp8::cloneAroundRegions(OpBuilder &builder, Operation *op,
                                   ArrayRef<Value> operands,
                                   ArrayRef<Type> results) {
  builder.setInsertionPoint(op);
  OperationState state(op->getLoc(), op->getName(), operands, results,
                       op->getAttrs());
  for (unsigned i = 0; i < op->getNumRegions(); ++i)
    state.addRegion();
  Operation *copy = builder.create(state);
  for (auto [from, to] : llvm::zip(op->getRegions(), copy->getRegions()))
    to.takeBody(from);
  op->replaceAllUsesWith(copy->getResults().take_front(op->getNumResults()));
  return copy;
}

/// Returns the op that has replaced an op of the original function, or the op
/// itself.
Operation *ConditionBuilder::current(Operation *op) const {
  while (op && replaced.contains(op))
    op = replaced.lookup(op);
  return op;
}

/// Returns the value that has replaced a value of the original function, or the
/// value itself.
Value ConditionBuilder::current(Value value) const {
  Operation *op = current(value.getDefiningOp());
  return op && op != value.getDefiningOp()
             ? op->getResult(cast<OpResult>(value).getResultNumber())
             : value;
}

Value ConditionBuilder::makeConstant(bool value) {
  return stablehlo::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(type, ArrayRef<bool>(value)));
}

Value ConditionBuilder::select(Value predicate, Value whenTrue,
                               Value whenFalse) {
  std::optional<bool> first = getConstant(whenTrue),
                      second = getConstant(whenFalse);
  if (whenTrue == whenFalse || (first && first == second))
    return whenTrue;
  if (first && second)
    return *first ? predicate
                  : stablehlo::NotOp::create(builder, loc, predicate);
  return stablehlo::SelectOp::create(builder, loc, predicate, whenTrue,
                                     whenFalse);
}

/// Whether a value that the condition reads is defined inside `op`.
static bool isInside(const Condition &condition, Operation *op) {
  Value predicate = condition.predicate;
  if (predicate && op->isAncestor(predicate.getParentBlock()->getParentOp()))
    return true;
  return llvm::any_of(condition.parts, [&](const Condition *part) {
    return isInside(*part, op);
  });
}

/// Whether the condition counts calls, and so waits for one.
static bool waitsForCall(const Condition &condition) {
  bool counts =
      condition.kind == Condition::Choice || condition.kind == Condition::Loop;
  return (counts && !condition.readsGradients) ||
         llvm::any_of(condition.parts, [](const Condition *part) {
           return waitsForCall(*part);
         });
}

Value ConditionBuilder::makePart(const Condition *part, const Condition &parent,
                                 Block *block, bool strictly) {
  // An update that waits for a later call has not been rejected.
  if (!strictly && !parent.readsGradients && part->kind == Condition::Never) {
    builder.setInsertionPoint(block->getTerminator());
    return makeConstant(true);
  }
  return make(part, block, strictly);
}

Value ConditionBuilder::makeChoice(const Condition &choice, Block *block,
                                   bool strictly) {
  SmallVector<Value> parts;
  for (const Condition *part : choice.parts)
    parts.push_back(makePart(part, choice, block, strictly));
  Value predicate = current(choice.predicate);
  builder.setInsertionPoint(block->getTerminator());
  if (getElementTypeOrSelf(predicate.getType()).isInteger(1))
    return select(predicate, current(parts[0]), current(parts[1]));
  // An index that is out of range chooses the last part.
  Value result = current(parts.back());
  for (unsigned i = parts.size() - 1; i-- > 0;) {
    Value index = stablehlo::ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(cast<RankedTensorType>(predicate.getType()),
                               builder.getI32IntegerAttr(i)));
    Value isThis = stablehlo::CompareOp::create(
        builder, loc, predicate, index, stablehlo::ComparisonDirection::EQ);
    result = select(isThis, current(parts[i]), result);
  }
  return result;
}

/// Makes a branch that also returns the conditions of its regions.
Value ConditionBuilder::makeBranch(const Condition &branch, bool strictly) {
  Operation *op = current(branch.op);
  for (auto [region, part] : llvm::zip(op->getRegions(), branch.parts)) {
    Value value = makePart(part, branch, &region.front(), strictly);
    Operation *terminator = region.front().getTerminator();
    terminator->insertOperands(terminator->getNumOperands(), value);
  }
  // Conditions made inside may have replaced the op.
  op = current(op);
  SmallVector<Type> types(op->getResultTypes());
  types.push_back(type);
  Operation *copy = cloneAroundRegions(
      builder, op, SmallVector<Value>(op->getOperands()), types);
  replaced[op] = copy;
  return copy->getResults().back();
}

Value ConditionBuilder::makeLoop(const Condition &condition, bool strictly) {
  Operation *op = current(condition.op);
  builder.setInsertionPoint(op);
  SmallVector<Value> operands(op->getOperands());
  operands.push_back(makeConstant(!strictly && !condition.readsGradients));
  SmallVector<Type> types(op->getResultTypes());
  types.push_back(type);
  for (Region &region : op->getRegions())
    region.addArgument(type, loc);
  Block &body = op->getRegion(1).front();
  Value before = body.getArguments().back();
  Value inside = make(condition.parts.front(), &body, strictly);
  builder.setInsertionPoint(body.getTerminator());
  Value after = stablehlo::OrOp::create(builder, loc, before, inside);
  body.getTerminator()->insertOperands(body.getTerminator()->getNumOperands(),
                                       after);
  Operation *copy = cloneAroundRegions(builder, op, operands, types);
  replaced[op] = copy;
  return copy->getResults().back();
}

Value ConditionBuilder::make(const Condition *condition, Block *block,
                             bool strictly) {
  Value &known = made[{condition, block, strictly}];
  if (known)
    return current(known);
  auto find = [&]() -> Value {
    bool inRegions =
        condition->op && (condition->kind == Condition::Loop ||
                          llvm::any_of(condition->parts, [&](const auto *part) {
                            return isInside(*part, current(condition->op));
                          }));
    switch (condition->kind) {
    case Condition::Never:
    case Condition::Always:
      builder.setInsertionPoint(block->getTerminator());
      return makeConstant(condition->kind == Condition::Always);
    case Condition::Choice:
      return inRegions ? makeBranch(*condition, strictly)
                       : makeChoice(*condition, block, strictly);
    case Condition::Loop:
      return makeLoop(*condition, strictly);
    case Condition::Any:
    case Condition::All:
      break;
    }
    Value result;
    for (const Condition *part : condition->parts) {
      Value value = make(part, block, strictly);
      builder.setInsertionPoint(block->getTerminator());
      if (!result)
        result = value;
      else if (condition->kind == Condition::Any)
        result = stablehlo::OrOp::create(builder, loc, current(result), value);
      else
        result = stablehlo::AndOp::create(builder, loc, current(result), value);
    }
    return result;
  };
  Value value = find();
  made[{condition, block, strictly}] = value;
  return current(value);
}

Value ConditionBuilder::detach(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions() == 0)
    return value;
  builder.setInsertionPointAfter(op);
  return stablehlo::ReshapeOp::create(builder, loc, type, value);
}

void ConditionBuilder::eraseReplaced() {
  for (auto &[old, copy] : replaced)
    old->erase();
}

TakenUpdate fp8::findTakenUpdate(func::FuncOp function) {
  Conditions conditions;
  SmallVector<const Condition *> changes;
  Block &body = function.getBody().front();
  DenseMap<StringAttr, unsigned> resultOfState = resultsByState(function);
  for (BlockArgument arg : body.getArguments()) {
    if (stateKindOf(arg) != StateKind::Parameter)
      continue;
    auto path = function.getArgAttrOfType<StringAttr>(
        arg.getArgNumber(), FP8Dialect::kPathAttrName);
    auto result = path ? resultOfState.find(path) : resultOfState.end();
    if (result != resultOfState.end())
      changes.push_back(conditions.changed(
          body.getTerminator()->getOperand(result->second), arg));
  }
  const Condition *change = conditions.anyOf(changes);
  if (change->kind <= Condition::Always)
    return {};
  bool assumesFinite = conditions.assumesFinite();
  ConditionBuilder builder(function);
  Value taken = builder.make(change, &body, /*strictly=*/true), valid = taken;
  bool isOne = !waitsForCall(*change);
  if (!isOne) {
    valid = builder.make(change, &body, /*strictly=*/false);
    // Making `valid` may have replaced the op that `taken` is a result of.
    taken = builder.make(change, &body, /*strictly=*/true);
  }
  taken = builder.detach(taken);
  valid = isOne ? taken : builder.detach(valid);
  builder.eraseReplaced();
  return {taken, getConstant(valid) ? Value() : valid, assumesFinite};
}

Change fp8::findChange(func::FuncOp function, Value value, Value own,
                       Block *block) {
  Conditions conditions;
  const Condition *change = conditions.changed(value, own);
  if (change->kind == Condition::Always)
    return {};
  ConditionBuilder builder(function);
  Value changed = builder.make(change, block, /*strictly=*/true);
  builder.eraseReplaced();
  return {changed, conditions.assumesFinite()};
}
