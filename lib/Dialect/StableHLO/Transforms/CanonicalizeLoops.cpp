//===- CanonicalizeLoops.cpp - Canonical loops and branches ---------------===//

#include "LoopRewriting.h"
#include "fp8/Dialect/StableHLO/IR/CHLO.h"
#include "fp8/Dialect/StableHLO/Transforms/Passes.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir {
namespace stablehlo {
#define GEN_PASS_DEF_CANONICALIZELOOPS
#include "fp8/Dialect/StableHLO/Transforms/Passes.h.inc"
} // namespace stablehlo
} // namespace mlir

using namespace mlir;
using namespace mlir::stablehlo;

//===----------------------------------------------------------------------===//
// Whole loops
//===----------------------------------------------------------------------===//

/// Loops are unrolled up to this many iterations and resulting ops.
static constexpr int64_t kMaxUnrolledTrips = 16;
static constexpr int64_t kMaxUnrolledOps = 1024;

/// Whether an op needs no loop over its operands except the one over elements.
/// This is unknown for ops of other dialects, such as dots of scaled tensors.
static bool isUnrollable(Operation *op) {
  if (!isa<StablehloDialect, chlo::ChloDialect>(op->getDialect()) ||
      op->getNumRegions() != 0 ||
      isa<DotGeneralOp, ConvolutionOp, DynamicSliceOp, DynamicUpdateSliceOp,
          GatherOp, RngBitGeneratorOp, CustomCallOp, OptimizationBarrierOp>(op))
    return false;
  return isMemoryEffectFree(op);
}

static bool isWorthUnrolling(Block &body, int64_t trips) {
  if (trips > kMaxUnrolledTrips)
    return false;
  int64_t ops = 0;
  for (Operation &op : body.without_terminator()) {
    ops += trips;
    if (ops > kMaxUnrolledOps || !isUnrollable(&op))
      return false;
  }
  return true;
}

/// Replaces a loop of few iterations by copies of its body, and a loop of one
/// iteration by the body itself.
static bool unroll(WhileOp loop, int64_t trips) {
  Block &body = loop.getBody().front();
  if (trips > 1 && !isWorthUnrolling(body, trips))
    return false;
  SmallVector<Value> values(loop.getOperand());
  if (trips == 1)
    values = moveBefore(loop, body, values);
  for (int64_t i = 0; trips > 1 && i < trips; ++i)
    values = cloneBefore(loop, body, values);
  loop->replaceAllUsesWith(values);
  loop.erase();
  return true;
}

/// Whether the condition is false before the first iteration.
static bool neverRuns(WhileOp loop, const std::optional<CountedLoop> &counted) {
  DenseElementsAttr condition;
  return (counted && counted->trips == 0) ||
         (matchPattern(loop.getCond().front().getTerminator()->getOperand(0),
                       m_Constant(&condition)) &&
          !condition.getSplatValue<bool>());
}

static bool canonicalizeWhile(WhileOp loop) {
  bool changed = eraseDeadOps(loop.getCond().front());
  changed |= eraseDeadOps(loop.getBody().front());
  loop = simplifyCarries(loop, changed);
  changed |= readCopiedArrays(loop);
  if (loop->use_empty()) {
    loop.erase();
    return true;
  }
  std::optional<CountedLoop> counted = matchCountedLoop(loop);
  if (neverRuns(loop, counted)) {
    loop->replaceAllUsesWith(loop.getOperand());
    loop.erase();
    return true;
  }
  if (counted && unroll(loop, counted->trips))
    return true;
  changed |= hoistInvariantOps(loop, counted.has_value());
  return changed;
}

//===----------------------------------------------------------------------===//
// Ops in loops
//===----------------------------------------------------------------------===//

/// Lets indices bypass barriers, because recomputing them costs nothing.
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

/// Whether an op is arithmetic that the range of a counter may determine.
static bool isCounterArithmetic(Operation *op) {
  if (!isa<CompareOp, MaxOp, MinOp, RemOp, ClampOp>(op) ||
      op->getParentOfType<ReduceOp>() || !op->getParentOfType<WhileOp>())
    return false;
  // The comparison that ends a loop defines the range of its counter.
  auto loop = dyn_cast<WhileOp>(op->getParentOp());
  return !loop || op->getParentRegion() != &loop.getCond();
}

namespace {
/// Ops that the counters of loops may simplify.
struct CounterReaders {
  explicit CounterReaders(Operation *root) {
    root->walk([&](Operation *op) {
      if (auto barrier = dyn_cast<OptimizationBarrierOp>(op))
        barriers.push_back(barrier);
      else if (auto slice = dyn_cast<DynamicSliceOp>(op))
        slices.push_back(slice);
      else if (auto gather = dyn_cast<GatherOp>(op))
        gathers.push_back(gather);
      else if (auto scatter = dyn_cast<ScatterOp>(op))
        scatters.push_back(scatter);
      else if (isCounterArithmetic(op))
        arithmetic.push_back(op);
    });
  }

  bool rewrite() {
    bool changed = false;
    for (Operation *op : arithmetic)
      changed |= simplifyByRange(op);
    for (GatherOp gather : gathers)
      changed |= gatherToSlice(gather);
    for (ScatterOp scatter : scatters)
      changed |= scatterToUpdate(scatter);
    for (OptimizationBarrierOp barrier : barriers)
      changed |= passIndices(barrier);
    for (DynamicSliceOp slice : slices)
      changed |= readOrigin(slice);
    return changed;
  }

  SmallVector<Operation *> arithmetic;
  SmallVector<GatherOp> gathers;
  SmallVector<ScatterOp> scatters;
  SmallVector<DynamicSliceOp> slices;
  SmallVector<OptimizationBarrierOp> barriers;
};
} // namespace

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct CanonicalizeLoops
    : public stablehlo::impl::CanonicalizeLoopsBase<CanonicalizeLoops> {
  void runOnOperation() override {
    // Each round may enable more: unrolling an inner loop lets the outer one be
    // unrolled, and choosing a branch makes carries invariant.
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
    // Inner ones first; ops that appear meanwhile are left to the next round.
    SmallVector<Operation *> worklist;
    getOperation()->walk([&](Operation *op) {
      if (isa<WhileOp, IfOp, CaseOp>(op))
        worklist.push_back(op);
    });
    if (worklist.empty())
      return false;
    for (Operation *op : worklist) {
      if (auto loop = dyn_cast<WhileOp>(op))
        changed |= canonicalizeWhile(loop);
      else if (auto branch = dyn_cast<IfOp>(op))
        changed |= canonicalizeIf(branch);
      else
        changed |= canonicalizeCase(cast<CaseOp>(op));
    }
    return CounterReaders(getOperation()).rewrite() || changed;
  }
};
} // namespace
