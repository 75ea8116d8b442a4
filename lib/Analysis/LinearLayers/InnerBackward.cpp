//===- InnerBackward.cpp - Backward passes that a loss follows from -------===//
//
// A dot in the slice of the losses may be a dgrad if it reads a weight the
// other way round than an earlier dot of the forward pass, from which it
// follows. It is part of the forward pass all the same if a gradient passes
// through it, as through a penalty on gradients, or if the losses or a layer
// read what it computes as it is.
//
//===----------------------------------------------------------------------===//

#include "Analyzer.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

#include <optional>

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// Finds the backward passes in the slice of the losses that are no part of the
/// forward pass: their gradients only change what a later loss reads, weights
/// (as in SAM and in updates that are unrolled) or the batch (as in adversarial
/// training). A loss whose own gradient passes through such a backward pass
/// contains it.
class InnerBackward {
public:
  InnerBackward(Analyzer &analyzer, ArrayRef<Value> losses);

  bool any() const { return !dgrads.empty(); }
  SmallVector<Value> getLayers() const { return getResults(forward); }
  bool isLeaf(Value value) const;
  BlockArgument getChangedParameter(Value value) const;

private:
  SmallVector<Value> getResults(ArrayRef<unsigned> some) const;
  bool inSlice(unsigned read) const {
    return analyzer.forwardSlice.contains(reads[read].dot);
  }
  bool isDgradOf(unsigned read, unsigned layer) const;
  bool repeats(unsigned read, unsigned layer) const;
  bool mayBeAny() const;
  void findDgrads();
  bool isDifferentiated(unsigned dgrad) const;
  bool followsFromDgrad(Value value) const;
  bool isMoved(Value value) const;
  DenseSet<Operation *> findForwardReads(ArrayRef<Value> losses) const;

  Analyzer &analyzer;
  std::vector<WeightRead> reads;
  /// The layers and their dgrads, among the reads.
  SmallVector<unsigned> forward, dgrads;
  /// The gradients that the dgrads read and compute.
  DenseSet<Value> gradients;
  /// What depends on the results of dots that may be dgrads, and on
  /// `gradients`.
  std::optional<Dependence> onDgrads, onGradients;
};
} // namespace

InnerBackward::InnerBackward(Analyzer &analyzer, ArrayRef<Value> losses)
    : analyzer(analyzer), reads(analyzer.findWeightReads()) {
  if (!mayBeAny())
    return;
  findDgrads();
  onDgrads.emplace(analyzer.function, getResults(dgrads), ValueSet(),
                   /*together=*/true);
  DenseSet<Operation *> read = findForwardReads(losses);
  SmallVector<unsigned> others;
  for (unsigned dgrad : dgrads)
    (read.contains(reads[dgrad].dot) || isDifferentiated(dgrad) ? forward
                                                                : others)
        .push_back(dgrad);
  dgrads = std::move(others);
  for (unsigned dgrad : dgrads) {
    gradients.insert(reads[dgrad].dot->getResult(0));
    gradients.insert_range(reads[dgrad].otherChain);
  }
  onGradients.emplace(analyzer.function, llvm::to_vector(gradients), ValueSet(),
                      /*together=*/true);
}

SmallVector<Value> InnerBackward::getResults(ArrayRef<unsigned> some) const {
  return llvm::map_to_vector(
      some, [&](unsigned i) -> Value { return reads[i].dot->getResult(0); });
}

/// Whether a dot contracts the other dimensions of the weight of a layer.
bool InnerBackward::isDgradOf(unsigned read, unsigned layer) const {
  const WeightRead &a = reads[read], &b = reads[layer];
  return a.weight == b.weight && a.contracted.any() && b.contracted.any() &&
         areComplementary(a.contracted, b.contracted);
}

/// Whether a dot computes a layer once more.
bool InnerBackward::repeats(unsigned read, unsigned layer) const {
  const WeightRead &a = reads[read], &b = reads[layer];
  return a.weight == b.weight && a.contracted == b.contracted &&
         a.other == b.other;
}

/// Whether the slice reads any weight both ways. It does in few steps, and what
/// follows takes time.
bool InnerBackward::mayBeAny() const {
  for (unsigned i : llvm::seq<unsigned>(reads.size()))
    for (unsigned j : llvm::seq(i))
      if (inSlice(i) && inSlice(j) && isDgradOf(i, j))
        return true;
  return false;
}

/// Sorts the dots of the slice into layers and what may be their dgrads, which
/// follow from their results.
void InnerBackward::findDgrads() {
  SmallVector<unsigned> all =
      llvm::to_vector(llvm::seq<unsigned>(reads.size()));
  Dependence onReads(analyzer.function, getResults(all));
  for (unsigned i : all) {
    if (!inSlice(i) ||
        llvm::any_of(forward, [&](unsigned j) { return repeats(i, j); }))
      continue;
    bool isDgrad = llvm::any_of(forward, [&](unsigned j) {
      return isDgradOf(i, j) && onReads.depends(reads[i].otherChain.front(), j);
    });
    (isDgrad ? dgrads : forward).push_back(i);
  }
}

/// Whether the gradient of a loss passes through a dgrad: outside of the slice
/// a dot reads the weight as the layer does, and the gradient of the dgrad's
/// result.
bool InnerBackward::isDifferentiated(unsigned dgrad) const {
  for (unsigned i : llvm::seq<unsigned>(reads.size()))
    if (!inSlice(i) && isDgradOf(i, dgrad) &&
        followsFromDgrad(reads[i].otherChain.front()) &&
        llvm::none_of(forward, [&](unsigned j) { return repeats(i, j); }))
      return true;
  return false;
}

/// Whether a value follows from what may be dgrads.
bool InnerBackward::followsFromDgrad(Value value) const {
  return onDgrads->dependsOnAny(value);
}

/// Returns the parameter of a value that is a parameter plus what depends on
/// data; null for other values.
BlockArgument InnerBackward::getChangedParameter(Value value) const {
  Operation *op = value.getDefiningOp();
  return op && isFloat(value.getType())
             ? analyzer.getChangedParameter(value, op)
             : nullptr;
}

/// Whether a value is another one plus what follows from what may be gradients.
bool InnerBackward::isMoved(Value value) const {
  Operation *op = value.getDefiningOp();
  return op && isFloat(value.getType()) &&
         analyzer.findTerm(value, op, [&](Value term) {
           return !isa_and_nonnull<stablehlo::ConstantOp>(
                      term.getDefiningOp()) &&
                  !followsFromDgrad(term);
         });
}

/// Returns what follows from dots that may be dgrads and is part of the forward
/// pass all the same: what the losses read without a layer or a changed
/// parameter in between, and what a layer reads as it is, such as the vectors
/// of a power iteration. The gradients of another loss move something first.
DenseSet<Operation *>
InnerBackward::findForwardReads(ArrayRef<Value> losses) const {
  DenseSet<Operation *> layers;
  SmallVector<Value> operands;
  for (unsigned i : forward) {
    layers.insert(reads[i].dot);
    llvm::append_range(operands, reads[i].dot->getOperands());
  }
  DenseSet<Operation *> found =
      analyzer.getSlice(losses, /*throughSteps=*/false, [&](Value value) {
        return !followsFromDgrad(value) ||
               layers.contains(value.getDefiningOp()) ||
               getChangedParameter(value);
      });
  found.insert_range(
      analyzer.getSlice(operands, /*throughSteps=*/false, [&](Value value) {
        return !followsFromDgrad(value) ||
               layers.contains(value.getDefiningOp()) || isMoved(value);
      }));
  return found;
}

/// Whether the forward pass reads a value as if it were given: a gradient, or a
/// parameter that gradients have changed.
bool InnerBackward::isLeaf(Value value) const {
  return onGradients->dependsOnAny(value) &&
         (gradients.contains(value) || getChangedParameter(value));
}

void Analyzer::leaveOutInnerBackward(ArrayRef<Value> losses,
                                     ArrayRef<Value> others) {
  InnerBackward inner(*this, losses);
  if (!inner.any())
    return;
  SmallVector<Value> roots = inner.getLayers();
  llvm::append_range(roots, losses);
  llvm::append_range(roots, others);
  llvm::SetVector<std::pair<Value, BlockArgument>> changed;
  // The result of a layer may be a gradient, too: that of half its square.
  forwardSlice = getSlice(roots, /*throughSteps=*/false, [&](Value value) {
    if (!inner.isLeaf(value) || llvm::is_contained(roots, value))
      return false;
    if (BlockArgument parameter = inner.getChangedParameter(value))
      changed.insert(
          {views.getViewRoot(value, value.getDefiningOp()), parameter});
    return true;
  });
  // Layers read what gradients have changed as they read parameters.
  origins.addUpdatedParameters(changed.getArrayRef());
  operandOrigins.clear();
}
