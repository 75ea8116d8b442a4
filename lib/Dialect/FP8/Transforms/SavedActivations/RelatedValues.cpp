//===- RelatedValues.cpp - The inputs of norms and of gated units ---------===//

#include "RelatedValues.h"

#include "Recomputation.h"

#include "fp8/Analysis/LinearLayers/GatedUnits.h"
#include "fp8/Dialect/StableHLO/IR/CHLO.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns the operand of an elementwise op that is about as large as its
/// result, if there is exactly one.
static Value getOnlyLargeOperand(Operation *op) {
  Value only;
  for (Value operand : op->getOperands()) {
    Value source = operand;
    while (Operation *def = source.getDefiningOp()) {
      if (!isa<stablehlo::BroadcastInDimOp, stablehlo::ConvertOp,
               stablehlo::ReshapeOp>(def))
        break;
      source = def->getOperand(0);
    }
    if (numElements(source) * kSmallPart <= numElements(op->getResult(0)) ||
        source.getDefiningOp<stablehlo::ConstantOp>())
      continue;
    if (only && only != operand)
      return nullptr;
    only = operand;
  }
  return only;
}

/// Adds a value and those related to it by elementwise ops whose other operands
/// are small: values it is computed from, and values computed from it.
static void addUnary(Value value, DenseSet<Value> &values) {
  SmallVector<Value> worklist{value};
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!values.insert(next).second)
      continue;
    Operation *def = next.getDefiningOp();
    if (def &&
        (stablehlo::worksByElement(def) || isa<stablehlo::ReshapeOp>(def)))
      if (Value operand = getOnlyLargeOperand(def))
        worklist.push_back(operand);
    for (Operation *user : next.getUsers())
      if ((stablehlo::worksByElement(user) ||
           isa<stablehlo::ReshapeOp>(user)) &&
          getOnlyLargeOperand(user) == next)
        worklist.push_back(user->getResult(0));
  }
}

/// Walks from a root back to the sum below it, while tensors are no larger than
/// the root. Adds the large inputs of the sum, and the values related to them.
static void addInputsOfNorm(Operation *root, DenseSet<Value> &values) {
  SmallVector<Value> worklist(root->getOperands().take_front(1));
  DenseSet<Value> seen;
  int64_t size = numElements(root->getResult(0));
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    Operation *def = value.getDefiningOp();
    if (!def || !seen.insert(value).second || numElements(value) > size)
      continue;
    if (auto reduce = dyn_cast<stablehlo::ReduceOp>(def)) {
      for (Value input :
           def->getOperands().take_front(def->getNumOperands() / 2))
        if (numElements(input) >= kSmallPart * size)
          addUnary(input, values);
      continue;
    }
    if (stablehlo::worksByElement(def) ||
        isa<stablehlo::BroadcastInDimOp, stablehlo::ReshapeOp>(def))
      llvm::append_range(worklist, def->getOperands());
  }
}

DenseSet<Value> fp8::findValuesOfNorms(func::FuncOp function,
                                       const LinearLayers &layers) {
  DenseSet<Value> values;
  function.walk([&](Operation *root) {
    if (!isa<stablehlo::RsqrtOp, stablehlo::SqrtOp, stablehlo::PowOp>(root) ||
        !layers.isForward(root))
      return;
    addInputsOfNorm(root, values);
  });
  return values;
}

DenseSet<Value> fp8::findValuesOfGatedUnits(func::FuncOp function,
                                            const LinearLayers &layers) {
  DenseSet<Value> values;
  for (const GatedUnit &unit : findGatedUnits(function, layers))
    if (unit.isProven()) {
      addUnary(unit.gate, values);
      addUnary(unit.linear, values);
    }
  return values;
}
