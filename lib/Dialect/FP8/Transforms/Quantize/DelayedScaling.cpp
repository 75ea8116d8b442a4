//===- DelayedScaling.cpp - Scales from earlier steps ---------------------===//

#include "DelayedScaling.h"
#include "../SmallTensors.h"

#include "fp8/Dialect/StableHLO/IR/Reductions.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Small tensors
//===----------------------------------------------------------------------===//

/// Returns the maximum along dimension 0, or of all elements. A NaN makes it
/// NaN.
static Value makeMax(OpBuilder &b, Location loc, Value value, bool whole) {
  RankedTensorType type = tensorOf(value);
  SmallVector<int64_t> dims;
  if (whole)
    llvm::append_range(dims, llvm::seq<int64_t>(type.getRank()));
  else
    dims.push_back(0);
  if (dims.empty())
    return value;
  auto scalar = RankedTensorType::get({}, type.getElementType());
  // Amaxes are not negative.
  Value zero = makeSplat(b, loc, scalar, 0);
  return makeReduction<stablehlo::MaxOp>(b, loc, value, zero, dims);
}

static Value makeRows(OpBuilder &b, Location loc, Value value, int64_t first,
                      int64_t end) {
  RankedTensorType type = tensorOf(value);
  SmallVector<int64_t> starts(type.getRank(), 0), limits(type.getShape()),
      strides(type.getRank(), 1);
  starts[0] = first;
  limits[0] = end;
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = end - first;
  return stablehlo::SliceOp::create(b, loc, type.clone(shape), value, starts,
                                    limits, strides);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Returns the name of the `copy`-th state called `name`, from 1 on.
static std::string getUniqueName(StringRef name, unsigned copy) {
  return copy == 1 ? name.str() : name.str() + "." + std::to_string(copy);
}

/// Returns the first of the states called `name` that matches.
std::optional<unsigned>
DelayedScaling::findState(StringRef name,
                          function_ref<bool(const State &)> matches) const {
  for (unsigned copy = 1;; ++copy) {
    auto known = numbers.find(getUniqueName(name, copy));
    if (known == numbers.end())
      return std::nullopt;
    if (matches(states[known->second]))
      return known->second;
  }
}

unsigned DelayedScaling::getState(StringRef name, ArrayRef<LayerSlot> slots,
                                  const OperandRecipe &recipe,
                                  const Rule &rule) {
  SmallVector<int64_t> shape;
  for (const LayerSlot &slot : slots)
    shape.push_back(slot.count);
  llvm::append_range(shape, rule.type.getShape());
  RankedTensorType type = rule.type.clone(shape);
  // Another format, tile or shape under the same name is another tensor.
  if (auto known = findState(name, [&](const State &state) {
        return state.type == type && state.recipe == recipe;
      }))
    return *known;
  unsigned copy = 1;
  while (numbers.contains(getUniqueName(name, copy)))
    ++copy;
  std::string unique = getUniqueName(name, copy);
  SmallVector<int64_t> historyShape{recipe.history};
  llvm::append_range(historyShape, shape);
  auto addArgument = [&](Type type, StringRef part) {
    return signature.addStateArgument(
        type, unique + "." + part, stringifyEnum(StateKind::Other),
        function.getLoc(), /*startsAsZeros=*/true);
  };
  State state{unique,
              recipe,
              rule.rule,
              rule.format,
              type,
              addArgument(type.clone(historyShape), "amax_history"),
              addArgument(type, "quantizer")};
  numbers[unique] = states.size();
  states.push_back(state);
  return amaxes.add(
      DenseElementsAttr::get(type, builder.getF32FloatAttr(0)),
      [](OpBuilder &b, Location loc, Value before, Value amax) -> Value {
        return stablehlo::MaxOp::create(b, loc, before, amax);
      });
}

DelayedScaling::Scale
DelayedScaling::orFirst(OpBuilder &at, Location loc, Value kept, Scale first,
                        function_ref<Scale(Value)> makeFirst) {
  RankedTensorType type = tensorOf(kept);
  Value unset =
      stablehlo::CompareOp::create(at, loc, kept, makeSplat(at, loc, type, 0),
                                   stablehlo::ComparisonDirection::EQ);
  if (makeFirst)
    first = makeFirst(unset);
  Value quantizer =
      stablehlo::SelectOp::create(at, loc, unset, first.quantizer, kept);
  Value inverse =
      stablehlo::DivOp::create(at, loc, makeSplat(at, loc, type, 1), kept);
  Value scale =
      stablehlo::SelectOp::create(at, loc, unset, first.scale, inverse);
  return {scale, quantizer};
}

DelayedScaling::Scale
DelayedScaling::get(OpBuilder &at, StringRef name, ArrayRef<LayerSlot> slots,
                    const OperandRecipe &recipe, ComputeScaleOp current,
                    const std::optional<Amax> &found,
                    function_ref<Scale(Value)> makeFirst) {
  Location loc = current.getLoc();
  unsigned number = getState(name, slots, recipe,
                             {tensorOf(current.getQuantizer()),
                              current.getRuleAttr(), current.getFormatAttr()});
  Scale first{current.getScale(), current.getQuantizer()};
  RankedTensorType type = tensorOf(current.getQuantizer());
  bool fromOne = recipe.initial == InitialScale::One;
  if (fromOne)
    first.scale = first.quantizer = makeSplat(at, loc, type, 1);
  Scale scale = orFirst(
      at, loc, sliceSlots(at, loc, states[number].quantizer, slots, type),
      first, makeFirst);
  Amax amax =
      found.value_or(Amax{current.getAmax(), SmallVector<LayerSlot>(slots)});
  if (recorded.insert({amax.value, number}).second)
    amaxes.record(number, amax.value, amax.slots);
  if (current->use_empty())
    current.erase();
  return scale;
}

void DelayedScaling::record(StringRef name, ArrayRef<LayerSlot> slots,
                            const OperandRecipe &recipe,
                            ComputeScaleOp current) {
  unsigned number = getState(name, slots, recipe,
                             {tensorOf(current.getQuantizer()),
                              current.getRuleAttr(), current.getFormatAttr()});
  if (recorded.insert({current.getAmax(), number}).second)
    amaxes.record(number, current.getAmax(), slots);
  if (current->use_empty())
    current.erase();
}

std::optional<DelayedScaling::Scale>
DelayedScaling::read(OpBuilder &at, Location loc, StringRef name,
                     ArrayRef<LayerSlot> slots, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> whole = llvm::map_to_vector(
      slots, [](const LayerSlot &slot) { return slot.count; });
  llvm::append_range(whole, shape);
  std::optional<unsigned> number = findState(name, [&](const State &state) {
    return state.recipe.initial == InitialScale::One &&
           state.type.getShape() == ArrayRef(whole);
  });
  if (!number)
    return std::nullopt;
  const State &state = states[*number];
  RankedTensorType type = state.type.clone(shape);
  Value one = makeSplat(at, loc, type, 1);
  return orFirst(at, loc, sliceSlots(at, loc, state.quantizer, slots, type),
                 {one, one});
}

//===----------------------------------------------------------------------===//
// The next step's state
//===----------------------------------------------------------------------===//

/// Returns the next quantizer of a state. If the amax is zero or not finite, it
/// stays.
Value DelayedScaling::makeNextQuantizer(const State &state, Value amax) {
  Location loc = function.getLoc();
  int64_t length = state.recipe.history;
  // The maximum of all but the slot that this step's amax takes.
  Value basis = amax;
  if (state.recipe.algorithm == AmaxAlgorithm::Max && length > 1) {
    Value earlier = makeMax(
        builder, loc, makeRows(builder, loc, state.history, 1, length), false);
    basis = stablehlo::MaxOp::create(builder, loc, earlier, amax);
  }
  auto scale = ComputeScaleOp::create(
      builder, loc, state.type, state.type, basis, state.rule,
      builder.getI64IntegerAttr(state.recipe.margin), state.format);
  Value positive = stablehlo::CompareOp::create(
      builder, loc, basis, makeSplat(builder, loc, state.type, 0),
      stablehlo::ComparisonDirection::GT);
  Value usable = stablehlo::AndOp::create(
      builder, loc, positive,
      stablehlo::IsFiniteOp::create(builder, loc, basis));
  return stablehlo::SelectOp::create(builder, loc, usable, scale.getQuantizer(),
                                     state.quantizer);
}

/// Returns the next history of a state: rolled by one slot if the step takes
/// its update; if it only accumulates calls, with this call's amax noted.
Value DelayedScaling::makeNextHistory(const State &state, Value row,
                                      const TakenUpdate &when) {
  Location loc = function.getLoc();
  int64_t length = state.recipe.history;
  auto concatenate = [&](ArrayRef<Value> rows) -> Value {
    if (rows.size() == 1)
      return rows.front();
    return stablehlo::ConcatenateOp::create(
        builder, loc, state.history.getType(), rows, uint64_t(0));
  };
  SmallVector<Value> rolled{makeSplat(builder, loc, tensorOf(row), 0)};
  if (length > 2)
    rolled.push_back(makeRows(builder, loc, state.history, 2, length));
  if (length > 1)
    rolled.push_back(row);
  Value history = state.history;
  if (when.accumulatesCalls()) {
    SmallVector<Value> noted{row};
    if (length > 1)
      noted.push_back(makeRows(builder, loc, state.history, 1, length));
    history = stablehlo::SelectOp::create(builder, loc, when.valid,
                                          concatenate(noted), history);
  }
  return stablehlo::SelectOp::create(builder, loc, when.taken,
                                     concatenate(rolled), history);
}

void DelayedScaling::update(State &state, Value amax, const TakenUpdate &when) {
  Location loc = function.getLoc();
  builder.setInsertionPoint(function.getBody().front().getTerminator());
  SmallVector<int64_t> rowShape{1};
  llvm::append_range(rowShape, state.type.getShape());
  // The maximum of all calls since the last roll.
  if (when.accumulatesCalls())
    amax = stablehlo::MaxOp::create(
        builder, loc, amax,
        makeReshape(builder, loc, makeRows(builder, loc, state.history, 0, 1),
                    state.type.getShape()));
  Value row = makeReshape(builder, loc, amax, rowShape);
  Value quantizer = makeNextQuantizer(state, amax);
  Value history = makeNextHistory(state, row, when);
  quantizer = stablehlo::SelectOp::create(builder, loc, when.taken, quantizer,
                                          state.quantizer);
  signature.addStateResult(state.name + ".amax_history", history);
  signature.addStateResult(state.name + ".quantizer", quantizer);
  state.nextQuantizer = quantizer;
}

/// Reduces all amaxes to their maxima over the ranks in one message, so that
/// histories are the same on all ranks.
void DelayedScaling::reduceOverRanks(MutableArrayRef<Value> amaxes) {
  Location loc = function.getLoc();
  SmallVector<Value> flat;
  int64_t count = 0;
  for (Value amax : amaxes) {
    int64_t elements = tensorOf(amax).getNumElements();
    flat.push_back(makeReshape(builder, loc, amax, {elements}));
    count += elements;
  }
  auto type = RankedTensorType::get({count}, builder.getF32Type());
  Value all = flat.size() == 1 ? flat.front()
                               : stablehlo::ConcatenateOp::create(
                                     builder, loc, type, flat, uint64_t(0))
                                     .getResult();
  auto reduce =
      AllReduceOp::create(builder, loc, Reduction::Max, all,
                          builder.getStringAttr("amaxes of the step"));
  reduce->setAttr(FP8Dialect::kWireReasonAttrName,
                  builder.getStringAttr("amaxes travel as they are"));
  Value largest = reduce.getResult();
  int64_t first = 0;
  for (Value &amax : amaxes) {
    int64_t elements = tensorOf(amax).getNumElements();
    Value part = makeRows(builder, loc, largest, first, first + elements);
    amax = makeReshape(builder, loc, part, tensorOf(amax).getShape());
    first += elements;
  }
}

void DelayedScaling::addResults(TakenUpdate when) {
  if (states.empty())
    return;
  Location loc = function.getLoc();
  SmallVector<Value> largestOf = amaxes.materialize();
  builder.setInsertionPoint(function.getBody().front().getTerminator());
  for (auto [state, amax] : given)
    largestOf[state] =
        stablehlo::MaxOp::create(builder, loc, largestOf[state], amax);
  if (function->getParentOp()->hasAttr(FP8Dialect::kDataParallelAttrName))
    reduceOverRanks(largestOf);
  Value largest;
  for (Value amax : largestOf) {
    Value own = makeMax(builder, loc, amax, true);
    largest =
        largest
            ? stablehlo::MaxOp::create(builder, loc, largest, own).getResult()
            : own;
  }
  Value allFinite = stablehlo::IsFiniteOp::create(builder, loc, largest);
  auto andFinite = [&](Value condition) -> Value {
    return condition
               ? stablehlo::AndOp::create(builder, loc, condition, allFinite)
                     .getResult()
               : allFinite;
  };
  bool accumulatesCalls = when.accumulatesCalls();
  when.taken = andFinite(when.taken);
  when.valid = accumulatesCalls ? andFinite(when.valid) : when.taken;
  for (auto [state, amax] : llvm::zip(states, largestOf))
    update(state, amax, when);
  signature.apply();
}
