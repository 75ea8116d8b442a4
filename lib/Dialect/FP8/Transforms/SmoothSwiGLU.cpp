//===- SmoothSwiGLU.cpp - Scaling the product of a gated unit -------------===//
//
// The product h of a gated unit has outliers that one scale for the whole
// tensor cannot represent. h is divided by a factor s for each channel or each
// token before it is quantized, and s is multiplied in again where that costs
// nothing:
//
//            channel                     token
//   forward  y  = (h/s) · (s w)          y  = s ((h/s) · w)
//   dgrad    dh = (dy · (s w)^T) / s     dh = ((s dy) · w^T) / s
//   wgrad    dw = s ((h/s)^T · dy)       dw = (h/s)^T · (s dy)
//
// If each rank has some of the channels (shard_map), a channel's factor is
// local to its rank. A token has one factor on all ranks that share it: those
// over which the results y are summed.
//
// Each line is an identity for every s, whatever the other dots do; equal
// factors only let the dots share quantized operands. With powers of two all of
// it is exact in f32 and bf16. Units of f16, where s w may be subnormal, are
// not smoothed.
//
//===----------------------------------------------------------------------===//

#include "Decider.h"
#include "DelayedScaling.h"
#include "EffectiveRecipe.h"
#include "LayerSlots.h"
#include "LayerStacks.h"
#include "OperandRows.h"
#include "Quantizer.h"
#include "RankGroups.h"
#include "SmallTensors.h"

#include "fp8/Analysis/LinearLayers/GatedUnits.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/IR/DotOperands.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8SMOOTHSWIGLU
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Views that preserve some dimensions
//===----------------------------------------------------------------------===//

namespace {

using Dims = SmallVector<int64_t>;

/// A value as a view of another one. `dims` are dimensions that both have, as
/// dimensions of the root.
struct View {
  Value root;
  Dims dims;
  /// The ops from the value back to its root, without these two.
  SmallVector<OpResult> steps;
  /// The dimensions of the root along which slices cut one layer off, the
  /// outermost first.
  Dims layers;
};

/// The ops that a view may pass through.
enum class Through {
  Layouts, ///< Reshapes, transposes, barriers.
  Layers   ///< Also conversions, and slices of one layer.
};

} // namespace

/// Returns the dimensions of the source of a reshape that equal `dims` of its
/// result; none if there are no such dimensions.
static std::optional<Dims> mapReshape(ArrayRef<int64_t> source,
                                      ArrayRef<int64_t> result,
                                      ArrayRef<int64_t> dims) {
  auto inner = [](ArrayRef<int64_t> shape, int64_t dim) {
    return llvm::product_of(shape.drop_front(dim + 1));
  };
  Dims mapped;
  for (int64_t dim : dims) {
    auto same =
        llvm::find_if(llvm::seq<int64_t>(source.size()), [&](int64_t d) {
          return source[d] == result[dim] &&
                 inner(source, d) == inner(result, dim);
        });
    if (same == llvm::seq<int64_t>(source.size()).end())
      return std::nullopt;
    mapped.push_back(*same);
  }
  return mapped;
}

/// Returns the dimensions of the operand of a view that are `dims` of its
/// result; none if it is not a view that `through` allows.
static std::optional<Dims> mapStep(OpResult result, ArrayRef<int64_t> dims,
                                   Through through) {
  Operation *op = result.getOwner();
  if (isa<stablehlo::OptimizationBarrierOp>(op))
    return Dims(dims);
  if (auto transpose = dyn_cast<stablehlo::TransposeOp>(op))
    return llvm::map_to_vector(
        dims, [&](int64_t dim) { return transpose.getPermutation()[dim]; });
  if (isa<stablehlo::ReshapeOp>(op))
    return mapReshape(shapeOf(op->getOperand(0)), shapeOf(result), dims);
  if (through == Through::Layouts)
    return std::nullopt;
  if (isa<stablehlo::ConvertOp>(op) &&
      isa<FloatType>(getElementTypeOrSelf(op->getOperand(0).getType())))
    return Dims(dims);
  auto slice = dyn_cast<stablehlo::DynamicSliceOp>(op);
  if (slice && slice.getSliceSizes().front() == 1 &&
      slice.getSliceSizes().drop_front() ==
          shapeOf(slice.getOperand()).drop_front())
    return Dims(dims);
  return std::nullopt;
}

static View getView(Value value, ArrayRef<int64_t> dims, Through through) {
  View view{value, Dims(dims), {}, {}};
  while (auto result = dyn_cast<OpResult>(view.root)) {
    Dims tracked(view.dims);
    llvm::append_range(tracked, view.layers);
    std::optional<Dims> mapped = mapStep(result, tracked, through);
    if (!mapped)
      break;
    view.dims.assign(mapped->begin(), mapped->begin() + view.dims.size());
    view.layers.assign(mapped->begin() + view.dims.size(), mapped->end());
    if (isa<stablehlo::DynamicSliceOp>(result.getOwner()))
      view.layers.insert(view.layers.begin(), 0);
    view.steps.push_back(result);
    Operation *op = result.getOwner();
    view.root = op->getOperand(isa<stablehlo::OptimizationBarrierOp>(op)
                                   ? result.getResultNumber()
                                   : 0);
  }
  return view;
}

/// Returns the layout ops that lead from a value of this shape to `value`, the
/// last one first; none if there is no such value.
static std::optional<SmallVector<Operation *>>
getLayoutsFrom(ArrayRef<int64_t> shape, Value value) {
  SmallVector<Operation *> layouts;
  while (shapeOf(value) != shape) {
    Value source = getLayoutSource(value);
    if (!source || value.getDefiningOp<WindowsOp>())
      return std::nullopt;
    if (!isa<stablehlo::OptimizationBarrierOp>(value.getDefiningOp()))
      layouts.push_back(value.getDefiningOp());
    value = source;
  }
  return layouts;
}

//===----------------------------------------------------------------------===//
// Dots
//===----------------------------------------------------------------------===//

namespace {
/// An operand of a dot, with its dimensions by what the dot does with them.
struct DotOperand {
  Value value;
  ArrayRef<int64_t> batching, contracting;
  Dims free;
  /// The dimension of the result that each of its dimensions becomes, or -1.
  Dims inResult;
};
} // namespace

static DotOperand getDotOperand(stablehlo::DotGeneralOp dot, bool lhs) {
  stablehlo::OperandDims dims = stablehlo::getOperandDims(dot, lhs ? 0 : 1);
  DotOperand side;
  side.value = lhs ? dot.getLhs() : dot.getRhs();
  side.batching = dims.batching;
  side.contracting = dims.contracting;
  side.free = dims.free;
  side.inResult = stablehlo::getResultDims(dot, lhs ? 0 : 1);
  return side;
}

/// Returns the dimension of the other operand that a dimension of an operand is
/// paired with, or -1.
static int64_t getPartner(const DotOperand &side, const DotOperand &other,
                          int64_t dim) {
  for (auto [own, partner] : llvm::zip_equal(side.batching, other.batching))
    if (own == dim)
      return partner;
  for (auto [own, partner] :
       llvm::zip_equal(side.contracting, other.contracting))
    if (own == dim)
      return partner;
  return -1;
}

static Dims getResultDims(const DotOperand &side, ArrayRef<int64_t> dims) {
  return llvm::map_to_vector(dims,
                             [&](int64_t dim) { return side.inResult[dim]; });
}

/// Sorts `dims` by `places`, their indices in the root of a view.
static Dims sortBy(ArrayRef<int64_t> dims, ArrayRef<int64_t> places) {
  SmallVector<std::pair<int64_t, int64_t>> pairs;
  for (auto [dim, place] : llvm::zip_equal(dims, places))
    pairs.push_back({place, dim});
  llvm::sort(pairs);
  return llvm::map_to_vector(pairs, [](auto pair) { return pair.second; });
}

static Dims sizesOf(Value value, ArrayRef<int64_t> dims) {
  return llvm::map_to_vector(dims,
                             [&](int64_t dim) { return shapeOf(value)[dim]; });
}

static Dims unite(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  Dims dims(a);
  llvm::append_range(dims, b);
  return dims;
}

//===----------------------------------------------------------------------===//
// The rewriting
//===----------------------------------------------------------------------===//

namespace {

/// s and 1/s.
using Factor = DelayedScaling::Scale;

/// Returns the name of the state of a unit's factors.
std::string getStateName(const DotInfo &down) {
  return (kStatePrefix + down.layer + ".smooth").str();
}

/// A smoothed gated unit.
struct Unit {
  const GatedUnit *unit;
  const DotInfo *down;
  std::string state;
  /// The exchange that sums the results of ranks that have some of the channels
  /// each, or null.
  ExchangeOp sum;
  /// The dimensions of the weight's parameter that the factor has, too.
  Dims weightDims;
  /// The factors made so far, in order.
  SmallVector<Factor> factors;
  /// The products that forward dots read, with the factors they were rescaled
  /// by.
  SmallVector<std::pair<Value, Factor>> products;
};

class Smoother {
public:
  Smoother(func::FuncOp function, const Recipe &recipe, bool allDots)
      : function(function), recipe(recipe), smooth(recipe.smooth),
        allDots(allDots), decider(recipe, function),
        builder(function.getContext()), dominance(function), delayed(function) {
    function.walk([&](Operation *op) { positions[op] = positions.size() + 1; });
  }

  /// Smooths the units that it can. Calls `report` once for each gated unit.
  LogicalResult
  run(function_ref<void(const DotInfo &, const GatedUnitVerdict &)> report);

private:
  bool perChannel() const { return smooth.granularity == Granularity::Channel; }
  const DotInfo &getDot(unsigned index) const {
    return decider.getLayers().getDots()[index];
  }
  std::string getObstacle(const GatedUnit &unit);
  LogicalResult decide();
  void smoothUnit(Unit &unit);

  void smoothForward(Unit &unit, const DotInfo &info, Value linear);
  void smoothWgrad(Unit &unit, const DotInfo &info, Value linear);
  bool smoothDgrad(Unit &unit, const DotInfo &info);

  std::optional<Factor> getFactor(Unit &unit, stablehlo::DotGeneralOp dot,
                                  const View &product, Value linear,
                                  ArrayRef<LayerSlot> slots, bool original);
  std::optional<Factor> readState(const Unit &unit, Block *block,
                                  ArrayRef<LayerSlot> slots,
                                  ArrayRef<int64_t> shape);
  std::optional<Factor> findFactor(Unit &unit, Operation *dot,
                                   ArrayRef<LayerSlot> slots,
                                   ArrayRef<int64_t> shape);
  Value arrangeAs(Value product, Value linear);
  ComputeScaleOp measure(const Unit &unit, const View &product, Value linear,
                         OperandRows rows);
  OperandRecipe getStateRecipe() const;
  std::optional<Factor> storeSmoothed(Unit &unit, const View &product,
                                      ArrayRef<LayerSlot> slots);

  std::pair<Operation *, unsigned> getPosition(Operation *op) const;
  bool isBefore(Operation *first, Operation *second) const;
  bool dominates(Value value, Operation *op);
  void forgetMoved(Operation *dot);
  void setInsertionPointAfter(Value a, Value b);
  Value rescale(Value value, Value factor, ArrayRef<int64_t> dims);
  Value rescaleView(const View &view, Value factor, ArrayRef<int64_t> dims);
  Value rescaleOperand(const DotOperand &side, Value factor,
                       ArrayRef<int64_t> dims);
  Value rescaleWeight(Unit &unit, const DotOperand &side, const Factor &factor,
                      ArrayRef<LayerSlot> slots, ArrayRef<int64_t> dims);
  SmallVector<LayerSlot> getSlots(const DotInfo &info) const;
  void rescaleResult(stablehlo::DotGeneralOp dot, Value factor,
                     ArrayRef<int64_t> dims);
  GatedUnitVerdict describe(const GatedUnit &unit, StringRef why);

  func::FuncOp function;
  const Recipe &recipe;
  const SmoothRecipe &smooth;
  bool allDots;
  Decider decider;
  IRRewriter builder;
  DominanceInfo dominance;
  /// The positions of the ops that the function had before. (A block numbers
  /// all of its ops again when an inserted one is compared with another.)
  DenseMap<Operation *, unsigned> positions;
  DelayedScaling delayed;
  LayerLoops layerLoops;
  /// The dots, by index, that the recipe wants to be smoothed, and those that
  /// have been smoothed.
  llvm::BitVector wanted, done;
  /// The existing rescaled values, by value and factor, with their views.
  DenseMap<std::pair<Value, Value>, Value> rescaled;
  /// The factors read from states.
  struct StateRead {
    std::string state;
    Block *block;
    SmallVector<LayerSlot> slots;
    Factor factor;
  };
  std::vector<StateRead> reads;
};

} // namespace

/// Returns the last op at or before `op` that the function had before, and its
/// position; null and 0 if there is none.
std::pair<Operation *, unsigned> Smoother::getPosition(Operation *op) const {
  for (; op; op = op->getPrevNode())
    if (auto known = positions.find(op); known != positions.end())
      return *known;
  return {nullptr, 0};
}

/// Returns true if `first` comes before `second` in their block.
bool Smoother::isBefore(Operation *first, Operation *second) const {
  auto [firstOld, firstPosition] = getPosition(first);
  auto [secondOld, secondPosition] = getPosition(second);
  if (firstOld != secondOld)
    return firstPosition < secondPosition;
  return first == firstOld ||
         (second != secondOld && first->isBeforeInBlock(second));
}

/// Returns true if `value` is known before `op`.
bool Smoother::dominates(Value value, Operation *op) {
  Operation *def = value.getDefiningOp();
  return def && def->getBlock() == op->getBlock()
             ? isBefore(def, op)
             : dominance.properlyDominates(value, op);
}

/// Forgets the positions of ops that moved from behind `dot` to before it.
void Smoother::forgetMoved(Operation *dot) {
  for (Operation *op = dot->getPrevNode(); op; op = op->getPrevNode()) {
    auto known = positions.find(op);
    if (known == positions.end())
      continue;
    if (known->second < positions.lookup(dot))
      return;
    positions.erase(known);
  }
}

/// Sets the insertion point after the definitions of both values.
void Smoother::setInsertionPointAfter(Value a, Value b) {
  Operation *first = a.getDefiningOp(), *second = b.getDefiningOp();
  if (!first)
    builder.setInsertionPointAfterValue(b);
  else if (!second)
    builder.setInsertionPointAfterValue(a);
  else if (first->getBlock() == second->getBlock()
               ? isBefore(first, second)
               : dominance.properlyDominates(first, second))
    builder.setInsertionPointAfter(second);
  else
    builder.setInsertionPointAfter(first);
}

Value Smoother::rescale(Value value, Value factor, ArrayRef<int64_t> dims) {
  Value &result = rescaled[{value, factor}];
  if (!result) {
    setInsertionPointAfter(value, factor);
    result = RescaleOp::create(builder, value.getLoc(), value.getType(), value,
                               factor, builder.getDenseI64ArrayAttr(dims));
  }
  return result;
}

/// Returns the same view of the rescaled root; `dims` are dimensions of the
/// root.
Value Smoother::rescaleView(const View &view, Value factor,
                            ArrayRef<int64_t> dims) {
  Value source = rescale(view.root, factor, dims);
  for (OpResult step : llvm::reverse(view.steps)) {
    // Barriers order the original values.
    if (isa<stablehlo::OptimizationBarrierOp>(step.getOwner()))
      continue;
    Value &result = rescaled[{step, source}];
    if (!result) {
      setInsertionPointAfter(step, source);
      IRMapping mapping;
      mapping.map(step.getOwner()->getOperand(0), source);
      result = builder.clone(*step.getOwner(), mapping)->getResult(0);
    }
    source = result;
  }
  return source;
}

/// Returns the operand of a dot, rescaled where its views begin, so that other
/// dots share it. `dims` are dimensions of the operand.
Value Smoother::rescaleOperand(const DotOperand &side, Value factor,
                               ArrayRef<int64_t> dims) {
  View view = getView(side.value, dims, Through::Layouts);
  return rescaleView(view, factor, view.dims);
}

/// Returns what a dot shows about the layer it belongs to.
static LayerLoops::Evidence getEvidence(const DotInfo &info) {
  Value weight = info.lhs == OperandKind::Weight   ? info.dot->getOperand(0)
                 : info.rhs == OperandKind::Weight ? info.dot->getOperand(1)
                                                   : Value();
  return LayerLoops::getEvidence(weight, info.dot->getResult(0));
}

/// Returns the layers of the factor that a dot needs.
SmallVector<LayerSlot> Smoother::getSlots(const DotInfo &info) const {
  return layerLoops.getSlots(info.dot->getBlock(), getEvidence(info));
}

/// Whether the layers that a view cuts off its root are `slots`, in order.
static bool cutsSlots(const View &view, ArrayRef<LayerSlot> slots) {
  for (OpResult step : llvm::reverse(view.steps)) {
    auto slice = dyn_cast<stablehlo::DynamicSliceOp>(step.getOwner());
    if (!slice)
      continue;
    std::optional<LayerSlot> slot = matchSlot(slice.getStartIndices().front(),
                                              slice.getOperand().getType());
    if (slots.empty() || !slot || !(*slot == slots.front()))
      return false;
    slots = slots.drop_front();
  }
  return slots.empty();
}

/// Returns the rescaled weights. All layers are rescaled outside of all loops
/// if the factors come from the state; otherwise weights are rescaled where
/// they are read.
Value Smoother::rescaleWeight(Unit &unit, const DotOperand &side,
                              const Factor &factor, ArrayRef<LayerSlot> slots,
                              ArrayRef<int64_t> dims) {
  View view = getView(side.value, dims, Through::Layers);
  Block *entry = &function.getBody().front();
  auto parameter = dyn_cast<BlockArgument>(view.root);
  if (parameter && parameter.getOwner() == entry && cutsSlots(view, slots))
    if (Dims all = unite(view.layers, view.dims);
        std::optional<Factor> factors =
            readState(unit, entry, {}, sizesOf(parameter, all)))
      return rescaleView(view, factors->scale, all);
  return rescaleOperand(side, factor.scale, dims);
}

void Smoother::rescaleResult(stablehlo::DotGeneralOp dot, Value factor,
                             ArrayRef<int64_t> dims) {
  builder.setInsertionPointAfter(dot);
  Value result = dot->getResult(0);
  auto rescaled =
      RescaleOp::create(builder, dot.getLoc(), result.getType(), result, factor,
                        builder.getDenseI64ArrayAttr(dims));
  result.replaceAllUsesExcept(rescaled, rescaled);
}

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

/// Returns how the factor is scaled, as settings of an operand. With the format
/// of the product, h/s lies just below the largest code.
OperandRecipe Smoother::getStateRecipe() const {
  OperandRecipe state;
  state.format =
      recipe.forward ? recipe.forward->activation.format : Format::F8E4M3FN;
  state.scale = smooth.scale;
  state.margin = smooth.margin;
  state.scaling = smooth.scaling;
  state.history = smooth.history;
  state.algorithm = smooth.algorithm;
  state.initial = smooth.initial;
  return state;
}

/// Raises the amaxes of channels to at least 2^-8 of the largest one. The
/// factors move range from the product to the weight, and the 14 octaves of
/// E4M3 have to hold both the range of the weight's rows and that within a row.
static Value limitRange(OpBuilder &builder, Location loc, Value amax) {
  auto type = cast<RankedTensorType>(amax.getType());
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Value largest = AmaxOp::create(builder, loc, scalar, amax,
                                 /*tile=*/DenseI64ArrayAttr());
  Value part = makeSplat(builder, loc, scalar, 0x1p-8);
  Value least = stablehlo::MulOp::create(builder, loc, largest, part);
  least = stablehlo::BroadcastInDimOp::create(builder, loc, type, least,
                                              builder.getDenseI64ArrayAttr({}));
  return stablehlo::MaxOp::create(builder, loc, amax, least);
}

/// Whether all ranks that reach `sum` also reach `block`, equally often: no
/// branch is around the block but not around `sum`.
static bool isWhereRanksMeet(Block *block, ExchangeOp sum) {
  for (Operation *op = block->getParentOp(); op; op = op->getParentOp())
    if (stablehlo::isBranch(op) && !op->isProperAncestor(sum))
      return false;
  return true;
}

/// Computes the factor of a product itself: from its channels, or from the
/// tokens of its linear branch.
ComputeScaleOp Smoother::measure(const Unit &unit, const View &product,
                                 Value linear, OperandRows rows) {
  Value measured = perChannel() ? product.root : linear;
  Location loc = measured.getLoc();
  builder.setInsertionPointAfterValue(measured);
  SmallVector<int64_t> tile(shapeOf(measured).size(), ScaledType::kWhole);
  SmallVector<int64_t> shape;
  for (int64_t dim : product.dims) {
    tile[dim] = 1;
    shape.push_back(shapeOf(measured)[dim]);
  }
  OperandRecipe state = getStateRecipe();
  FloatType format = getFormatType(state.format, builder.getContext());
  Value amax = AmaxOp::create(
      builder, loc, measured,
      ScaledType::get(RankedTensorType::get(shapeOf(measured), format), tile,
                      builder.getF32Type()));
  if (perChannel() && rows != OperandRows::None &&
      state.scaling == Scaling::Current)
    amax = reduceAmaxOverRanks(builder, amax, "of channels");
  // (Histories are reduced over all ranks anyway.)
  if (ExchangeOp sum = unit.sum; sum && !perChannel() &&
                                 state.scaling == Scaling::Current &&
                                 isWhereRanksMeet(builder.getBlock(), sum))
    amax = reduceMaxOverGroups(builder, amax, sum.getRanks(),
                               builder.getStringAttr("amax of tokens"),
                               "ranks have some channels of each token");
  if (shapeOf(amax) != ArrayRef(shape))
    amax = stablehlo::ReshapeOp::create(
        builder, loc, RankedTensorType::get(shape, builder.getF32Type()), amax);
  if (perChannel())
    amax = limitRange(builder, loc, amax);
  return ComputeScaleOp::create(builder, loc, amax, state.scale, format,
                                state.margin);
}

/// Reads the factor of some layers from the state, at the start of a block.
std::optional<Factor> Smoother::readState(const Unit &unit, Block *block,
                                          ArrayRef<LayerSlot> slots,
                                          ArrayRef<int64_t> shape) {
  if (smooth.scaling != Scaling::Delayed)
    return std::nullopt;
  auto known = llvm::find_if(reads, [&](const StateRead &read) {
    return read.state == unit.state && read.block == block &&
           ArrayRef(read.slots) == slots && shapeOf(read.factor.scale) == shape;
  });
  if (known != reads.end())
    return known->factor;
  builder.setInsertionPointToStart(block);
  std::optional<Factor> factor =
      delayed.read(builder, unit.down->dot->getLoc(), unit.state, slots, shape);
  if (factor)
    reads.push_back({unit.state, block, llvm::to_vector(slots), *factor});
  return factor;
}

/// Returns the linear branch in the layout of the product; null if no layout
/// ops lead there.
Value Smoother::arrangeAs(Value product, Value linear) {
  std::optional<SmallVector<Operation *>> layouts =
      getLayoutsFrom(shapeOf(linear), product);
  if (!layouts)
    return nullptr;
  builder.setInsertionPointAfterValue(linear);
  for (Operation *layout : llvm::reverse(*layouts)) {
    IRMapping mapping;
    mapping.map(layout->getOperand(0), linear);
    Operation *copy = builder.clone(*layout, mapping);
    copy->getResult(0).setType(
        cast<RankedTensorType>(copy->getResult(0).getType())
            .clone(getElementTypeOrSelf(linear.getType())));
    linear = copy->getResult(0);
  }
  return linear;
}

/// Returns a factor of the unit that is available at the dot: from the state,
/// or one made so far. (A unit that is applied to two lengths has factors of
/// two shapes for its tokens.)
std::optional<Factor> Smoother::findFactor(Unit &unit, Operation *dot,
                                           ArrayRef<LayerSlot> slots,
                                           ArrayRef<int64_t> shape) {
  if (std::optional<Factor> factor =
          readState(unit, dot->getBlock(), slots, shape))
    return factor;
  for (const Factor &factor : llvm::reverse(unit.factors))
    if (shapeOf(factor.scale) == shape && dominates(factor.scale, dot) &&
        dominates(factor.quantizer, dot))
      return factor;
  // The factors of a product that the backward pass recomputes may come after
  // the dot.
  for (Factor &factor : unit.factors)
    if (shapeOf(factor.scale) == shape &&
        factor.scale.getParentBlock() == dot->getBlock() &&
        succeeded(moveValueDefinitions(
            builder, {factor.scale, factor.quantizer}, dot, dominance))) {
      forgetMoved(dot);
      return factor;
    }
  return std::nullopt;
}

/// Returns the factor that `dot` uses for the product it reads. Any factor of
/// the unit is correct; the forward pass's, if it is visible, saves measuring
/// the product again.
std::optional<Factor> Smoother::getFactor(Unit &unit,
                                          stablehlo::DotGeneralOp dot,
                                          const View &product, Value linear,
                                          ArrayRef<LayerSlot> slots,
                                          bool original) {
  Dims shape = sizesOf(product.root, product.dims);
  if (!original)
    if (std::optional<Factor> factor = findFactor(unit, dot, slots, shape))
      return factor;
  if (!perChannel()) {
    linear = linear ? arrangeAs(product.root, linear) : Value();
    if (!linear)
      return std::nullopt;
  }
  OperandRows rows = std::max(getOperandRows(dot, 0), getOperandRows(dot, 1));
  ComputeScaleOp scale = measure(unit, product, linear, rows);
  Factor factor{scale.getScale(), scale.getQuantizer()};
  if (original && smooth.scaling == Scaling::Delayed) {
    OperandRecipe state = getStateRecipe();
    if (state.initial == InitialScale::One) {
      delayed.record(unit.state, slots, state, scale);
      factor = *readState(unit, dot->getBlock(), slots, shape);
    } else {
      factor = delayed.get(builder, unit.state, slots, state, scale);
    }
  }
  unit.factors.push_back(factor);
  return factor;
}

//===----------------------------------------------------------------------===//
// Stored products
//===----------------------------------------------------------------------===//

/// A slice of a stack that nothing else reads.
namespace {
struct StoredSlot {
  stablehlo::WhileOp loop;
  LayerStack stack;
};
} // namespace

static std::optional<StoredSlot> matchStored(Value value) {
  auto slice = value.getDefiningOp<stablehlo::DynamicSliceOp>();
  auto result = slice ? dyn_cast<OpResult>(slice.getOperand()) : OpResult();
  auto loop = result ? dyn_cast<stablehlo::WhileOp>(result.getOwner())
                     : stablehlo::WhileOp();
  std::optional<LayerStack> stack;
  if (loop && result.hasOneUse())
    stack = matchLayerStack(loop, result.getResultNumber());
  if (!stack)
    return std::nullopt;
  return StoredSlot{loop, *stack};
}

/// If the backward loop reads a product that the forward loop has stored, makes
/// the forward loop store the rescaled product instead, so that nothing has to
/// be rescaled before it is quantized. Returns the factor as the backward loop
/// can read it.
std::optional<Factor> Smoother::storeSmoothed(Unit &unit, const View &product,
                                              ArrayRef<LayerSlot> slots) {
  std::optional<StoredSlot> slot = matchStored(product.root);
  if (!slot)
    return std::nullopt;
  auto stored = llvm::find_if(unit.products, [&](const auto &entry) {
    return entry.first == slot->stack.getValue();
  });
  if (stored == unit.products.end())
    return std::nullopt;
  bool readOnce = product.root.hasOneUse();
  for (OpResult step : product.steps)
    readOnce &= step.hasOneUse();
  if (!readOnce)
    return std::nullopt;
  Value smoothed = rescaled.lookup({stored->first, stored->second.quantizer});
  stablehlo::DynamicUpdateSliceOp update = slot->stack.update;
  stablehlo::DynamicSliceOp slice = slot->stack.slices.front();
  builder.setInsertionPoint(update);
  update->setOperand(
      1, stablehlo::ReshapeOp::create(builder, smoothed.getLoc(),
                                      update.getUpdate().getType(), smoothed));
  Block *block = slice->getBlock();
  std::optional<Factor> factor;
  if (llvm::all_of(slots, [&](const LayerSlot &layer) {
        return isAround(layer, block);
      }))
    factor = readState(unit, block, slots, shapeOf(stored->second.scale));
  if (!factor) {
    unsigned carry = slot->loop->getNumResults();
    positions.erase(slot->loop); // it is replaced
    stablehlo::WhileOp loop = addParallelStacks(
        slot->loop, update, {stored->second.scale, stored->second.quantizer});
    builder.setInsertionPoint(slice);
    factor =
        Factor{readParallelSlot(builder, slice, loop->getResult(carry)),
               readParallelSlot(builder, slice, loop->getResult(carry + 1))};
  }
  unit.factors.push_back(*factor);
  return factor;
}

//===----------------------------------------------------------------------===//
// The three dots
//===----------------------------------------------------------------------===//

void Smoother::smoothForward(Unit &unit, const DotInfo &info, Value linear) {
  auto dot = cast<stablehlo::DotGeneralOp>(info.dot);
  bool lhs = info.lhs == OperandKind::Activation;
  DotOperand product = getDotOperand(dot, lhs),
             weight = getDotOperand(dot, !lhs);
  Dims dims = perChannel() ? unite(product.batching, product.contracting)
                           : unite(product.batching, product.free);
  dims = sortBy(dims, getView(product.value, dims, Through::Layouts).dims);
  View view = getView(product.value, dims, Through::Layouts);
  SmallVector<LayerSlot> slots = getSlots(info);
  std::optional<Factor> factor =
      getFactor(unit, dot, view, linear, slots, !info.recomputed);
  if (!factor)
    return;
  Value smoothed = rescaleView(view, factor->quantizer, view.dims);
  unit.products.push_back({view.root, *factor});
  if (perChannel()) {
    Dims weightDims = llvm::map_to_vector(
        dims, [&](int64_t dim) { return getPartner(product, weight, dim); });
    if (unit.weightDims.empty())
      unit.weightDims = getView(weight.value, weightDims, Through::Layers).dims;
    dot->setOperand(lhs ? 1 : 0,
                    rescaleWeight(unit, weight, *factor, slots, weightDims));
  } else {
    rescaleResult(dot, factor->scale, getResultDims(product, dims));
  }
  dot->setOperand(lhs ? 0 : 1, smoothed);
}

void Smoother::smoothWgrad(Unit &unit, const DotInfo &info, Value linear) {
  auto dot = cast<stablehlo::DotGeneralOp>(info.dot);
  bool lhs = info.lhs == OperandKind::Activation;
  DotOperand product = getDotOperand(dot, lhs),
             gradient = getDotOperand(dot, !lhs);
  Dims dims = perChannel() ? unite(product.batching, product.free)
                           : unite(product.batching, product.contracting);
  dims = sortBy(dims, getView(product.value, dims, Through::Layouts).dims);
  View view = getView(product.value, dims, Through::Layouts);
  SmallVector<LayerSlot> slots = getSlots(info);
  std::optional<Factor> factor = storeSmoothed(unit, view, slots);
  Value smoothed = product.value;
  if (!factor) {
    factor = getFactor(unit, dot, view, linear, slots, /*original=*/false);
    if (!factor)
      return;
    smoothed = rescaleView(view, factor->quantizer, view.dims);
  }
  if (perChannel()) {
    rescaleResult(dot, factor->scale, getResultDims(product, dims));
  } else {
    Dims gradientDims = llvm::map_to_vector(
        dims, [&](int64_t dim) { return getPartner(product, gradient, dim); });
    dot->setOperand(lhs ? 1 : 0,
                    rescaleOperand(gradient, factor->scale, gradientDims));
  }
  dot->setOperand(lhs ? 0 : 1, smoothed);
}

/// Returns false if the unit has no factors for this dot. (Another application
/// of the layer may have them.)
bool Smoother::smoothDgrad(Unit &unit, const DotInfo &info) {
  auto dot = cast<stablehlo::DotGeneralOp>(info.dot);
  bool lhs = info.lhs == OperandKind::Weight;
  DotOperand weight = getDotOperand(dot, lhs),
             gradient = getDotOperand(dot, !lhs);
  SmallVector<LayerSlot> slots = getSlots(info);
  auto rescaleResultBy = [&](const Factor &factor, const DotOperand &side,
                             ArrayRef<int64_t> dims) {
    rescaleResult(dot, factor.quantizer, getResultDims(side, dims));
  };
  if (perChannel()) {
    // The channels in the order of the factor's dimensions.
    Dims dims = unite(weight.batching, weight.free);
    Dims places = getView(weight.value, dims, Through::Layers).dims;
    if (!std::is_permutation(places.begin(), places.end(),
                             unit.weightDims.begin(), unit.weightDims.end()))
      return false;
    Dims order = llvm::map_to_vector(places, [&](int64_t place) -> int64_t {
      return llvm::find(unit.weightDims, place) - unit.weightDims.begin();
    });
    dims = sortBy(dims, order);
    std::optional<Factor> factor =
        findFactor(unit, dot, slots, sizesOf(weight.value, dims));
    if (!factor)
      return false;
    dot->setOperand(lhs ? 0 : 1,
                    rescaleWeight(unit, weight, *factor, slots, dims));
    rescaleResultBy(*factor, weight, dims);
    return true;
  }
  Dims dims = unite(gradient.batching, gradient.free);
  dims = sortBy(dims, getView(gradient.value, dims, Through::Layouts).dims);
  std::optional<Factor> factor =
      findFactor(unit, dot, slots, sizesOf(gradient.value, dims));
  if (!factor)
    return false;
  Value smoothed = rescaleOperand(gradient, factor->scale, dims);
  dot->setOperand(lhs ? 1 : 0, smoothed);
  rescaleResultBy(*factor, gradient, dims);
  return true;
}

//===----------------------------------------------------------------------===//
// Units
//===----------------------------------------------------------------------===//

/// Finds out which dots the recipe wants in FP8.
LogicalResult Smoother::decide() {
  ArrayRef<DotInfo> dots = decider.getLayers().getDots();
  wanted.resize(dots.size(), allDots);
  done.resize(dots.size());
  for (auto [i, info] : llvm::enumerate(dots)) {
    if (info.isLinearLayer())
      layerLoops.add(getEvidence(info));
    if (!info.isLinearLayer() || allDots)
      continue;
    FailureOr<DotDecision> decision = decider.decide(info);
    if (failed(decision))
      return failure();
    wanted[i] = decision->kind == Verdict::FP8;
  }
  return success();
}

/// Returns why a unit is not smoothed; empty if it can be.
std::string Smoother::getObstacle(const GatedUnit &unit) {
  if (!unit.isProven())
    return unit.why;
  if (!wanted.test(unit.down))
    return "its product is not quantized: the dot stays in high precision";
  const DotInfo &down = getDot(unit.down);
  auto isF16 = [](Type type) { return getElementTypeOrSelf(type).isF16(); };
  if (llvm::any_of(down.dot->getOperandTypes(), isF16) ||
      llvm::any_of(down.dot->getResultTypes(), isF16))
    return "it computes in f16, where smoothed weights may underflow";
  if (perChannel())
    return "";
  DotOperand product = getDotOperand(cast<stablehlo::DotGeneralOp>(down.dot),
                                     down.lhs == OperandKind::Activation);
  View view = getView(product.value, unite(product.batching, product.free),
                      Through::Layouts);
  for (auto [reader, linear] : unit.readers)
    if (reader == unit.down && linear &&
        getLayoutsFrom(shapeOf(linear), view.root))
      return "";
  return "the linear branch has another shape than the product";
}

void Smoother::smoothUnit(Unit &unit) {
  auto visit = [&](unsigned index, DotRole role, bool recomputed,
                   Value linear) {
    const DotInfo &info = getDot(index);
    if (info.role != role || info.recomputed != recomputed ||
        !wanted.test(index) || done.test(index))
      return;
    if (role == DotRole::Dgrad && !smoothDgrad(unit, info))
      return;
    done.set(index);
    if (role == DotRole::Forward)
      smoothForward(unit, info, linear);
    else if (role == DotRole::Wgrad)
      smoothWgrad(unit, info, linear);
  };
  // The order matters: a dot reads factors that were made for dots before it. A
  // dgrad takes those of the product that the wgrad reads.
  for (auto [index, linear] : unit.unit->readers)
    visit(index, DotRole::Forward, /*recomputed=*/false, linear);
  for (auto [index, linear] : unit.unit->readers)
    visit(index, DotRole::Forward, /*recomputed=*/true, linear);
  for (auto [index, linear] : unit.unit->readers)
    visit(index, DotRole::Wgrad, /*recomputed=*/false, linear);
  unsigned layer = unit.down->layers.front();
  for (auto [index, info] : llvm::enumerate(decider.getLayers().getDots()))
    if (llvm::is_contained(info.layers, layer))
      visit(index, DotRole::Dgrad, /*recomputed=*/false, {});
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

GatedUnitVerdict Smoother::describe(const GatedUnit &unit, StringRef why) {
  const DotInfo &down = getDot(unit.down);
  GatedUnitVerdict verdict;
  verdict.function = function.getName().str();
  verdict.layer = down.layer;
  verdict.location = describeLocation(down.dot->getLoc());
  verdict.reason = why.str();
  if (unit.isProven()) {
    verdict.activation = unit.activation;
    verdict.channels = unit.channels;
    verdict.gate = unit.gateWeight;
    verdict.linear = unit.linearWeight;
    verdict.linearBias = unit.linearBias;
    verdict.down = unit.downWeight;
  }
  if (!why.empty())
    return verdict;
  bool isDelayed = smooth.scaling == Scaling::Delayed;
  verdict.granularity = perChannel() ? "channel" : "token";
  verdict.scale = smooth.scale == ScaleRule::Pow2 ? "pow2" : "exact";
  verdict.scaling = isDelayed ? "delayed" : "current";
  if (isDelayed)
    verdict.state = getStateName(down) + ".quantizer";
  return verdict;
}

LogicalResult Smoother::run(
    function_ref<void(const DotInfo &, const GatedUnitVerdict &)> report) {
  if (failed(decide()))
    return failure();
  std::vector<GatedUnit> found = findGatedUnits(function, decider.getLayers());
  std::vector<Unit> units;
  for (const GatedUnit &unit : found) {
    std::string obstacle = getObstacle(unit);
    const DotInfo &down = getDot(unit.down);
    report(down, describe(unit, obstacle));
    if (obstacle.empty())
      units.push_back({&unit,
                       &down,
                       getStateName(down),
                       findSumOverRanks(down.dot->getResult(0)),
                       {},
                       {},
                       {}});
  }
  for (Unit &unit : units)
    smoothUnit(unit);
  delayed.addResults();
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct SmoothSwiGLU : public fp8::impl::FP8SmoothSwiGLUBase<SmoothSwiGLU> {
  using FP8SmoothSwiGLUBase::FP8SmoothSwiGLUBase;

  void runOnOperation() override {
    FailureOr<Recipe> recipe = getEffectiveRecipe(getOperation());
    if (failed(recipe))
      return signalPassFailure();
    if (recipe->smooth.granularity == Granularity::None)
      return markAllAnalysesPreserved();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && failed(apply(function, *recipe)))
        return signalPassFailure();
  }

  LogicalResult apply(func::FuncOp function, const Recipe &recipe) {
    SmallVector<Attribute> units;
    auto report = [&](const DotInfo &down, const GatedUnitVerdict &unit) {
      units.push_back(unit.getAttribute(&getContext()));
      bool smoothed = unit.reason.empty();
      smoothed ? ++numSmoothed : ++numLeft;
      if (!emitRemarks)
        return;
      InFlightDiagnostic diag = down.dot->emitRemark();
      if (smoothed)
        diag << "gated unit of " << unit.activation << ": smoothed per "
             << unit.granularity << ", " << unit.scale << ", " << unit.scaling;
      else
        diag << "gated unit left alone: " << unit.reason;
    };
    if (failed(Smoother(function, recipe, allDots).run(report)))
      return failure();
    if (units.empty() && emitRemarks)
      function.emitRemark()
          << "no gated unit: no linear layer reads the product "
             "of two others' results";
    function->setAttr(FP8Dialect::kGatedUnitsAttrName,
                      ArrayAttr::get(&getContext(), units));
    return success();
  }
};
} // namespace
