//===- RecomputeAttention.cpp - Recomputing scores in the backward pass ---===//

#include "SavedScores.h"
#include "Scores.h"

#include "../EffectiveRecipe.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Analysis/LinearLayers/LinearLayers.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Support/Shapes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8RECOMPUTEATTENTION
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;
using Dot = stablehlo::DotGeneralOp;

namespace {

/// Recomputes the forward scores of one attention.
class ScoreRecomputer {
public:
  ScoreRecomputer(const Scores &scores, const LinearLayers &layers)
      : scores(scores), layers(layers) {}
  unsigned run();

private:
  bool isKnown(Value value);
  bool isReader(Operation *op);
  Value again(Value value, Operation *reader);

  const Scores &scores;
  const LinearLayers &layers;
  DenseMap<Value, bool> knownMembers;
  /// The recomputed values, and operands of dots behind a barrier.
  IRMapping copies;
  unsigned dots = 0;
};

} // namespace

/// Puts `value` behind a barrier, so that ops on it are not merged with those
/// of the first computation.
static Value putBarrier(OpBuilder &builder, Value value) {
  return stablehlo::OptimizationBarrierOp::create(builder, value.getLoc(),
                                                  value.getType(), value)
      ->getResult(0);
}

/// Whether a member can be computed after the forward pass: it belongs to the
/// forward pass, or follows from such members alone.
bool ScoreRecomputer::isKnown(Value value) {
  auto [it, isNew] = knownMembers.try_emplace(value, false);
  if (!isNew)
    return it->second;
  Operation *def = value.getDefiningOp();
  bool result =
      layers.isForward(def) ||
      (!isa<Dot>(def) && llvm::all_of(def->getOperands(), [&](Value operand) {
        return isConstant(operand) ||
               (scores.isMember(operand) && isKnown(operand));
      }));
  return knownMembers[value] = result;
}

Value ScoreRecomputer::again(Value value, Operation *reader) {
  if (Value copy = copies.lookupOrNull(value))
    return copy;
  Operation *def = value.getDefiningOp();
  if (!scores.isMember(value) || !isKnown(value))
    return value;
  OpBuilder builder(reader);
  IRMapping operands;
  bool isDot = isa<Dot>(def);
  for (Value operand : def->getOperands()) {
    Value copy = isDot ? copies.lookupOrNull(operand) : again(operand, reader);
    if (!copy) {
      copy = putBarrier(builder, operand);
      copies.map(operand, copy);
    }
    operands.map(operand, copy);
  }
  Operation *copy = builder.clone(*def, operands);
  if (isDot) {
    copy->setAttr(FP8Dialect::kRecomputeAttrName, builder.getUnitAttr());
    ++dots;
  }
  copies.map(value, copy->getResult(0));
  return copy->getResult(0);
}

/// Whether `op`, in the backward pass, contracts scores of the forward pass or
/// computes other scores from them. Rows that other ops read are saved.
bool ScoreRecomputer::isReader(Operation *op) {
  if (layers.isForward(op))
    return false;
  return llvm::is_contained(scores.readers, op) ||
         (op->getNumResults() == 1 && scores.isScore(op->getResult(0)) &&
          !isKnown(op->getResult(0)));
}

/// Recomputes the scores that the backward pass reads. Returns the number of
/// recomputed dots.
unsigned ScoreRecomputer::run() {
  SmallVector<OpOperand *> reads;
  for (Value value : scores.members)
    if (isKnown(value))
      for (OpOperand &use : value.getUses())
        if (isReader(use.getOwner()))
          reads.push_back(&use);
  // Put a copy in front of its first reader, where everything that the value is
  // computed from is available.
  llvm::sort(reads, [](OpOperand *a, OpOperand *b) {
    return a->getOwner() == b->getOwner()
               ? a->getOperandNumber() < b->getOperandNumber()
               : a->getOwner()->isBeforeInBlock(b->getOwner());
  });
  for (OpOperand *read : reads)
    read->set(again(read->get(), read->getOwner()));
  return dots;
}

namespace {
/// Values of softmaxes: scores, and what has one element for each row of them.
struct ScoreValues {
  DenseSet<Value> scores, rows;
};
} // namespace

/// Adds the values of all softmaxes over scores in `block`, and of those that
/// are contracted elsewhere: the block saves them, or passes them by a barrier.
static void addScores(Block &block, ScoreValues &values) {
  std::vector<Scores> lost, all = findScores(block, &lost);
  llvm::copy_if(lost, std::back_inserter(all), [](const Scores &scores) {
    return !scores.obstacle ||
           isa<stablehlo::DynamicUpdateSliceOp,
               stablehlo::OptimizationBarrierOp>(scores.obstacle);
  });
  for (const Scores &scores : all) {
    Dot dot = scores.scoreDots.front();
    int64_t size = tensorOf(dot.getResult()).getNumElements();
    for (Value member : scores.members)
      (tensorOf(member).getNumElements() < size ? values.rows : values.scores)
          .insert(member);
  }
}

/// Lets readers of what `barrier` passes read its operands in `taken`, and
/// drops those that nothing reads behind it. Returns whether there are any.
static bool takeOut(stablehlo::OptimizationBarrierOp barrier,
                    const DenseSet<Value> &taken) {
  SmallVector<Value> kept;
  SmallVector<OpResult> results;
  for (OpResult result : barrier->getResults()) {
    Value operand = barrier->getOperand(result.getResultNumber());
    if (taken.contains(operand)) {
      result.replaceAllUsesWith(operand);
    } else if (!result.use_empty()) {
      kept.push_back(operand);
      results.push_back(result);
    }
  }
  if (kept.size() == barrier->getNumOperands())
    return false;
  if (!kept.empty()) {
    OpBuilder builder(barrier);
    auto rest = stablehlo::OptimizationBarrierOp::create(
        builder, barrier.getLoc(), ValueRange(kept).getTypes(), kept);
    for (auto [old, result] : llvm::zip(results, rest->getResults()))
      old.replaceAllUsesWith(result);
  }
  barrier->erase();
  return true;
}

/// Takes scores out of barriers, behind which a checkpointed layer reads what
/// its policy saves. They are not saved, so nothing needs to keep them apart.
/// Returns whether there are any.
static bool takeScoresOutOfBarriers(Block &block) {
  auto barriers =
      llvm::to_vector(block.getOps<stablehlo::OptimizationBarrierOp>());
  if (barriers.empty())
    return false;
  ScoreValues values;
  addScores(block, values);
  values.scores.insert_range(values.rows);
  return llvm::count_if(barriers, [&](auto barrier) {
           return takeOut(barrier, values.scores);
         }) > 0;
}

namespace {
struct RecomputeAttention
    : fp8::impl::FP8RecomputeAttentionBase<RecomputeAttention> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(verifyDecided(module)))
      return signalPassFailure();
    for (auto function : module.getOps<func::FuncOp>()) {
      SmallVector<Block *> blocks;
      function.walk([&](Block *block) { blocks.push_back(block); });
      // A loop that computes a forward pass again may itself save scores.
      while (recomputeSaved(function, blocks))
        ;
      // Sums of rows are found once their scores are read without a barrier.
      for (Block *block : blocks)
        while (takeScoresOutOfBarriers(*block))
          ;
      LinearLayers layers(function);
      for (Block *block : blocks)
        for (const Scores &scores : findScores(*block))
          numRecomputed += ScoreRecomputer(scores, layers).run();
    }
  }

private:
  /// Makes the backward pass recompute the scores that loops and branches of
  /// the forward pass save for it. Returns whether there are any.
  static bool recomputeSaved(func::FuncOp function, ArrayRef<Block *> blocks) {
    ScoreValues values;
    for (Block *block : blocks)
      if (block->getParentOp() != function)
        addScores(*block, values);
    return !values.scores.empty() &&
           recomputeSavedScores(
               function,
               [&](Value value) { return values.scores.contains(value); },
               [&](Value value) { return values.rows.contains(value); });
  }
};
} // namespace
