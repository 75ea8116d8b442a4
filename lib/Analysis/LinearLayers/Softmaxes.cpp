//===- Softmaxes.cpp - Dots of the softmaxes of attentions ----------------===//

#include "Analyzer.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::fp8;

SmallVector<Analyzer::SourceDot>
Analyzer::findSourceDots(Operation *dot) const {
  SmallVector<SourceDot> found;
  llvm::SetVector<std::pair<Value, unsigned>> seen; // 1: through an exponential
  for (Value operand : dot->getOperands())
    seen.insert({operand, 0});
  for (unsigned i = 0; i < seen.size(); ++i) {
    auto [value, throughExp] = seen[i];
    for (Value source : getFlowSources(value))
      seen.insert({source, throughExp});
    Operation *op = value.getDefiningOp();
    if (!op || op->getNumRegions() > 1)
      continue;
    if (isa<stablehlo::DotGeneralOp>(op) && !mixers.contains(op)) {
      found.push_back({op, throughExp != 0});
      continue;
    }
    for (Value operand : op->getOperands())
      seen.insert({operand, throughExp | isa<stablehlo::ExpOp>(op)});
  }
  return found;
}

/// Returns those of the candidates, dots of two activations, that belong to an
/// attention: in the forward pass an exponential lies between two of them.
/// Others belong to it if they read what follows from the scores, or make what
/// such a dot reads.
DenseSet<Operation *>
Analyzer::findDotsOfSoftmaxes(ArrayRef<unsigned> candidates) const {
  llvm::MapVector<Operation *, SmallVector<SourceDot>> sources;
  for (unsigned index : candidates)
    sources[dots[index].dot] = findSourceDots(dots[index].dot);
  DenseSet<Operation *> scores, found;
  auto findPairs = [&](bool forward) {
    for (auto &[dot, from] : sources)
      for (SourceDot source : from)
        if (source.throughExp && sources.contains(source.dot) &&
            inForwardPass(dot) == forward &&
            inForwardPass(source.dot) == forward) {
          scores.insert(source.dot);
          found.insert(source.dot);
          found.insert(dot);
        }
  };
  findPairs(/*forward=*/true);
  if (found.empty())
    return found;
  findPairs(/*forward=*/false); // attentions that are computed once more
  SmallVector<Operation *> ofBackward;
  for (auto &[dot, from] : sources)
    if (llvm::any_of(from, [&](SourceDot source) {
          return scores.contains(source.dot);
        })) {
      found.insert(dot);
      if (!inForwardPass(dot))
        ofBackward.push_back(dot);
    }
  for (Operation *dot : ofBackward)
    for (SourceDot source : sources[dot])
      if (sources.contains(source.dot))
        found.insert(source.dot);
  return found;
}

/// Finds the dots of softmaxes. Attentions of one head and one sequence, whose
/// dots have no batching dimensions, get their role by that.
void Analyzer::findSoftmaxes() {
  DenseSet<Operation *> found = findDotsOfSoftmaxes(ofActivations);
  for (unsigned index : ofActivations)
    if (found.contains(dots[index].dot)) {
      dots[index].role = DotRole::Attention;
      dots[index].ofSoftmax = true;
      dots[index].why.clear();
    }
  if (batched.empty())
    return;
  found = findDotsOfSoftmaxes(
      llvm::to_vector(llvm::concat<unsigned>(ofActivations, batched)));
  for (unsigned index : batched)
    dots[index].ofSoftmax = found.contains(dots[index].dot);
}
