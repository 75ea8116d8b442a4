//===- GatedUnits.cpp - Gated units (SwiGLU), found by data flow ----------===//

#include "fp8/Analysis/LinearLayers/GatedUnits.h"

#include "Expressions.h"
#include "Origins.h"
#include "ValueFlow.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/DotOperands.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fp8;

namespace {

using Index = SmallVector<int64_t>;

/// The result of a linear layer, perhaps with its bias, or a slice of it.
struct Branch {
  Value value;
  /// The view of `value` that the expression reads.
  Value read;
  /// The number of `value` (ValueNumbers); equal values have equal numbers.
  unsigned number;
  const DotInfo *dot;
};

/// The values that the expression before a linear layer reads.
struct Leaves {
  SmallVector<Branch, 2> branches;
  bool others = false;
};

/// How an expression depends on one of its branches.
enum class DependenceKind { Free, Linear, Other };

class Finder {
public:
  Finder(func::FuncOp function, const LinearLayers &layers)
      : function(function), layers(layers), numbers(function), views(numbers),
        origins(function) {
    for (const DotInfo &info : layers.getDots())
      if (info.role == DotRole::Forward)
        forward[info.dot] = &info;
  }

  std::vector<GatedUnit> run();

private:
  std::optional<GatedUnit> find(unsigned down);
  void addReaders(GatedUnit &unit, unsigned linear);
  void collect(Value value, Leaves &leaves);
  std::optional<Branch> matchBranch(Value value);
  Value getDotOf(Value value);
  bool isProduct(Value value);
  void collectFactors(Value value, SmallVectorImpl<Value> &factors);
  struct ChannelDims;
  std::string findActivation(GatedUnit &unit, Value product,
                             const Branch &gate);
  std::string findWeights(GatedUnit &unit, Value product, const Branch &gate,
                          const Branch &linear, const ChannelDims &dims);
  std::string findLinearBias(GatedUnit &unit, Value product,
                             const Branch &linear, const ChannelDims &dims);
  std::string prove(GatedUnit &unit, Value product, const Branch &gate,
                    const Branch &linear);
  DependenceKind getDependenceKind(Value value, unsigned number,
                                   DenseMap<Value, DependenceKind> &known);
  bool reads(Value value, unsigned number, DenseMap<Value, bool> &known);

  bool stepToSource(Value &value, Index &index,
                    SmallVectorImpl<Value> &loopStarts);
  bool traceTo(Value &value, Index &index, unsigned number);
  bool traceToParameter(Value value, Index index, Value &parameter, Index &at,
                        SmallVectorImpl<int64_t> &layerDims);
  template <typename Place>
  std::optional<ParameterChannels> getChannels(int64_t count, Place place);

  func::FuncOp function;
  const LinearLayers &layers;
  ValueNumbers numbers;
  Views views;
  Origins origins;
  DenseMap<Operation *, const DotInfo *> forward;
  Operation *user = nullptr;
};

} // namespace

static stablehlo::DotGeneralOp getDot(const DotInfo *info) {
  return cast<stablehlo::DotGeneralOp>(info->dot);
}

static Value getOperand(const DotInfo &info, OperandKind kind) {
  return info.dot->getOperand(info.lhs == kind ? 0 : 1);
}

//===----------------------------------------------------------------------===//
// The expression
//===----------------------------------------------------------------------===//

/// Returns the result of the linear layer that `value` is a view of, perhaps
/// with the layer's bias added; null if there is none.
Value Finder::getDotOf(Value value) {
  bool biased = false;
  while (true) {
    if (Operation *op = value.getDefiningOp()) {
      if (forward.contains(op))
        return value;
      if (isa<stablehlo::AddOp>(op) && !biased) {
        bool second = origins.get(op->getOperand(0)) == Origin::Weight;
        if (!second && origins.get(op->getOperand(1)) != Origin::Weight)
          return nullptr;
        biased = true;
        value = op->getOperand(second ? 1 : 0);
        continue;
      }
      if (isa<stablehlo::SliceOp>(op)) {
        value = op->getOperand(0);
        continue;
      }
    }
    value = views.getSameElementsSource(value, user);
    if (!value)
      return nullptr;
  }
}

std::optional<Branch> Finder::matchBranch(Value value) {
  Value root = views.getSameElementsRoot(value, user);
  Value dot = getDotOf(root);
  if (!dot)
    return std::nullopt;
  return Branch{root, value, numbers.get(root),
                forward.lookup(dot.getDefiningOp())};
}

/// Collects the values that an elementwise expression reads.
void Finder::collect(Value value, Leaves &leaves) {
  DenseSet<Value> seen;
  SmallVector<Value> worklist{value};
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!seen.insert(next).second || getBroadcastNumber(next))
      continue;
    if (std::optional<Branch> branch = matchBranch(next)) {
      if (llvm::none_of(leaves.branches, [&](const Branch &other) {
            return other.number == branch->number;
          }))
        leaves.branches.push_back(*branch);
      continue;
    }
    if (Value source = views.getSameElementsSource(next, user)) {
      worklist.push_back(source);
      continue;
    }
    Operation *op = next.getDefiningOp();
    if (op && stablehlo::worksByElement(op))
      llvm::append_range(worklist, op->getOperands());
    else
      leaves.others = true;
  }
}

/// Collects the factors of nested products.
void Finder::collectFactors(Value value, SmallVectorImpl<Value> &factors) {
  if (!matchBranch(value)) {
    if (Value source = views.getSameElementsSource(value, user))
      return collectFactors(source, factors);
    Operation *op = value.getDefiningOp();
    if (isa_and_nonnull<stablehlo::MulOp, stablehlo::DivOp>(op)) {
      for (Value operand : op->getOperands())
        collectFactors(operand, factors);
      return;
    }
  }
  factors.push_back(value);
}

/// Returns true if results of two different layers, or of two parts of one, are
/// multiplied. A sum of results (a residual stream after its norm) is no
/// product.
bool Finder::isProduct(Value value) {
  SmallVector<Value> factors;
  collectFactors(value, factors);
  DenseSet<unsigned> distinct;
  unsigned withBranches = 0;
  for (Value factor : factors) {
    Leaves leaves;
    collect(factor, leaves);
    withBranches += !leaves.branches.empty();
    for (const Branch &branch : leaves.branches)
      distinct.insert(branch.number);
  }
  return withBranches > 1 && distinct.size() > 1;
}

/// Returns how `value` depends on the branch with this number.
DependenceKind
Finder::getDependenceKind(Value value, unsigned number,
                          DenseMap<Value, DependenceKind> &known) {
  auto found = known.find(value);
  if (found != known.end())
    return found->second;
  auto compute = [&]() {
    if (getBroadcastNumber(value))
      return DependenceKind::Free;
    if (std::optional<Branch> branch = matchBranch(value))
      return branch->number == number ? DependenceKind::Linear
                                      : DependenceKind::Free;
    if (Value source = views.getSameElementsSource(value, user))
      return getDependenceKind(source, number, known);
    Operation *op = value.getDefiningOp();
    if (!op || !stablehlo::worksByElement(op))
      return DependenceKind::Free;
    SmallVector<DependenceKind, 3> operands;
    for (Value operand : op->getOperands())
      operands.push_back(getDependenceKind(operand, number, known));
    if (llvm::all_equal(operands) && operands.front() == DependenceKind::Free)
      return DependenceKind::Free;
    if (llvm::is_contained(operands, DependenceKind::Other))
      return DependenceKind::Other;
    auto isZero = [&](unsigned i) {
      return getBroadcastNumber(op->getOperand(i)) == 0.0;
    };
    auto isLinear = [&](unsigned i) {
      return operands[i] == DependenceKind::Linear || isZero(i);
    };
    bool linear = false;
    if (isa<stablehlo::MulOp>(op))
      linear = operands[0] != operands[1];
    else if (isa<stablehlo::DivOp>(op))
      linear = operands[1] == DependenceKind::Free;
    else if (isa<stablehlo::NegOp, stablehlo::ConvertOp>(op))
      linear = true;
    else if (isa<stablehlo::AddOp, stablehlo::SubtractOp>(op))
      linear = isLinear(0) && isLinear(1);
    else if (isa<stablehlo::SelectOp>(op))
      linear =
          operands[0] == DependenceKind::Free && isLinear(1) && isLinear(2);
    return linear ? DependenceKind::Linear : DependenceKind::Other;
  };
  DependenceKind result = compute();
  known[value] = result;
  return result;
}

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

static Index unflatten(int64_t position, ArrayRef<int64_t> shape) {
  Index index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    index[i] = position % shape[i];
    position /= shape[i];
  }
  return index;
}

static int64_t flatten(ArrayRef<int64_t> index, ArrayRef<int64_t> shape) {
  int64_t position = 0;
  for (auto [i, size] : llvm::zip_equal(index, shape))
    position = position * size + i;
  return position;
}

/// Goes from an element of a view to the same element of its source. If the
/// view is a slice, `loopStarts` are the start indices that depend on a loop's
/// counter, by dimension of the source (null elsewhere).
bool Finder::stepToSource(Value &value, Index &index,
                          SmallVectorImpl<Value> &loopStarts) {
  loopStarts.clear();
  Operation *op = value.getDefiningOp();
  if (!op) {
    value = getLoopInvariant(cast<BlockArgument>(value));
    return bool(value);
  }
  if (auto reshape = dyn_cast<stablehlo::ReshapeOp>(op)) {
    index = unflatten(flatten(index, shapeOf(value)),
                      shapeOf(reshape->getOperand(0)));
  } else if (auto transpose = dyn_cast<stablehlo::TransposeOp>(op)) {
    Index source(index.size());
    for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
      source[from] = index[to];
    index = source;
  } else if (auto broadcast = dyn_cast<stablehlo::BroadcastInDimOp>(op)) {
    Index source;
    for (auto [dim, size] : llvm::zip_equal(broadcast.getBroadcastDimensions(),
                                            shapeOf(op->getOperand(0))))
      source.push_back(size == 1 ? 0 : index[dim]);
    index = source;
  } else if (auto slice = dyn_cast<stablehlo::SliceOp>(op)) {
    for (auto [i, start, stride] :
         llvm::zip_equal(index, slice.getStartIndices(), slice.getStrides()))
      i = start + i * stride;
  } else if (auto slice = dyn_cast<stablehlo::DynamicSliceOp>(op);
             slice && !views.getSameElementsSource(value, user)) {
    for (auto [i, start, size] : llvm::zip_equal(index, slice.getStartIndices(),
                                                 slice.getSliceSizes())) {
      std::optional<int64_t> constant = stablehlo::matchConstantInteger(start);
      // (A dynamic slice of several elements is the part of a rank.)
      loopStarts.push_back(constant || size != 1 ? Value() : start);
      i += constant.value_or(0);
    }
  } else if (!isa<stablehlo::ConvertOp, stablehlo::OptimizationBarrierOp>(op)) {
    Value source = views.getSameElementsSource(value, user);
    if (!source || shapeOf(source) != shapeOf(value))
      return false;
    value = source;
    return true;
  }
  value = op->getOperand(isa<stablehlo::OptimizationBarrierOp>(op)
                             ? cast<OpResult>(value).getResultNumber()
                             : 0);
  return true;
}

/// Returns true if an expression reads the value with this number.
bool Finder::reads(Value value, unsigned number, DenseMap<Value, bool> &known) {
  auto [it, inserted] = known.try_emplace(value, false);
  if (!inserted)
    return it->second;
  bool result = numbers.get(value) == number;
  Operation *op = value.getDefiningOp();
  if (!result) {
    if (Value source = views.getViewSource(value, user))
      result = reads(source, number, known);
    else if (op && stablehlo::worksByElement(op))
      result = llvm::any_of(op->getOperands(), [&](Value operand) {
        return reads(operand, number, known);
      });
  }
  return known[value] = result;
}

/// Goes from an element of an expression to the element that it reads of the
/// value with this number.
bool Finder::traceTo(Value &value, Index &index, unsigned number) {
  DenseMap<Value, bool> known;
  SmallVector<Value> loopStarts;
  while (numbers.get(value) != number) {
    Operation *op = value.getDefiningOp();
    if (op && stablehlo::worksByElement(op) && !isa<stablehlo::ConvertOp>(op)) {
      auto next = llvm::find_if(op->getOperands(), [&](Value operand) {
        return shapeOf(operand) == shapeOf(value) &&
               reads(operand, number, known);
      });
      if (next == op->operand_end())
        return false;
      value = *next;
    } else if (!stepToSource(value, index, loopStarts)) {
      return false;
    }
  }
  return true;
}

/// Goes from an element of a weight to that of the parameter that contains it.
bool Finder::traceToParameter(Value value, Index index, Value &parameter,
                              Index &at, SmallVectorImpl<int64_t> &layerDims) {
  layerDims.clear();
  SmallVector<Value> loopStarts;
  while (true) {
    auto arg = dyn_cast<BlockArgument>(value);
    if (arg && (arg.getOwner() == &function.getBody().front() ||
                origins.isCarriedParameter(arg)))
      break;
    if (!stepToSource(value, index, loopStarts))
      return false;
    // A slice of a slice of a stack does not belong to a loop over layers.
    for (auto [dim, start] : llvm::enumerate(loopStarts))
      if (start)
        layerDims.push_back(dim);
  }
  parameter = value;
  at = index;
  return origins.get(value) == Origin::Weight;
}

/// Returns the positions of channels 0, 1, ... in a parameter, as `place` finds
/// each one; nullopt if they are not evenly spaced.
template <typename Place>
std::optional<ParameterChannels> Finder::getChannels(int64_t count,
                                                     Place place) {
  ParameterChannels channels;
  Value parameter;
  SmallVector<Index> places(count);
  for (int64_t i = 0; i < count; ++i) {
    Value found;
    if (!place(i, found, places[i], channels.layers) ||
        (parameter && found != parameter))
      return std::nullopt;
    parameter = found;
  }
  ArrayRef<int64_t> shape = shapeOf(parameter);
  SmallVector<int64_t> sizes;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (llvm::any_of(places, [&](const Index &at) {
          return at[dim] != places.front()[dim];
        })) {
      channels.dims.push_back(dim);
      sizes.push_back(shape[dim]);
    }
  auto position = [&](int64_t i) {
    Index index;
    for (int64_t dim : channels.dims)
      index.push_back(places[i][dim]);
    return flatten(index, sizes);
  };
  if (count > 1)
    channels.stride = position(1) - position(0);
  for (int64_t i = 0; i < count; ++i)
    if (position(i) != position(0) + i * channels.stride)
      return std::nullopt;
  channels.start = places.front();
  BlockArgument argument = origins.getParameter(parameter);
  if (!argument)
    return std::nullopt;
  channels.path = getParameterPath(function, argument);
  return channels;
}

//===----------------------------------------------------------------------===//
// Units
//===----------------------------------------------------------------------===//

namespace {
/// The dimensions of a dot's weight and of its other operand.
struct DotSides {
  ArrayRef<int64_t> weightBatching, weightContracting;
  ArrayRef<int64_t> otherBatching, otherContracting;
  bool weightIsLhs;
};
} // namespace

static DotSides getSides(const DotInfo &info) {
  auto dims = getDot(&info).getDotDimensionNumbers();
  DotSides sides{dims.getRhsBatchingDimensions(),
                 dims.getRhsContractingDimensions(),
                 dims.getLhsBatchingDimensions(),
                 dims.getLhsContractingDimensions(), false};
  if (info.lhs == OperandKind::Weight) {
    std::swap(sides.weightBatching, sides.otherBatching);
    std::swap(sides.weightContracting, sides.otherContracting);
    sides.weightIsLhs = true;
  }
  return sides;
}

/// Returns the element of the weight that determines the column of a result's
/// element, with index 0 along the contraction. Returns nullopt if the result's
/// element does not belong to the first token.
static std::optional<Index> getWeightElement(const DotInfo &info,
                                             ArrayRef<int64_t> result) {
  DotSides sides = getSides(info);
  Value weight = getOperand(info, OperandKind::Weight);
  Value other = getOperand(info, OperandKind::Activation);
  Index element(shapeOf(weight).size(), 0);
  size_t at = 0;
  for (int64_t dim : sides.weightBatching)
    element[dim] = result[at++];
  SmallVector<int64_t> weightFree = stablehlo::getFreeDims(
      element.size(), sides.weightBatching, sides.weightContracting);
  size_t numTokenDims =
      stablehlo::getFreeDims(shapeOf(other).size(), sides.otherBatching,
                             sides.otherContracting)
          .size();
  auto takeTokens = [&]() {
    bool first = true;
    for (size_t i = 0; i < numTokenDims; ++i)
      first &= result[at++] == 0;
    return first;
  };
  bool first = sides.weightIsLhs || takeTokens();
  for (int64_t dim : weightFree)
    element[dim] = result[at++];
  if (sides.weightIsLhs)
    first = takeTokens();
  if (!first)
    return std::nullopt;
  return element;
}

/// Returns the activation that the values are a multiple of, or an empty name.
static StringRef matchMultiple(const Samples &values) {
  // All activations end close to their argument or to one.
  for (double end : {getSamplePoints().back(), 1.0}) {
    double factor = values.back() / end;
    if (factor == 0 || !std::isfinite(factor))
      continue;
    Samples parts;
    llvm::transform(values, parts.begin(),
                    [&](double value) { return value / factor; });
    if (StringRef name = matchActivation(parts); !name.empty())
      return name;
  }
  return "";
}

/// Finds the activation of the gate: `product` with a linear branch of one.
/// Returns an empty string or what is missing.
std::string Finder::findActivation(GatedUnit &unit, Value product,
                                   const Branch &gate) {
  Samples ones;
  ones.fill(1);
  auto variable = [&](Value value) -> std::optional<Samples> {
    std::optional<Branch> branch = matchBranch(value);
    if (!branch)
      return std::nullopt;
    return branch->number == gate.number ? getSamplePoints() : ones;
  };
  std::optional<Samples> values = Evaluator(views, user, variable).get(product);
  unit.activation = values ? matchActivation(*values).str() : "";
  StringRef multiple =
      values && unit.activation.empty() ? matchMultiple(*values) : "";
  if (!multiple.empty())
    return "the product has a constant factor besides " + multiple.str() +
           " of the gate and the linear branch";
  if (unit.activation.empty())
    return "the activation of the gate is none of silu, gelu, gelu_tanh, "
           "quick_gelu, relu, sigmoid and identity";
  return "";
}

/// The dimensions of the product and of the weight of the down layer that hold
/// the channels, and their sizes.
struct Finder::ChannelDims {
  SmallVector<int64_t> product, weight, sizes;

  /// Returns the index of a channel among `dims`, which is 0 along all others.
  static Index indexOf(int64_t channel, ArrayRef<int64_t> dims,
                       ArrayRef<int64_t> sizes, size_t rank) {
    Index index(rank, 0);
    for (auto [dim, at] : llvm::zip_equal(dims, unflatten(channel, sizes)))
      index[dim] = at;
    return index;
  }
  Index inProduct(int64_t channel, Value value) const {
    return indexOf(channel, product, sizes, shapeOf(value).size());
  }
  Index inWeight(int64_t channel, Value value) const {
    return indexOf(channel, weight, sizes, shapeOf(value).size());
  }
};

/// Finds the channels of the three weights. Returns an empty string or what is
/// missing.
std::string Finder::findWeights(GatedUnit &unit, Value product,
                                const Branch &gate, const Branch &linear,
                                const ChannelDims &dims) {
  const DotInfo &down = layers.getDots()[unit.down];
  auto downPlace = [&](int64_t i, Value &parameter, Index &at,
                       SmallVectorImpl<int64_t> &layerDims) {
    Value weight = getOperand(down, OperandKind::Weight);
    return traceToParameter(weight, dims.inWeight(i, weight), parameter, at,
                            layerDims);
  };
  auto branchPlace = [&](const Branch &branch) {
    return [&](int64_t i, Value &parameter, Index &at,
               SmallVectorImpl<int64_t> &layerDims) {
      Value value = product;
      Index index = dims.inProduct(i, product);
      if (!traceTo(value, index, branch.number) ||
          !traceTo(value, index, numbers.get(branch.dot->dot->getResult(0))))
        return false;
      std::optional<Index> element = getWeightElement(*branch.dot, index);
      return element &&
             traceToParameter(getOperand(*branch.dot, OperandKind::Weight),
                              *element, parameter, at, layerDims);
    };
  };
  auto missing = [](StringRef name) {
    return "the channels of the " + name.str() +
           " layer are no regular part of one parameter";
  };
  std::optional<ParameterChannels> found =
      getChannels(unit.channels, downPlace);
  if (!found)
    return missing("down");
  unit.downWeight = *found;
  found = getChannels(unit.channels, branchPlace(gate));
  if (!found)
    return missing("gate");
  unit.gateWeight = *found;
  found = getChannels(unit.channels, branchPlace(linear));
  if (!found)
    return missing("linear");
  unit.linearWeight = *found;
  return "";
}

/// Finds the channels of the bias of the linear branch, if it has one: the bias
/// is scaled with the branch. Returns an empty string or what is missing.
std::string Finder::findLinearBias(GatedUnit &unit, Value product,
                                   const Branch &linear,
                                   const ChannelDims &dims) {
  Value value = linear.value;
  while (value && !forward.contains(value.getDefiningOp())) {
    if (auto add = value.getDefiningOp<stablehlo::AddOp>()) {
      bool second = origins.get(add->getOperand(0)) == Origin::Weight;
      Value bias = add->getOperand(second ? 0 : 1);
      unsigned number = numbers.get(add);
      auto biasPlace = [&](int64_t i, Value &parameter, Index &at,
                           SmallVectorImpl<int64_t> &layerDims) {
        Value from = product;
        Index index = dims.inProduct(i, product);
        return traceTo(from, index, linear.number) &&
               traceTo(from, index, number) &&
               traceToParameter(bias, index, parameter, at, layerDims);
      };
      unit.linearBias = getChannels(unit.channels, biasPlace);
      if (!unit.linearBias)
        return "the bias of the linear branch is no regular part of one "
               "parameter";
      break;
    }
    auto slice = value.getDefiningOp<stablehlo::SliceOp>();
    value =
        slice ? slice->getOperand(0) : views.getSameElementsSource(value, user);
  }
  return "";
}

/// Proves that `product`, which is linear in `linear`, is that value times a
/// known activation of `gate`, and finds the channels of all three weights.
/// Returns an empty string or what is missing.
std::string Finder::prove(GatedUnit &unit, Value product, const Branch &gate,
                          const Branch &linear) {
  if (std::string missing = findActivation(unit, product, gate);
      !missing.empty())
    return missing;
  DotSides sides = getSides(layers.getDots()[unit.down]);
  ChannelDims dims;
  llvm::append_range(dims.product, sides.otherBatching);
  llvm::append_range(dims.product, sides.otherContracting);
  llvm::append_range(dims.weight, sides.weightBatching);
  llvm::append_range(dims.weight, sides.weightContracting);
  for (int64_t dim : dims.product)
    dims.sizes.push_back(shapeOf(product)[dim]);
  unit.channels = ShapedType::getNumElements(dims.sizes);
  if (std::string missing = findWeights(unit, product, gate, linear, dims);
      !missing.empty())
    return missing;
  return findLinearBias(unit, product, linear, dims);
}

/// Finds the dots of the unit's layer that read the product.
void Finder::addReaders(GatedUnit &unit, unsigned linear) {
  const DotInfo &down = layers.getDots()[unit.down];
  for (auto [i, info] : llvm::enumerate(layers.getDots())) {
    bool reads = info.lhs == OperandKind::Activation ||
                 info.rhs == OperandKind::Activation;
    if (!reads || !info.isLinearLayer() ||
        !llvm::is_contained(info.layers, down.layers.front()))
      continue;
    user = info.dot;
    Leaves leaves;
    collect(getOperand(info, OperandKind::Activation), leaves);
    Value read;
    for (Branch &branch : leaves.branches)
      if (branch.number == linear && branch.read.getParentRegion()->isAncestor(
                                         info.dot->getParentRegion()))
        read = branch.read;
    unit.readers.push_back({i, read});
  }
}

std::optional<GatedUnit> Finder::find(unsigned down) {
  const DotInfo &info = layers.getDots()[down];
  user = info.dot;
  Value product = getOperand(info, OperandKind::Activation);
  if (!isProduct(product))
    return std::nullopt;
  GatedUnit unit;
  unit.down = down;
  Leaves leaves;
  collect(product, leaves);
  if (leaves.branches.size() != 2) {
    unit.why = "the product reads the results of " +
               std::to_string(leaves.branches.size()) +
               " linear layers; expected two";
    return unit;
  }
  if (leaves.others) {
    unit.why = "the product reads something besides the results of two linear "
               "layers";
    return unit;
  }
  auto getInput = [&](const Branch &branch) {
    return numbers.get(views.getSameElementsRoot(
        getOperand(*branch.dot, OperandKind::Activation), branch.dot->dot));
  };
  if (getInput(leaves.branches[0]) != getInput(leaves.branches[1])) {
    unit.why = "its two linear layers have different inputs";
    return unit;
  }
  // A product that is linear in both branches is its own gate.
  unit.why = "the product is linear in neither of its two branches";
  for (auto [gate, linear] : {std::pair(0, 1), std::pair(1, 0)}) {
    DenseMap<Value, DependenceKind> known;
    if (getDependenceKind(product, leaves.branches[linear].number, known) !=
        DependenceKind::Linear)
      continue;
    GatedUnit candidate = unit;
    candidate.why = prove(candidate, product, leaves.branches[gate],
                          leaves.branches[linear]);
    if (candidate.isProven()) {
      candidate.gate = leaves.branches[gate].value;
      candidate.linear = leaves.branches[linear].value;
      addReaders(candidate, leaves.branches[linear].number);
      return candidate;
    }
    unit.why = candidate.why;
  }
  return unit;
}

std::vector<GatedUnit> Finder::run() {
  std::vector<GatedUnit> units;
  for (auto [i, info] : llvm::enumerate(layers.getDots()))
    if (info.role == DotRole::Forward && !info.recomputed)
      if (std::optional<GatedUnit> unit = find(i))
        units.push_back(*unit);
  return units;
}

std::vector<GatedUnit> fp8::findGatedUnits(func::FuncOp function,
                                           const LinearLayers &layers) {
  if (function.isExternal())
    return {};
  return Finder(function, layers).run();
}
