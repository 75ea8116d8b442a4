//===- Choices.cpp - Layers whose results only choose indices -------------===//

#include "Analyzer.h"

#include "fp8/Dialect/StableHLO/IR/CHLO.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns whether an op finds places by comparing: an argmax or argmin is a
/// reduction of values and their indices, and a sort and a top-k may move
/// indices along.
static bool findsPlaces(Operation *op) {
  return isa<stablehlo::ReduceOp, stablehlo::SortOp, chlo::TopKOp>(op) &&
         op->getNumResults() > 1;
}

/// Returns whether nothing but indices follows from a dot's result: the entry
/// of a codebook that is nearest, for instance.
static bool onlyChooses(Value result) {
  constexpr unsigned kMostValues = 64;
  llvm::SetVector<Value> seen;
  seen.insert(result);
  bool chooses = false;
  for (unsigned i = 0; i < seen.size(); ++i) {
    for (OpOperand &use : seen[i].getUses()) {
      Operation *user = use.getOwner();
      bool isChoice = findsPlaces(user);
      if (seen.size() > kMostValues ||
          (!isChoice && !isBarrier(user) && !stablehlo::worksByElement(user) &&
           !isa<stablehlo::ReshapeOp, stablehlo::TransposeOp,
                stablehlo::BroadcastInDimOp, stablehlo::SliceOp>(user)))
        return false;
      for (Value value : user->getResults()) {
        if (isa<FloatType>(getElementTypeOrSelf(value.getType())))
          seen.insert(value);
        else if (isChoice)
          chooses = true;
        else
          return false;
      }
    }
  }
  return chooses;
}

/// Takes layers for none whose results only choose indices. FP8 would change
/// the choice, and no gradient passes through it. (Where a gradient passes by
/// another way, as that of a surrogate, the layer has gradients.)
void Analyzer::dropChoices() {
  llvm::StringSet<> differentiated;
  for (const DotInfo &info : dots)
    if (info.role == DotRole::Dgrad || info.role == DotRole::Wgrad)
      differentiated.insert(info.layer);
  for (DotInfo &info : dots)
    if (info.role == DotRole::Forward && !info.head &&
        !differentiated.contains(info.layer) &&
        onlyChooses(info.dot->getResult(0))) {
      info.role = DotRole::Other;
      info.lhs = info.rhs = OperandKind::Other;
      info.why = "not a linear layer: its result only chooses indices";
    }
}
