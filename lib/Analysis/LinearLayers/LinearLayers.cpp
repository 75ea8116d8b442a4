//===- LinearLayers.cpp - Linear layers, found by data flow ---------------===//
//
// The order of work:
//  1. every value gets a number, equal for values that compute the same
//     (recomputation behind a barrier gives the number of the original);
//  2. every value is classified as constant, weight (made from parameters
//  alone)
//     or data;
//  3. dots that the loss depends on and that read a weight are the forward
//  dots:
//     they define the layers;
//  4. the other dots with a weight are dgrad where they contract the weight's
//     other dimensions;
//  5. dots without a weight that read the activation of a layer and contract
//  its
//     token dimensions are wgrad.
//
//===----------------------------------------------------------------------===//

#include "fp8/Analysis/LinearLayers.h"

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <map>
#include <vector>

using namespace mlir;
using namespace mlir::fp8;

StringRef fp8::stringifyDotRole(DotRole role) {
  switch (role) {
  case DotRole::Forward:
    return "forward";
  case DotRole::Dgrad:
    return "dgrad";
  case DotRole::Wgrad:
    return "wgrad";
  case DotRole::Embedding:
    return "embedding";
  case DotRole::Attention:
    return "attention";
  case DotRole::Other:
    return "other";
  }
  return "other";
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

static bool isBarrier(Operation *op) {
  return isa<stablehlo::OptimizationBarrierOp>(op);
}

/// The value that a loop was entered with, if it carries `arg` unchanged.
static Value getLoopInvariant(BlockArgument arg) {
  auto loop =
      dyn_cast_or_null<stablehlo::WhileOp>(arg.getOwner()->getParentOp());
  if (!loop)
    return nullptr;
  unsigned i = arg.getArgNumber();
  Block &body = loop->getRegion(1).front();
  if (i >= loop->getNumOperands() || body.empty() ||
      body.back().getOperand(i) != body.getArgument(i))
    return nullptr;
  return loop->getOperand(i);
}

Value fp8::getLayoutSource(Value value) {
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return nullptr;
  Operation *op = result.getOwner();
  if (isBarrier(op))
    return op->getOperand(result.getResultNumber());
  if (isa<stablehlo::ReshapeOp, stablehlo::TransposeOp>(op))
    return op->getOperand(0);
  return nullptr;
}

/// The value that a loop over layers stored for `value`, a slice of what it
/// stacked up: the backward loop reads the activations of the forward loop so.
static Value getStoredSource(Value value) {
  auto slice = value.getDefiningOp<stablehlo::DynamicSliceOp>();
  if (!slice)
    return nullptr;
  Value stack = slice->getOperand(0);
  for (Value source = stack; source;) {
    stack = source;
    auto arg = dyn_cast<BlockArgument>(stack);
    source = arg ? getLoopInvariant(arg) : getLayoutSource(stack);
  }
  auto loop = stack.getDefiningOp<stablehlo::WhileOp>();
  if (!loop)
    return nullptr;
  unsigned i = cast<OpResult>(stack).getResultNumber();
  Block &body = loop->getRegion(1).front();
  auto update = body.back()
                    .getOperand(i)
                    .getDefiningOp<stablehlo::DynamicUpdateSliceOp>();
  if (!update || update->getOperand(0) != body.getArgument(i) ||
      update->getOperand(1).getType() != value.getType())
    return nullptr;
  return update->getOperand(1);
}

/// Whether a broadcast only adds dimensions of one element.
static bool isReshape(stablehlo::BroadcastInDimOp broadcast) {
  return cast<ShapedType>(broadcast->getOperand(0).getType())
                 .getNumElements() ==
             cast<ShapedType>(broadcast->getResult(0).getType())
                 .getNumElements() &&
         llvm::is_sorted(broadcast.getBroadcastDimensions());
}

/// The same elements, perhaps rounded or stored in between.
static Value getSameElementsSource(Value value) {
  if (Value source = getLayoutSource(value))
    return source;
  if (Value source = getStoredSource(value))
    return source;
  if (auto broadcast = value.getDefiningOp<stablehlo::BroadcastInDimOp>())
    return isReshape(broadcast) ? broadcast->getOperand(0) : Value();
  auto convert = value.getDefiningOp<stablehlo::ConvertOp>();
  if (!convert)
    return nullptr;
  Value source = convert->getOperand(0);
  if (isa<FloatType>(getElementTypeOrSelf(source.getType())) &&
      isa<FloatType>(getElementTypeOrSelf(value.getType())))
    return source;
  return nullptr;
}

Value fp8::getViewSource(Value value) {
  if (auto arg = dyn_cast<BlockArgument>(value))
    return getLoopInvariant(arg);
  if (Value source = getSameElementsSource(value))
    return source;
  Operation *op = value.getDefiningOp();
  if (isa<stablehlo::BroadcastInDimOp, stablehlo::SliceOp,
          stablehlo::DynamicSliceOp>(op))
    return op->getOperand(0);
  return nullptr;
}

template <typename Step> static Value getRoot(Value value, Step step) {
  while (Value source = step(value))
    value = source;
  return value;
}

/// For every dimension of a value, the dimensions of its root that it spans.
using DimSets = SmallVector<llvm::SmallBitVector>;

static DimSets mapReshape(const DimSets &source, ArrayRef<int64_t> from,
                          ArrayRef<int64_t> to, unsigned rootRank) {
  DimSets result(to.size(), llvm::SmallBitVector(rootRank));
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    // The smallest groups of dimensions with the same number of elements.
    size_t iEnd = i + 1, jEnd = j + 1;
    int64_t p = from[i], q = to[j];
    while (p != q) {
      if (p < q && iEnd < from.size())
        p *= from[iEnd++];
      else if (q < p && jEnd < to.size())
        q *= to[jEnd++];
      else
        break;
    }
    llvm::SmallBitVector all(rootRank);
    for (size_t k = i; k < iEnd; ++k)
      if (from[k] != 1)
        all |= source[k];
    for (size_t k = j; k < jEnd; ++k)
      if (to[k] != 1)
        result[k] = all;
    i = iEnd;
    j = jEnd;
    // A dimension of one element may stand anywhere.
    while (i < from.size() && from[i] == 1 && !(j < to.size() && to[j] == 1))
      ++i;
    while (j < to.size() && to[j] == 1 && !(i < from.size() && from[i] == 1))
      ++j;
  }
  return result;
}

template <typename Step> static DimSets getDimSets(Value value, Step step) {
  SmallVector<Value> chain{value};
  while (Value source = step(chain.back()))
    chain.push_back(source);
  auto rootType = cast<RankedTensorType>(chain.back().getType());
  unsigned rank = rootType.getRank();
  DimSets sets(rank, llvm::SmallBitVector(rank));
  for (unsigned i = 0; i < rank; ++i)
    // A dimension of one element says nothing about what is contracted.
    if (rootType.getDimSize(i) != 1)
      sets[i].set(i);

  for (size_t i = chain.size() - 1; i-- > 0;) {
    auto type = cast<RankedTensorType>(chain[i].getType());
    auto sourceType = cast<RankedTensorType>(chain[i + 1].getType());
    Operation *op = chain[i].getDefiningOp();
    if (auto transpose = dyn_cast_or_null<stablehlo::TransposeOp>(op)) {
      DimSets permuted;
      for (int64_t dim : transpose.getPermutation())
        permuted.push_back(sets[dim]);
      sets = std::move(permuted);
    } else if (isa_and_nonnull<stablehlo::ReshapeOp>(op)) {
      sets = mapReshape(sets, sourceType.getShape(), type.getShape(), rank);
    } else if (auto broadcast =
                   dyn_cast_or_null<stablehlo::BroadcastInDimOp>(op)) {
      DimSets spread(type.getRank(), llvm::SmallBitVector(rank));
      for (auto [from, to] :
           llvm::enumerate(broadcast.getBroadcastDimensions()))
        spread[to] = sets[from];
      sets = std::move(spread);
    }
  }
  return sets;
}

static llvm::SmallBitVector unite(const DimSets &sets, ArrayRef<int64_t> dims,
                                  unsigned rank) {
  llvm::SmallBitVector result(rank);
  for (int64_t dim : dims)
    result |= sets[dim];
  return result;
}

//===----------------------------------------------------------------------===//
// Value numbers
//===----------------------------------------------------------------------===//

namespace {
/// Numbers values so that equal numbers mean equal values: of two ops with the
/// same name, attributes, regions and operand numbers. Barriers are
/// transparent: that is what makes a recomputed value equal to the original.
class ValueNumbers {
public:
  explicit ValueNumbers(func::FuncOp function) { number(function.getBody()); }

  unsigned get(Value value) const { return numbers.lookup(value); }

private:
  using Key = std::vector<uintptr_t>;

  void number(Region &region) {
    for (Block &block : region) {
      for (BlockArgument arg : block.getArguments()) {
        Value invariant = getLoopInvariant(arg);
        numbers[arg] = invariant ? numbers.lookup(invariant) : next++;
      }
      for (Operation &op : block)
        number(op);
    }
  }

  void number(Operation &op) {
    if (isBarrier(&op)) {
      for (auto [result, operand] :
           llvm::zip_equal(op.getResults(), op.getOperands()))
        numbers[result] = numbers.lookup(operand);
      return;
    }
    if (op.getNumResults() == 1)
      if (Value same = getEqual(op.getResult(0))) {
        numbers[op.getResult(0)] = numbers.lookup(same);
        return;
      }
    // Inside of a region, ops have numbers of their own for the dots there; the
    // op as a whole is compared by what the region says.
    for (Region &region : op.getRegions())
      number(region);
    Key key;
    DenseMap<Value, unsigned> locals;
    append(op, locals, key);
    auto [it, inserted] = known.try_emplace(std::move(key), next);
    for (OpResult result : op.getResults())
      numbers[result] = it->second + result.getResultNumber();
    if (inserted)
      next += op.getNumResults();
  }

  /// A value that an op merely repeats: what a loop stored, or what a chain of
  /// reshapes leads back to.
  static Value getEqual(Value result) {
    if (Value stored = getStoredSource(result))
      return stored;
    for (Value value = result;;) {
      Operation *op = value.getDefiningOp();
      if (Value stored = getStoredSource(value))
        value = stored;
      else if (isa_and_nonnull<stablehlo::ReshapeOp>(op) ||
               (isa_and_nonnull<stablehlo::BroadcastInDimOp>(op) &&
                isReshape(cast<stablehlo::BroadcastInDimOp>(op))))
        value = op->getOperand(0);
      else
        return nullptr;
      if (value.getType() == result.getType())
        return value;
    }
  }

  void append(Operation &op, DenseMap<Value, unsigned> &locals, Key &key) {
    key.push_back(
        reinterpret_cast<uintptr_t>(op.getName().getAsOpaquePointer()));
    key.push_back(reinterpret_cast<uintptr_t>(
        op.getAttrDictionary().getAsOpaquePointer()));
    // Slices that loops take of one tensor are the same up to the iteration,
    // which is all that a layer needs: loops over stacked weights count up in
    // the forward and down in the backward pass.
    OperandRange operands = op.getOperands();
    if (isa<stablehlo::DynamicSliceOp>(op) && op.getParentOp() &&
        isa<stablehlo::WhileOp>(op.getParentOp()))
      operands = operands.take_front();
    key.push_back(operands.size());
    for (Value operand : operands) {
      auto local = locals.find(operand);
      key.push_back(local != locals.end());
      key.push_back(local != locals.end() ? local->second
                                          : numbers.lookup(operand));
    }
    key.push_back(op.getNumResults());
    for (OpResult result : op.getResults()) {
      key.push_back(
          reinterpret_cast<uintptr_t>(result.getType().getAsOpaquePointer()));
      locals[result] = locals.size();
    }
    for (Region &region : op.getRegions())
      for (Block &block : region) {
        key.push_back(block.getNumArguments());
        for (BlockArgument arg : block.getArguments())
          locals[arg] = locals.size();
        for (Operation &nested : block)
          append(nested, locals, key);
      }
  }

  DenseMap<Value, unsigned> numbers;
  std::map<Key, unsigned> known;
  unsigned next = 1;
};

//===----------------------------------------------------------------------===//
// What values are made of
//===----------------------------------------------------------------------===//

enum class Origin { Constant, Weight, Data };

class Origins {
public:
  explicit Origins(func::FuncOp function) : function(function) {
    for (BlockArgument arg : function.getArguments()) {
      Origin origin = classify(arg);
      origins[arg] = origin;
      if (origin == Origin::Weight)
        parameters[arg] = arg;
    }
    for (Operation &op : function.getBody().front())
      propagate(op);
  }

  Origin get(Value value) const { return origins.lookup(value); }

  /// The largest parameter a weight is made from.
  BlockArgument getParameter(Value value) const {
    return parameters.lookup(value);
  }

  bool anyParameter() const { return !parameters.empty(); }

private:
  Origin classify(BlockArgument arg) const {
    auto mark = [&](StringRef name) {
      auto attr =
          function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), name);
      return attr ? attr.getValue() : StringRef();
    };
    StringRef role = mark("fp8.role");
    if (!isa<FloatType>(getElementTypeOrSelf(arg.getType())))
      return Origin::Data;
    if (role == "frozen" ||
        (role == "state" && mark("fp8.kind") == "parameter"))
      return Origin::Weight;
    return role == "constant" ? Origin::Constant : Origin::Data;
  }

  void merge(Value from, Origin &origin, BlockArgument &parameter) const {
    origin = std::max(origin, origins.lookup(from));
    BlockArgument other = parameters.lookup(from);
    if (other && (!parameter || getSize(other) > getSize(parameter)))
      parameter = other;
  }

  static int64_t getSize(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.hasStaticShape() ? type.getNumElements() : 0;
  }

  void propagate(Operation &op) {
    // Each result of a barrier is its own operand and nothing more.
    if (isBarrier(&op)) {
      for (auto [result, operand] :
           llvm::zip_equal(op.getResults(), op.getOperands()))
        copy(operand, result);
      return;
    }
    Origin origin = Origin::Constant;
    BlockArgument parameter;
    for (Value operand : op.getOperands())
      merge(operand, origin, parameter);
    for (Region &region : op.getRegions())
      for (Block &block : region) {
        for (BlockArgument arg : block.getArguments()) {
          if (Value invariant = getLoopInvariant(arg))
            copy(invariant, arg);
          else
            set(arg, origin, parameter);
        }
        for (Operation &nested : block) {
          propagate(nested);
          for (Value operand : nested.getOperands())
            merge(operand, origin, parameter);
        }
      }
    for (OpResult result : op.getResults())
      set(result, origin, parameter);
  }

  void set(Value value, Origin origin, BlockArgument parameter) {
    origins[value] = origin;
    if (parameter)
      parameters[value] = parameter;
  }
  void copy(Value from, Value to) {
    set(to, origins.lookup(from), parameters.lookup(from));
  }

  // Reading attributes is not const in MLIR.
  mutable func::FuncOp function;
  DenseMap<Value, Origin> origins;
  DenseMap<Value, BlockArgument> parameters;
};

//===----------------------------------------------------------------------===//
// The analysis
//===----------------------------------------------------------------------===//

/// A forward dot with a weight.
struct Layer {
  unsigned info;
  /// Number of the weight's root, and which of its dimensions are contracted.
  unsigned weight;
  llvm::SmallBitVector weightContracted;
  /// Likewise of the activation; `activationRest` are the dimensions that a
  /// weight gradient contracts.
  unsigned activation;
  llvm::SmallBitVector activationRest;
  SmallVector<int64_t> weightShape;
  /// Numbers of the output gradients that the dgrad dots of the layer read.
  SmallVector<unsigned> gradients;
};

struct Analyzer {
  Analyzer(func::FuncOp function, SmallVectorImpl<DotInfo> &dots)
      : function(function), dots(dots), numbers(function), origins(function) {}

  void run();
  void findForwardSlice();
  bool inForwardPass(Operation *op) const;
  bool isOneHot(Value value) const;
  void classifyWithWeight(unsigned index);
  void classifyWithoutWeight(unsigned index);
  bool matchWgrad(unsigned index, bool activationIsLhs);
  std::string getUpdatedParameter(Value gradient) const;
  void findHeads();
  std::string getPath(BlockArgument parameter) const;

  // Reading attributes is not const in MLIR.
  mutable func::FuncOp function;
  SmallVectorImpl<DotInfo> &dots;
  ValueNumbers numbers;
  Origins origins;
  std::vector<Layer> layers;
  /// Of every dot, the layers whose weight or activation it reads.
  SmallVector<SmallVector<unsigned, 2>> layersOfDot;
  bool hasLoss = false, updatesParameters = false;
  DenseSet<Operation *> forwardSlice;
};
} // namespace

/// All values an op reads: operands and what its regions capture.
static void forEachRead(Operation *op, llvm::function_ref<void(Value)> read) {
  op->walk([&](Operation *nested) {
    for (Value operand : nested->getOperands())
      read(operand);
  });
}

void Analyzer::findForwardSlice() {
  auto terminator = function.getBody().front().getTerminator();
  SmallVector<Value> worklist;
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    auto kind = function.getResultAttrOfType<StringAttr>(i, "fp8.kind");
    if (kind && kind.getValue() == "loss") {
      hasLoss = true;
      worklist.push_back(terminator->getOperand(i));
    }
    if (function.getResultAttr(i, "fp8.state"))
      updatesParameters = true;
  }
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    auto result = dyn_cast<OpResult>(value);
    if (!result)
      continue;
    Operation *op = result.getOwner();
    if (isBarrier(op)) {
      worklist.push_back(op->getOperand(result.getResultNumber()));
      continue;
    }
    if (forwardSlice.insert(op).second)
      forEachRead(op, [&](Value read) { worklist.push_back(read); });
  }
}

bool Analyzer::inForwardPass(Operation *op) const {
  if (!hasLoss)
    return true;
  for (; op && op != function; op = op->getParentOp())
    if (forwardSlice.contains(op))
      return true;
  return false;
}

/// Whether a value is `indices == iota` as a float tensor.
bool Analyzer::isOneHot(Value value) const {
  auto step = [](Value value) -> Value {
    if (Value source = getViewSource(value))
      return source;
    if (auto convert = value.getDefiningOp<stablehlo::ConvertOp>())
      return convert->getOperand(0);
    return nullptr;
  };
  auto compare = getRoot(value, step).getDefiningOp<stablehlo::CompareOp>();
  if (!compare ||
      compare.getComparisonDirection() != stablehlo::ComparisonDirection::EQ)
    return false;
  return llvm::any_of(compare->getOperands(), [&](Value operand) {
    if (!isa<IntegerType>(getElementTypeOrSelf(operand.getType())))
      return false;
    Value root = getRoot(operand, step);
    return isa_and_nonnull<stablehlo::IotaOp, stablehlo::ConstantOp>(
        root.getDefiningOp());
  });
}

std::string Analyzer::getPath(BlockArgument parameter) const {
  if (!parameter)
    return "";
  if (auto path = function.getArgAttrOfType<StringAttr>(
          parameter.getArgNumber(), "fp8.path"))
    return path.str();
  return "arg" + std::to_string(parameter.getArgNumber());
}

void Analyzer::classifyWithWeight(unsigned index) {
  DotInfo &info = dots[index];
  auto dot = cast<stablehlo::DotGeneralOp>(info.dot);
  auto dims = dot.getDotDimensionNumbers();
  bool weightIsLhs =
      origins.get(getRoot(dot.getLhs(), getViewSource)) == Origin::Weight;
  Value weight = weightIsLhs ? dot.getLhs() : dot.getRhs();
  Value other = weightIsLhs ? dot.getRhs() : dot.getLhs();
  ArrayRef<int64_t> lhsContracting = dims.getLhsContractingDimensions();
  ArrayRef<int64_t> rhsContracting = dims.getRhsContractingDimensions();
  ArrayRef<int64_t> weightDims = weightIsLhs ? lhsContracting : rhsContracting;
  ArrayRef<int64_t> otherDims = weightIsLhs ? rhsContracting : lhsContracting;
  ArrayRef<int64_t> otherBatch = weightIsLhs ? dims.getRhsBatchingDimensions()
                                             : dims.getLhsBatchingDimensions();

  Value weightRoot = getRoot(weight, getViewSource);
  DimSets weightSets = getDimSets(weight, getViewSource);
  llvm::SmallBitVector contracted =
      unite(weightSets, weightDims,
            cast<RankedTensorType>(weightRoot.getType()).getRank());
  unsigned weightNumber = numbers.get(weightRoot);
  Value otherRoot = getRoot(other, getSameElementsSource);
  info.layer = getPath(origins.getParameter(weightRoot));
  auto setKinds = [&](OperandKind otherKind) {
    info.lhs = weightIsLhs ? OperandKind::Weight : otherKind;
    info.rhs = weightIsLhs ? otherKind : OperandKind::Weight;
  };

  // The layers with this weight, by which of its dimensions they contract.
  SmallVector<unsigned, 2> same, complementary;
  for (auto [i, layer] : llvm::enumerate(layers)) {
    if (layer.weight != weightNumber)
      continue;
    if (layer.weightContracted == contracted)
      same.push_back(i);
    else if (!layer.weightContracted.anyCommon(contracted))
      complementary.push_back(i);
  }

  bool forward = inForwardPass(info.dot);
  if (!complementary.empty() && (!forward || (!hasLoss && updatesParameters))) {
    info.role = DotRole::Dgrad;
    setKinds(OperandKind::Gradient);
    for (unsigned i : complementary)
      layers[i].gradients.push_back(numbers.get(otherRoot));
    layersOfDot[index] = complementary;
    return;
  }
  if (!forward && same.empty()) {
    info.role = DotRole::Other;
    info.why = "not a linear layer: reads a parameter, but no forward dot with "
               "this parameter precedes it";
    return;
  }

  info.role = DotRole::Forward;
  setKinds(OperandKind::Activation);
  info.recomputed = !forward;
  if (info.recomputed)
    layersOfDot[index] = same;
  else
    layersOfDot[index] = {static_cast<unsigned>(layers.size())};

  auto otherRootType = cast<RankedTensorType>(otherRoot.getType());
  DimSets otherSets = getDimSets(other, getSameElementsSource);
  Layer layer;
  layer.info = index;
  layer.weight = weightNumber;
  layer.weightContracted = contracted;
  layer.activation = numbers.get(otherRoot);
  // The dimensions of the root that the tokens span, not those that nothing
  // else spans: one of an image's can be in both (a patch's rows are part of
  // the image's).
  SmallVector<int64_t> tokenDims;
  for (int64_t dim :
       llvm::seq(cast<RankedTensorType>(other.getType()).getRank()))
    if (!llvm::is_contained(otherDims, dim) &&
        !llvm::is_contained(otherBatch, dim))
      tokenDims.push_back(dim);
  layer.activationRest = unite(otherSets, tokenDims, otherRootType.getRank());
  for (auto [dim, size] : llvm::enumerate(otherRootType.getShape()))
    if (size == 1)
      layer.activationRest.reset(dim);
  layer.weightShape =
      llvm::to_vector(cast<RankedTensorType>(weight.getType()).getShape());
  layers.push_back(std::move(layer));
}

/// Follows a gradient through elementwise ops and views to the parameter that
/// it updates. Reductions are not followed: through the gradients' norm every
/// gradient reaches every parameter.
std::string Analyzer::getUpdatedParameter(Value gradient) const {
  int64_t size = cast<RankedTensorType>(gradient.getType()).getNumElements();
  SmallVector<Value> worklist{gradient};
  llvm::SmallPtrSet<Operation *, 32> seen;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (isa<func::ReturnOp>(user)) {
        auto path = function.getResultAttrOfType<StringAttr>(
            use.getOperandNumber(), "fp8.state");
        if (!path)
          continue;
        // Moments are updated by the gradient as well.
        for (BlockArgument arg : function.getArguments())
          if (function.getArgAttr(arg.getArgNumber(), "fp8.path") == path &&
              origins.get(arg) == Origin::Weight)
            return path.str();
        continue;
      }
      if (isa<stablehlo::DotGeneralOp>(user) || !seen.insert(user).second)
        continue;
      for (OpResult result : user->getResults()) {
        auto type = dyn_cast<RankedTensorType>(result.getType());
        if (type && type.hasStaticShape() && type.getNumElements() == size)
          worklist.push_back(result);
      }
    }
  }
  return "";
}

bool Analyzer::matchWgrad(unsigned index, bool activationIsLhs) {
  DotInfo &info = dots[index];
  auto dot = cast<stablehlo::DotGeneralOp>(info.dot);
  auto dims = dot.getDotDimensionNumbers();
  Value activation = activationIsLhs ? dot.getLhs() : dot.getRhs();
  Value gradient = activationIsLhs ? dot.getRhs() : dot.getLhs();
  Value root = getRoot(activation, getSameElementsSource);
  llvm::SmallBitVector contracted =
      unite(getDimSets(activation, getSameElementsSource),
            activationIsLhs ? dims.getLhsContractingDimensions()
                            : dims.getRhsContractingDimensions(),
            cast<RankedTensorType>(root.getType()).getRank());
  unsigned activationNumber = numbers.get(root);
  unsigned gradientNumber =
      numbers.get(getRoot(gradient, getSameElementsSource));
  auto sorted = [](ArrayRef<int64_t> shape) {
    SmallVector<int64_t> result(shape);
    llvm::sort(result);
    return result;
  };
  SmallVector<int64_t> shape =
      sorted(cast<RankedTensorType>(dot->getResult(0).getType()).getShape());

  SmallVector<unsigned, 4> candidates;
  for (auto [i, layer] : llvm::enumerate(layers))
    if (layer.activation == activationNumber &&
        layer.activationRest == contracted &&
        sorted(layer.weightShape) == shape)
      candidates.push_back(i);
  if (candidates.empty())
    return false;

  // Layers that share their input (query, key and value; gate and up) have
  // different output gradients, which their dgrad dots read as well.
  unsigned chosen = candidates.front();
  auto byGradient = llvm::find_if(candidates, [&](unsigned i) {
    return llvm::is_contained(layers[i].gradients, gradientNumber);
  });
  if (byGradient != candidates.end()) {
    chosen = *byGradient;
  } else if (candidates.size() > 1) {
    std::string path = getUpdatedParameter(dot->getResult(0));
    for (unsigned i : candidates)
      if (dots[layers[i].info].layer == path)
        chosen = i;
  }
  info.role = DotRole::Wgrad;
  info.lhs = activationIsLhs ? OperandKind::Activation : OperandKind::Gradient;
  info.rhs = activationIsLhs ? OperandKind::Gradient : OperandKind::Activation;
  info.layer = dots[layers[chosen].info].layer;
  layersOfDot[index] = {chosen};
  return true;
}

void Analyzer::classifyWithoutWeight(unsigned index) {
  DotInfo &info = dots[index];
  auto dot = cast<stablehlo::DotGeneralOp>(info.dot);
  if (updatesParameters && (!hasLoss || !inForwardPass(info.dot)) &&
      (matchWgrad(index, true) || matchWgrad(index, false)))
    return;
  if (!dot.getDotDimensionNumbers().getLhsBatchingDimensions().empty()) {
    info.role = DotRole::Attention;
    return;
  }
  info.why = "not a linear layer: no operand comes from a parameter, and it is "
             "the weight gradient of no layer";
}

/// A layer is the head if the input of no other layer depends on its output.
void Analyzer::findHeads() {
  // Which layers every value of the forward pass depends on.
  DenseMap<Value, llvm::BitVector> reached;
  DenseMap<Operation *, unsigned> layerOfOp;
  for (auto [i, layer] : llvm::enumerate(layers))
    if (!dots[layer.info].recomputed)
      layerOfOp[dots[layer.info].dot] = i;
  llvm::BitVector read(layers.size());
  auto mergeReads = [&](Operation *op, llvm::BitVector &all) {
    forEachRead(op, [&](Value value) {
      auto it = reached.find(value);
      if (it != reached.end())
        all |= it->second;
    });
  };
  // What a value inside of a loop depends on from an earlier iteration is not
  // followed: layers of one loop body are found to feed each other within it,
  // and the last of them feeds the first.
  std::function<void(Region &)> visit = [&](Region &region) {
    for (Block &block : region)
      for (Operation &op : block) {
        if (!inForwardPass(&op))
          continue;
        if (isBarrier(&op)) {
          for (auto [result, operand] :
               llvm::zip_equal(op.getResults(), op.getOperands())) {
            llvm::BitVector bits = reached.lookup(operand);
            reached[result] = std::move(bits);
          }
          continue;
        }
        for (Region &nested : op.getRegions())
          visit(nested);
        llvm::BitVector bits(layers.size());
        mergeReads(&op, bits);
        auto it = layerOfOp.find(&op);
        if (it != layerOfOp.end()) {
          read |= bits;
          bits.set(it->second);
        }
        for (OpResult result : op.getResults())
          reached[result] = bits;
      }
  };
  visit(function.getBody());
  for (auto [op, layer] : layerOfOp)
    if (op->getParentOp() != function)
      read.set(layer);

  for (auto [i, info] : llvm::enumerate(dots))
    info.head = !layersOfDot[i].empty() &&
                llvm::all_of(layersOfDot[i], [&](unsigned layer) {
                  const Layer &l = layers[layer];
                  // A recomputed dot stands for its original.
                  if (dots[l.info].recomputed)
                    return llvm::all_of(layersOfDot[l.info], [&](unsigned o) {
                      return !read.test(o);
                    });
                  return !read.test(layer);
                });
}

void Analyzer::run() {
  findForwardSlice();
  function.walk<WalkOrder::PreOrder>([&](stablehlo::DotGeneralOp dot) {
    DotInfo info;
    info.dot = dot;
    for (Operation *op = dot->getParentOp(); op != function;
         op = op->getParentOp())
      if (isa<stablehlo::WhileOp>(op))
        ++info.loopDepth;
    dots.push_back(std::move(info));
  });
  layersOfDot.resize(dots.size());

  SmallVector<unsigned> withoutWeight;
  // All forward dots come first: they define the layers that the others belong
  // to. Without a loss the order of the program has to do.
  auto classify = [&](bool forwardPass) {
    for (unsigned i = 0; i < dots.size(); ++i) {
      DotInfo &info = dots[i];
      if (inForwardPass(info.dot) != forwardPass)
        continue;
      auto dot = cast<stablehlo::DotGeneralOp>(info.dot);
      if (isOneHot(dot.getLhs()) || isOneHot(dot.getRhs())) {
        info.role = DotRole::Embedding;
        bool oneHotIsLhs = isOneHot(dot.getLhs());
        Value table =
            getRoot(oneHotIsLhs ? dot.getRhs() : dot.getLhs(), getViewSource);
        if (origins.get(table) == Origin::Weight)
          info.layer = getPath(origins.getParameter(table));
        continue;
      }
      Origin lhs = origins.get(getRoot(dot.getLhs(), getViewSource));
      Origin rhs = origins.get(getRoot(dot.getRhs(), getViewSource));
      if (lhs == Origin::Weight && rhs == Origin::Weight)
        info.why = "not a linear layer: both operands come from parameters";
      else if (lhs == Origin::Constant || rhs == Origin::Constant)
        info.why = "not a linear layer: an operand is constant";
      else if (lhs == Origin::Weight || rhs == Origin::Weight)
        classifyWithWeight(i);
      else
        withoutWeight.push_back(i);
    }
  };
  classify(/*forwardPass=*/true);
  classify(/*forwardPass=*/false);
  for (unsigned i : withoutWeight)
    classifyWithoutWeight(i);
  findHeads();
}

LinearLayers::LinearLayers(func::FuncOp function) {
  if (function.isExternal())
    return;
  Analyzer analyzer(function, dots);
  parameters = analyzer.origins.anyParameter();
  analyzer.run();
}
