//===- UpdateChains.cpp - What an optimizer updates -----------------------===//

#include "UpdateChains.h"
#include "fp8/Dialect/StableHLO/IR/CHLO.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fp8;

static void weaken(Chain &chain, uint8_t strength) {
  for (auto &[value, reach] : chain)
    reach.strength = std::min(reach.strength, strength);
}

/// A gradient over its own size is still linear.
static void clearDegree(Chain &chain) {
  for (auto &[value, reach] : chain)
    reach.degree = 0;
}

static void merge(Chain &into, const Chain &from) {
  for (auto &[value, reach] : from) {
    auto [it, isNew] = into.insert({value, reach});
    if (isNew)
      continue;
    it->second.strength = std::max(it->second.strength, reach.strength);
    it->second.scaled &= reach.scaled;
    it->second.degree = std::max(it->second.degree, reach.degree);
  }
}

static Chain product(const Chain &lhs, const Chain &rhs) {
  Chain out;
  for (auto &[value, reach] : lhs)
    out[value] = {uint8_t(rhs.empty() ? std::min<int>(reach.strength, 2) : 1),
                  reach.degree, true};
  for (auto &[value, reach] : rhs) {
    Reach mine{uint8_t(lhs.empty() ? std::min<int>(reach.strength, 2) : 1),
               reach.degree, true};
    auto [it, isNew] = out.insert({value, mine});
    if (!isNew)
      it->second.degree = std::min<int>(3, it->second.degree + reach.degree);
  }
  return out;
}

/// Elementwise operations that chains lead through.
static bool isUpdate(Operation *op) {
  return isa<
      stablehlo::AddOp, stablehlo::SubtractOp, stablehlo::ConvertOp,
      stablehlo::ReducePrecisionOp, stablehlo::SelectOp, stablehlo::ClampOp,
      stablehlo::MaxOp, stablehlo::MinOp, stablehlo::NegOp, stablehlo::MulOp,
      chlo::SquareOp, stablehlo::DivOp, stablehlo::RemOp, stablehlo::PowOp,
      stablehlo::SqrtOp, stablehlo::RsqrtOp, stablehlo::CbrtOp,
      stablehlo::AbsOp, stablehlo::SignOp, stablehlo::ExpOp, stablehlo::Expm1Op,
      stablehlo::LogOp, stablehlo::Log1pOp, stablehlo::LogisticOp,
      stablehlo::TanhOp, stablehlo::FloorOp, stablehlo::CeilOp,
      stablehlo::RoundOp, stablehlo::RoundNearestEvenOp, stablehlo::Atan2Op>(
      op);
}

/// Only operands of the same shape and sort of element are followed: the
/// counter in a bias correction is no part of the chain of a float tensor.
static bool follows(Value operand, Value result) {
  return shapeOf(operand.getType()) == shapeOf(result.getType()) &&
         isFloat(operand.getType()) == isFloat(result.getType()) &&
         elementOf(operand).isInteger(1) == elementOf(result).isInteger(1);
}

/// Calls `visit` with the values whose chains that of `value` is made of.
static void forEachLink(Value value, function_ref<void(Value)> visit) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return;
  unsigned index = cast<OpResult>(value).getResultNumber();
  if (isa<stablehlo::IfOp, stablehlo::CaseOp>(op)) {
    for (Region &region : op->getRegions())
      visit(yielded(region, index));
  } else if (isa<stablehlo::WhileOp>(op)) {
    visit(op->getOperand(index));
    visit(yielded(op->getRegion(1), index));
  } else if (isUpdate(op) || isa<stablehlo::OptimizationBarrierOp>(op)) {
    for (Value operand : op->getOperands())
      if (follows(operand, value))
        visit(operand);
  }
}

/// Links first, without recursion: chains may be as long as the module.
const Chain &UpdateChains::of(Value value) {
  constexpr size_t kLongest = 1024;
  SmallVector<Value> stack{value};
  while (!stack.empty()) {
    Value next = stack.back();
    if (chains.count(next)) {
      stack.pop_back();
      continue;
    }
    size_t before = stack.size();
    forEachLink(next, [&](Value link) {
      if (!chains.count(link))
        stack.push_back(link);
    });
    if (stack.size() > before)
      continue;
    auto chain = std::make_unique<Chain>(compute(next));
    // No optimizer adds so much; a sum over everything is what it is.
    if (chain->size() > kLongest) {
      chain->clear();
      (*chain)[next] = Reach();
    }
    chains[next] = std::move(chain);
    stack.pop_back();
  }
  return *chains.find(value)->second;
}

static bool isArgumentOf(Value value, Operation *parent) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && argument.getOwner()->getParentOp() == parent;
}

/// State that a loop over whole steps updates. What only grows inside of the
/// loop, a sum of gradients or a stack of results, is a leaf.
Chain UpdateChains::computeCarry(OpResult result) {
  Operation *loop = result.getOwner();
  unsigned index = result.getResultNumber();
  const Chain &initial = of(loop->getOperand(index));
  const Chain &body = of(yielded(loop->getRegion(1), index));
  Value own = loop->getRegion(1).getArgument(index);
  bool isState = body.count(own) && llvm::any_of(initial, [](auto &entry) {
                   return isa<BlockArgument>(entry.first);
                 });
  Chain out;
  if (!isState) {
    out[result] = Reach();
    return out;
  }
  for (auto &[source, reach] : body) {
    Chain part;
    if (isArgumentOf(source, loop))
      part = of(loop->getOperand(cast<BlockArgument>(source).getArgNumber()));
    else
      part[source] = Reach();
    for (auto &[value, through] : part) {
      through.strength = std::min(through.strength, reach.strength);
      through.degree = std::min<int>(3, through.degree * reach.degree);
      through.scaled |= reach.scaled;
    }
    merge(out, part);
  }
  return out;
}

Chain UpdateChains::compute(Value value) {
  Chain leaf;
  leaf[value] = Reach();
  if (isa<BlockArgument>(value))
    return leaf;
  Operation *op = value.getDefiningOp();
  unsigned index = cast<OpResult>(value).getResultNumber();
  if (isConstant(value))
    return {};

  // A scalar spread over the tensor is a coefficient, not a gradient.
  if (isa<stablehlo::BroadcastInDimOp>(op)) {
    Value operand = op->getOperand(0);
    if (!isScalar(value.getType()) &&
        (isScalar(operand.getType()) || isConstant(operand)))
      return {};
    return leaf;
  }

  auto operand = [&](unsigned i) -> Chain {
    Value source = op->getOperand(i);
    return follows(source, value) ? of(source) : Chain();
  };

  if (isa<stablehlo::OptimizationBarrierOp>(op))
    return operand(index);
  if (isa<stablehlo::IfOp, stablehlo::CaseOp>(op)) {
    Chain out;
    for (Region &region : op->getRegions())
      merge(out, of(yielded(region, index)));
    return out;
  }
  if (isa<stablehlo::WhileOp>(op))
    return computeCarry(cast<OpResult>(value));
  if (isa<stablehlo::AddOp>(op)) {
    Chain out = operand(0);
    merge(out, operand(1));
    return out;
  }
  if (isa<stablehlo::SubtractOp>(op)) {
    Chain out = operand(0), other = operand(1);
    weaken(other, 2);
    merge(out, other);
    return out;
  }
  if (isa<stablehlo::ConvertOp, stablehlo::ReducePrecisionOp>(op))
    return operand(0);
  if (isa<stablehlo::SelectOp>(op)) {
    Chain out = operand(1);
    merge(out, operand(2));
    return out;
  }
  if (isa<stablehlo::ClampOp>(op))
    return operand(1);
  if (isa<stablehlo::MaxOp, stablehlo::MinOp>(op)) {
    Chain out = operand(0);
    merge(out, operand(1));
    return out;
  }
  if (isa<stablehlo::NegOp>(op)) {
    Chain out = operand(0);
    weaken(out, 2);
    return out;
  }
  if (isa<stablehlo::MulOp>(op))
    return product(operand(0), operand(1));
  if (isa<chlo::SquareOp>(op)) {
    Chain only = operand(0);
    return product(only, only);
  }
  if (isa<stablehlo::DivOp, stablehlo::RemOp>(op)) {
    Chain out = operand(0), other = operand(1);
    weaken(out, other.empty() ? 2 : 1);
    for (auto &[source, reach] : out)
      reach.scaled = true;
    weaken(other, 1);
    clearDegree(other);
    merge(out, other);
    return out;
  }
  if (isa<stablehlo::PowOp>(op)) {
    Chain out = operand(0);
    DenseFPElementsAttr exponent;
    Value power = op->getOperand(1);
    if (auto broadcast = power.getDefiningOp<stablehlo::BroadcastInDimOp>())
      power = broadcast->getOperand(0);
    if (matchPattern(power, m_Constant(&exponent)) && exponent.isSplat() &&
        exponent.getSplatValue<APFloat>().isExactlyValue(2.0))
      out = product(out, out);
    Chain other = operand(1);
    merge(out, other);
    weaken(out, 1);
    return out;
  }
  if (isUpdate(op)) {
    Chain out;
    for (unsigned i = 0, e = op->getNumOperands(); i < e; ++i)
      merge(out, operand(i));
    weaken(out, 1);
    if (isa<stablehlo::RsqrtOp>(op))
      clearDegree(out);
    return out;
  }
  return leaf;
}
