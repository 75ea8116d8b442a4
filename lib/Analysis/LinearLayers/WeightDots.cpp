//===- WeightDots.cpp - Dots with a weight --------------------------------===//

#include "Analyzer.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns true if a batching dimension of an operand repeats a weight.
bool Analyzer::isRepeatedInBatch(Value operand, ArrayRef<int64_t> batch,
                                 Operation *user) const {
  DimSets sets = getDimSets(views.getView(operand, user));
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(operand.getType()).getShape();
  return llvm::any_of(
      batch, [&](int64_t dim) { return shape[dim] > 1 && sets[dim].none(); });
}

/// Returns true if `value` is a dot, perhaps with a bias and factors.
bool Analyzer::isProjection(Value value, Operation *user) const {
  auto isGiven = [&](Value value, Operation *user) {
    Value root = views.getViewRoot(value, user);
    return isa<BlockArgument>(root) ||
           isa<stablehlo::ConstantOp>(root.getDefiningOp());
  };
  while (true) {
    value = views.getViewRoot(value, user);
    user = value.getDefiningOp();
    if (!isa_and_nonnull<stablehlo::AddOp, stablehlo::MulOp, stablehlo::DivOp>(
            user))
      return isa_and_nonnull<stablehlo::DotGeneralOp>(user);
    value = user->getOperand(isGiven(user->getOperand(0), user));
  }
}

/// Whether a batched operand of a dot is no weight although parameters alone
/// determine it: queries that are made of learned latents are the same
/// activation for all examples. They are repeated in the batch, or a product of
/// two weights. So are the weights of an attention of such queries.
bool Analyzer::isMadeForBatch(stablehlo::DotGeneralOp dot,
                              unsigned index) const {
  Value operand = dot->getOperand(index);
  auto dims = dot.getDotDimensionNumbers();
  ArrayRef<int64_t> batch =
      index ? dims.getRhsBatchingDimensions() : dims.getLhsBatchingDimensions();
  if (batch.empty())
    return false;
  if (isRepeatedInBatch(operand, batch, dot))
    return true;
  // What gradients have changed follows from data, but is read as a parameter.
  return !origins.isUpdatedParameter(views.getViewRoot(operand, dot)) &&
         (isProjection(operand, dot) || llvm::any_of(batch, [&](int64_t dim) {
            return isBatchOfScores(operand, dim);
          }));
}

/// Returns the origin of an operand of a dot.
Origin Analyzer::getOperandOrigin(stablehlo::DotGeneralOp dot,
                                  unsigned index) const {
  Origin origin = origins.get(views.getViewRoot(dot->getOperand(index), dot));
  if (origin != Origin::Weight)
    return origin;
  std::pair<Operation *, unsigned> key(dot, index);
  auto [known, isNew] = operandOrigins.try_emplace(key, origin);
  if (!isNew)
    return known->second;
  if (isMadeForBatch(dot, index))
    origin = Origin::Data;
  return operandOrigins[key] = origin;
}

/// The operands of a dot with a weight: the values, the dimensions that the dot
/// contracts or batches of them, and the views from their roots.
struct Analyzer::WeightDot {
  bool weightIsLhs;
  Value weight, other;
  ArrayRef<int64_t> weightDims, otherDims, weightBatch, otherBatch;
  SmallVector<Value> weightChain, otherChain;
  /// The dimensions of the weight's root that are contracted, without those
  /// that run over the taps of windows: a convolution and its dgrad contract
  /// these.
  llvm::SmallBitVector contracted;
  Value weightRoot() const { return weightChain.back(); }
  Value otherRoot() const { return otherChain.back(); }
};

Analyzer::WeightDot Analyzer::getWeightDot(stablehlo::DotGeneralOp dot) {
  auto dims = dot.getDotDimensionNumbers();
  WeightDot own;
  own.weightIsLhs = getOperandOrigin(dot, 0) == Origin::Weight;
  own.weight = dot.getLhs();
  own.other = dot.getRhs();
  own.weightDims = dims.getLhsContractingDimensions();
  own.otherDims = dims.getRhsContractingDimensions();
  own.weightBatch = dims.getLhsBatchingDimensions();
  own.otherBatch = dims.getRhsBatchingDimensions();
  if (!own.weightIsLhs) {
    std::swap(own.weight, own.other);
    std::swap(own.weightDims, own.otherDims);
    std::swap(own.weightBatch, own.otherBatch);
  }
  own.weightChain = views.getView(own.weight, dot);
  own.otherChain = views.getSameElements(own.other, dot);
  findContracted(own);
  return own;
}

/// Finds the dimensions of the weight's root that are contracted. Where it lies
/// in a vector of many weights, it is what the vector is reshaped to. (Groups
/// of a convolution, batches of the dot, are part of one dimension of
/// features.)
void Analyzer::findContracted(WeightDot &dot) {
  int64_t rank = cast<RankedTensorType>(dot.weight.getType()).getRank();
  SmallVector<int64_t> others, features;
  for (int64_t dim : llvm::seq(rank))
    if (!llvm::is_contained(dot.weightDims, dim) &&
        !llvm::is_contained(dot.weightBatch, dim))
      others.push_back(dim);
  llvm::SmallBitVector taps = getTaps(dot.otherChain);
  for (auto [dim, other] : llvm::zip_equal(dot.weightDims, dot.otherDims))
    if (!taps.test(other))
      features.push_back(dim);
  while (true) {
    DimSets sets = getDimSets(dot.weightChain);
    unsigned rootRank =
        cast<RankedTensorType>(dot.weightRoot().getType()).getRank();
    dot.contracted = unite(sets, features, rootRank);
    if (dot.weightChain.size() == 1 ||
        !dot.contracted.anyCommon(unite(sets, others, rootRank)))
      return;
    dot.weightChain.pop_back();
  }
}

/// Returns the dots of a weight and data, in program order.
std::vector<WeightRead> Analyzer::findWeightReads() {
  std::vector<WeightRead> reads;
  function.walk<WalkOrder::PreOrder>([&](stablehlo::DotGeneralOp dot) {
    Origin lhs = getOperandOrigin(dot, 0), rhs = getOperandOrigin(dot, 1);
    if (isInnerProduct(dot) || std::min(lhs, rhs) != Origin::Weight ||
        std::max(lhs, rhs) != Origin::Data)
      return;
    WeightDot own = getWeightDot(dot);
    reads.push_back({dot, numbers.get(own.weightRoot()), own.contracted,
                     numbers.get(own.otherRoot()), own.otherChain});
  });
  return reads;
}

/// Describes the parameter of a dot with a weight.
void Analyzer::describeParameter(DotInfo &info, const WeightDot &own) {
  info.layer = getPath(origins.getParameter(own.weightRoot()));
  if (!llvm::is_contained(function.getArguments(), own.weightRoot()))
    return;
  for (unsigned dim : own.contracted.set_bits())
    info.contractedOfParameter.push_back(dim);
  info.readsWholeParameter =
      ShapedType::getNumElements(shapeOf(own.weight)) ==
      ShapedType::getNumElements(shapeOf(own.weightRoot()));
}

/// Finds the layers with the weight of a dot: those that contract the same
/// dimensions of it, and those that contract the others.
void Analyzer::findLayersOf(const WeightDot &own,
                            SmallVectorImpl<unsigned> &same,
                            SmallVectorImpl<unsigned> &complementary) {
  for (auto [i, layer] : llvm::enumerate(layers)) {
    if (layer.weight != numbers.get(own.weightRoot()))
      continue;
    // With one feature on both sides nothing but taps is contracted.
    if (layer.weightContracted == own.contracted &&
        (own.contracted.any() ||
         layer.activation == numbers.get(own.otherRoot())))
      same.push_back(i);
    else if (areComplementary(layer.weightContracted, own.contracted))
      complementary.push_back(i);
  }
}

void Analyzer::classifyWithWeight(unsigned index) {
  DotInfo &info = dots[index];
  WeightDot own = getWeightDot(cast<stablehlo::DotGeneralOp>(info.dot));
  describeParameter(info, own);
  auto setKinds = [&](OperandKind otherKind) {
    info.lhs = own.weightIsLhs ? OperandKind::Weight : otherKind;
    info.rhs = own.weightIsLhs ? otherKind : OperandKind::Weight;
  };
  SmallVector<unsigned, 2> same, complementary;
  findLayersOf(own, same, complementary);

  bool forward = inForwardPass(info.dot);
  // A weight may be read in both orientations. What reads a layer's activation
  // is that layer, computed once more.
  bool isAgain = !forward && llvm::any_of(same, [&](unsigned i) {
    return layers[i].activation == numbers.get(own.otherRoot());
  });
  if (!complementary.empty() && !isAgain &&
      (!forward || (!hasLoss && updatesParameters))) {
    info.role = DotRole::Dgrad;
    setKinds(OperandKind::Gradient);
    for (unsigned i : complementary)
      layers[i].gradients.push_back(numbers.get(own.otherRoot()));
    layersOfDot[index] = complementary;
    return;
  }
  if (!forward && same.empty()) {
    info.role = DotRole::Other;
    info.why = updateSlice.contains(info.dot)
                   ? "not a linear layer: reads a parameter, but not in the "
                     "forward pass, nor as the weight of a layer"
                   : "not a linear layer: neither the loss nor an update of "
                     "parameters follows from it, as from a validation";
    return;
  }

  info.role = DotRole::Forward;
  setKinds(OperandKind::Activation);
  info.recomputed = !forward;
  if (info.recomputed)
    layersOfDot[index] = same;
  else
    layersOfDot[index] = {static_cast<unsigned>(layers.size())};
  layers.push_back(makeLayer(index, own));
}

/// Returns the layer of a forward dot.
Layer Analyzer::makeLayer(unsigned index, const WeightDot &own) {
  auto rootType = cast<RankedTensorType>(own.otherRoot().getType());
  Layer layer;
  layer.info = index;
  layer.weight = numbers.get(own.weightRoot());
  layer.weightContracted = own.contracted;
  layer.activation = numbers.get(own.otherRoot());
  // The dimensions of the root that the tokens span. They may overlap with the
  // other dimensions: the rows of a patch are part of the rows of the image.
  SmallVector<int64_t> tokenDims;
  for (int64_t dim :
       llvm::seq(cast<RankedTensorType>(own.other.getType()).getRank()))
    if (!llvm::is_contained(own.otherDims, dim) &&
        !llvm::is_contained(own.otherBatch, dim))
      tokenDims.push_back(dim);
  layer.activationRest =
      unite(getDimSets(own.otherChain), tokenDims, rootType.getRank());
  for (auto [dim, size] : llvm::enumerate(rootType.getShape()))
    if (size == 1)
      layer.activationRest.reset(dim);
  layer.weightShape =
      llvm::to_vector(cast<RankedTensorType>(own.weight.getType()).getShape());
  return layer;
}

/// Explains the batched products of layers whose weight is repeated for each
/// example, as `vmap` does where `lax.cond` reads it. (Where it is read by the
/// scores of an attention, it is learned queries.)
void Analyzer::explainRepeatedWeights() {
  DenseSet<unsigned> activations;
  auto getRoot = [&](Operation *dot, unsigned index) {
    return views.getSameElements(dot->getOperand(index), dot).back();
  };
  auto explain = [&](unsigned index) {
    auto dot = cast<stablehlo::DotGeneralOp>(dots[index].dot);
    auto dims = dot.getDotDimensionNumbers();
    for (auto [i, batch] : {std::pair(0, dims.getLhsBatchingDimensions()),
                            std::pair(1, dims.getRhsBatchingDimensions())}) {
      Value operand = dot->getOperand(i);
      Value weight = views.getViewRoot(operand, dot);
      if (origins.get(weight) != Origin::Weight ||
          !isRepeatedInBatch(operand, batch, dot))
        continue;
      dots[index].role = DotRole::Other;
      dots[index].layer = getPath(origins.getParameter(weight));
      dots[index].why = "not a linear layer: its weight is repeated in the "
                        "batch, as vmap does for lax.cond";
      activations.insert(numbers.get(getRoot(dot, 1 - i)));
      return;
    }
  };
  auto explainGradient = [&](unsigned index) {
    DotInfo &info = dots[index];
    if (info.role != DotRole::Attention || inForwardPass(info.dot) ||
        llvm::none_of(ArrayRef{0, 1}, [&](unsigned i) {
          return activations.contains(numbers.get(getRoot(info.dot, i)));
        }))
      return;
    info.role = DotRole::Other;
    info.why = "not a linear layer: a weight gradient of each example";
  };
  auto others = llvm::make_filter_range(
      batched, [&](unsigned index) { return !dots[index].ofSoftmax; });
  llvm::for_each(others, explain);
  llvm::for_each(others, explainGradient);
}
