//===- LoopInvariants.cpp - Moving invariant ops out of loops -------------===//

#include "LoopRewriting.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::stablehlo;

/// Invariant results up to this size leave a loop whatever computes them.
static constexpr int64_t kSmallElements = 1024;

/// Whether an op is worth keeping a large result for, instead of recomputing
/// it.
static bool isExpensive(Operation *op) {
  return op->getNumRegions() != 0 ||
         isa<DotGeneralOp, ConvolutionOp, RngBitGeneratorOp>(op);
}

/// Whether all results are small. The types of other dialects occur after
/// quantization: a quantized tensor is smaller than the one that it is made of.
static bool isSmall(Operation *op) {
  return llvm::all_of(op->getResultTypes(), [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return !tensor || tensor.getNumElements() <= kSmallElements;
  });
}

/// Returns the ops of a region of `loop` that are the same in every iteration,
/// each after its operands.
static llvm::SetVector<Operation *> findInvariantOps(WhileOp loop,
                                                     Region &region) {
  llvm::SetVector<Operation *> invariant;
  for (Operation &op : region.front().without_terminator()) {
    // Nothing moves across a barrier.
    if (isa<OptimizationBarrierOp>(op) || !isMemoryEffectFree(&op))
      continue;
    bool isSame = true;
    forEachRead(&op, [&](Value value) {
      if (isOutside(value, loop) ||
          op.isAncestor(value.getParentBlock()->getParentOp()))
        return;
      Operation *def = value.getDefiningOp();
      isSame &= def && invariant.contains(def);
    });
    if (isSame)
      invariant.insert(&op);
  }
  return invariant;
}

namespace {
/// Moves invariant ops of one region before their loop.
class Hoister {
public:
  Hoister(WhileOp loop, Region &region)
      : loop(loop), invariant(findInvariantOps(loop, region)) {}

  bool run(bool runsAtLeastOnce) {
    for (Operation *op : invariant)
      if (isExpensive(op) ? runsAtLeastOnce
                          : isSmall(op) && operandsAreOutside(op))
        hoistWithOperands(op);
    return !hoisted.empty();
  }

private:
  /// Moves an op out after its operands.
  void hoistWithOperands(Operation *op) {
    if (!hoisted.insert(op).second)
      return;
    forEachRead(op, [&](Value value) {
      Operation *def = value.getDefiningOp();
      if (def && invariant.contains(def))
        hoistWithOperands(def);
    });
    op->moveBefore(loop);
  }

  bool operandsAreOutside(Operation *op) const {
    bool areOutside = true;
    forEachRead(op, [&](Value value) {
      Operation *def = value.getDefiningOp();
      areOutside &= !def || !invariant.contains(def) || hoisted.contains(def);
    });
    return areOutside;
  }

  WhileOp loop;
  llvm::SetVector<Operation *> invariant;
  DenseSet<Operation *> hoisted;
};
} // namespace

bool stablehlo::hoistInvariantOps(WhileOp loop, bool runsAtLeastOnce) {
  bool changed = false;
  for (Region *region : {&loop.getCond(), &loop.getBody()})
    changed |= Hoister(loop, *region).run(runsAtLeastOnce);
  return changed;
}
