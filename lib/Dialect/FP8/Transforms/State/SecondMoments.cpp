//===- SecondMoments.cpp - Second moments and their roots -----------------===//

#include "SecondMoments.h"

#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/CHLO.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Support/Shapes.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::fp8;

/// Whether all elements are the same value: a broadcast scalar, or a function
/// of such values.
static bool isUniform(Value value, unsigned depth = 8) {
  if (cast<RankedTensorType>(value.getType()).getNumElements() == 1 ||
      stablehlo::getSplat(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return false;
  if (!isa<stablehlo::BroadcastInDimOp, stablehlo::ReshapeOp,
           stablehlo::ConvertOp, stablehlo::MulOp, stablehlo::DivOp,
           stablehlo::AddOp, stablehlo::SubtractOp, stablehlo::NegOp>(op))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return isUniform(operand, depth - 1);
  });
}

/// Returns `value` without one factor; null if it has none.
static Value dropFactor(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<stablehlo::ConvertOp, stablehlo::NegOp>(op))
    return op->getOperand(0);
  if (!isa_and_nonnull<stablehlo::MulOp, stablehlo::DivOp>(op))
    return {};
  if (isUniform(op->getOperand(1)))
    return op->getOperand(0);
  if (isa<stablehlo::MulOp>(op) && isUniform(op->getOperand(0)))
    return op->getOperand(1);
  return {};
}

static SmallVector<Value> getMultiples(Value value) {
  SmallVector<Value> chain{value};
  while (Value next = dropFactor(chain.back()))
    chain.push_back(next);
  return chain;
}

/// Returns g if `op` is g * g or a multiple of it.
static Value matchSquare(Operation *op) {
  if (isa<chlo::SquareOp>(op))
    return op->getOperand(0);
  if (auto power = dyn_cast<stablehlo::PowOp>(op)) {
    auto exponent = dyn_cast_or_null<FloatAttr>(
        stablehlo::getSplat(stablehlo::skipBroadcasts(power->getOperand(1))));
    bool isTwo = exponent && exponent.getValueAsDouble() == 2;
    return isTwo ? power->getOperand(0) : Value();
  }
  if (!isa<stablehlo::MulOp>(op))
    return {};
  // (c g) * g: one side is a multiple of the other.
  SmallVector<Value> left = getMultiples(op->getOperand(0));
  SmallVector<Value> right = getMultiples(op->getOperand(1));
  if (isUniform(left.back()) || isUniform(right.back()))
    return {};
  if (llvm::is_contained(left, right.front()))
    return right.front();
  if (llvm::is_contained(right, left.front()))
    return left.front();
  // Both may be multiples of one value.
  return left.back() == right.back() ? left.back() : Value();
}

/// Returns the g whose square is a term of `value`.
static Value findSquare(Value value) {
  SetVector<Value> open;
  open.insert(value);
  for (unsigned i = 0; i < open.size() && i < 64; ++i) {
    Operation *op = open[i].getDefiningOp();
    if (!op)
      continue;
    if (Value gradient = matchSquare(op))
      return gradient;
    if (Value rest = dropFactor(open[i]))
      open.insert(rest);
    else if (isa<stablehlo::AddOp, stablehlo::SubtractOp>(op))
      open.insert(op->operand_begin(), op->operand_end());
  }
  return {};
}

/// Returns the op that takes the root of `moment`, directly or after bias
/// correction.
static Operation *findRoot(Value moment) {
  SetVector<Value> open;
  open.insert(moment);
  for (unsigned i = 0; i < open.size() && i < 64; ++i)
    for (Operation *user : open[i].getUsers()) {
      if (isa<stablehlo::SqrtOp, stablehlo::RsqrtOp>(user))
        return user;
      if (isa<stablehlo::ConvertOp, stablehlo::MaxOp, stablehlo::SelectOp>(
              user) ||
          (isa<stablehlo::MulOp, stablehlo::DivOp, stablehlo::AddOp>(user) &&
           llvm::all_of(user->getOperands(), [&](Value operand) {
             return operand == open[i] || isUniform(operand);
           })))
        open.insert(user->getResult(0));
    }
  return nullptr;
}

/// Returns the values that one result of the function may have: those of all
/// branches, before they are stored in another form.
static SmallVector<Value> getAlternatives(Value value) {
  SetVector<Value> open;
  open.insert(value);
  SmallVector<Value> found;
  for (unsigned i = 0; i < open.size(); ++i) {
    auto result = dyn_cast<OpResult>(open[i]);
    if (!result)
      continue;
    Operation *op = result.getOwner();
    if (isa<stablehlo::SelectOp>(op))
      open.insert(op->operand_begin() + 1, op->operand_end());
    else if (isa<stablehlo::ConvertOp, stablehlo::ReshapeOp,
                 stablehlo::OptimizationBarrierOp, QuantizeOp, PackOp>(op))
      open.insert(op->getOperand(isa<stablehlo::OptimizationBarrierOp>(op)
                                     ? result.getResultNumber()
                                     : 0));
    else if (isa<stablehlo::WhileOp>(op))
      open.insert(op->getRegion(1).front().getTerminator()->getOperand(
          result.getResultNumber()));
    else if (op->getNumRegions() > 0 && !isa<stablehlo::ReduceOp>(op))
      for (Region &region : op->getRegions())
        open.insert(region.front().getTerminator()->getOperand(
            result.getResultNumber()));
    else
      found.push_back(result);
  }
  return found;
}

/// Returns the path of the parameter that `value` reaches through elementwise
/// ops.
static std::string findParameter(func::FuncOp function, Value value,
                                 const llvm::StringSet<> &parameters) {
  SetVector<Value> open;
  open.insert(value);
  for (unsigned i = 0; i < open.size() && i < 256; ++i)
    for (OpOperand &use : open[i].getUses()) {
      Operation *user = use.getOwner();
      unsigned number = use.getOperandNumber();
      if (isa<func::ReturnOp>(user)) {
        auto path = function.getResultAttrOfType<StringAttr>(
            number, FP8Dialect::kStateAttrName);
        if (path && parameters.contains(path.getValue()))
          return path.str();
      } else if (isa<stablehlo::ReturnOp>(user)) {
        Operation *parent = user->getParentOp();
        if (number < parent->getNumResults())
          open.insert(parent->getResult(number));
      } else if (user->getNumResults() == 1 && user->getNumRegions() == 0 &&
                 (isa<QuantizeOp, PackOp>(user) ||
                  (isa<RankedTensorType>(user->getResult(0).getType()) &&
                   shapeOf(user->getResult(0)) == shapeOf(value) &&
                   !isa<stablehlo::DotGeneralOp>(user)))) {
        open.insert(user->getResult(0));
      }
    }
  return "";
}

SmallVector<SecondMoment> fp8::findSecondMoments(func::FuncOp function) {
  SmallVector<SecondMoment> found;
  if (function.isExternal())
    return found;
  llvm::StringSet<> parameters, moments;
  for (BlockArgument arg : function.getArguments()) {
    auto path = function.getArgAttrOfType<StringAttr>(
        arg.getArgNumber(), FP8Dialect::kPathAttrName);
    if (!path)
      continue;
    std::optional<StateKind> kind = stateKindOf(arg);
    if (kind == StateKind::Parameter)
      parameters.insert(path.getValue());
    else if (kind == StateKind::Moment2)
      moments.insert(path.getValue());
  }
  Operation *ret = function.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(ret->getOperands())) {
    auto path = function.getResultAttrOfType<StringAttr>(
        index, FP8Dialect::kStateAttrName);
    if (!path || !moments.contains(path.getValue()))
      continue;
    for (Value moment : getAlternatives(value)) {
      Value gradient = findSquare(moment);
      Operation *root = gradient ? findRoot(moment) : nullptr;
      if (!root)
        continue;
      std::string parameter = findParameter(function, moment, parameters);
      found.push_back({parameter.empty() ? path.str() : parameter, gradient,
                       root->getOperand(0), root});
    }
  }
  return found;
}
