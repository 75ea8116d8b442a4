//===- ReductionLabels.cpp - What is reduced over ranks -------------------===//

#include "ReductionLabels.h"

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns "gradient PATH" if a use is a result that is the new state PATH, and
/// the path of any other result; "" for other uses.
static std::string labelOfResult(const Signature &signature, OpOperand &use) {
  if (!isa<func::ReturnOp>(use.getOwner()))
    return "";
  for (const SignatureResult &result : signature.results) {
    if (result.index != use.getOperandNumber())
      continue;
    if (result.kind != ResultKind::State)
      return result.path;
    const SignatureArg *state = signature.findArg(result.statePath);
    return "gradient " + (state && !state->parameter.empty()
                              ? state->parameter
                              : result.statePath);
  }
  return "";
}

/// Returns the value whose elements follow from those of a used value one by
/// one: another form of it, the stack that it becomes a part of, with `sliced`
/// a part of it, or the result of the loop or branch that returns it. Null if
/// there is none.
static Value followByElement(OpOperand &use, bool sliced) {
  Operation *op = use.getOwner();
  if (isa<stablehlo::ReturnOp>(op)) {
    Operation *parent = op->getParentOp();
    bool isResult =
        isa<stablehlo::WhileOp, stablehlo::IfOp, stablehlo::CaseOp>(parent) &&
        op->getNumOperands() == parent->getNumResults();
    return isResult ? parent->getResult(use.getOperandNumber()) : Value();
  }
  if (op->getNumResults() != 1)
    return Value();
  auto from = cast<ShapedType>(use.get().getType());
  auto to = cast<ShapedType>(op->getResult(0).getType());
  bool isPart = (isa<stablehlo::DynamicUpdateSliceOp>(op) &&
                 use.getOperandNumber() == 1) ||
                (sliced && isa<stablehlo::DynamicSliceOp>(op) &&
                 use.getOperandNumber() == 0);
  // (A reshape to the same shape reads a sum before it is reduced.)
  if (isa<stablehlo::ReshapeOp>(op) && from == to)
    return Value();
  bool isForm = isa<stablehlo::ReshapeOp, stablehlo::BroadcastInDimOp>(op)
                    ? from.getNumElements() == to.getNumElements()
                    : from.getShape() == to.getShape();
  return isPart || isForm ? op->getResult(0) : Value();
}

/// Returns the label of the first result that follows elementwise, or "".
static std::string findLabel(const Signature &signature, Value value,
                             bool sliced) {
  llvm::DenseSet<Value> seen;
  SmallVector<Value> worklist{value};
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    for (OpOperand &use : next.getUses()) {
      std::string label = labelOfResult(signature, use);
      if (!label.empty())
        return label;
      if (Value follows = followByElement(use, sliced))
        worklist.push_back(follows);
    }
  }
  return "";
}

std::string fp8::labelOfReduction(const Signature &signature, Value value) {
  std::string label = findLabel(signature, value, /*sliced=*/false);
  if (label.empty())
    label = findLabel(signature, value, /*sliced=*/true);
  return label.empty() ? "sum over rows" : label;
}
