//===- LoopCarries.cpp - Removing carries from loops ----------------------===//

#include "LoopRewriting.h"

#include "fp8/Dialect/StableHLO/IR/Constants.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/BitVector.h"
#include <tuple>

using namespace mlir;
using namespace mlir::stablehlo;

/// Replaces `loop` by one without the carries in `drop`, which nobody reads.
static WhileOp dropCarries(WhileOp loop, const llvm::BitVector &drop) {
  SmallVector<Value> operands, results;
  for (auto [i, operand] : llvm::enumerate(loop.getOperand()))
    if (!drop[i]) {
      operands.push_back(operand);
      results.push_back(loop.getResult(i));
    }
  loop.getCond().front().eraseArguments(drop);
  loop.getBody().front().eraseArguments(drop);
  loop.getBody().front().getTerminator()->eraseOperands(drop);
  OpBuilder b(loop);
  auto replacement =
      WhileOp::create(b, loop.getLoc(), TypeRange(operands), operands);
  replacement->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  replacement.getCond().takeBody(loop.getCond());
  replacement.getBody().takeBody(loop.getBody());
  for (auto [old, value] : llvm::zip(results, replacement.getResults()))
    old.replaceAllUsesWith(value);
  loop.erase();
  return replacement;
}

/// Replaces the carry `i` everywhere: in the condition, in the body, and after
/// the loop.
static void replaceCarry(WhileOp loop, unsigned i, Value inCond, Value inBody,
                         Value after) {
  loop.getCond().getArgument(i).replaceAllUsesWith(inCond);
  loop.getBody().getArgument(i).replaceAllUsesWith(inBody);
  loop.getResult(i).replaceAllUsesWith(after);
}

/// Whether a carry starts as zeros and only zeros are added to it, as in a sum
/// over micro-batches of gradients that are zero.
static bool addsZeros(Value next, Value carry, Value init) {
  auto isPositiveZero = [](Value value) {
    Value number = skipBroadcasts(value);
    return matchPattern(number, m_PosZeroFloat()) ||
           matchPattern(number, m_Zero());
  };
  auto add = next.getDefiningOp<AddOp>();
  return add && isPositiveZero(init) &&
         ((add.getLhs() == carry && isPositiveZero(add.getRhs())) ||
          (add.getRhs() == carry && isPositiveZero(add.getLhs())));
}

/// Makes readers of carries that the body returns unchanged read them from
/// outside.
static void hoistInvariantCarries(WhileOp loop, llvm::BitVector &drop) {
  Block &body = loop.getBody().front();
  for (unsigned i = 0, e = loop.getNumOperands(); i < e; ++i) {
    Value next = body.getTerminator()->getOperand(i);
    Value init = loop.getOperand()[i];
    if (drop[i] || (next != body.getArgument(i) && next != init &&
                    !addsZeros(next, body.getArgument(i), init)))
      continue;
    replaceCarry(loop, i, init, init, init);
    drop.set(i);
  }
}

/// The initial value of a carry and its next one: a value, or the carry and a
/// constant.
using CarryKey = std::tuple<void *, void *, void *, void *>;

static CarryKey keyOf(WhileOp loop, unsigned i) {
  Block &body = loop.getBody().front();
  void *init = loop.getOperand()[i].getAsOpaquePointer();
  Value next = body.getTerminator()->getOperand(i);
  CarryKey key(init, next.getAsOpaquePointer(), nullptr, nullptr);
  Operation *step = next.getDefiningOp();
  if (!step || step->getNumOperands() != 2 || step->getNumRegions() != 0 ||
      step->getBlock() != &body || !isa<AddOp, SubtractOp, MulOp>(step))
    return key;
  Value self = body.getArgument(i), lhs = step->getOperand(0),
        rhs = step->getOperand(1);
  if ((lhs == self) == (rhs == self) ||
      !isOutside(lhs == self ? rhs : lhs, loop))
    return key;
  return {init, const_cast<void *>(step->getName().getAsOpaquePointer()),
          lhs == self ? nullptr : lhs.getAsOpaquePointer(),
          rhs == self ? nullptr : rhs.getAsOpaquePointer()};
}

/// Keeps one of several carries that have equal initial values and equal steps.
static void mergeEqualCarries(WhileOp loop, llvm::BitVector &drop) {
  DenseMap<CarryKey, unsigned> first;
  for (unsigned i = 0, e = loop.getNumOperands(); i < e; ++i) {
    if (drop[i])
      continue;
    auto [it, isNew] = first.try_emplace(keyOf(loop, i), i);
    if (isNew)
      continue;
    unsigned j = it->second;
    replaceCarry(loop, i, loop.getCond().getArgument(j),
                 loop.getBody().getArgument(j), loop.getResult(j));
    drop.set(i);
  }
}

/// Returns the constant that the body adds to carry `i` in every iteration, if
/// there is one.
static std::optional<int64_t> matchConstantStep(WhileOp loop, unsigned i) {
  Block &body = loop.getBody().front();
  Operation *step = body.getTerminator()->getOperand(i).getDefiningOp();
  if (!isa_and_nonnull<AddOp, SubtractOp>(step))
    return std::nullopt;
  Value self = body.getArgument(i);
  if (step->getOperand(0) == self)
    if (auto amount = matchConstantInteger(step->getOperand(1)))
      return isa<SubtractOp>(step) ? -*amount : *amount;
  if (isa<AddOp>(step) && step->getOperand(1) == self)
    return matchConstantInteger(step->getOperand(0));
  return std::nullopt;
}

namespace {
/// A counter that is `scale * main + offset` of a loop's main counter.
struct DerivedCounter {
  int64_t init, step, scale, offset;
};
} // namespace

/// Whether products of such numbers fit into 64 bits.
static bool isSmall(int64_t value) {
  return std::abs(value) < (int64_t(1) << 30);
}

/// Whether all values between the main counter's and the derived one's fit into
/// both types.
static bool fitsBothTypes(const DerivedCounter &derived,
                          const CountedLoop &counted, RankedTensorType main,
                          RankedTensorType own) {
  // In one type all signed numbers wrap around alike.
  if (main == own)
    return true;
  unsigned width =
      std::min(own.getElementTypeBitWidth(), main.getElementTypeBitWidth());
  auto fits = [&](int64_t v) {
    return v >= 0 && (width >= 63 || v < (int64_t(1) << (width - 1)));
  };
  int64_t last = derived.init + derived.step * (counted.trips - 1);
  return width >= 32 && fits(derived.init) && fits(last) &&
         fits(counted.lower) && fits(counted.upper);
}

/// Returns how carry `i` follows from the main counter of a loop, if it counts,
/// too.
static std::optional<DerivedCounter>
matchDerivedCounter(WhileOp loop, const CountedLoop &counted, unsigned i) {
  std::optional<int64_t> init = matchConstantInteger(loop.getOperand()[i]);
  std::optional<int64_t> step = matchConstantStep(loop, i);
  if (!init || !step || counted.trips == 0 || *step % counted.step != 0 ||
      !isSmall(*init) || !isSmall(*step) || !isSmall(counted.trips) ||
      !isSmall(counted.lower))
    return std::nullopt;
  int64_t scale = *step / counted.step;
  DerivedCounter derived{*init, *step, scale, *init - scale * counted.lower};
  Block &body = loop.getBody().front();
  auto main =
      cast<RankedTensorType>(body.getArgument(counted.counter).getType());
  auto own = cast<RankedTensorType>(body.getArgument(i).getType());
  // (An array of one element is no counter.)
  if (own.getShape() != main.getShape() ||
      !fitsBothTypes(derived, counted, main, own))
    return std::nullopt;
  return derived;
}

/// Computes `scale * main + offset` in the type `type`.
static Value computeCounter(OpBuilder &b, Location loc, Value main, Type type,
                            const DerivedCounter &derived) {
  Value value = main;
  if (main.getType() != type)
    value = ConvertOp::create(b, loc, type, value);
  if (derived.scale != 1)
    value = MulOp::create(b, loc, value,
                          integerConstant(b, loc, type, derived.scale));
  if (derived.offset != 0)
    value = AddOp::create(b, loc, value,
                          integerConstant(b, loc, type, derived.offset));
  return value;
}

/// Computes all other counters of a counted loop from the first one, and makes
/// all of them constants after the loop.
static void mergeCounters(WhileOp loop, const CountedLoop &counted,
                          llvm::BitVector &drop) {
  Block &body = loop.getBody().front();
  Location loc = loop.getLoc();
  OpBuilder after(loop);
  auto setResult = [&](unsigned i, int64_t last) {
    Value result = loop.getResult(i);
    if (!result.use_empty())
      result.replaceAllUsesWith(
          integerConstant(after, loc, result.getType(), last));
  };
  setResult(counted.counter, counted.upper);
  for (unsigned i = 0, e = loop.getNumOperands(); i < e; ++i) {
    // Carries that the condition reads stay.
    if (drop[i] || i == counted.counter ||
        !loop.getCond().getArgument(i).use_empty())
      continue;
    std::optional<DerivedCounter> derived =
        matchDerivedCounter(loop, counted, i);
    if (!derived)
      continue;
    OpBuilder b = OpBuilder::atBlockBegin(&body);
    BlockArgument carry = body.getArgument(i);
    carry.replaceAllUsesWith(computeCounter(
        b, loc, body.getArgument(counted.counter), carry.getType(), *derived));
    setResult(i, derived->init + derived->step * counted.trips);
    drop.set(i);
  }
}

namespace {
/// The carries of a loop that are needed: by readers of its results, by its
/// condition, or to compute another such carry.
class LiveCarries {
public:
  LiveCarries(WhileOp loop, const llvm::BitVector &dropped)
      : loop(loop), dropped(dropped), live(loop.getNumOperands()) {
    for (OpResult result : loop->getResults())
      if (!result.use_empty())
        mark(result.getResultNumber());
    markReads(loop.getCond().front().getTerminator()->getOperand(0),
              loop.getCond());
    while (!worklist.empty()) {
      unsigned i = worklist.pop_back_val();
      markReads(loop.getBody().front().getTerminator()->getOperand(i),
                loop.getBody());
    }
  }

  bool contains(unsigned i) const { return live[i]; }

private:
  void mark(unsigned i) {
    if (!live[i] && !dropped[i]) {
      live.set(i);
      worklist.push_back(i);
    }
  }

  /// Marks the carries that `root` depends on in a region of the loop.
  void markReads(Value root, Region &region) {
    SmallVector<Value> values{root};
    while (!values.empty()) {
      Value value = values.pop_back_val();
      if (auto argument = dyn_cast<BlockArgument>(value)) {
        if (argument.getOwner()->getParent() == &region)
          mark(argument.getArgNumber());
        continue;
      }
      Operation *op = value.getDefiningOp();
      // Values from outside the loop depend on no carry. An op in a region of
      // an op of the body was reached through that op.
      if (op->getParentRegion() != &region || !seen.insert(op).second)
        continue;
      forEachRead(op, [&](Value read) { values.push_back(read); });
    }
  }

  WhileOp loop;
  const llvm::BitVector &dropped;
  llvm::BitVector live;
  SmallVector<unsigned> worklist;
  DenseSet<Operation *> seen;
};
} // namespace

/// Removes carries that only feed carries that nobody reads.
static void findDeadCarries(WhileOp loop, llvm::BitVector &drop) {
  LiveCarries live(loop, drop);
  for (unsigned i = 0, e = loop.getNumOperands(); i < e; ++i) {
    if (live.contains(i) || drop[i])
      continue;
    // Only dead ops read it; they get the initial value until they are erased.
    Value init = loop.getOperand()[i];
    replaceCarry(loop, i, init, init, init);
    drop.set(i);
  }
}

WhileOp stablehlo::simplifyCarries(WhileOp loop, bool &changed) {
  llvm::BitVector drop(loop.getNumOperands());
  hoistInvariantCarries(loop, drop);
  mergeEqualCarries(loop, drop);
  if (std::optional<CountedLoop> counted = matchCountedLoop(loop);
      counted && !drop[counted->counter])
    mergeCounters(loop, *counted, drop);
  findDeadCarries(loop, drop);
  if (drop.none())
    return loop;
  changed = true;
  return dropCarries(loop, drop);
}
