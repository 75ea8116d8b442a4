//===- LinearLayers.cpp - Linear layers, found by data flow ---------------===//
//
// The analysis works in this order:
//  1. Every value gets a number, equal for values that compute the same
//     (recomputation after a barrier gives the number of the original):
//     ValueFlow.cpp.
//  2. Every value is classified as constant, weight (computed from parameters
//     alone) or data: Origins.cpp.
//  3. Dots that the loss depends on (ForwardSlice.cpp) and that read a weight
//     (WeightDots.cpp) are the forward dots. They define the layers. Where a
//     loss reads what another loss's gradients have changed, the backward pass
//     of that loss is none of it (InnerBackward.cpp), and parameters that they
//     have changed are weights (ChangedParameters.cpp).
//  4. Other dots with a weight are dgrad if they contract the other dimensions
//     of the weight.
//  5. Dots without a weight that read the activation of a layer and contract
//     its token dimensions are wgrad: Wgrads.cpp.
//  6. Layers without gradients whose results only choose indices are none:
//     Choices.cpp.
//
//===----------------------------------------------------------------------===//

#include "fp8/Analysis/LinearLayers/LinearLayers.h"

#include "Analyzer.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

using namespace mlir;
using namespace mlir::fp8;

std::string fp8::getParameterPath(func::FuncOp function,
                                  BlockArgument parameter) {
  if (auto path = function.getArgAttrOfType<StringAttr>(
          parameter.getArgNumber(), FP8Dialect::kPathAttrName))
    return path.str();
  return "arg" + std::to_string(parameter.getArgNumber());
}

//===----------------------------------------------------------------------===//
// The analysis
//===----------------------------------------------------------------------===//

bool fp8::isInnerProduct(stablehlo::DotGeneralOp dot) {
  Value values[] = {dot.getLhs(), dot.getRhs(), dot->getResult(0)};
  return llvm::any_of(values, [](Value value) {
    return cast<RankedTensorType>(value.getType()).getRank() == 0;
  });
}

/// Returns true if a value is `indices == iota` as a float tensor.
bool Analyzer::isOneHot(Value value, Operation *user) const {
  auto step = [&](Value value) -> Value {
    if (Value source = views.getViewSource(value, user))
      return source;
    if (auto convert = value.getDefiningOp<stablehlo::ConvertOp>())
      return convert->getOperand(0);
    return nullptr;
  };
  auto getRoot = [&](Value value) {
    while (Value source = step(value))
      value = source;
    return value;
  };
  auto compare = getRoot(value).getDefiningOp<stablehlo::CompareOp>();
  if (!compare ||
      compare.getComparisonDirection() != stablehlo::ComparisonDirection::EQ)
    return false;
  return llvm::any_of(compare->getOperands(), [&](Value operand) {
    if (!isa<IntegerType>(getElementTypeOrSelf(operand.getType())))
      return false;
    Value root = getRoot(operand);
    return isa_and_nonnull<stablehlo::IotaOp, stablehlo::ConstantOp>(
        root.getDefiningOp());
  });
}

void Analyzer::classifyWithoutWeight(unsigned index) {
  DotInfo &info = dots[index];
  auto dot = cast<stablehlo::DotGeneralOp>(info.dot);
  if (updatesParameters && (!hasLoss || !inForwardPass(info.dot)) &&
      (matchWgrad(index, true) || matchWgrad(index, false) ||
       matchWgradByGradient(index, true) ||
       matchWgradByGradient(index, false) || explainWgradOfEach(index, true) ||
       explainWgradOfEach(index, false)))
    return;
  if (optimizerDots.contains(dot)) {
    info.why = "not a linear layer: follows from the optimizer's state";
    return;
  }
  bool isBatched =
      !dot.getDotDimensionNumbers().getLhsBatchingDimensions().empty();
  for (auto [name, operand] :
       {std::pair<StringRef, Value>("lhs", dot.getLhs()),
        std::pair<StringRef, Value>("rhs", dot.getRhs())})
    if (BlockArgument changed = getChangedParameter(operand, dot)) {
      changedOperands.push_back({views.getViewRoot(operand, dot), changed});
      if (isBatched)
        break;
      info.why =
          ("not a linear layer: " + name + " is parameter " + getPath(changed) +
           " plus what depends on data, as in SAM or a line search")
              .str();
      return;
    }
  if (isBatched) {
    info.role = DotRole::Attention;
    batched.push_back(index);
    return;
  }
  info.why =
      "not a linear layer: no operand comes from parameters alone, and it "
      "is the weight gradient of no layer";
  ofActivations.push_back(index);
}

/// Lists the dots, with the loops and branches that they are in.
void Analyzer::collectDots() {
  function.walk<WalkOrder::PreOrder>([&](stablehlo::DotGeneralOp dot) {
    DotInfo info;
    info.dot = dot;
    for (Operation *op = dot->getParentOp(); op != function;
         op = op->getParentOp()) {
      if (isa<stablehlo::WhileOp>(op))
        info.loops.push_back(op);
      info.inBranch |= stablehlo::isBranch(op);
    }
    dots.push_back(std::move(info));
  });
  layersOfDot.resize(dots.size());
}

/// Whether a dot with a one-hot operand looks up embeddings.
bool Analyzer::classifyEmbedding(DotInfo &info) {
  auto dot = cast<stablehlo::DotGeneralOp>(info.dot);
  bool oneHotIsLhs = isOneHot(dot.getLhs(), dot);
  if (!oneHotIsLhs && !isOneHot(dot.getRhs(), dot))
    return false;
  info.role = DotRole::Embedding;
  Value table =
      views.getViewRoot(oneHotIsLhs ? dot.getRhs() : dot.getLhs(), dot);
  if (origins.get(table) == Origin::Weight)
    info.layer = getPath(origins.getParameter(table));
  return true;
}

/// Classifies a dot by what its operands come from. Returns false if that is
/// data: then it depends on the layers.
bool Analyzer::classifyByOperands(unsigned index) {
  DotInfo &info = dots[index];
  auto dot = cast<stablehlo::DotGeneralOp>(info.dot);
  if (isInnerProduct(dot)) {
    info.why = dot.getType().getRank() == 0
                   ? "not a linear layer: an inner product, one number"
                   : "not a linear layer: a product with one number";
    return true;
  }
  if (classifyEmbedding(info))
    return true;
  bool isForward = inForwardPass(dot);
  Origin lhs = getOperandOrigin(dot, 0), rhs = getOperandOrigin(dot, 1);
  if (lhs == Origin::Weight && rhs == Origin::Weight)
    info.why = "not a linear layer: both operands come from parameters";
  else if (lhs == Origin::Constant || rhs == Origin::Constant)
    info.why = "not a linear layer: an operand is constant";
  else if (lhs != Origin::Weight && rhs != Origin::Weight)
    return false;
  else if (isForward &&
           dot.getDotDimensionNumbers().getLhsContractingDimensions().empty())
    info.why = "not a linear layer: contracts nothing";
  else if (isForward && mixesHeads(dot, lhs == Origin::Weight)) {
    info.why = "not a linear layer: mixes the scores of heads";
    mixers.insert(dot);
    operandOrigins.clear();
  } else {
    classifyWithWeight(index);
  }
  return true;
}

/// Gives every dot its role. Forward dots come first: they define the layers
/// that the others belong to. Without a loss, program order has to be enough.
void Analyzer::classifyForwardAndBackward() {
  SmallVector<unsigned> withoutWeight;
  for (bool forwardPass : {true, false})
    for (unsigned i = 0; i < dots.size(); ++i)
      if (inForwardPass(dots[i].dot) == forwardPass && !classifyByOperands(i))
        withoutWeight.push_back(i);
  for (unsigned i : withoutWeight)
    classifyWithoutWeight(i);
}

/// Tells every dot its layers. A recomputed layer is the layer of the forward
/// pass.
void Analyzer::assignLayers() {
  for (auto [info, own] : llvm::zip_equal(dots, layersOfDot))
    for (unsigned layer : own) {
      unsigned first = layers[layer].info;
      if (dots[first].recomputed)
        llvm::append_range(info.layers, layersOfDot[first]);
      else
        info.layers.push_back(layer);
    }
}

void Analyzer::run() {
  findForwardSlice();
  collectDots();
  classifyForwardAndBackward();
  findSoftmaxes();
  explainRepeatedWeights();
  findHeads();
  dropChoices();
  assignLayers();
}

LinearLayers::LinearLayers(func::FuncOp function) {
  if (function.isExternal())
    return;
  for (ChangedParameters changed, found;; llvm::append_range(changed, found)) {
    dots.clear();
    Analyzer analyzer(function, dots, changed);
    parameters = analyzer.origins.anyParameter();
    analyzer.run();
    found = analyzer.findChangedByGradients();
    if (!found.empty())
      continue;
    analyzer.findSavedUses(savedUses);
    forward = std::move(analyzer.forwardSlice);
    return;
  }
}
