//===- FormAttention.cpp - Forms ops of softmaxes over scores -------------===//

#include "AttentionBuilder.h"
#include "SeparateHeads.h"
#include "SoftmaxVerdict.h"

#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8FORMATTENTION
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;
using Dot = stablehlo::DotGeneralOp;

namespace {
struct FormAttention : fp8::impl::FP8FormAttentionBase<FormAttention> {
  using FP8FormAttentionBase::FP8FormAttentionBase;

  void runOnOperation() override {
    SmallVector<Block *> blocks;
    getOperation().walk([&](Block *block) { blocks.push_back(block); });
    // Rows that a forward pass passes to a backward pass separate the two only
    // once the forward pass is an op.
    for (Block *block : blocks)
      while (form(*block))
        ;
  }

private:
  static SmallVector<Operation *> opsOf(const Scores &scores) {
    SmallVector<Operation *> ops(scores.scoreDots.begin(),
                                 scores.scoreDots.end());
    llvm::append_range(ops, scores.readers);
    for (Value member : scores.members)
      ops.push_back(member.getDefiningOp());
    return ops;
  }

  /// Makes ops of the softmaxes of a block. Returns true if there were any;
  /// else reports what became of those that are left.
  bool form(Block &block) {
    std::vector<Scores> lost, all = findScores(block, &lost);
    // In derivatives of derivatives a dot may belong to two attentions: its
    // result is the output of one and the scores of the other. Forming the
    // first replaces ops of the second, so that the second waits for the next
    // round.
    DenseSet<Operation *> replaced;
    bool changed = false;
    for (const Scores &scores : all) {
      SmallVector<Operation *> ops = opsOf(scores);
      if (scores.problem.empty() && !storeScores &&
          llvm::none_of(ops,
                        [&](Operation *op) { return replaced.contains(op); }) &&
          succeeded(AttentionBuilder(scores, block).run())) {
        ++numFormed;
        changed = true;
        replaced.insert_range(ops);
      }
    }
    for (const Scores &scores : all)
      changed |= !changed && !storeScores && separateHeads(scores);
    if (!changed) {
      // Other norms (of a product along its channels) are no softmax.
      llvm::erase_if(all, [](const Scores &s) { return !s.hasExponential(); });
      llvm::append_range(all, lost);
      llvm::for_each(all, [&](const Scores &scores) { leave(scores); });
      return false;
    }
    // Results may be read before the place of the last dot.
    sortTopologically(&block);
    return true;
  }

  std::string whyStored(const Scores &scores) const {
    if (storeScores)
      return "as asked for (store-scores)";
    return scores.problem.empty() ? "its result is one of its inputs"
                                  : scores.problem;
  }

  void leave(const Scores &scores) {
    ++numLeft;
    Dot dot = scores.scoreDots.front();
    std::string why = whyStored(scores);
    Operation *obstacle = storeScores ? nullptr : scores.obstacle;
    if (emitRemarks) {
      // Emit the remark before the dot has the verdict, because it prints the
      // dot.
      InFlightDiagnostic remark = dot->emitRemark()
                                  << "scores are stored: " << why;
      if (obstacle && obstacle != dot)
        remark.attachNote(obstacle->getLoc()) << "here";
    }
    dot->setAttr(FP8Dialect::kSoftmaxVerdictAttrName,
                 makeVerdict(scores, scores.readers, ScoreStorage::Stored, why,
                             obstacle));
  }
};
} // namespace
