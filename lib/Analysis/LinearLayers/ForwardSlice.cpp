//===- ForwardSlice.cpp - The forward pass of all losses ------------------===//

#include "Analyzer.h"
#include "OptimizerDots.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns the paths of the state that is no part of an optimizer's, such as
/// averages and memories: what activations it keeps is not saved for the
/// backward pass.
llvm::StringSet<> Analyzer::findOtherState() const {
  llvm::StringSet<> paths;
  for (BlockArgument arg : function.getArguments()) {
    auto path = function.getArgAttrOfType<StringAttr>(
        arg.getArgNumber(), FP8Dialect::kPathAttrName);
    std::optional<StateKind> kind = stateKindOf(arg);
    if (path && (kind == StateKind::Average || kind == StateKind::Step ||
                 kind == StateKind::Other))
      paths.insert(path.getValue());
  }
  return paths;
}

void Analyzer::findForwardSlice() {
  auto terminator = function.getBody().front().getTerminator();
  SmallVector<Value> losses, states;
  llvm::StringSet<> others = findOtherState();
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    auto kind =
        function.getResultAttrOfType<StringAttr>(i, FP8Dialect::kKindAttrName);
    if ((kind && kind.getValue() == "loss") ||
        function.getResultAttr(i, FP8Dialect::kTrainsAttrName))
      losses.push_back(terminator->getOperand(i));
    auto state =
        function.getResultAttrOfType<StringAttr>(i, FP8Dialect::kStateAttrName);
    updatesParameters |= state != nullptr;
    if (state && !others.contains(state.getValue()))
      states.push_back(terminator->getOperand(i));
  }
  hasLoss = !losses.empty();
  // State that a loop over steps updates is a leaf of the forward pass: its
  // value in the last iteration comes from the backward pass and the optimizer.
  forwardSlice = getSlice(losses, /*throughSteps=*/false);
  if (hasLoss) {
    SmallVector<Value> others = findForwardOfOtherLosses();
    forwardSlice.insert_range(getSlice(others, /*throughSteps=*/false));
    leaveOutInnerBackward(losses, others);
  }
  updateSlice = getSlice(states, /*throughSteps=*/true);
  if (hasLoss)
    optimizerDots = findOptimizerDots(function, origins, forwardSlice);
}

/// Finds the forward pass of losses that are not returned, which are only
/// visible by their gradients, and returns values in it. If the returned losses
/// do not read a parameter, the first dot that does belongs to the forward
/// pass, because the dots of the backward pass depend on it. (Both passes may
/// read other weights of one parameter: a transposed convolution reads its
/// kernel reversed.)
SmallVector<Value> Analyzer::findForwardOfOtherLosses() {
  DenseSet<Value> read;
  llvm::MapVector<Value, stablehlo::DotGeneralOp> first;
  // Another loss reads what gradients have changed than the returned ones.
  auto forEachParameter = [&](Operation *op, function_ref<void(Value)> visit) {
    for (Value operand : op->getOperands()) {
      Value root = views.getViewRoot(operand, op);
      if (origins.get(root) == Origin::Weight && isTrained(root))
        visit(origins.isUpdatedParameter(root)
                  ? root
                  : Value(origins.getParameter(root)));
    }
  };
  // What only makes another weight of a parameter does not use it yet.
  auto usesWeights = [&](Operation *op) {
    return isa<stablehlo::DotGeneralOp>(op) ||
           llvm::any_of(op->getResults(), [&](Value result) {
             return origins.get(result) == Origin::Data;
           });
  };
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (forwardSlice.contains(op)) {
      if (usesWeights(op))
        forEachParameter(op, [&](Value parameter) { read.insert(parameter); });
      return;
    }
    auto dot = dyn_cast<stablehlo::DotGeneralOp>(op);
    if (!dot || isInnerProduct(dot))
      return;
    forEachParameter(dot,
                     [&](Value parameter) { first.insert({parameter, dot}); });
  });
  SmallVector<Value> roots;
  for (auto [parameter, dot] : first)
    if (!read.contains(parameter))
      roots.push_back(dot->getResult(0));
  dropAfterGradients(roots);
  return roots;
}

/// Finds the weight gradients of the layers that the returned losses read: dots
/// outside of the forward pass that read an activation of a layer and have as
/// many elements as its weight.
SmallVector<Value> Analyzer::findGradientsOfReturnedLosses() {
  DenseSet<std::pair<unsigned, int64_t>> layers;
  for (const WeightRead &read : findWeightReads()) {
    Value other = read.otherChain.front();
    for (Value operand : read.dot->getOperands())
      if (operand != other && forwardSlice.contains(read.dot))
        layers.insert({read.other, tensorOf(operand).getNumElements()});
  }
  SmallVector<Value> gradients;
  function.walk([&](stablehlo::DotGeneralOp dot) {
    Value result = dot->getResult(0);
    auto isActivation = [&](Value operand) {
      return layers.contains(
          {numbers.get(views.getSameElementsRoot(operand, dot)),
           tensorOf(result).getNumElements()});
    };
    bool ofData = getOperandOrigin(dot, 0) == Origin::Data &&
                  getOperandOrigin(dot, 1) == Origin::Data;
    if (ofData && !forwardSlice.contains(dot) &&
        llvm::any_of(dot->getOperands(), isActivation))
      gradients.push_back(result);
  });
  return gradients;
}

/// Drops values that follow from weight gradients of the returned losses. What
/// an optimizer learns to use of a gradient (a basis that it is projected to)
/// has a loss of its own, but the backward pass is no forward pass of that.
/// Another loss reads the parameters that the gradients have changed.
void Analyzer::dropAfterGradients(SmallVectorImpl<Value> &roots) {
  if (roots.empty())
    return;
  ValueSet changed;
  function.walk([&](Operation *op) {
    for (Value result : op->getResults())
      if (origins.isUpdatedParameter(result) ||
          (isFloat(result.getType()) && getChangedParameter(result, op)))
        changed.insert(result);
  });
  Dependence onGradients(function, findGradientsOfReturnedLosses(), {},
                         /*together=*/true, changed);
  llvm::erase_if(roots,
                 [&](Value root) { return onGradients.dependsOnAny(root); });
}

/// Returns true if a weight's parameter is one that gradients update.
bool Analyzer::isTrained(Value weight) const {
  BlockArgument parameter = origins.getParameter(weight);
  return parameter && stateKindOf(parameter) == StateKind::Parameter;
}

/// Returns true for a single boolean.
static bool isFlag(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 0 && type.getElementType().isInteger(1);
}

/// Returns the ops that compute some values from leaves.
DenseSet<Operation *>
Analyzer::getSlice(ArrayRef<Value> roots, bool throughSteps,
                   function_ref<bool(Value)> isLeaf) const {
  DenseSet<Operation *> slice;
  SmallVector<Value> worklist(roots);
  DenseSet<Value> seen;
  auto read = [&](Value value) {
    if (seen.insert(value).second)
      worklist.push_back(value);
  };
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if ((origins.isUpdatedParameter(value) && !throughSteps) ||
        (isLeaf && isLeaf(value)))
      continue;
    auto result = dyn_cast<OpResult>(value);
    Operation *op = result
                        ? result.getOwner()
                        : cast<BlockArgument>(value).getOwner()->getParentOp();
    if (op == function)
      continue;
    if (origins.isCarriedState(value) && !throughSteps) {
      slice.insert(op);
      continue;
    }
    if (isBarrier(op)) {
      read(op->getOperand(result.getResultNumber()));
      continue;
    }
    SmallVector<Value> sources = getFlowSources(value);
    bool inserted = slice.insert(op).second;
    if (sources.empty() && inserted)
      stablehlo::forEachRead(op, [&](Value source) {
        // Whether all gradients are finite may mask a loss.
        bool masks = isFlag(source) &&
                     isa<stablehlo::SelectOp, stablehlo::ConvertOp>(op);
        if (throughSteps || !masks)
          read(source);
      });
    for (Value source : sources)
      read(source);
    // The condition of a loop, or the predicate of a branch.
    if (!sources.empty() && stablehlo::isBranch(op))
      read(op->getOperand(0));
    else if (!sources.empty())
      read(op->getRegion(0).front().back().getOperand(0));
  }
  return slice;
}

bool Analyzer::inForwardPass(Operation *op) const {
  return !hasLoss || forwardSlice.contains(op);
}
