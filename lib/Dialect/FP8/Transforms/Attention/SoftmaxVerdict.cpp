//===- SoftmaxVerdict.cpp - What became of scores -------------------------===//

#include "SoftmaxVerdict.h"

#include "DotSides.h"

#include "../EffectiveRecipe.h"

#include "fp8/Support/Locations.h"

using namespace mlir;
using namespace mlir::fp8;
using Dot = stablehlo::DotGeneralOp;
using Dims = Scores::Dims;

bool fp8::isBackward(const Scores &scores, ArrayRef<Operation *> readers) {
  return llvm::any_of(readers, [&](Operation *reader) {
    auto dot = dyn_cast<Dot>(reader);
    const Dims &dims = scores.readDims(reader);
    return !dot ||
           llvm::any_of(sideDims(dot, scores.scoreOperand(dot)).contract,
                        [&](int64_t dim) { return scores.isQuery(dims[dim]); });
  });
}

SoftmaxVerdictAttr fp8::makeVerdict(const Scores &scores,
                                    ArrayRef<Operation *> readers,
                                    ScoreStorage kind, const Twine &reason,
                                    Operation *obstacle) {
  Dot dot = scores.scoreDots.front();
  VerdictAttr verdict = getVerdict(dot);
  auto extent = [&](unsigned begin, unsigned end) {
    return llvm::product_of(ArrayRef(scores.sizes).slice(begin, end - begin));
  };
  unsigned keys = scores.numBatch + scores.numQueries;
  MLIRContext *context = dot.getContext();
  return SoftmaxVerdictAttr::get(
      context, kind, isBackward(scores, readers), extent(0, scores.numBatch),
      extent(scores.numBatch, keys), extent(keys, scores.sizes.size()),
      verdict.getLoops(), verdict.getInBranch(), verdict.getRecomputed(),
      StringAttr::get(context, reason),
      obstacle ? StringAttr::get(context, describeLocation(obstacle->getLoc()))
               : StringAttr());
}
