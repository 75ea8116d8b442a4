//===- CanonicalizeLoops.cpp - Canonical loops and branches ---------------===//

#include "fp8/Dialect/StableHLO/IR/CHLO.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"
#include "fp8/Dialect/StableHLO/Transforms/Passes.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir {
namespace stablehlo {
#define GEN_PASS_DEF_CANONICALIZELOOPS
#include "fp8/Dialect/StableHLO/Transforms/Passes.h.inc"
} // namespace stablehlo
} // namespace mlir

using namespace mlir;
using namespace mlir::stablehlo;

/// Loops are unrolled up to this many iterations and resulting ops.
static constexpr int64_t kMaxUnrolledTrips = 16;
static constexpr int64_t kMaxUnrolledOps = 1024;

/// Invariant results up to this size leave a loop whatever computes them.
static constexpr int64_t kSmallElements = 1024;

//===----------------------------------------------------------------------===//
// Building blocks
//===----------------------------------------------------------------------===//

static Value integerConstant(OpBuilder &b, Location loc, Type type,
                             int64_t value) {
  Type element = getElementTypeOrSelf(type);
  APInt number(element.getIntOrFloatBitWidth(), value, /*isSigned=*/true,
               /*implicitTrunc=*/true);
  return ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(cast<ShapedType>(type),
                             Attribute(IntegerAttr::get(element, number))));
}

static bool isOutside(Value value, Operation *op) {
  return !op->isAncestor(value.getParentBlock()->getParentOp());
}

/// What `value` repeats.
static Value skipBroadcasts(Value value) {
  while (auto broadcast = value.getDefiningOp<BroadcastInDimOp>())
    value = broadcast.getOperand();
  return value;
}

/// The values that an op reads, those that its regions read included.
template <typename Fn> static void forEachRead(Operation *op, Fn &&fn) {
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      fn(operand);
  });
}

/// Puts a copy of `block`, with `arguments` for its arguments, before `op`, and
/// returns what its terminator returned.
static SmallVector<Value> cloneBefore(Operation *op, Block &block,
                                      ValueRange arguments) {
  OpBuilder b(op);
  IRMapping mapping;
  mapping.map(block.getArguments(), arguments);
  for (Operation &inner : block.without_terminator())
    b.clone(inner, mapping);
  SmallVector<Value> results;
  for (Value value : block.getTerminator()->getOperands())
    results.push_back(mapping.lookupOrDefault(value));
  return results;
}

/// Moves the ops of `block` before `op`, with `arguments` for its arguments.
static SmallVector<Value> moveBefore(Operation *op, Block &block,
                                     ValueRange arguments) {
  for (auto [argument, value] : llvm::zip(block.getArguments(), arguments))
    argument.replaceAllUsesWith(value);
  Operation *terminator = block.getTerminator();
  SmallVector<Value> results(terminator->getOperands());
  terminator->erase();
  op->getBlock()->getOperations().splice(op->getIterator(),
                                         block.getOperations());
  return results;
}

static bool eraseDeadOps(Block &block) {
  bool changed = false;
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op)) {
      op.erase();
      changed = true;
    }
  return changed;
}

//===----------------------------------------------------------------------===//
// Carries
//===----------------------------------------------------------------------===//

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

/// Whether zeros are added to a carry of zeros: a sum over micro-batches of
/// gradients that nothing reaches.
static bool addsZeros(Value next, Value carry, Value init) {
  auto isPositiveZero = [](Value value) {
    return matchPattern(skipBroadcasts(value), m_PosZeroFloat()) ||
           matchPattern(skipBroadcasts(value), m_Zero());
  };
  auto add = next.getDefiningOp<AddOp>();
  return add && isPositiveZero(init) &&
         ((add.getLhs() == carry && isPositiveZero(add.getRhs())) ||
          (add.getRhs() == carry && isPositiveZero(add.getLhs())));
}

/// Carries that the body returns as they came are read from outside.
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

/// Of carries that start alike and are stepped alike, one is enough.
static void mergeEqualCarries(WhileOp loop, llvm::BitVector &drop) {
  Block &body = loop.getBody().front();
  // What a carry starts with and becomes: a value, or itself and a constant.
  using Key = std::tuple<void *, void *, void *, void *>;
  DenseMap<Key, unsigned> first;
  for (unsigned i = 0, e = loop.getNumOperands(); i < e; ++i) {
    if (drop[i])
      continue;
    Value next = body.getTerminator()->getOperand(i);
    Key key(loop.getOperand()[i].getAsOpaquePointer(),
            next.getAsOpaquePointer(), nullptr, nullptr);
    Operation *step = next.getDefiningOp();
    if (step && step->getNumOperands() == 2 && step->getNumRegions() == 0 &&
        step->getBlock() == &body && isa<AddOp, SubtractOp, MulOp>(step)) {
      Value self = body.getArgument(i), lhs = step->getOperand(0),
            rhs = step->getOperand(1);
      if ((lhs == self) != (rhs == self) &&
          isOutside(lhs == self ? rhs : lhs, loop))
        key = Key(std::get<0>(key),
                  const_cast<void *>(step->getName().getAsOpaquePointer()),
                  lhs == self ? nullptr : lhs.getAsOpaquePointer(),
                  rhs == self ? nullptr : rhs.getAsOpaquePointer());
    }
    auto [it, isNew] = first.try_emplace(key, i);
    if (isNew)
      continue;
    unsigned j = it->second;
    replaceCarry(loop, i, loop.getCond().getArgument(j), body.getArgument(j),
                 loop.getResult(j));
    drop.set(i);
  }
}

/// What the body adds to carry `i` in every iteration, if it is a constant.
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

/// In a counted loop every other counter follows from the first one, and all
/// of them are known after the loop.
static void mergeCounters(WhileOp loop, const CountedLoop &counted,
                          llvm::BitVector &drop) {
  Block &body = loop.getBody().front();
  Location loc = loop.getLoc();
  Value main = body.getArgument(counted.counter);
  OpBuilder after(loop);
  Value result = loop.getResult(counted.counter);
  if (!result.use_empty())
    result.replaceAllUsesWith(
        integerConstant(after, loc, result.getType(), counted.upper));
  // What else the condition computes is not read.
  for (unsigned i = 0, e = loop.getNumOperands(); i < e; ++i) {
    if (drop[i] || i == counted.counter ||
        !loop.getCond().getArgument(i).use_empty())
      continue;
    std::optional<int64_t> init = matchConstantInteger(loop.getOperand()[i]);
    std::optional<int64_t> step = matchConstantStep(loop, i);
    if (!init || !step || counted.trips == 0 || *step % counted.step != 0)
      continue;
    // Wide enough for all products; those of small numbers only.
    auto isSmall = [](int64_t v) { return std::abs(v) < (int64_t(1) << 30); };
    if (!isSmall(*init) || !isSmall(*step) || !isSmall(counted.trips) ||
        !isSmall(counted.lower))
      continue;
    int64_t scale = *step / counted.step;
    int64_t offset = *init - scale * counted.lower;
    int64_t last = *init + *step * (counted.trips - 1);
    auto type = cast<RankedTensorType>(main.getType());
    Type own = body.getArgument(i).getType();
    // Every value on the way fits into both types.
    auto element =
        cast<IntegerType>(cast<RankedTensorType>(own).getElementType());
    unsigned width =
        std::min(element.getWidth(), type.getElementTypeBitWidth());
    if (width < 32 && own != type)
      continue;
    auto fits = [&](int64_t v) {
      return v >= 0 && (width >= 63 || v < (int64_t(1) << (width - 1)));
    };
    bool inRange =
        fits(*init) && fits(last) && fits(counted.lower) && fits(counted.upper);
    // Signed numbers wrap around alike in one type.
    if (!inRange && own != type)
      continue;
    OpBuilder b = OpBuilder::atBlockBegin(&body);
    Value value = main;
    if (own != type)
      value = ConvertOp::create(b, loc, own, value);
    if (scale != 1)
      value = MulOp::create(b, loc, value, integerConstant(b, loc, own, scale));
    if (offset != 0)
      value =
          AddOp::create(b, loc, value, integerConstant(b, loc, own, offset));
    body.getArgument(i).replaceAllUsesWith(value);
    result = loop.getResult(i);
    if (!result.use_empty())
      result.replaceAllUsesWith(
          integerConstant(after, loc, own, *init + *step * counted.trips));
    drop.set(i);
  }
}

/// Carries that only feed carries that nobody reads.
static void findDeadCarries(WhileOp loop, llvm::BitVector &drop) {
  Block &body = loop.getBody().front();
  llvm::BitVector live(loop.getNumOperands());
  SmallVector<unsigned> worklist;
  auto markLive = [&](unsigned i) {
    if (!live[i] && !drop[i]) {
      live.set(i);
      worklist.push_back(i);
    }
  };
  for (OpResult result : loop->getResults())
    if (!result.use_empty())
      markLive(result.getResultNumber());
  DenseSet<Operation *> seen;
  SmallVector<Value> values;
  auto markReads = [&](Value root, Region &region) {
    values.assign(1, root);
    while (!values.empty()) {
      Value value = values.pop_back_val();
      if (auto argument = dyn_cast<BlockArgument>(value)) {
        if (argument.getOwner()->getParent() == &region)
          markLive(argument.getArgNumber());
        continue;
      }
      Operation *op = value.getDefiningOp();
      // What stands outside of the loop reads no carry. An op in a region of an
      // op of the body was reached through that op.
      if (op->getParentRegion() != &region || !seen.insert(op).second)
        continue;
      forEachRead(op, [&](Value read) { values.push_back(read); });
    }
  };
  markReads(loop.getCond().front().getTerminator()->getOperand(0),
            loop.getCond());
  while (!worklist.empty()) {
    unsigned i = worklist.pop_back_val();
    markReads(body.getTerminator()->getOperand(i), loop.getBody());
  }
  for (unsigned i = 0, e = loop.getNumOperands(); i < e; ++i) {
    if (live[i] || drop[i])
      continue;
    // Only dead ops read it; they get the first value until they are erased.
    Value init = loop.getOperand()[i];
    replaceCarry(loop, i, init, init, init);
    drop.set(i);
  }
}

//===----------------------------------------------------------------------===//
// Whole loops
//===----------------------------------------------------------------------===//

/// Ops that need no loop over their operands but the one over their elements.
/// Of other dialects' ops, dots of scaled tensors among them, it is not known.
static bool isUnrollable(Operation *op) {
  if (!isa<StablehloDialect, chlo::ChloDialect>(op->getDialect()) ||
      op->getNumRegions() != 0 ||
      isa<DotGeneralOp, ConvolutionOp, DynamicSliceOp, DynamicUpdateSliceOp,
          GatherOp, RngBitGeneratorOp, CustomCallOp, OptimizationBarrierOp>(op))
    return false;
  return isMemoryEffectFree(op);
}

/// Replaces a loop of few iterations by copies of its body.
static bool unroll(WhileOp loop, const CountedLoop &counted) {
  Block &body = loop.getBody().front();
  if (counted.trips > 1) {
    if (counted.trips > kMaxUnrolledTrips)
      return false;
    int64_t ops = 0;
    for (Operation &op : body.without_terminator()) {
      ops += counted.trips;
      if (ops > kMaxUnrolledOps || !isUnrollable(&op))
        return false;
    }
  }
  SmallVector<Value> values(loop.getOperand());
  if (counted.trips == 1)
    values = moveBefore(loop, body, values);
  for (int64_t i = 0; counted.trips > 1 && i < counted.trips; ++i)
    values = cloneBefore(loop, body, values);
  loop->replaceAllUsesWith(values);
  loop.erase();
  return true;
}

/// Ops worth keeping a large result for, rather than computing it again.
static bool isExpensive(Operation *op) {
  return op->getNumRegions() != 0 ||
         isa<DotGeneralOp, ConvolutionOp, RngBitGeneratorOp>(op);
}

/// Types of other dialects, which this pass meets after quantization too, say
/// nothing about their size.
static bool isSmall(Operation *op) {
  return llvm::all_of(op->getResultTypes(), [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getNumElements() <= kSmallElements;
  });
}

/// Moves out what is the same in every iteration: small results, and expensive
/// ones with what they need. Other large results would only live longer.
static bool hoistInvariantOps(WhileOp loop, bool runsAtLeastOnce) {
  bool changed = false;
  for (Region *region : {&loop.getCond(), &loop.getBody()}) {
    llvm::SetVector<Operation *> invariant;
    for (Operation &op : region->front().without_terminator()) {
      // A barrier is a fence: nothing moves over it.
      if (isa<OptimizationBarrierOp>(op) || !isMemoryEffectFree(&op))
        continue;
      bool same = true;
      forEachRead(&op, [&](Value value) {
        if (isOutside(value, loop) ||
            op.isAncestor(value.getParentBlock()->getParentOp()))
          return;
        Operation *def = value.getDefiningOp();
        same &= def && invariant.contains(def);
      });
      if (same)
        invariant.insert(&op);
    }
    DenseSet<Operation *> hoisted;
    // Operands come before their readers.
    std::function<void(Operation *)> hoistWithOperands = [&](Operation *op) {
      if (!hoisted.insert(op).second)
        return;
      forEachRead(op, [&](Value value) {
        Operation *def = value.getDefiningOp();
        if (def && invariant.contains(def))
          hoistWithOperands(def);
      });
      op->moveBefore(loop);
      changed = true;
    };
    for (Operation *op : invariant) {
      if (isExpensive(op)) {
        if (runsAtLeastOnce)
          hoistWithOperands(op);
        continue;
      }
      bool operandsAreOutside = true;
      forEachRead(op, [&](Value value) {
        Operation *def = value.getDefiningOp();
        operandsAreOutside &=
            !def || !invariant.contains(def) || hoisted.contains(def);
      });
      if (isSmall(op) && operandsAreOutside)
        hoistWithOperands(op);
    }
  }
  return changed;
}

static bool canonicalizeWhile(WhileOp loop) {
  bool changed = eraseDeadOps(loop.getCond().front());
  changed |= eraseDeadOps(loop.getBody().front());
  llvm::BitVector drop(loop.getNumOperands());
  hoistInvariantCarries(loop, drop);
  mergeEqualCarries(loop, drop);
  if (std::optional<CountedLoop> counted = matchCountedLoop(loop);
      counted && !drop[counted->counter])
    mergeCounters(loop, *counted, drop);
  findDeadCarries(loop, drop);
  if (drop.any()) {
    loop = dropCarries(loop, drop);
    changed = true;
  }
  if (loop->use_empty()) {
    loop.erase();
    return true;
  }
  std::optional<CountedLoop> counted = matchCountedLoop(loop);
  DenseElementsAttr never;
  if ((counted && counted->trips == 0) ||
      (matchPattern(loop.getCond().front().getTerminator()->getOperand(0),
                    m_Constant(&never)) &&
       !never.getSplatValue<bool>())) {
    loop->replaceAllUsesWith(loop.getOperand());
    loop.erase();
    return true;
  }
  if (counted && unroll(loop, *counted))
    return true;
  changed |= hoistInvariantOps(loop, counted.has_value());
  return changed;
}

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

static bool inlineBranch(Operation *op, Region &branch) {
  SmallVector<Value> values = moveBefore(op, branch.front(), {});
  op->replaceAllUsesWith(values);
  op->erase();
  return true;
}

/// Results that nobody reads, and results that no branch computes. `predicate`
/// chooses between the two branches of an `if`.
static bool dropResults(Operation *op, Value predicate) {
  llvm::BitVector drop(op->getNumResults());
  OpBuilder b(op);
  for (OpResult result : op->getResults()) {
    unsigned i = result.getResultNumber();
    if (!result.use_empty()) {
      SmallVector<Value> values;
      for (Region &region : op->getRegions())
        values.push_back(region.front().getTerminator()->getOperand(i));
      if (!llvm::all_of(values, [&](Value v) { return isOutside(v, op); }))
        continue;
      if (llvm::all_equal(values))
        result.replaceAllUsesWith(values[0]);
      else if (predicate)
        result.replaceAllUsesWith(SelectOp::create(b, op->getLoc(),
                                                   result.getType(), predicate,
                                                   values[0], values[1]));
      else
        continue;
    }
    drop.set(i);
  }
  if (drop.none())
    return false;
  SmallVector<Type> types;
  SmallVector<Value> kept;
  for (OpResult result : op->getResults())
    if (!drop[result.getResultNumber()]) {
      types.push_back(result.getType());
      kept.push_back(result);
    }
  if (kept.empty()) {
    op->erase();
    return true;
  }
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(op->getOperands());
  state.addTypes(types);
  state.addAttributes(op->getAttrs());
  for (Region &region : op->getRegions()) {
    region.front().getTerminator()->eraseOperands(drop);
    state.addRegion()->takeBody(region);
  }
  Operation *replacement = b.create(state);
  for (auto [old, value] : llvm::zip(kept, replacement->getResults()))
    old.replaceAllUsesWith(value);
  op->erase();
  return true;
}

static bool canonicalizeIf(IfOp op) {
  for (Region &region : op->getRegions())
    eraseDeadOps(region.front());
  DenseElementsAttr predicate;
  if (matchPattern(op.getPred(), m_Constant(&predicate)))
    return inlineBranch(op, predicate.getSplatValue<bool>()
                                ? op.getTrueBranch()
                                : op.getFalseBranch());
  return dropResults(op, op.getPred());
}

static bool canonicalizeCase(CaseOp op) {
  for (Region &region : op->getRegions())
    eraseDeadOps(region.front());
  unsigned last = op.getBranches().size() - 1;
  std::optional<int64_t> index = matchConstantInteger(op.getIndex());
  if (last == 0)
    index = 0;
  if (index)
    return inlineBranch(op,
                        op.getBranches()[*index < 0 || *index > int64_t(last)
                                             ? last
                                             : unsigned(*index)]);
  // JAX writes every choice of two so.
  if (auto convert = op.getIndex().getDefiningOp<ConvertOp>();
      convert && last == 1 &&
      getElementTypeOrSelf(convert.getOperand().getType()).isInteger(1)) {
    OpBuilder b(op);
    auto branch =
        IfOp::create(b, op.getLoc(), op.getResultTypes(), convert.getOperand());
    branch.getTrueBranch().takeBody(op.getBranches()[1]);
    branch.getFalseBranch().takeBody(op.getBranches()[0]);
    op->replaceAllUsesWith(branch);
    op.erase();
    canonicalizeIf(branch);
    return true;
  }
  return dropResults(op, {});
}

//===----------------------------------------------------------------------===//
// Arithmetic on counters
//===----------------------------------------------------------------------===//

namespace {
/// The values an index has: a constant or those of a counter.
struct IndexRange {
  int64_t min, max;
};
} // namespace

static std::optional<IndexRange> rangeOf(Value value) {
  if (std::optional<int64_t> constant = matchConstantInteger(value))
    return IndexRange{*constant, *constant};
  if (std::optional<AffineIndex> index = matchAffineIndex(value))
    return IndexRange{index->min, index->max};
  return std::nullopt;
}

/// What the comparison gives for all values of both sides, if it is the same.
static std::optional<bool> compareRanges(ComparisonDirection direction,
                                         IndexRange lhs, IndexRange rhs) {
  switch (direction) {
  case ComparisonDirection::LT:
    if (lhs.max < rhs.min)
      return true;
    if (lhs.min >= rhs.max)
      return false;
    return std::nullopt;
  case ComparisonDirection::LE:
    if (lhs.max <= rhs.min)
      return true;
    if (lhs.min > rhs.max)
      return false;
    return std::nullopt;
  case ComparisonDirection::GT:
    return compareRanges(ComparisonDirection::LT, rhs, lhs);
  case ComparisonDirection::GE:
    return compareRanges(ComparisonDirection::LE, rhs, lhs);
  case ComparisonDirection::EQ:
    if (lhs.max < rhs.min || rhs.max < lhs.min)
      return false;
    if (lhs.min == lhs.max && rhs.min == rhs.max)
      return true;
    return std::nullopt;
  case ComparisonDirection::NE:
    if (auto equal = compareRanges(ComparisonDirection::EQ, lhs, rhs))
      return !*equal;
    return std::nullopt;
  }
  return std::nullopt;
}

/// Ops on counters whose result their ranges tell.
static bool simplifyByRange(Operation *op) {
  if (op->getNumOperands() < 2)
    return false;
  std::optional<IndexRange> lhs = rangeOf(op->getOperand(0));
  std::optional<IndexRange> rhs =
      lhs ? rangeOf(op->getOperand(1)) : std::nullopt;
  if (!lhs || !rhs)
    return false;
  if (auto compare = dyn_cast<CompareOp>(op)) {
    std::optional<bool> known =
        compareRanges(compare.getComparisonDirection(), *lhs, *rhs);
    if (!known)
      return false;
    OpBuilder b(op);
    op->replaceAllUsesWith(ConstantOp::create(
        b, op->getLoc(), DenseElementsAttr::get(compare.getType(), *known)));
    op->erase();
    return true;
  }
  Value result;
  if (isa<MaxOp>(op) && lhs->max <= rhs->min)
    result = op->getOperand(1);
  else if (isa<MaxOp>(op) && rhs->max <= lhs->min)
    result = op->getOperand(0);
  else if (isa<MinOp>(op) && lhs->max <= rhs->min)
    result = op->getOperand(0);
  else if (isa<MinOp>(op) && rhs->max <= lhs->min)
    result = op->getOperand(1);
  else if (isa<RemOp>(op) && lhs->min >= 0 && lhs->max < rhs->min)
    result = op->getOperand(0);
  else if (auto clamp = dyn_cast<ClampOp>(op)) {
    std::optional<IndexRange> max = rangeOf(clamp.getMax());
    if (max && lhs->max <= rhs->min && rhs->max <= max->min)
      result = clamp.getOperand();
  }
  if (!result)
    return false;
  op->replaceAllUsesWith(ValueRange(result));
  op->erase();
  return true;
}

/// The op that combines what is there (`old`) with what is scattered on whole
/// tensors: the scattered value itself, or one op of both. Null if the body is
/// anything else.
static Value combineAll(OpBuilder &b, Location loc, Block &body, Value old,
                        Value update) {
  Value result = body.getTerminator()->getOperand(0);
  if (result == body.getArgument(1))
    return update;
  Operation *op = result.getDefiningOp();
  if (!isa_and_nonnull<AddOp, MulOp, MaxOp, MinOp>(op))
    return {};
  IRMapping mapping;
  mapping.map(body.getArgument(0), old);
  mapping.map(body.getArgument(1), update);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    if (operand != body.getArgument(0) && operand != body.getArgument(1))
      return {};
    operands.push_back(mapping.lookup(operand));
  }
  return b
      .create(loc, op->getName().getIdentifier(), operands, update.getType())
      ->getResult(0);
}

/// A scatter of one window at a counter, which JAX writes for `x.at[i].set`, is
/// an update of a slice where the counter never runs out of the tensor.
static bool scatterToUpdate(ScatterOp op) {
  if (op.getInputs().size() != 1)
    return false;
  Value input = op.getInputs()[0], update = op.getUpdates()[0];
  auto type = cast<RankedTensorType>(input.getType());
  auto updateType = cast<RankedTensorType>(update.getType());
  auto numbers = op.getScatterDimensionNumbers();
  ArrayRef<int64_t> dims = numbers.getScatterDimsToOperandDims();
  if (dims.size() != 1 || !numbers.getInputBatchingDims().empty() ||
      int64_t(numbers.getUpdateWindowDims().size()) != updateType.getRank())
    return false;
  Value index = op.getScatterIndices();
  while (isa_and_nonnull<BroadcastInDimOp, ReshapeOp>(index.getDefiningOp()))
    index = index.getDefiningOp()->getOperand(0);
  std::optional<AffineIndex> affine = matchAffineIndex(index);
  if (!affine || cast<RankedTensorType>(index.getType()).getRank() != 0)
    return false;
  // The window, with the dimensions of size one that the update leaves out.
  SmallVector<int64_t> window;
  for (int64_t i = 0, next = 0; i < type.getRank(); ++i)
    window.push_back(llvm::is_contained(numbers.getInsertedWindowDims(), i)
                         ? 1
                         : updateType.getDimSize(next++));
  if (affine->min < 0 ||
      affine->max > type.getDimSize(dims[0]) - window[dims[0]])
    return false;
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto windowType = type.clone(window);
  SmallVector<Value> starts(type.getRank());
  for (int64_t i = 0; i < type.getRank(); ++i)
    starts[i] =
        i == dims[0] ? index : integerConstant(b, loc, index.getType(), 0);
  if (updateType != windowType)
    update = ReshapeOp::create(b, loc, windowType, update);
  Value old = DynamicSliceOp::create(b, loc, windowType, input, starts,
                                     b.getDenseI64ArrayAttr(window));
  Value combined =
      combineAll(b, loc, op.getUpdateComputation().front(), old, update);
  if (!combined)
    return false;
  op->getResult(0).replaceAllUsesWith(
      DynamicUpdateSliceOp::create(b, loc, type, input, combined, starts));
  op.erase();
  return true;
}

//===----------------------------------------------------------------------===//
// Stacks of what is there anyway
//===----------------------------------------------------------------------===//

namespace {
/// What a part of a stack is computed from: the value that a loop stacked, and
/// which iterations of the loops around it the part is of.
struct Stacked {
  Value value;
  /// A loop's counter is `scale * index + offset` with an index of the reader.
  struct Iteration {
    BlockArgument counter;
    Value index;
    int64_t scale, offset;
  };
  SmallVector<Iteration> iterations;
};
} // namespace

/// The value with the same elements before reshapes.
static Value stripReshapes(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<ReshapeOp>(op) &&
        !(isa<BroadcastInDimOp>(op) &&
          cast<RankedTensorType>(op->getOperand(0).getType())
                  .getNumElements() ==
              cast<RankedTensorType>(value.getType()).getNumElements() &&
          llvm::is_sorted(cast<BroadcastInDimOp>(op).getBroadcastDimensions())))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Whether a slice takes one element off the first dimension, all of others.
static bool isLayer(ArrayRef<int64_t> part, ArrayRef<int64_t> stack) {
  return !part.empty() && part.front() == 1 &&
         part.drop_front() == stack.drop_front();
}

/// The value that a loop stacked for `slice`, if each iteration of the loop
/// fills one slot of the stack.
static std::optional<Stacked> findStacked(DynamicSliceOp slice) {
  Value stack = slice.getOperand();
  auto type = cast<RankedTensorType>(stack.getType());
  Value start = slice.getStartIndices().empty()
                    ? Value()
                    : slice.getStartIndices().front();
  if (!start || !isLayer(slice.getSliceSizes(), type.getShape()))
    return std::nullopt;
  std::optional<IndexRange> range = rangeOf(start);
  if (!range || range->min < 0 || range->max >= type.getDimSize(0))
    return std::nullopt;
  Stacked result;
  if (auto outer = stripReshapes(stack).getDefiningOp<DynamicSliceOp>()) {
    std::optional<Stacked> found = findStacked(outer);
    if (!found)
      return std::nullopt;
    result = *found;
    stack = found->value;
  }
  auto loop = stack.getDefiningOp<WhileOp>();
  std::optional<CountedLoop> counted;
  if (loop)
    counted = matchCountedLoop(loop);
  if (!counted || stack.getType() != type ||
      counted->trips != type.getDimSize(0))
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
  // slot = scale * counter + offset, solved for the counter.
  result.iterations.push_back(
      {slot->counter, start, slot->scale, -slot->scale * slot->offset});
  result.value = stripReshapes(update.getUpdate());
  return result;
}

namespace {
/// Computes again, before `reader`, what is cut from arrays that it could cut
/// itself, or computed of counters.
class Recomputer {
public:
  Recomputer(Operation *reader, const Stacked &stacked)
      : reader(reader), stacked(stacked), builder(reader) {}

  /// Null if it cannot, or should not.
  Value get(Value value) {
    // First without changing anything.
    return check(value, /*depth=*/8) ? make(value) : Value();
  }

private:
  const Stacked::Iteration *getIteration(Value value) const {
    auto found = llvm::find_if(stacked.iterations, [&](const auto &iteration) {
      return iteration.counter == value;
    });
    return found == stacked.iterations.end() ? nullptr : found;
  }
  bool isVisible(Value value) const {
    Operation *ancestor =
        value.getParentBlock()->findAncestorOpInBlock(*reader);
    Operation *def = value.getDefiningOp();
    return ancestor && (!def || def->isBeforeInBlock(ancestor));
  }
  bool check(Value value, unsigned depth) const {
    if (getIteration(value) || isVisible(value))
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
    Location loc = reader->getLoc();
    if (const Stacked::Iteration *iteration = getIteration(value)) {
      Type type = value.getType();
      Value index = iteration->index;
      if (index.getType() != type)
        index = ConvertOp::create(builder, loc, type, index);
      if (iteration->scale == -1)
        index = NegOp::create(builder, loc, index);
      if (iteration->offset != 0)
        index = AddOp::create(
            builder, loc, index,
            integerConstant(builder, loc, type, iteration->offset));
      return index;
    }
    if (isVisible(value))
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

/// The element of an array of whole numbers that grow by the same amount, as
/// `arange` makes it, follows from its index.
static Value readProgression(DynamicSliceOp slice) {
  auto type = cast<RankedTensorType>(slice.getOperand().getType());
  auto element = dyn_cast<IntegerType>(type.getElementType());
  if (type.getRank() != 1 || !element || element.getWidth() < 32 ||
      slice.getType().getNumElements() != 1)
    return {};
  Value start = slice.getStartIndices().front();
  std::optional<IndexRange> range = rangeOf(start);
  if (!range || range->min < 0 || range->max >= type.getDimSize(0))
    return {};
  int64_t first = 0, by = 1;
  DenseElementsAttr constant;
  if (matchPattern(slice.getOperand(), m_Constant(&constant))) {
    SmallVector<int64_t> numbers;
    for (const APInt &number : constant.getValues<APInt>())
      numbers.push_back(element.isUnsigned() ? number.getZExtValue()
                                             : number.getSExtValue());
    first = numbers.front();
    by = numbers.size() > 1 ? numbers[1] - first : 0;
    for (auto [i, number] : llvm::enumerate(numbers))
      if (number != first + by * int64_t(i))
        return {};
  } else if (!slice.getOperand().getDefiningOp<IotaOp>()) {
    return {};
  }
  OpBuilder b(slice);
  Location loc = slice.getLoc();
  auto scalar = RankedTensorType::get({}, element);
  Value index = start;
  if (index.getType() != scalar)
    index = ConvertOp::create(b, loc, scalar, index);
  index = MulOp::create(b, loc, index, integerConstant(b, loc, scalar, by));
  return AddOp::create(b, loc, index, integerConstant(b, loc, scalar, first));
}

/// Reads what is there anyway instead of a stack of it. JAX stacks the index
/// and the weight for the backward pass where a loop cuts its weights itself.
static bool readOrigin(DynamicSliceOp slice) {
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

/// Indices pass barriers: it costs nothing to compute them again.
static bool passIndices(OptimizationBarrierOp barrier) {
  bool changed = false;
  for (auto [operand, result] :
       llvm::zip(barrier->getOperands(), barrier->getResults()))
    if (!result.use_empty() && rangeOf(operand)) {
      result.replaceAllUsesWith(operand);
      changed = true;
    }
  return changed;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct CanonicalizeLoops
    : public stablehlo::impl::CanonicalizeLoopsBase<CanonicalizeLoops> {
  void runOnOperation() override {
    // Each round may uncover more: an inner loop that is unrolled lets the
    // outer one be, a branch that is chosen makes carries invariant.
    constexpr int kMaxRounds = 8;
    for (int round = 0; round < kMaxRounds && canonicalize(); ++round) {
      RewritePatternSet patterns(&getContext());
      populateSimplifyPatterns(patterns);
      if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
        return signalPassFailure();
      IRRewriter rewriter(&getContext());
      DominanceInfo dominance(getOperation());
      eliminateCommonSubExpressions(rewriter, dominance, getOperation());
    }
  }

  bool canonicalize() {
    bool changed = false;
    // Inner ones first; ops that appear meanwhile wait for the next round.
    SmallVector<Operation *> worklist;
    getOperation()->walk([&](Operation *op) {
      if (isa<WhileOp, IfOp, CaseOp>(op))
        worklist.push_back(op);
    });
    for (Operation *op : worklist) {
      if (auto loop = dyn_cast<WhileOp>(op))
        changed |= canonicalizeWhile(loop);
      else if (auto branch = dyn_cast<IfOp>(op))
        changed |= canonicalizeIf(branch);
      else
        changed |= canonicalizeCase(cast<CaseOp>(op));
    }
    SmallVector<Operation *> arithmetic;
    SmallVector<ScatterOp> scatters;
    SmallVector<DynamicSliceOp> slices;
    SmallVector<OptimizationBarrierOp> barriers;
    if (!worklist.empty())
      getOperation()->walk([&](Operation *op) {
        if (auto barrier = dyn_cast<OptimizationBarrierOp>(op))
          barriers.push_back(barrier);
        if (auto slice = dyn_cast<DynamicSliceOp>(op))
          slices.push_back(slice);
        if (auto scatter = dyn_cast<ScatterOp>(op))
          scatters.push_back(scatter);
        if (isa<CompareOp, MaxOp, MinOp, RemOp, ClampOp>(op) &&
            !op->getParentOfType<ReduceOp>() && op->getParentOfType<WhileOp>())
          arithmetic.push_back(op);
      });
    for (Operation *op : arithmetic)
      // The comparison that ends a loop is what its counter is known by.
      if (!isa<WhileOp>(op->getParentOp()) ||
          op->getParentRegion() != &cast<WhileOp>(op->getParentOp()).getCond())
        changed |= simplifyByRange(op);
    for (ScatterOp scatter : scatters)
      changed |= scatterToUpdate(scatter);
    for (OptimizationBarrierOp barrier : barriers)
      changed |= passIndices(barrier);
    for (DynamicSliceOp slice : slices)
      changed |= readOrigin(slice);
    return changed;
  }
};
} // namespace
