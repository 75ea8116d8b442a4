//===- UpdateChains.cpp - Update chains of an optimizer -------------------===//

#include "UpdateChains.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/CHLO.h"
#include "fp8/Dialect/StableHLO/IR/Rows.h"

#include <limits>

using namespace mlir;
using namespace mlir::fp8;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

static void weaken(Chain &chain, uint8_t strength) {
  for (auto &[value, reach] : chain)
    reach.strength = std::min(reach.strength, strength);
}

static void multiply(Chain &chain, int8_t sign, double factor) {
  for (auto &[value, reach] : chain) {
    reach.sign *= sign;
    reach.factor *= factor;
    if (factor == -1)
      std::swap(reach.adds, reach.subtracts);
    else if (factor != 1)
      reach.adds = reach.subtracts = reach.cancels = false;
  }
}

/// Returns -1 for a factor whose last operations make it negative, else 1, as
/// for a rate, a decay or a mask.
static int8_t signOf(Value value) {
  if (std::optional<double> number = getNumber(value))
    return *number < 0 ? -1 : 1;
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<stablehlo::BroadcastInDimOp, stablehlo::ConvertOp,
                      stablehlo::ReshapeOp>(op))
    return signOf(op->getOperand(0));
  if (isa_and_nonnull<stablehlo::NegOp>(op))
    return -signOf(op->getOperand(0));
  if (isa_and_nonnull<stablehlo::MulOp, stablehlo::DivOp>(op))
    return signOf(op->getOperand(0)) * signOf(op->getOperand(1));
  return 1;
}

/// Makes a chain that of a denominator. Its degrees are 0: a gradient over its
/// own size is still linear.
static void divideBy(Chain &chain) {
  for (auto &[value, reach] : chain) {
    reach.degree = 0;
    reach.divides = true;
  }
}

namespace {
/// What a value is of two others.
enum class Join { Sum, Choice, Function };
} // namespace

/// Returns whether a source decays in a sum of two paths from it: in
/// m + (g - m) c, too, the factor of m is less than 1.
static bool decaysInSum(const Reach &one, const Reach &other) {
  return one.decays == other.decays ? one.decays
                                    : std::abs(one.factor + other.factor) < 1;
}

/// Merges `from` into `into`.
static void merge(Chain &into, const Chain &from, Join join = Join::Function) {
  for (auto &[value, reach] : from) {
    auto [it, isNew] = into.insert({value, reach});
    if (isNew)
      continue;
    Reach &own = it->second;
    // The stronger path determines the sign; equally strong ones with different
    // signs make it unknown.
    if (reach.strength > own.strength)
      own.sign = reach.sign;
    else if (reach.strength == own.strength && reach.sign != own.sign)
      own.sign = 0;
    bool decays = join == Join::Sum      ? decaysInSum(own, reach)
                  : join == Join::Choice ? own.decays | reach.decays
                                         : own.decays & reach.decays;
    if (join == Join::Choice && own.decays != reach.decays)
      own.factor = own.decays ? own.factor : reach.factor;
    else if (join == Join::Sum)
      own.factor += reach.factor;
    else if (reach.factor != own.factor)
      own.factor = kUnknown;
    own.cancels |= reach.cancels ||
                   (join != Join::Choice && ((own.adds && reach.subtracts) ||
                                             (own.subtracts && reach.adds)));
    own.adds |= reach.adds;
    own.subtracts |= reach.subtracts;
    own.strength = std::max(own.strength, reach.strength);
    own.scaled &= reach.scaled;
    own.decays = decays;
    own.degree = std::max(own.degree, reach.degree);
    own.divides &= reach.divides;
  }
}

/// Returns the chain of a product with, or a quotient by, a coefficient: a
/// value without a chain.
static Chain scale(Chain chain, Value by, bool divides = false) {
  for (auto &[value, reach] : chain) {
    reach.strength = std::min<uint8_t>(reach.strength, 2);
    reach.scaled = reach.decays = true;
  }
  double factor = getNumber(by).value_or(kUnknown);
  multiply(chain, signOf(by), divides ? 1 / factor : factor);
  return chain;
}

/// Returns a degree below 5 that is odd or even as `degree` is.
static uint8_t limitDegree(int degree) {
  return degree <= 4 ? degree : 4 - degree % 2;
}

static Chain product(const Chain &lhs, const Chain &rhs) {
  Chain out;
  for (const Chain *side : {&lhs, &rhs})
    for (auto &[value, reach] : *side) {
      auto [it, isNew] = out.insert(
          {value, {1, reach.degree, true, true, 0, kUnknown, false}});
      Reach &own = it->second;
      own.divides = reach.divides && (isNew || own.divides);
      if (!isNew)
        own.degree = limitDegree(own.degree + reach.degree);
    }
  return out;
}

/// Returns true for elementwise operations that chains pass through.
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

/// Returns true if a chain passes from `operand` to `result`: both have the
/// same shape and kind of element. The counter in a bias correction, for
/// instance, is not in the chain of a float tensor.
static bool follows(Value operand, Value result) {
  return shapeOf(operand.getType()) == shapeOf(result.getType()) &&
         isFloat(operand.getType()) == isFloat(result.getType()) &&
         elementOf(operand).isInteger(1) == elementOf(result).isInteger(1);
}

/// Returns the value that differs from `value` only in how ranks have it: the
/// whole of which it is the rank's part, or the rank's part of which it is
/// gathered.
static Value onOtherRanks(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<stablehlo::DynamicSliceOp>(op) &&
      op->hasAttr(stablehlo::kPartAttrName))
    return op->getOperand(0);
  while (isa_and_nonnull<stablehlo::ReshapeOp, stablehlo::TransposeOp>(op))
    op = op->getOperand(0).getDefiningOp();
  auto exchange = dyn_cast_or_null<ExchangeOp>(op);
  bool isGather = exchange && exchange.getKind() == ExchangeKind::Gather;
  return isGather ? exchange.getInput() : Value();
}

/// Calls `visit` with the values whose chains make up the chain of `value`.
static void forEachLink(Value value, function_ref<void(Value)> visit) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return;
  unsigned index = cast<OpResult>(value).getResultNumber();
  if (stablehlo::isBranch(op)) {
    for (Region &region : op->getRegions())
      visit(yielded(region, index));
  } else if (isa<stablehlo::WhileOp>(op)) {
    visit(op->getOperand(index));
    visit(yielded(op->getRegion(1), index));
  } else if (isUpdate(op) || isa<stablehlo::OptimizationBarrierOp>(op)) {
    for (Value operand : op->getOperands())
      if (follows(operand, value))
        visit(operand);
  } else if (Value other = onOtherRanks(value)) {
    visit(other);
  }
}

/// Computes the links first, without recursion: chains may be as long as the
/// module.
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
    // No optimizer adds up that many values; treat such a sum as a leaf.
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

/// Returns the chain of state that a loop over whole steps updates, from itself
/// or from other state of the loop, such as weights in a narrow type from their
/// masters. A value that only grows inside of the loop (a sum of gradients, a
/// stack of results) is a leaf.
Chain UpdateChains::computeCarry(OpResult result) {
  Operation *loop = result.getOwner();
  unsigned index = result.getResultNumber();
  const Chain &initial = of(loop->getOperand(index));
  const Chain &body = of(yielded(loop->getRegion(1), index));
  auto startsAsArgument = [](const Chain &chain) {
    return llvm::any_of(
        chain, [](auto &entry) { return isa<BlockArgument>(entry.first); });
  };
  bool isState =
      startsAsArgument(initial) && llvm::any_of(body, [&](auto &entry) {
        if (!isArgumentOf(entry.first, loop))
          return false;
        unsigned i = cast<BlockArgument>(entry.first).getArgNumber();
        return i == index || startsAsArgument(of(loop->getOperand(i)));
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
      through.degree = limitDegree(through.degree * reach.degree);
      through.scaled |= reach.scaled;
      through.decays |= reach.decays;
      through.sign *= reach.sign;
      through.factor *= reach.factor;
      through.divides |= reach.divides;
      bool adds = through.adds, subtracts = through.subtracts;
      through.adds = (adds && reach.adds) || (subtracts && reach.subtracts);
      through.subtracts =
          (adds && reach.subtracts) || (subtracts && reach.adds);
      through.cancels = (through.cancels && (reach.adds || reach.subtracts)) ||
                        (reach.cancels && (adds || subtracts));
    }
    merge(out, part);
  }
  return out;
}

Chain UpdateChains::ofOperand(Value value, unsigned i) {
  Value source = value.getDefiningOp()->getOperand(i);
  return follows(source, value) ? of(source) : Chain();
}

/// Returns the chain of a sum, or of an op that selects or rounds values;
/// nullopt for other ops.
std::optional<Chain> UpdateChains::computeSum(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa<stablehlo::AddOp, stablehlo::MaxOp, stablehlo::MinOp>(op)) {
    Chain out = ofOperand(value, 0);
    merge(out, ofOperand(value, 1),
          isa<stablehlo::AddOp>(op) ? Join::Sum : Join::Function);
    return out;
  }
  if (isa<stablehlo::SubtractOp>(op)) {
    Chain out = ofOperand(value, 0), other = ofOperand(value, 1);
    weaken(other, 2);
    multiply(other, -1, -1);
    merge(out, other, Join::Sum);
    return out;
  }
  if (isa<stablehlo::ConvertOp, stablehlo::ReducePrecisionOp>(op))
    return ofOperand(value, 0);
  if (isa<stablehlo::SelectOp>(op)) {
    Chain out = ofOperand(value, 1);
    merge(out, ofOperand(value, 2), Join::Choice);
    return out;
  }
  if (isa<stablehlo::ClampOp>(op))
    return ofOperand(value, 1);
  if (isa<stablehlo::NegOp>(op)) {
    Chain out = ofOperand(value, 0);
    weaken(out, 2);
    multiply(out, -1, -1);
    return out;
  }
  return std::nullopt;
}

Chain UpdateChains::computeQuotient(Value value) {
  Operation *op = value.getDefiningOp();
  Chain out = ofOperand(value, 0), other = ofOperand(value, 1);
  if (isa<stablehlo::DivOp>(op) && other.empty())
    return scale(out, op->getOperand(1), /*divides=*/true);
  weaken(out, other.empty() ? 2 : 1);
  for (auto &[source, reach] : out)
    reach.scaled = reach.decays = true;
  weaken(other, 1);
  multiply(out, 0, kUnknown);
  multiply(other, 0, kUnknown);
  divideBy(other);
  merge(out, other);
  return out;
}

Chain UpdateChains::computePower(Value value) {
  Chain out = ofOperand(value, 0);
  if (getNumber(value.getDefiningOp()->getOperand(1)) == 2.0)
    out = product(out, out);
  merge(out, ofOperand(value, 1));
  weaken(out, 1);
  multiply(out, 0, kUnknown);
  return out;
}

/// Returns the chain of a product, quotient or power; nullopt for other ops.
std::optional<Chain> UpdateChains::computeProduct(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa<stablehlo::MulOp>(op)) {
    Chain lhs = ofOperand(value, 0), rhs = ofOperand(value, 1);
    if (lhs.empty() || rhs.empty())
      return lhs.empty() ? scale(rhs, op->getOperand(0))
                         : scale(lhs, op->getOperand(1));
    return product(lhs, rhs);
  }
  if (isa<chlo::SquareOp>(op)) {
    Chain only = ofOperand(value, 0);
    return product(only, only);
  }
  if (isa<stablehlo::DivOp, stablehlo::RemOp>(op))
    return computeQuotient(value);
  if (isa<stablehlo::PowOp>(op))
    return computePower(value);
  return std::nullopt;
}

/// Returns the chain of any other elementwise op.
Chain UpdateChains::computeFunction(Value value) {
  Operation *op = value.getDefiningOp();
  Chain out;
  for (unsigned i = 0, e = op->getNumOperands(); i < e; ++i)
    merge(out, ofOperand(value, i));
  weaken(out, 1);
  multiply(out, 0, kUnknown);
  if (isa<stablehlo::RsqrtOp>(op))
    divideBy(out);
  // A magnitude is an even function of the gradient, as its square is.
  if (isa<stablehlo::AbsOp>(op))
    for (auto &[source, reach] : out)
      reach.degree = reach.degree ? 2 : 0;
  return out;
}

Chain UpdateChains::compute(Value value) {
  Chain leaf;
  leaf[value] = Reach();
  if (isa<BlockArgument>(value))
    return leaf;
  if (isConstant(value))
    return {};
  Operation *op = value.getDefiningOp();
  unsigned index = cast<OpResult>(value).getResultNumber();
  // A scalar spread over the tensor is a coefficient, not a gradient.
  if (isa<stablehlo::BroadcastInDimOp>(op)) {
    Value operand = op->getOperand(0);
    bool isCoefficient = !isScalar(value.getType()) &&
                         (isScalar(operand.getType()) || isConstant(operand));
    return isCoefficient ? Chain() : leaf;
  }
  if (isa<stablehlo::OptimizationBarrierOp>(op))
    return ofOperand(value, index);
  if (stablehlo::isBranch(op)) {
    Chain out;
    for (Region &region : op->getRegions())
      merge(out, of(yielded(region, index)), Join::Choice);
    return out;
  }
  if (isa<stablehlo::WhileOp>(op))
    return computeCarry(cast<OpResult>(value));
  if (Value other = onOtherRanks(value))
    return of(other);
  if (std::optional<Chain> sum = computeSum(value))
    return *sum;
  if (std::optional<Chain> product = computeProduct(value))
    return *product;
  return isUpdate(op) ? computeFunction(value) : leaf;
}
