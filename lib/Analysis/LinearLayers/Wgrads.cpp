//===- Wgrads.cpp - Weight gradients of layers ----------------------------===//

#include "Analyzer.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/DotOperands.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace mlir::fp8;

static int64_t getNumElements(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() ? type.getNumElements() : -1;
}

/// Follows a gradient through elementwise ops, views and loops to the parameter
/// that it updates. Does not follow reductions: through the gradients' norm,
/// every gradient reaches every parameter. With `throughDots`, also to one that
/// the weight is computed from by a product, such as a low-rank adapter.
std::string Analyzer::getUpdatedParameter(Value gradient,
                                          bool throughDots) const {
  SmallVector<Value> worklist{gradient};
  llvm::SmallPtrSet<Operation *, 32> seen;
  DenseSet<Value> seenCarries;
  std::string path;
  auto follow = [&](Value value) {
    if (seenCarries.insert(value).second)
      worklist.push_back(value);
  };
  while (path.empty() && !worklist.empty()) {
    Value value = worklist.pop_back_val();
    int64_t size = getNumElements(value);
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      Operation *parent = user->getParentOp();
      unsigned index = use.getOperandNumber();
      if (isa<func::ReturnOp>(user)) {
        path = getParameterOfResult(index);
      } else if (isa<stablehlo::ReturnOp>(user) &&
                 (isa<stablehlo::WhileOp>(parent) ||
                  stablehlo::isBranch(parent))) {
        // Out of a branch, or out of a loop and into its next iteration.
        if (index >= parent->getNumResults())
          continue;
        follow(parent->getResult(index));
        if (isa<stablehlo::WhileOp>(parent))
          follow(parent->getRegion(1).getArgument(index));
      } else if (isa<stablehlo::WhileOp>(user)) {
        follow(user->getRegion(1).getArgument(index));
      } else if (isa<stablehlo::ConcatenateOp>(user) ||
                 (isa<stablehlo::DynamicUpdateSliceOp>(user) && index <= 1)) {
        follow(user->getResult(0));
      } else if (bool isDot = isa<stablehlo::DotGeneralOp>(user);
                 (throughDots || !isDot) && seen.insert(user).second) {
        for (OpResult result : user->getResults())
          if (isDot || getNumElements(result) == size)
            worklist.push_back(result);
      }
    }
  }
  return path;
}

/// Returns the path of the parameter whose next value a result is; empty if it
/// is none, such as a moment, which the gradient updates, too.
std::string Analyzer::getParameterOfResult(unsigned result) const {
  auto path = function.getResultAttrOfType<StringAttr>(
      result, FP8Dialect::kStateAttrName);
  return path && origins.isWeight(path) ? path.str() : "";
}

/// Returns the sizes of a shape in ascending order, without those of one
/// element: kernels and images of one pixel have such dimensions.
static SmallVector<int64_t> getSorted(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> result;
  llvm::copy_if(shape, std::back_inserter(result),
                [](int64_t size) { return size != 1; });
  llvm::sort(result);
  return result;
}

/// Whether two sets have the same dimensions of more than one element.
static bool haveSameDims(llvm::SmallBitVector a, const llvm::SmallBitVector &b,
                         ArrayRef<int64_t> shape) {
  a ^= b;
  return llvm::all_of(a.set_bits(),
                      [&](unsigned dim) { return shape[dim] == 1; });
}

static SmallVector<int64_t> getSortedShape(Value value) {
  return getSorted(cast<RankedTensorType>(value.getType()).getShape());
}

void Analyzer::setWgrad(unsigned index, unsigned layer, bool activationIsLhs) {
  DotInfo &info = dots[index];
  info.role = DotRole::Wgrad;
  info.lhs = activationIsLhs ? OperandKind::Activation : OperandKind::Gradient;
  info.rhs = activationIsLhs ? OperandKind::Gradient : OperandKind::Activation;
  info.layer = dots[layers[layer].info].layer;
  layersOfDot[index] = {layer};
}

bool Analyzer::matchWgrad(unsigned index, bool activationIsLhs) {
  auto dot = cast<stablehlo::DotGeneralOp>(dots[index].dot);
  Value activation = activationIsLhs ? dot.getLhs() : dot.getRhs();
  Value gradient = activationIsLhs ? dot.getRhs() : dot.getLhs();
  SmallVector<Value> chain = views.getSameElements(activation, dot);
  Value root = chain.back();
  llvm::SmallBitVector contracted =
      unite(getDimSets(chain),
            stablehlo::getOperandDims(dot, activationIsLhs ? 0 : 1).contracting,
            cast<RankedTensorType>(root.getType()).getRank());
  unsigned activationNumber = numbers.get(root);
  unsigned gradientNumber =
      numbers.get(views.getSameElementsRoot(gradient, dot));
  // The square of an activation is a statistic of it, as K-FAC's update reads.
  if (gradientNumber == activationNumber)
    return false;
  SmallVector<int64_t> shape = getSortedShape(dot->getResult(0));

  SmallVector<unsigned, 4> candidates;
  for (auto [i, layer] : llvm::enumerate(layers))
    if (layer.activation == activationNumber &&
        haveSameDims(layer.activationRest, contracted, shapeOf(root)) &&
        getSorted(layer.weightShape) == shape)
      candidates.push_back(i);
  if (candidates.empty())
    return false;

  // Layers that share their input (query, key and value; gate and up) have
  // different output gradients, which their dgrad dots read, too, unless they
  // are the branches of one conditional.
  SmallVector<unsigned, 4> byGradient;
  llvm::copy_if(candidates, std::back_inserter(byGradient), [&](unsigned i) {
    return llvm::is_contained(layers[i].gradients, gradientNumber);
  });
  if (!byGradient.empty())
    candidates = std::move(byGradient);
  unsigned chosen = candidates.front();
  if (candidates.size() > 1) {
    std::string path = getUpdatedParameter(dot->getResult(0)),
                factor = path.empty()
                             ? getUpdatedParameter(dot->getResult(0),
                                                   /*throughDots=*/true)
                             : "";
    for (unsigned i : candidates)
      if (dots[layers[i].info].layer == path ||
          (!factor.empty() && readsParameter(layers[i], factor)))
        chosen = i;
  }
  setWgrad(index, chosen, activationIsLhs);
  return true;
}

/// Whether the weight of a layer is computed from a parameter.
bool Analyzer::readsParameter(const Layer &layer, StringRef path) const {
  constexpr unsigned kMostValues = 64;
  const DotInfo &info = dots[layer.info];
  llvm::SetVector<Value> seen;
  seen.insert(info.dot->getOperand(info.lhs == OperandKind::Weight ? 0 : 1));
  for (unsigned i = 0; i < std::min<size_t>(seen.size(), kMostValues); ++i) {
    Value value = seen[i];
    if (auto arg = dyn_cast<BlockArgument>(value);
        arg && arg.getOwner()->getParentOp() == function &&
        getPath(arg) == path)
      return true;
    seen.insert_range(getFlowSources(value));
    if (Operation *op = value.getDefiningOp(); op && op->getNumRegions() == 0)
      for (Value operand : op->getOperands())
        if (origins.get(operand) == Origin::Weight)
          seen.insert(operand);
  }
  return false;
}

/// Matches a dot that reads the gradient which the dgrad dot of a layer reads,
/// and that updates the layer's parameter: its activation may be computed again
/// in another way than in the forward pass.
bool Analyzer::matchWgradByGradient(unsigned index, bool activationIsLhs) {
  auto dot = cast<stablehlo::DotGeneralOp>(dots[index].dot);
  unsigned gradient = numbers.get(views.getSameElementsRoot(
      activationIsLhs ? dot.getRhs() : dot.getLhs(), dot));
  SmallVector<int64_t> shape = getSortedShape(dot->getResult(0));
  std::string path;
  for (auto [i, layer] : llvm::enumerate(layers)) {
    if (!llvm::is_contained(layer.gradients, gradient) ||
        getSorted(layer.weightShape) != shape)
      continue;
    if (path.empty())
      path = getUpdatedParameter(dot->getResult(0));
    if (path.empty())
      return false;
    if (dots[layer.info].layer != path)
      continue;
    setWgrad(index, i, activationIsLhs);
    return true;
  }
  return false;
}

/// Explains a dot that computes the weight gradient of a layer for each of
/// several examples or losses (`vmap` of a gradient, as in DP-SGD; in the loop
/// of a neural differential equation): it reads the layer's output gradient, or
/// its activation, of which it spans the tokens as a weight gradient does. But
/// it does not add up all of them, or its result has a dimension of the
/// gradient more than the weight.
bool Analyzer::explainWgradOfEach(unsigned index, bool activationIsLhs) {
  DotInfo &info = dots[index];
  auto dot = cast<stablehlo::DotGeneralOp>(info.dot);
  SmallVector<Value> chain =
      views.getSameElements(activationIsLhs ? dot.getLhs() : dot.getRhs(), dot);
  Value root = chain.back();
  auto dims = stablehlo::getOperandDims(dot, activationIsLhs ? 0 : 1);
  SmallVector<int64_t> spanned(dims.contracting);
  llvm::append_range(spanned, dims.batching);
  llvm::SmallBitVector tokens =
      unite(getDimSets(chain), spanned,
            cast<RankedTensorType>(root.getType()).getRank());
  unsigned activation = numbers.get(root),
           gradient = numbers.get(views.getSameElementsRoot(
               activationIsLhs ? dot.getRhs() : dot.getLhs(), dot));
  SmallVector<int64_t> shape = getSortedShape(dot->getResult(0));
  auto isOfEach = [&](const Layer &layer) {
    if (!llvm::includes(shape, getSorted(layer.weightShape)))
      return false;
    if (llvm::is_contained(layer.gradients, gradient))
      return !dims.batching.empty() || layer.activation == activation;
    // A layer that needs no dgrad has no gradient to compare with.
    return layer.gradients.empty() && layer.activation == activation &&
           haveSameDims(layer.activationRest, tokens, shapeOf(root));
  };
  auto layer = llvm::find_if(layers, isOfEach);
  if (layer == layers.end() || activation == gradient)
    return false;
  info.layer = dots[layer->info].layer;
  info.why = dims.batching.empty()
                 ? "not a linear layer: a weight gradient of each loss"
                 : "not a linear layer: a weight gradient of each example";
  return true;
}
