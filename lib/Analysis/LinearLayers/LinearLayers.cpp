//===- LinearLayers.cpp - Linear layers, found by data flow ---------------===//
//
// The analysis works in this order:
//  1. Every value gets a number, equal for values that compute the same
//     (recomputation after a barrier gives the number of the original).
//  2. Every value is classified as constant, weight (computed from parameters
//     alone) or data.
//  3. Dots that the loss depends on and that read a weight are the forward
//     dots. They define the layers. Where a loss reads what another loss's
//     gradients have changed, the backward pass of that loss is none of it, and
//     parameters that they have changed are weights.
//  4. Other dots with a weight are dgrad if they contract the other dimensions
//     of the weight.
//  5. Dots without a weight that read the activation of a layer and contract
//     its token dimensions are wgrad.
//  6. Layers without gradients whose results only choose indices are none.
//
//===----------------------------------------------------------------------===//

#include "fp8/Analysis/LinearLayers/LinearLayers.h"

#include "Analyzer.h"
#include "OptimizerDots.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/CHLO.h"
#include "fp8/Dialect/StableHLO/IR/DotOperands.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringSet.h"

#include <vector>

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

namespace {
/// Returns true if a dot sums over two whole arrays, as optimizers do with
/// parameters and gradients, or multiplies an array by a number, as the
/// gradient of such a sum does. A layer has tokens, or outputs, or both.
bool isInnerProduct(stablehlo::DotGeneralOp dot) {
  Value values[] = {dot.getLhs(), dot.getRhs(), dot->getResult(0)};
  return llvm::any_of(values, [](Value value) {
    return cast<RankedTensorType>(value.getType()).getRank() == 0;
  });
}

/// Returns true for a single boolean.
bool isFlag(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 0 && type.getElementType().isInteger(1);
}
} // namespace

/// Returns the paths of the state that is no part of an optimizer's, such as
/// averages and memories: what activations it keeps is not saved for the
/// backward pass.
llvm::StringSet<> Analyzer::findOtherState() const {
  llvm::StringSet<> paths;
  for (BlockArgument arg : function.getArguments()) {
    auto path =
        function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), kPathAttr);
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
SmallVector<Value> Analyzer::findForwardOfOtherLosses() const {
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
  return roots;
}

/// Returns true if a weight's parameter is one that gradients update.
bool Analyzer::isTrained(Value weight) const {
  BlockArgument parameter = origins.getParameter(weight);
  return parameter && stateKindOf(parameter) == StateKind::Parameter;
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

bool Analyzer::inForwardPass(Operation *op) const {
  return !hasLoss || forwardSlice.contains(op);
}

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
  return !batch.empty() &&
         (isRepeatedInBatch(operand, batch, dot) ||
          isProjection(operand, dot) || llvm::any_of(batch, [&](int64_t dim) {
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

/// Returns the dimension of the operand that dimension `dim` of the only result
/// of `op` is, with the same extent; -1 if it is none, or not known.
static int64_t dimBefore(Operation *op, int64_t dim) {
  Value from = op->getOperand(0), to = op->getResult(0);
  if (auto reduce = dyn_cast<stablehlo::ReduceOp>(op)) {
    for (int64_t before : llvm::seq<int64_t>(shapeOf(from).size()))
      if (!llvm::is_contained(reduce.getDimensions(), before) && dim-- == 0)
        return before;
    return -1;
  }
  if (!isa<stablehlo::TransposeOp, stablehlo::BroadcastInDimOp,
           stablehlo::ReshapeOp, stablehlo::SliceOp, stablehlo::DynamicSliceOp>(
          op))
    return -1;
  llvm::SmallBitVector before = getDimSets({to, from})[dim];
  int64_t first = before.find_first();
  bool isWhole =
      before.count() == 1 && (!isa<stablehlo::ReshapeOp>(op) ||
                              shapeOf(from)[first] == shapeOf(to)[dim]);
  return isWhole ? first : -1;
}

/// Whether an elementwise op normalizes what it computes along a dimension: an
/// operand of it is the same for all elements along that dimension, of which it
/// is a statistic (the mean of a norm).
static bool isNormalizedAlong(Operation *op, int64_t dim) {
  constexpr unsigned kMostValues = 16;
  ArrayRef<int64_t> shape = shapeOf(op->getResult(0));
  llvm::SetVector<Value> seen;
  for (Value operand : op->getOperands())
    if (isSpreadAlong(operand, dim))
      seen.insert(operand);
  for (unsigned i = 0; i < std::min<size_t>(seen.size(), kMostValues); ++i) {
    Operation *source = seen[i].getDefiningOp();
    if (!source)
      continue;
    if (auto reduce = dyn_cast<stablehlo::ReduceOp>(source)) {
      if (shapeOf(reduce.getInputs()[0]) == shape &&
          llvm::is_contained(reduce.getDimensions(), dim))
        return true;
    } else if (stablehlo::worksByElement(source) ||
               isa<stablehlo::BroadcastInDimOp, stablehlo::ReshapeOp>(source)) {
      seen.insert_range(source->getOperands());
    }
  }
  return false;
}

/// Whether a dimension of `value` is one of batches or heads of the scores from
/// which it follows: of a batched product of two activations that has several
/// rows and columns, or of such heads' mixture. A norm along the dimension
/// makes channels of it, as those of a product of pairs.
bool Analyzer::isBatchOfScores(Value value, int64_t dim) const {
  // No more ops are between scores and what mixes them; a residual stream has
  // as many as the model has layers.
  constexpr unsigned kMostValues = 256;
  llvm::SetVector<std::pair<Value, int64_t>> seen;
  seen.insert({value, dim});
  for (unsigned i = 0; i < std::min<size_t>(seen.size(), kMostValues); ++i) {
    auto [from, place] = seen[i];
    for (Value source : getFlowSources(from))
      if (shapeOf(source) == shapeOf(from))
        seen.insert({source, place});
    Operation *op = from.getDefiningOp();
    if (!op || op->getNumResults() != 1)
      continue;
    if (auto dot = dyn_cast<stablehlo::DotGeneralOp>(op)) {
      auto numbers = dot.getDotDimensionNumbers();
      int64_t batch = numbers.getLhsBatchingDimensions().size(),
              rows = shapeOf(dot.getLhs()).size() - batch -
                     numbers.getLhsContractingDimensions().size();
      ArrayRef<int64_t> free = shapeOf(from).drop_front(batch);
      if (place < batch &&
          ShapedType::getNumElements(free.take_front(rows)) > 1 &&
          ShapedType::getNumElements(free.drop_front(rows)) > 1 &&
          getOperandOrigin(dot, 0) == Origin::Data &&
          getOperandOrigin(dot, 1) == Origin::Data)
        return true;
      // The dimension of a mixture that comes from the weight is one of heads.
      if (mixers.contains(dot) && place >= batch &&
          getOperandOrigin(dot, place >= batch + rows) == Origin::Weight)
        return true;
      continue;
    }
    if (stablehlo::worksByElement(op)) {
      if (isNormalizedAlong(op, place))
        continue;
      for (Value operand : op->getOperands())
        if (shapeOf(operand) == shapeOf(from))
          seen.insert({operand, place});
    } else if (op->getNumOperands() > 0) {
      if (int64_t before = dimBefore(op, place); before >= 0)
        seen.insert({op->getOperand(0), before});
    }
  }
  return false;
}

/// Whether a dot of a weight and an activation contracts nothing but batches or
/// heads of scores, as talking heads do. Scores may be masked, and the mask's
/// constant would be the amax.
bool Analyzer::mixesHeads(stablehlo::DotGeneralOp dot,
                          unsigned activation) const {
  Value value = dot->getOperand(activation);
  return llvm::all_of(stablehlo::getOperandDims(dot, activation).contracting,
                      [&](int64_t dim) { return isBatchOfScores(value, dim); });
}

void Analyzer::classifyWithWeight(unsigned index) {
  DotInfo &info = dots[index];
  WeightDot own = getWeightDot(cast<stablehlo::DotGeneralOp>(info.dot));
  info.layer = getPath(origins.getParameter(own.weightRoot()));
  if (llvm::is_contained(function.getArguments(), own.weightRoot())) {
    for (unsigned dim : own.contracted.set_bits())
      info.contractedOfParameter.push_back(dim);
    info.readsWholeParameter =
        ShapedType::getNumElements(shapeOf(own.weight)) ==
        ShapedType::getNumElements(shapeOf(own.weightRoot()));
  }
  auto setKinds = [&](OperandKind otherKind) {
    info.lhs = own.weightIsLhs ? OperandKind::Weight : otherKind;
    info.rhs = own.weightIsLhs ? otherKind : OperandKind::Weight;
  };

  // The layers with this weight, by the dimensions of it that they contract.
  SmallVector<unsigned, 2> same, complementary;
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
    info.why = "not a linear layer: reads a parameter, but not in the forward "
               "pass, nor as the weight of a layer";
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

void Analyzer::setWgrad(unsigned index, unsigned layer, bool activationIsLhs) {
  DotInfo &info = dots[index];
  info.role = DotRole::Wgrad;
  info.lhs = activationIsLhs ? OperandKind::Activation : OperandKind::Gradient;
  info.rhs = activationIsLhs ? OperandKind::Gradient : OperandKind::Activation;
  info.layer = dots[layers[layer].info].layer;
  layersOfDot[index] = {layer};
}

/// Returns a value that is accepted among those from which `value` was computed
/// by adding others, perhaps within limits; null if there is none. A value that
/// is broadcast before it is added is a bias.
Value Analyzer::findTerm(Value value, Operation *user,
                         function_ref<bool(Value)> accepts) const {
  Value whole = views.getViewRoot(value, user);
  auto getSize = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getNumElements();
  };
  SmallVector<Value> stack{whole};
  DenseSet<Value> seen;
  while (!stack.empty()) {
    Value source = views.getSameElementsRoot(stack.pop_back_val(), user);
    if (getSize(views.getViewRoot(source, user)) != getSize(whole) ||
        !seen.insert(source).second)
      continue;
    if (accepts(source))
      return source;
    llvm::append_range(stack, getFlowSources(source));
    if (Operation *op = source.getDefiningOp();
        isa_and_nonnull<stablehlo::AddOp, stablehlo::SubtractOp,
                        stablehlo::MaxOp, stablehlo::MinOp, stablehlo::ClampOp>(
            op))
      llvm::append_range(stack, op->getOperands());
  }
  return nullptr;
}

/// Returns the parameter that `value` was computed from by adding values that
/// depend on data, as SAM and line searches do; null if there is none.
BlockArgument Analyzer::getChangedParameter(Value value,
                                            Operation *user) const {
  Value weight = findTerm(value, user, [&](Value term) {
    return origins.get(term) == Origin::Weight;
  });
  return weight ? origins.getParameter(weight) : nullptr;
}

void Analyzer::classifyWithoutWeight(unsigned index) {
  DotInfo &info = dots[index];
  auto dot = cast<stablehlo::DotGeneralOp>(info.dot);
  if (updatesParameters && (!hasLoss || !inForwardPass(info.dot)) &&
      (matchWgrad(index, true) || matchWgrad(index, false) ||
       matchWgradByGradient(index, true) || matchWgradByGradient(index, false)))
    return;
  if (optimizerDots.contains(dot)) {
    info.why = "not a linear layer: follows from the optimizer's state";
    return;
  }
  if (!dot.getDotDimensionNumbers().getLhsBatchingDimensions().empty()) {
    info.role = DotRole::Attention;
    batched.push_back(index);
    return;
  }
  for (auto [name, operand] :
       {std::pair<StringRef, Value>("lhs", dot.getLhs()),
        std::pair<StringRef, Value>("rhs", dot.getRhs())})
    if (BlockArgument changed = getChangedParameter(operand, dot)) {
      changedOperands.push_back({views.getViewRoot(operand, dot), changed});
      info.why =
          ("not a linear layer: " + name + " is parameter " + getPath(changed) +
           " plus what depends on data, as in SAM or a line search")
              .str();
      return;
    }
  info.why = "not a linear layer: no operand comes from a parameter, and it is "
             "the weight gradient of no layer";
  ofActivations.push_back(index);
}

SmallVector<Analyzer::SourceDot>
Analyzer::findSourceDots(Operation *dot) const {
  SmallVector<SourceDot> found;
  llvm::SetVector<std::pair<Value, unsigned>> seen; // 1: through an exponential
  for (Value operand : dot->getOperands())
    seen.insert({operand, 0});
  for (unsigned i = 0; i < seen.size(); ++i) {
    auto [value, throughExp] = seen[i];
    for (Value source : getFlowSources(value))
      seen.insert({source, throughExp});
    Operation *op = value.getDefiningOp();
    if (!op || op->getNumRegions() > 1)
      continue;
    if (isa<stablehlo::DotGeneralOp>(op) && !mixers.contains(op)) {
      found.push_back({op, throughExp != 0});
      continue;
    }
    for (Value operand : op->getOperands())
      seen.insert({operand, throughExp | isa<stablehlo::ExpOp>(op)});
  }
  return found;
}

/// Returns those of the candidates, dots of two activations, that belong to an
/// attention: in the forward pass an exponential lies between two of them.
/// Others belong to it if they read what follows from the scores, or make what
/// such a dot reads.
DenseSet<Operation *>
Analyzer::findDotsOfSoftmaxes(ArrayRef<unsigned> candidates) const {
  llvm::MapVector<Operation *, SmallVector<SourceDot>> sources;
  for (unsigned index : candidates)
    sources[dots[index].dot] = findSourceDots(dots[index].dot);
  DenseSet<Operation *> scores, found;
  auto findPairs = [&](bool forward) {
    for (auto &[dot, from] : sources)
      for (SourceDot source : from)
        if (source.throughExp && sources.contains(source.dot) &&
            inForwardPass(dot) == forward &&
            inForwardPass(source.dot) == forward) {
          scores.insert(source.dot);
          found.insert(source.dot);
          found.insert(dot);
        }
  };
  findPairs(/*forward=*/true);
  if (found.empty())
    return found;
  findPairs(/*forward=*/false); // attentions that are computed once more
  SmallVector<Operation *> ofBackward;
  for (auto &[dot, from] : sources)
    if (llvm::any_of(from, [&](SourceDot source) {
          return scores.contains(source.dot);
        })) {
      found.insert(dot);
      if (!inForwardPass(dot))
        ofBackward.push_back(dot);
    }
  for (Operation *dot : ofBackward)
    for (SourceDot source : sources[dot])
      if (sources.contains(source.dot))
        found.insert(source.dot);
  return found;
}

/// Finds the dots of softmaxes. Attentions of one head and one sequence, whose
/// dots have no batching dimensions, get their role by that.
void Analyzer::findSoftmaxes() {
  DenseSet<Operation *> found = findDotsOfSoftmaxes(ofActivations);
  for (unsigned index : ofActivations)
    if (found.contains(dots[index].dot)) {
      dots[index].role = DotRole::Attention;
      dots[index].ofSoftmax = true;
      dots[index].why.clear();
    }
  if (batched.empty())
    return;
  found = findDotsOfSoftmaxes(
      llvm::to_vector(llvm::concat<unsigned>(ofActivations, batched)));
  for (unsigned index : batched)
    dots[index].ofSoftmax = found.contains(dots[index].dot);
}

namespace {
/// Finds the layers whose outputs other layers read, by following the forward
/// pass.
class ReadLayers {
public:
  ReadLayers(const Analyzer &analyzer) : analyzer(analyzer) {
    for (auto [i, layer] : llvm::enumerate(analyzer.layers))
      if (!analyzer.dots[layer.info].recomputed)
        layerOfOp[analyzer.dots[layer.info].dot] = i;
    read.resize(analyzer.layers.size());
    for (Operation *op : analyzer.forwardSlice)
      for (; op != analyzer.function; op = op->getParentOp())
        forward.insert(op);
    visit(analyzer.function.getBody());
  }

  bool contains(unsigned layer) const { return read.test(layer); }

private:
  void visit(Region &region);
  void visitLoop(Operation &loop);
  void visitBranch(Operation &branch);
  void visitOp(Operation &op);
  bool merge(Value from, Value into);

  const Analyzer &analyzer;
  DenseMap<Operation *, unsigned> layerOfOp;
  /// The ops of the forward pass, and the loops and branches that contain them.
  DenseSet<Operation *> forward;
  llvm::BitVector read;
  /// The layers that every value of the forward pass depends on.
  DenseMap<Value, llvm::BitVector> reached;
};
} // namespace

/// Adds the layers of `from` to those of `into`. Returns whether there are new
/// ones.
bool ReadLayers::merge(Value from, Value into) {
  llvm::BitVector bits = reached.lookup(into);
  bits.resize(read.size());
  llvm::BitVector before = bits;
  bits |= reached.lookup(from);
  bool changed = bits != before;
  reached[into] = std::move(bits);
  return changed;
}

void ReadLayers::visitLoop(Operation &loop) {
  Region &body = loop.getRegion(1);
  Operation &yield = body.front().back();
  for (unsigned i = 0; i < loop.getNumOperands(); ++i)
    merge(loop.getOperand(i), body.getArgument(i));
  for (bool changed = true; changed;) {
    visit(body);
    changed = false;
    for (unsigned i = 0; i < loop.getNumOperands(); ++i)
      changed |= merge(yield.getOperand(i), body.getArgument(i));
  }
  for (unsigned i = 0; i < loop.getNumOperands(); ++i)
    merge(body.getArgument(i), loop.getResult(i));
}

void ReadLayers::visitBranch(Operation &branch) {
  for (Region &region : branch.getRegions()) {
    visit(region);
    for (OpResult result : branch.getResults())
      merge(region.front().back().getOperand(result.getResultNumber()), result);
  }
}

void ReadLayers::visitOp(Operation &op) {
  llvm::BitVector bits(read.size());
  stablehlo::forEachRead(&op,
                         [&](Value value) { bits |= reached.lookup(value); });
  auto it = layerOfOp.find(&op);
  if (it != layerOfOp.end()) {
    read |= bits;
    bits.set(it->second);
  } else if (isa<stablehlo::ConvolutionOp>(op) && analyzer.inForwardPass(&op)) {
    read |= bits;
  }
  for (OpResult result : op.getResults())
    reached[result] = bits;
}

void ReadLayers::visit(Region &region) {
  for (Operation &op : region.front()) {
    if (analyzer.hasLoss && !forward.contains(&op))
      continue;
    if (isa<stablehlo::WhileOp>(op))
      visitLoop(op);
    else if (stablehlo::isBranch(&op))
      visitBranch(op);
    else if (isBarrier(&op))
      for (auto [result, operand] :
           llvm::zip_equal(op.getResults(), op.getOperands()))
        merge(operand, result);
    else
      visitOp(op);
  }
}

/// Marks the heads: layers whose output no other layer's input depends on.
void Analyzer::findHeads() {
  ReadLayers read(*this);
  auto isHead = [&](unsigned layer) { return !read.contains(layer); };
  for (auto [i, info] : llvm::enumerate(dots))
    info.head = !layersOfDot[i].empty() &&
                llvm::all_of(layersOfDot[i], [&](unsigned layer) {
                  // A recomputed dot represents its original.
                  unsigned dot = layers[layer].info;
                  return dots[dot].recomputed
                             ? llvm::all_of(layersOfDot[dot], isHead)
                             : isHead(layer);
                });
}

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

void Analyzer::run() {
  findForwardSlice();
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

  SmallVector<unsigned> withoutWeight;
  // Forward dots come first: they define the layers that the others belong to.
  // Without a loss, program order has to be enough.
  auto classify = [&](bool forwardPass) {
    for (unsigned i = 0; i < dots.size(); ++i) {
      DotInfo &info = dots[i];
      if (inForwardPass(info.dot) != forwardPass)
        continue;
      auto dot = cast<stablehlo::DotGeneralOp>(info.dot);
      if (isInnerProduct(dot)) {
        info.why = dot.getType().getRank() == 0
                       ? "not a linear layer: an inner product, one number"
                       : "not a linear layer: a product with one number";
        continue;
      }
      bool oneHotIsLhs = isOneHot(dot.getLhs(), dot);
      if (oneHotIsLhs || isOneHot(dot.getRhs(), dot)) {
        info.role = DotRole::Embedding;
        Value table =
            views.getViewRoot(oneHotIsLhs ? dot.getRhs() : dot.getLhs(), dot);
        if (origins.get(table) == Origin::Weight)
          info.layer = getPath(origins.getParameter(table));
        continue;
      }
      Origin lhs = getOperandOrigin(dot, 0), rhs = getOperandOrigin(dot, 1);
      if (lhs == Origin::Weight && rhs == Origin::Weight)
        info.why = "not a linear layer: both operands come from parameters";
      else if (lhs == Origin::Constant || rhs == Origin::Constant)
        info.why = "not a linear layer: an operand is constant";
      else if (lhs != Origin::Weight && rhs != Origin::Weight)
        withoutWeight.push_back(i);
      else if (forwardPass && dot.getDotDimensionNumbers()
                                  .getLhsContractingDimensions()
                                  .empty())
        info.why = "not a linear layer: contracts nothing";
      else if (forwardPass && mixesHeads(dot, lhs == Origin::Weight)) {
        info.why = "not a linear layer: mixes the scores of heads";
        mixers.insert(dot);
        operandOrigins.clear();
      } else {
        classifyWithWeight(i);
      }
    }
  };
  classify(/*forwardPass=*/true);
  classify(/*forwardPass=*/false);
  for (unsigned i : withoutWeight)
    classifyWithoutWeight(i);
  findSoftmaxes();
  findHeads();
  dropChoices();
  for (auto [info, own] : llvm::zip_equal(dots, layersOfDot))
    for (unsigned layer : own) {
      // A recomputed layer is the layer of the forward pass.
      unsigned first = layers[layer].info;
      if (dots[first].recomputed)
        llvm::append_range(info.layers, layersOfDot[first]);
      else
        info.layers.push_back(layer);
    }
}

/// Returns those of the changed operands that gradients of known layers have
/// changed: a loss that is not returned reads them.
ChangedParameters Analyzer::findChangedByGradients() const {
  if (changedOperands.empty())
    return {};
  SmallVector<Value> gradients;
  for (const DotInfo &info : dots)
    if (info.role == DotRole::Dgrad || info.role == DotRole::Wgrad)
      gradients.push_back(info.dot->getResult(0));
  Dependence onGradients(function, gradients, ValueSet(), /*together=*/true);
  ChangedParameters found;
  llvm::copy_if(changedOperands, std::back_inserter(found), [&](auto changed) {
    return onGradients.dependsOnAny(changed.first) &&
           !origins.isUpdatedParameter(changed.first);
  });
  return found;
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
