//===- Evaluation.cpp - What bodies compute for visible and hidden keys ---===//

#include "KeyBandFinder.h"

#include "fp8/Kernels/ContractionDims.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fp8;

std::optional<double> fp8::numberIn(Attribute attr) {
  if (auto value = dyn_cast_or_null<FloatAttr>(attr))
    return value.getValueAsDouble();
  if (auto value = dyn_cast_or_null<IntegerAttr>(attr))
    return value.getType().isInteger(1)
               ? static_cast<double>(!value.getValue().isZero())
               : static_cast<double>(value.getValue().getSExtValue());
  return std::nullopt;
}

/// Returns true if two values in the body of `op` are equal where a key has the
/// position of its query: the segment of a token, or the chunk that its
/// position is in.
bool KeyBandFinder::areSame(linalg::GenericOp op, Value a, Value b) const {
  if (a == b)
    return true;
  unsigned keys = found.keyLoops.lookup(op), queries = *queriesOf(op);
  auto first = dyn_cast<BlockArgument>(a), second = dyn_cast<BlockArgument>(b);
  if (first && second) {
    OpOperand &lhs = op->getOpOperand(first.getArgNumber()),
              &rhs = op->getOpOperand(second.getArgNumber());
    AffineExpr key = getAffineDimExpr(keys, op.getContext()),
               query = getAffineDimExpr(queries, op.getContext());
    auto atQuery = [&](OpOperand &operand) {
      return op.getMatchingIndexingMap(&operand).replace(key, query,
                                                         op.getNumLoops(), 0);
    };
    return lhs.get() == rhs.get() && atQuery(lhs) == atQuery(rhs);
  }
  Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
  if (!x || !y || x->getName() != y->getName())
    return false;
  if (auto index = dyn_cast<linalg::IndexOp>(x)) {
    uint64_t other = cast<linalg::IndexOp>(y).getDim();
    return (index.getDim() == keys || index.getDim() == queries) &&
           (other == keys || other == queries);
  }
  return isPure(x) && x->getNumRegions() == 0 &&
         x->getAttrDictionary() == y->getAttrDictionary() &&
         x->getOperandTypes() == y->getOperandTypes() &&
         llvm::all_of(
             llvm::zip(x->getOperands(), y->getOperands()), [&](auto pair) {
               return areSame(op, std::get<0>(pair), std::get<1>(pair));
             });
}

Known KeyBandFinder::compare(arith::CmpIOp op, unsigned which) const {
  using P = arith::CmpIPredicate;
  P predicate = op.getPredicate();
  if (which == kSeenPair && seesItself &&
      (predicate == P::eq || predicate == P::ne) &&
      areSame(op->getParentOfType<linalg::GenericOp>(), op.getLhs(),
              op.getRhs()))
    return Known::constant(predicate == P::eq);
  std::optional<Mask> mask = maskOf(op);
  if (!mask)
    return {};
  auto [low, high] = mask->distances;
  const Distances &own = distances[which];
  if (low <= own.low && own.high <= high)
    return Known::constant(true);
  if (own.high < low || high < own.low)
    return Known::constant(false);
  return {};
}

static Known compareNumbers(arith::CmpFPredicate predicate, double a,
                            double b) {
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::OEQ:
  case P::UEQ:
    return Known::constant(a == b);
  case P::ONE:
  case P::UNE:
    return Known::constant(a != b);
  case P::OGT:
  case P::UGT:
    return Known::constant(a > b);
  case P::OGE:
  case P::UGE:
    return Known::constant(a >= b);
  case P::OLT:
  case P::ULT:
    return Known::constant(a < b);
  case P::OLE:
  case P::ULE:
    return Known::constant(a <= b);
  default:
    return {};
  }
}

/// Compares booleans, the only integers that are known.
static Known compareNumbers(arith::CmpIOp op, double a, double b) {
  using P = arith::CmpIPredicate;
  if (!op.getLhs().getType().isInteger(1))
    return {};
  switch (op.getPredicate()) {
  case P::eq:
    return Known::constant(a == b);
  case P::ne:
    return Known::constant(a != b);
  case P::ugt:
    return Known::constant(a > b);
  case P::uge:
    return Known::constant(a >= b);
  case P::ult:
    return Known::constant(a < b);
  case P::ule:
    return Known::constant(a <= b);
  default:
    return {};
  }
}

static Known select(const Known &condition, const Known &a, const Known &b) {
  if (a.kind == Known::Constant && b.is(a.number))
    return a;
  if (condition.kind != Known::Constant)
    return a.isBias() && b.isBias() ? Known{Known::Bias} : Known();
  return condition.number != 0 ? a : b;
}

/// Returns what is known of a value that is computed from two others, and may
/// be a bias if both are.
static Known combine(const Known &a, const Known &b, bool mayBeBias) {
  if (a.isFiniteScore() && b.isFiniteScore())
    return {Known::Score};
  if (a.isOfRow() && b.isOfRow())
    return {Known::Row};
  return mayBeBias && a.isBias() && b.isBias() ? Known{Known::Bias} : Known();
}

/// Returns what is known of a product or quotient; zero times anything is zero.
static Known multiply(const Known &a, const Known &b, bool isQuotient) {
  if (a.is(0) || (!isQuotient && b.is(0)))
    return Known::constant(0);
  if (a.kind == Known::Constant && b.kind == Known::Constant)
    return Known::constant(isQuotient ? a.number / b.number
                                      : a.number * b.number);
  // A mask's constant has no known sign after a product.
  return combine(a, b, !a.isHidden() && !b.isHidden());
}

/// Returns what is known of a sum or difference.
static Known add(const Known &a, const Known &b, bool isDifference) {
  if (a.kind == Known::Constant && b.kind == Known::Constant)
    return Known::constant(isDifference ? a.number - b.number
                                        : a.number + b.number);
  if (a.isHidden() && isDifference && b.kind == Known::Row)
    return {Known::Lowest};
  // A mask of numbers: no score is large enough to change what it says.
  if (isDifference && b.kind == Known::Constant && b.number >= -kHidden &&
      a.isBias())
    return {Known::Hidden};
  if (!isDifference &&
      ((a.isHidden() && b.isBias()) || (b.isHidden() && a.isBias())))
    return {Known::Hidden};
  return combine(a, b, !(isDifference && b.isHidden()));
}

static Known exponentiate(const Known &x) {
  if (x.kind == Known::Lowest || x.isHidden())
    return Known::constant(0);
  return {};
}

static Known logic(Operation &op, const Known &a, const Known &b) {
  if (isa<arith::AndIOp>(op) && (a.is(0) || b.is(0)))
    return Known::constant(0);
  if (isa<arith::OrIOp>(op) && (a.is(1) || b.is(1)) &&
      op.getResult(0).getType().isInteger(1))
    return Known::constant(1);
  if (a.kind != Known::Constant || b.kind != Known::Constant ||
      !op.getResult(0).getType().isInteger(1))
    return {};
  bool x = a.number != 0, y = b.number != 0;
  return Known::constant(isa<arith::AndIOp>(op)  ? x && y
                         : isa<arith::OrIOp>(op) ? x || y
                                                 : x != y);
}

Known KeyBandFinder::evaluate(Operation &op, unsigned which,
                              const BodyValues &values) const {
  auto known = [&](unsigned i) -> Known {
    Value operand = op.getOperand(i);
    Attribute attr;
    if (matchPattern(operand, m_Constant(&attr))) {
      std::optional<double> number = numberIn(attr);
      return number ? Known::constant(*number) : Known();
    }
    auto it = values.find(operand);
    return it == values.end() ? Known() : it->second[which];
  };
  return llvm::TypeSwitch<Operation *, Known>(&op)
      .Case([&](linalg::IndexOp) -> Known { return {Known::Score}; })
      .Case([&](arith::CmpIOp cmp) {
        Known a = known(0), b = known(1);
        if (a.kind == Known::Constant && b.kind == Known::Constant)
          return compareNumbers(cmp, a.number, b.number);
        return compare(cmp, which);
      })
      .Case([&](arith::CmpFOp cmp) -> Known {
        Known a = known(0), b = known(1);
        if (a.kind != Known::Constant || b.kind != Known::Constant)
          return {};
        return compareNumbers(cmp.getPredicate(), a.number, b.number);
      })
      .Case<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(
          [&](Operation *) { return logic(op, known(0), known(1)); })
      .Case<arith::SelectOp>(
          [&](Operation *) { return select(known(0), known(1), known(2)); })
      .Case<arith::ExtFOp, arith::TruncFOp, arith::UIToFPOp, arith::SIToFPOp,
            arith::ExtUIOp, arith::IndexCastOp>(
          [&](Operation *) { return known(0); })
      .Case<arith::MulFOp, arith::MulIOp>(
          [&](Operation *) { return multiply(known(0), known(1), false); })
      .Case<arith::DivFOp>(
          [&](Operation *) { return multiply(known(0), known(1), true); })
      .Case<arith::AddFOp, arith::AddIOp>(
          [&](Operation *) { return add(known(0), known(1), false); })
      .Case<arith::SubFOp, arith::SubIOp>(
          [&](Operation *) { return add(known(0), known(1), true); })
      .Case<arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp,
            arith::MinNumFOp>([&](Operation *) {
        return combine(known(0), known(1), /*mayBeBias=*/false);
      })
      .Case<arith::NegFOp>(
          [&](Operation *) { return add(Known::constant(0), known(0), true); })
      .Case<math::ExpOp, math::Exp2Op>(
          [&](Operation *) { return exponentiate(known(0)); })
      .Case<math::AbsFOp>([&](Operation *) -> Known {
        Known a = known(0);
        if (a.kind == Known::Constant)
          return Known::constant(std::abs(a.number));
        return a.kind == Known::Score || a.kind == Known::Row ? a : Known();
      })
      .Case<math::TanhOp>([&](Operation *) -> Known {
        return known(0).isFiniteScore() ? Known{Known::Score} : Known();
      })
      .Default([](Operation *) { return Known(); });
}

/// Returns what is known of an op's argument at each kind of pair.
PerPair KeyBandFinder::argumentOf(linalg::GenericOp op,
                                  BlockArgument argument) const {
  OpOperand &operand = op->getOpOperand(argument.getArgNumber());
  if (auto it = buffers.find(operand.get()); it != buffers.end())
    return it->second;
  bool isOfRow = !op.getMatchingIndexingMap(&operand).isFunctionOfDim(
      found.keyLoops.lookup(op));
  bool isFloat = isa<FloatType>(argument.getType());
  PerPair known;
  known.fill({isOfRow ? Known::Row : isFloat ? Known::Bias : Known::Unknown});
  return known;
}
