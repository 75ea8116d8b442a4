//===- SavedUses.cpp - Activations that the backward pass reads -----------===//

#include "Analyzer.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

/// Finds the uses by the backward pass of values that the forward pass computes
/// from data.
void Analyzer::findSavedUses(SmallVectorImpl<OpOperand *> &uses) const {
  if (!hasLoss || !updatesParameters)
    return;
  function.walk([&](Operation *op) {
    if (!forwardSlice.contains(op))
      return;
    // The values of a loop are its loop-carried values within an iteration, if
    // the forward pass reads them. Barriers are in no slice; their operands
    // represent them.
    SmallVector<Value> values;
    if (auto loop = dyn_cast<stablehlo::WhileOp>(op))
      llvm::copy_if(loop.getBody().getArguments(), std::back_inserter(values),
                    [&](Value carry) {
                      return llvm::any_of(carry.getUsers(),
                                          [&](Operation *user) {
                                            return forwardSlice.contains(user);
                                          });
                    });
    else if (op->getNumRegions() == 0)
      llvm::append_range(values, op->getResults());
    for (Value value : values) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (!type || !isa<FloatType>(type.getElementType()) ||
          type.getRank() == 0 || origins.get(value) != Origin::Data)
        continue;
      for (OpOperand &use : value.getUses()) {
        // Both passes must rescale by the same factor.
        auto rescale = dyn_cast<RescaleOp>(use.getOwner());
        if (rescale && use.get() == rescale.getFactor())
          continue;
        if (!forwardSlice.contains(use.getOwner()) &&
            (updateSlice.contains(use.getOwner()) || isBarrier(use.getOwner())))
          uses.push_back(&use);
      }
    }
  });
}
