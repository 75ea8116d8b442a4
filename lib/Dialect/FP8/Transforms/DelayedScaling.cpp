//===- DelayedScaling.cpp - Scales from earlier steps ---------------------===//

#include "DelayedScaling.h"

#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Small tensors
//===----------------------------------------------------------------------===//

static RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static Value makeSplat(OpBuilder &b, Location loc, RankedTensorType type,
                       double value) {
  return stablehlo::ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(type,
                             b.getFloatAttr(type.getElementType(), value)));
}

static Value makeReshape(OpBuilder &b, Location loc, Value value,
                         ArrayRef<int64_t> shape) {
  if (tensorOf(value).getShape() == shape)
    return value;
  return stablehlo::ReshapeOp::create(b, loc, tensorOf(value).clone(shape),
                                      value);
}

/// The largest element along dimension 0, or of all. A NaN makes it NaN.
static Value makeMax(OpBuilder &b, Location loc, Value value, bool whole) {
  RankedTensorType type = tensorOf(value);
  SmallVector<int64_t> dims;
  if (whole)
    llvm::append_range(dims, llvm::seq<int64_t>(type.getRank()));
  else
    dims.push_back(0);
  if (dims.empty())
    return value;
  ArrayRef<int64_t> kept =
      whole ? ArrayRef<int64_t>() : type.getShape().drop_front();
  auto scalar = RankedTensorType::get({}, type.getElementType());
  // Amaxes are not negative.
  Value zero = makeSplat(b, loc, scalar, 0);
  auto reduce = stablehlo::ReduceOp::create(b, loc, TypeRange{type.clone(kept)},
                                            ValueRange{value}, ValueRange{zero},
                                            b.getDenseI64ArrayAttr(dims));
  OpBuilder::InsertionGuard guard(b);
  Block *body =
      b.createBlock(&reduce.getBody(), {}, {scalar, scalar}, {loc, loc});
  Value larger = stablehlo::MaxOp::create(b, loc, body->getArgument(0),
                                          body->getArgument(1));
  stablehlo::ReturnOp::create(b, loc, ValueRange{larger});
  return reduce->getResult(0);
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

unsigned DelayedScaling::getState(StringRef name, ArrayRef<Slot> slots,
                                  const OperandRecipe &recipe,
                                  ComputeScaleOp current) {
  SmallVector<int64_t> shape;
  for (const Slot &slot : slots)
    shape.push_back(slot.count);
  RankedTensorType one = tensorOf(current.getQuantizer());
  llvm::append_range(shape, one.getShape());
  RankedTensorType type = one.clone(shape);
  // Another format, tile or shape under the same name is another tensor.
  std::string unique = name.str();
  for (unsigned copy = 2;; ++copy) {
    auto known = llvm::find_if(
        states, [&](const State &state) { return state.name == unique; });
    if (known == states.end())
      break;
    if (known->type == type && known->recipe == recipe)
      return known - states.begin();
    unique = name.str() + "." + std::to_string(copy);
  }
  SmallVector<int64_t> historyShape{recipe.history};
  llvm::append_range(historyShape, shape);
  auto addArgument = [&](Type type, StringRef part) {
    unsigned index = function.getNumArguments();
    DictionaryAttr attrs = builder.getDictionaryAttr(
        {builder.getNamedAttr(kPathAttr,
                              builder.getStringAttr(unique + "." + part.str())),
         builder.getNamedAttr(kRoleAttr, builder.getStringAttr("state")),
         builder.getNamedAttr(kKindAttr, builder.getStringAttr("other")),
         builder.getNamedAttr(kZeroInitAttr, builder.getUnitAttr())});
    (void)function.insertArgument(index, type, attrs, function.getLoc());
    return function.getArgument(index);
  };
  State state{unique,
              recipe,
              current.getRuleAttr(),
              current.getFormatAttr(),
              type,
              addArgument(type.clone(historyShape), "amax_history"),
              addArgument(type, "quantizer")};
  states.push_back(state);
  return states.size() - 1;
}

SmallVector<Value> DelayedScaling::startIndices(OpBuilder &at, Location loc,
                                                ArrayRef<Slot> slots,
                                                int64_t rank) {
  auto type = RankedTensorType::get({}, at.getI32Type());
  auto constant = [&](Type type, int64_t value) -> Value {
    auto tensor = cast<RankedTensorType>(type);
    return stablehlo::ConstantOp::create(
        at, loc,
        DenseElementsAttr::get(
            tensor, at.getIntegerAttr(tensor.getElementType(), value)));
  };
  SmallVector<Value> starts;
  for (const Slot &slot : slots) {
    Value index = slot.counter;
    if (slot.scale != 1)
      index = stablehlo::MulOp::create(at, loc, index,
                                       constant(index.getType(), slot.scale));
    if (slot.offset != 0)
      index = stablehlo::AddOp::create(at, loc, index,
                                       constant(index.getType(), slot.offset));
    if (index.getType() != type)
      index = stablehlo::ConvertOp::create(at, loc, type, index);
    starts.push_back(index);
  }
  if (static_cast<int64_t>(starts.size()) < rank)
    starts.append(rank - starts.size(), constant(type, 0));
  return starts;
}

/// What `stack` holds for the slot, in the shape of `type`.
Value DelayedScaling::slice(OpBuilder &at, Location loc, Value stack,
                            ArrayRef<Slot> slots, RankedTensorType type) {
  if (slots.empty())
    return stack;
  RankedTensorType stackType = tensorOf(stack);
  SmallVector<int64_t> sizes(stackType.getShape());
  std::fill_n(sizes.begin(), slots.size(), 1);
  Value part = stablehlo::DynamicSliceOp::create(
      at, loc, stackType.clone(sizes), stack,
      startIndices(at, loc, slots, stackType.getRank()),
      at.getDenseI64ArrayAttr(sizes));
  return makeReshape(at, loc, part, type.getShape());
}

DelayedScaling::Scale DelayedScaling::get(OpBuilder &at, StringRef name,
                                          ArrayRef<Slot> slots,
                                          const OperandRecipe &recipe,
                                          ComputeScaleOp current) {
  Location loc = current.getLoc();
  unsigned number = getState(name, slots, recipe, current);
  RankedTensorType type = tensorOf(current.getQuantizer());
  Value kept = slice(at, loc, states[number].quantizer, slots, type);
  Value one = makeSplat(at, loc, type, 1);
  Value unset =
      stablehlo::CompareOp::create(at, loc, kept, makeSplat(at, loc, type, 0),
                                   stablehlo::ComparisonDirection::EQ);
  bool fromOne = recipe.initial == RecipeInitial::One;
  Value first = fromOne ? one : current.getQuantizer();
  Value firstScale = fromOne ? one : current.getScale();
  Value quantizer = stablehlo::SelectOp::create(at, loc, unset, first, kept);
  Value inverse = stablehlo::DivOp::create(at, loc, one, kept);
  Value scale =
      stablehlo::SelectOp::create(at, loc, unset, firstScale, inverse);

  Operation *amax = current.getAmax().getDefiningOp();
  records[amax].push_back(
      {number, current.getAmax(), SmallVector<Slot>(slots)});
  for (Operation *parent = amax->getParentOp(); parent != function;
       parent = parent->getParentOp())
    nested[parent].insert(number);
  if (fromOne)
    current.erase();
  return {scale, quantizer};
}

//===----------------------------------------------------------------------===//
// Recording
//===----------------------------------------------------------------------===//

/// The slot's amax becomes the larger of what it is and the one recorded.
void DelayedScaling::record(const Record &record,
                            MutableArrayRef<Value> amaxes) {
  Location loc = record.amax.getLoc();
  builder.setInsertionPointAfterValue(record.amax);
  Value &all = amaxes[record.state];
  RankedTensorType type = tensorOf(record.amax);
  Value larger = stablehlo::MaxOp::create(
      builder, loc, slice(builder, loc, all, record.slots, type), record.amax);
  if (record.slots.empty()) {
    all = larger;
    return;
  }
  SmallVector<int64_t> shape(tensorOf(all).getShape());
  std::fill_n(shape.begin(), record.slots.size(), 1);
  all = stablehlo::DynamicUpdateSliceOp::create(
      builder, loc, all.getType(), all,
      makeReshape(builder, loc, larger, shape),
      startIndices(builder, loc, record.slots, tensorOf(all).getRank()));
}

/// The same op with other operands and results, around the same regions.
Operation *DelayedScaling::rebuild(Operation *op, ArrayRef<Value> operands,
                                   ArrayRef<Type> results) {
  builder.setInsertionPoint(op);
  OperationState state(op->getLoc(), op->getName(), operands, results,
                       op->getAttrs());
  for (unsigned i = 0; i < op->getNumRegions(); ++i)
    state.addRegion();
  Operation *copy = builder.create(state);
  for (auto [from, to] : llvm::zip(op->getRegions(), copy->getRegions()))
    to.takeBody(from);
  op->replaceAllUsesWith(copy->getResults().take_front(op->getNumResults()));
  op->erase();
  return copy;
}

void DelayedScaling::threadLoop(Operation *loop, ArrayRef<unsigned> touched,
                                MutableArrayRef<Value> amaxes) {
  SmallVector<Value> operands(loop->getOperands());
  SmallVector<Type> results(loop->getResultTypes());
  unsigned first = results.size();
  for (unsigned state : touched) {
    operands.push_back(amaxes[state]);
    results.push_back(amaxes[state].getType());
    for (Region &region : loop->getRegions())
      region.addArgument(amaxes[state].getType(), loop->getLoc());
  }
  loop = rebuild(loop, operands, results);
  Block &body = loop->getRegion(1).front();
  SmallVector<Value> inside(amaxes);
  for (auto [index, state] : llvm::enumerate(touched))
    inside[state] = body.getArgument(first + index);
  thread(body, inside);
  for (auto [index, state] : llvm::enumerate(touched)) {
    Operation *yield = body.getTerminator();
    yield->insertOperands(yield->getNumOperands(), inside[state]);
    amaxes[state] = loop->getResult(first + index);
  }
}

void DelayedScaling::threadBranches(Operation *op, ArrayRef<unsigned> touched,
                                    MutableArrayRef<Value> amaxes) {
  SmallVector<Type> results(op->getResultTypes());
  unsigned first = results.size();
  for (unsigned state : touched)
    results.push_back(amaxes[state].getType());
  op = rebuild(op, SmallVector<Value>(op->getOperands()), results);
  for (Region &region : op->getRegions()) {
    SmallVector<Value> inside(amaxes);
    thread(region.front(), inside);
    Operation *yield = region.front().getTerminator();
    for (unsigned state : touched)
      yield->insertOperands(yield->getNumOperands(), inside[state]);
  }
  for (auto [index, state] : llvm::enumerate(touched))
    amaxes[state] = op->getResult(first + index);
}

/// Brings what is recorded in `block` from op to op: `amaxes` holds the largest
/// amax of every state so far.
void DelayedScaling::thread(Block &block, MutableArrayRef<Value> amaxes) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto found = records.find(&op); found != records.end())
      for (const Record &entry : found->second)
        record(entry, amaxes);
    auto found = nested.find(&op);
    if (found == nested.end())
      continue;
    SmallVector<unsigned> touched = llvm::to_vector(found->second);
    if (isa<stablehlo::WhileOp>(op))
      threadLoop(&op, touched, amaxes);
    else
      threadBranches(&op, touched, amaxes);
  }
}

//===----------------------------------------------------------------------===//
// The next step's state
//===----------------------------------------------------------------------===//

void DelayedScaling::addResult(const State &state, StringRef part,
                               Value value) {
  std::string path = state.name + "." + part.str();
  unsigned index = function.getNumResults();
  (void)function.insertResult(
      index, value.getType(),
      builder.getDictionaryAttr(
          {builder.getNamedAttr(kPathAttr, builder.getStringAttr(path)),
           builder.getNamedAttr(kStateAttr, builder.getStringAttr(path))}));
  Operation *ret = function.getBody().front().getTerminator();
  ret->insertOperands(ret->getNumOperands(), value);
}

void DelayedScaling::update(const State &state, Value amax, Value allFinite) {
  Location loc = function.getLoc();
  builder.setInsertionPoint(function.getBody().front().getTerminator());
  int64_t length = state.recipe.history;
  SmallVector<int64_t> rowShape{1};
  llvm::append_range(rowShape, state.type.getShape());
  Value row = makeReshape(builder, loc, amax, rowShape);

  // Largest of all but the slot that this step's amax takes.
  Value basis = amax;
  if (state.recipe.algorithm == RecipeAlgorithm::Max && length > 1) {
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
  Value quantizer = stablehlo::SelectOp::create(
      builder, loc, usable, scale.getQuantizer(), state.quantizer);

  SmallVector<Value> rows;
  if (length > 1)
    rows.push_back(makeSplat(builder, loc, state.type.clone(rowShape), 0));
  if (length > 2)
    rows.push_back(makeRows(builder, loc, state.history, 2, length));
  rows.push_back(length > 1
                     ? row
                     : makeSplat(builder, loc, state.type.clone(rowShape), 0));
  Value history = rows.front();
  if (rows.size() > 1)
    history = stablehlo::ConcatenateOp::create(
        builder, loc, state.history.getType(), rows, uint64_t(0));

  auto keepUnlessFinite = [&](Value next, Value old) -> Value {
    return stablehlo::SelectOp::create(builder, loc, allFinite, next, old);
  };
  history = keepUnlessFinite(history, state.history);
  quantizer = keepUnlessFinite(quantizer, state.quantizer);
  addResult(state, "amax_history", history);
  addResult(state, "quantizer", quantizer);
}

void DelayedScaling::finish() {
  if (states.empty())
    return;
  Block &body = function.getBody().front();
  Location loc = function.getLoc();
  builder.setInsertionPointToStart(&body);
  SmallVector<Value> amaxes;
  for (const State &state : states)
    amaxes.push_back(makeSplat(builder, loc, state.type, 0));
  thread(body, amaxes);

  builder.setInsertionPoint(body.getTerminator());
  Value largest;
  for (Value amax : amaxes) {
    Value own = makeMax(builder, loc, amax, true);
    largest =
        largest
            ? stablehlo::MaxOp::create(builder, loc, largest, own).getResult()
            : own;
  }
  Value allFinite = stablehlo::IsFiniteOp::create(builder, loc, largest);
  for (auto [state, amax] : llvm::zip(states, amaxes))
    update(state, amax, allFinite);
}
