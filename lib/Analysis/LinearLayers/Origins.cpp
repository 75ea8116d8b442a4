//===- Origins.cpp - Whether values are weights or data -------------------===//

#include "Origins.h"
#include "ValueFlow.h"

#include "../Usage.h"

#include "fp8/Analysis/Signature.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace mlir::fp8;

static int64_t getSize(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() ? type.getNumElements() : 0;
}

Origins::Origins(func::FuncOp function) : function(function) {
  for (BlockArgument arg : function.getArguments())
    if (classify(arg) == Origin::Weight) {
      origins[arg] = Origin::Weight;
      if (Attribute path = function.getArgAttr(arg.getArgNumber(),
                                               FP8Dialect::kPathAttrName))
        weights[path] = arg;
    }
  for (Operation &op : function.getBody().front())
    if (isa<stablehlo::WhileOp>(op))
      findCarriedState(&op);
  findUpdatedParameters();
  classify();
}

/// Classifies all values.
void Origins::classify() {
  origins.clear();
  parameters.clear();
  for (BlockArgument arg : function.getArguments()) {
    origins[arg] = classify(arg);
    if (origins[arg] == Origin::Weight)
      parameters[arg] = arg;
  }
  for (auto [value, parameter] : updated) {
    origins[value] = Origin::Weight;
    parameters[value] = parameter;
  }
  propagate(function.getBody().front());
}

void Origins::addUpdatedParameters(
    ArrayRef<std::pair<Value, BlockArgument>> values) {
  if (values.empty())
    return;
  updated.insert_range(values);
  classify();
}

Origin Origins::classify(BlockArgument arg) const {
  std::optional<ArgRole> role = argRoleOf(arg);
  std::optional<StateKind> kind = stateKindOf(arg);
  // Integers that no result replaces may be weights that scales multiply. In a
  // few bits they are, even if there is one scale, a number.
  Type element = getElementTypeOrSelf(arg.getType());
  if (auto type = dyn_cast<IntegerType>(element);
      type && type.getWidth() > 1 && type.getWidth() <= 8 &&
      role == ArgRole::Constant && getSize(arg) > 1)
    return Origin::Weight;
  if (isa<FloatType>(element) &&
      (role == ArgRole::Frozen ||
       (role == ArgRole::State &&
        (kind == StateKind::Parameter || kind == StateKind::Average))))
    return Origin::Weight;
  if (isKeyType(arg.getType()) &&
      (role == ArgRole::Key || role == ArgRole::State))
    return Origin::Random;
  // Flags that are no data mask weights: those that are left out or frozen.
  bool isMask = element.isInteger(1) &&
                (role == ArgRole::Frozen || role == ArgRole::State);
  return role == ArgRole::Constant || isMask ? Origin::Constant : Origin::Data;
}

/// Finds loop-carried values that enter as state and leave as its next value,
/// in loops that carry parameters.
void Origins::findCarriedState(Operation *loop) {
  SmallVector<OpResult> state;
  for (OpOperand &use :
       function.getBody().front().getTerminator()->getOpOperands()) {
    auto result = dyn_cast<OpResult>(use.get());
    if (!result || result.getOwner() != loop)
      continue;
    auto arg =
        dyn_cast<BlockArgument>(loop->getOperand(result.getResultNumber()));
    if (!arg)
      continue;
    Attribute path =
        function.getArgAttr(arg.getArgNumber(), FP8Dialect::kPathAttrName);
    if (!path || function.getResultAttr(use.getOperandNumber(),
                                        FP8Dialect::kStateAttrName) != path)
      continue;
    state.push_back(result);
  }
  addCarriedState(state);
  findCarriedStateWithin(loop);
}

/// Adds state that a loop carries, if a parameter is among it.
void Origins::addCarriedState(ArrayRef<OpResult> state) {
  SmallVector<Value> values;
  bool hasParameter = false;
  for (OpResult result : state) {
    Operation *loop = result.getOwner();
    unsigned index = result.getResultNumber();
    SmallVector<Value> carry{result};
    for (Region &region : loop->getRegions())
      carry.push_back(region.getArgument(index));
    values.append(carry);
    Value initial = loop->getOperand(index);
    if (origins.lookup(initial) != Origin::Weight && !carried.contains(initial))
      continue;
    carried.insert_range(carry);
    hasParameter = true;
  }
  if (hasParameter)
    carriedState.insert_range(values);
}

/// Finds the same in a loop that carries the state of the loop around it:
/// epochs of mini-batches.
void Origins::findCarriedStateWithin(Operation *outer) {
  Block &body = outer->getRegion(1).front();
  for (Operation &inner : body) {
    if (!isa<stablehlo::WhileOp>(inner))
      continue;
    SmallVector<OpResult> state;
    for (OpResult result : inner.getResults()) {
      auto arg =
          dyn_cast<BlockArgument>(inner.getOperand(result.getResultNumber()));
      if (arg && arg.getOwner() == &body && carriedState.contains(arg) &&
          body.back().getOperand(arg.getArgNumber()) == result)
        state.push_back(result);
    }
    addCarriedState(state);
    findCarriedStateWithin(&inner);
  }
}

void Origins::findUpdatedParameters() {
  for (OpOperand &use :
       function.getBody().front().getTerminator()->getOpOperands()) {
    auto path = function.getResultAttrOfType<StringAttr>(
        use.getOperandNumber(), FP8Dialect::kStateAttrName);
    auto result = dyn_cast<OpResult>(use.get());
    if (!path || !result || carried.contains(result))
      continue;
    if (BlockArgument arg = weights.lookup(path))
      updated.insert({result, arg});
  }
}

/// Returns true if this changed what is known of `into`.
bool Origins::merge(Value from, Value into) {
  if (updated.contains(into))
    return false;
  Origin &origin = origins[into];
  Origin before = origin;
  origin = std::max(origin, origins.lookup(from));
  bool changed = origin != before;
  BlockArgument other = parameters.lookup(from);
  if (!other)
    return changed;
  BlockArgument &parameter = parameters[into];
  if (parameter && getSize(parameter) >= getSize(other))
    return changed;
  parameter = other;
  return true;
}

void Origins::propagate(Block &block) {
  for (Operation &op : block)
    propagate(op);
}

/// Returns the weight that `op` divides by a scalar, such as its spectral norm.
/// (A product with a scalar may be the gradient of that norm.)
Value Origins::getScaledWeight(Operation &op) const {
  if (!isa<stablehlo::DivOp>(op) || get(op.getOperand(0)) != Origin::Weight)
    return nullptr;
  auto scalar = op.getOperand(1).getDefiningOp<stablehlo::BroadcastInDimOp>();
  return scalar && getSize(scalar->getOperand(0)) == 1 ? op.getOperand(0)
                                                       : Value();
}

/// Whether a tensor has as many elements as a parameter, or the extents of a
/// part of it: of one layer in a stack.
static bool isLikePartOf(Value value, Value parameter) {
  if (getSize(value) == getSize(parameter))
    return true;
  SmallVector<int64_t> extents(
      cast<ShapedType>(parameter.getType()).getShape());
  return llvm::all_of(cast<ShapedType>(value.getType()).getShape(),
                      [&](int64_t extent) {
                        if (extent == 1)
                          return true;
                        int64_t *place = llvm::find(extents, extent);
                        if (place == extents.end())
                          return false;
                        extents.erase(place);
                        return true;
                      });
}

/// Whether `op` combines each element of a weight with a random number, as
/// noisy layers do. (A random choice of elements is data, and so are logits to
/// which noise is added to draw from them.)
bool Origins::isNoisyWeight(Operation &op) const {
  BlockArgument parameter = parameters.lookup(op.getResult(0));
  return parameter && stablehlo::worksByElement(&op) &&
         isLikePartOf(op.getResult(0), parameter);
}

void Origins::propagate(Operation &op) {
  if (isa<stablehlo::WhileOp>(op))
    return propagateLoop(op);
  if (stablehlo::isBranch(&op))
    return propagateBranch(op);
  if (Value weight = getScaledWeight(op)) {
    merge(weight, op.getResult(0));
    return;
  }
  // Each result of a barrier only depends on its own operand.
  if (isBarrier(&op)) {
    for (auto [result, operand] :
         llvm::zip_equal(op.getResults(), op.getOperands()))
      merge(operand, result);
    return;
  }
  // Everything that the regions read (of a reduction, for instance) affects
  // every result.
  bool isRandom = false;
  op.walk([&](Operation *nested) {
    for (Value operand : nested->getOperands()) {
      isRandom |= origins.lookup(operand) == Origin::Random;
      for (OpResult result : op.getResults())
        merge(operand, result);
    }
  });
  for (OpResult result : op.getResults())
    if (isRandom && origins.lookup(result) == Origin::Weight &&
        !updated.contains(result) && !isNoisyWeight(op))
      origins[result] = Origin::Data;
}

void Origins::propagateLoop(Operation &loop) {
  Operation &yield = loop.getRegion(1).front().back();
  for (unsigned i = 0; i < loop.getNumOperands(); ++i)
    for (Region &region : loop.getRegions())
      merge(loop.getOperand(i), region.getArgument(i));
  for (bool changed = true; changed;) {
    changed = false;
    for (Region &region : loop.getRegions())
      propagate(region.front());
    for (unsigned i = 0; i < loop.getNumOperands(); ++i)
      if (!carried.contains(loop.getResult(i)))
        for (Region &region : loop.getRegions())
          changed |= merge(yield.getOperand(i), region.getArgument(i));
  }
  for (unsigned i = 0; i < loop.getNumOperands(); ++i)
    merge(loop.getRegion(1).getArgument(i), loop.getResult(i));
}

void Origins::propagateBranch(Operation &branch) {
  for (Region &region : branch.getRegions()) {
    propagate(region.front());
    for (OpResult result : branch.getResults())
      merge(region.front().back().getOperand(result.getResultNumber()), result);
  }
}
