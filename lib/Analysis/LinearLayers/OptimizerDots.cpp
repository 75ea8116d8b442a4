//===- OptimizerDots.cpp - The dots of an optimizer -----------------------===//

#include "OptimizerDots.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Support/Shapes.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns whether an argument is an array that an optimizer may keep. A number
/// may as well be a factor of the loss, which all of the backward pass reads.
static bool isMoment(BlockArgument arg) {
  std::optional<StateKind> kind = stateKindOf(arg);
  return (kind == StateKind::Moment1 || kind == StateKind::Moment2 ||
          kind == StateKind::Other) &&
         tensorOf(arg).getRank() > 0;
}

llvm::DenseSet<Operation *>
fp8::findOptimizerDots(func::FuncOp function, const Origins &origins,
                       const llvm::DenseSet<Operation *> &forwardSlice) {
  llvm::SetVector<Value> seen;
  for (BlockArgument arg : function.getArguments())
    if (isMoment(arg) && llvm::none_of(arg.getUsers(), [&](Operation *user) {
          return forwardSlice.contains(user);
        }))
      seen.insert(arg);
  llvm::DenseSet<Operation *> dots;
  for (unsigned i = 0; i < seen.size(); ++i) {
    // From here on it is state of the next step, which all of that reads.
    if (origins.isCarriedState(seen[i]) || origins.isUpdatedParameter(seen[i]))
      continue;
    for (OpOperand &use : seen[i].getUses()) {
      Operation *user = use.getOwner();
      forEachPassage(use, [&](Value next) { seen.insert(next); });
      if (isa<stablehlo::WhileOp, stablehlo::OptimizationBarrierOp>(user))
        continue;
      if (isa<stablehlo::DotGeneralOp>(user))
        dots.insert(user);
      seen.insert_range(user->getResults());
    }
  }
  return dots;
}
