//===- AttentionBuilder.cpp - The op of one attention ---------------------===//
//
// All ops between the dots that make scores and those that contract them move
// into the body of one op. There, each tensor has exactly the dimensions of the
// attention that it depends on, in one order, so that transposes, reshapes and
// most broadcasts disappear. A value that is as large as the scores and needs
// only iotas, constants and small tensors (a causal mask) moves in, too.
//
//===----------------------------------------------------------------------===//

#include "AttentionBuilder.h"

#include "DotSides.h"
#include "SoftmaxVerdict.h"

#include "../EffectiveRecipe.h"
#include "../SmallTensors.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/Barriers.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"
#include "fp8/Dialect/StableHLO/IR/DotOperands.h"
#include "fp8/Dialect/StableHLO/IR/Reductions.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::fp8;
using Dot = stablehlo::DotGeneralOp;
using Sum = Scores::Sum;
using Dims = Scores::Dims;

/// Returns the dimensions of more than one element, in ascending order.
static Dims sorted(ArrayRef<int> dims) {
  Dims result;
  for (int dim : dims)
    if (dim >= 0)
      result.push_back(dim);
  llvm::sort(result);
  return result;
}

/// Returns the index of each number once all are in ascending order.
template <typename T>
static SmallVector<int64_t> placesInOrder(ArrayRef<T> numbers) {
  SmallVector<T> ascending(numbers);
  llvm::sort(ascending);
  return llvm::map_to_vector(numbers, [&](T number) -> int64_t {
    return llvm::find(ascending, number) - ascending.begin();
  });
}

static SmallVector<int64_t> withoutUnits(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> result;
  llvm::copy_if(shape, std::back_inserter(result),
                [](int64_t size) { return size != 1; });
  return result;
}

//===----------------------------------------------------------------------===//
// Choosing what is inside
//===----------------------------------------------------------------------===//

void AttentionBuilder::collect(Value value) {
  if (!scores.isMember(value) || needed.contains(value))
    return;
  for (Value operand : value.getDefiningOp()->getOperands())
    collect(operand);
  needed.insert(value);
}

/// Puts some of the readers inside, and what they need.
void AttentionBuilder::setReaders(SmallVector<Operation *> some) {
  readers = std::move(some);
  needed.clear();
  for (Operation *reader : readers)
    collect(reader->getOperand(scores.scoreOperand(reader)));
  inside.clear();
  inside.insert(readers.begin(), readers.end());
  for (Value value : needed)
    inside.insert(value.getDefiningOp());
}

/// Whether the op's inputs depend on `result`, which the op would return. Ops
/// that move inside read its members there.
bool AttentionBuilder::isInputOfOp(Operation *result) const {
  DenseSet<Operation *> seen;
  SmallVector<Operation *> worklist{result};
  Operation *last = *llvm::max_element(
      inside, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    for (Operation *user : op->getUsers()) {
      Operation *ancestor = block.findAncestorOpInBlock(*user);
      if (ancestor && last->isBeforeInBlock(ancestor))
        continue;
      if (inside.contains(ancestor)) {
        if (!scores.isMember(op->getResult(0)))
          return true;
      } else if (ancestor && seen.insert(ancestor).second) {
        worklist.push_back(ancestor);
      }
    }
  }
  return false;
}

/// Whether `value`, a member, has readers that stay outside.
bool AttentionBuilder::isReadOutside(Value value) const {
  return llvm::any_of(value.getUsers(),
                      [&](Operation *user) { return !inside.contains(user); });
}

/// Chooses the readers of the op. If a backward pass recomputes the forward
/// pass, that part becomes an op of its own, because the rest depends on it. So
/// do gradients of biases, which are divided in another way: no other op has a
/// sum over batches.
bool AttentionBuilder::chooseReaders() {
  SmallVector<Operation *> some;
  llvm::copy_if(scores.readers, std::back_inserter(some),
                [&](Operation *op) { return !scores.isBiasGradient(op); });
  setReaders(some.empty() ? scores.readers : std::move(some));
  while (true) {
    SmallVector<Operation *> early;
    llvm::copy_if(readers, std::back_inserter(early),
                  [&](Operation *reader) { return isInputOfOp(reader); });
    if (early.empty())
      // Rows that others read may not reach an input either.
      return llvm::none_of(needed, [&](Value value) {
        return !scores.isScore(value) && isInputOfOp(value.getDefiningOp());
      });
    if (early.size() == readers.size())
      return false;
    setReaders(std::move(early));
  }
}

/// Puts a row of scores inside that no reader needs (an entropy, the gradient
/// of a temperature), because scores would be stored for it. Does nothing if
/// other dots make those scores, or if the row's operands depend on results.
void AttentionBuilder::addRow(Value row) {
  llvm::SetVector<Value> neededBefore = needed;
  collect(row);
  SmallVector<Operation *> added;
  for (Value value : needed)
    if (Operation *op = value.getDefiningOp(); inside.insert(op).second)
      added.push_back(op);
  if (llvm::none_of(added, [](Operation *op) { return isa<Dot>(op); }) &&
      llvm::none_of(inside, [&](Operation *op) {
        return (llvm::is_contained(readers, op) ||
                !scores.isScore(op->getResult(0))) &&
               isInputOfOp(op);
      }))
    return;
  for (Operation *op : added)
    inside.erase(op);
  needed = std::move(neededBefore);
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

RankedTensorType AttentionBuilder::typeOf(ArrayRef<int> dims, Type element) {
  SmallVector<int64_t> shape;
  for (int dim : dims)
    shape.push_back(scores.sizes[dim]);
  return RankedTensorType::get(shape, element);
}

/// Returns the argument of the body for `value`, without dimensions of one
/// element.
Value AttentionBuilder::addInput(Value value) {
  value = stablehlo::skipBarriers(value);
  Value &argument = arguments[value];
  if (argument)
    return argument;
  auto type = tensorOf(value);
  inputs.push_back(value);
  return argument = body->addArgument(type.clone(withoutUnits(type.getShape())),
                                      value.getLoc());
}

Value AttentionBuilder::transposed(Value value, ArrayRef<int64_t> permutation) {
  if (llvm::is_sorted(permutation))
    return value;
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation)
    shape.push_back(tensorOf(value).getDimSize(dim));
  return stablehlo::TransposeOp::create(
      builder, value.getLoc(), tensorOf(value).clone(shape), value,
      builder.getDenseI64ArrayAttr(permutation));
}

/// Broadcasts `inner` to all of `dims`.
Value AttentionBuilder::extend(const Inner &inner, ArrayRef<int> dims) {
  if (ArrayRef<int>(inner.dims) == dims)
    return inner.value;
  SmallVector<int64_t> places;
  for (int dim : inner.dims)
    places.push_back(llvm::find(dims, dim) - dims.begin());
  Type element = tensorOf(inner.value).getElementType();
  return stablehlo::BroadcastInDimOp::create(
      builder, inner.value.getLoc(), typeOf(dims, element), inner.value,
      builder.getDenseI64ArrayAttr(places));
}

/// Whether `value` follows from iotas and splats alone, in at most `steps` ops.
static bool followsFromIotas(Value value, unsigned steps = 8) {
  Operation *op = value.getDefiningOp();
  if (!op || steps == 0)
    return false;
  if (isa<stablehlo::IotaOp>(op) || stablehlo::getSplat(value))
    return true;
  return (stablehlo::worksByElement(op) ||
          isa<stablehlo::BroadcastInDimOp, stablehlo::TransposeOp>(op)) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return followsFromIotas(operand, steps - 1);
         });
}

/// Whether `op`, whose result has `dims`, should be computed inside.
bool AttentionBuilder::isCheap(Operation *op, const Dims &dims) {
  if (!op)
    return false;
  if (isa<stablehlo::IotaOp, stablehlo::BroadcastInDimOp>(op) ||
      stablehlo::getSplat(op->getResult(0)))
    return true;
  return (stablehlo::worksByElement(op) || isa<stablehlo::TransposeOp>(op)) &&
         (scores.haveQueriesAndKeys(dims) ||
          followsFromIotas(op->getResult(0)));
}

/// Makes an elementwise op inside, on operands with the dimensions of the
/// result.
Inner AttentionBuilder::makeElementwise(Operation *op, const Dims &dims) {
  SmallVector<Inner> operands;
  Dims all;
  Value result = op->getResult(0);
  for (Value operand : op->getOperands()) {
    bool isScalar = shapeOf(operand).empty() && !shapeOf(result).empty();
    operands.push_back(read(operand, isScalar ? Dims() : dims));
    for (int dim : operands.back().dims)
      if (!llvm::is_contained(all, dim))
        all.push_back(dim);
  }
  llvm::sort(all);
  SmallVector<Value> values;
  for (auto [inner, operand] : llvm::zip(operands, op->getOperands()))
    values.push_back(shapeOf(operand).empty() && !shapeOf(result).empty()
                         ? inner.value
                         : extend(inner, all));
  Operation *copy =
      builder.create(op->getLoc(), op->getName().getIdentifier(), values,
                     TypeRange{typeOf(all, tensorOf(result).getElementType())},
                     op->getAttrs());
  return {copy->getResult(0), all};
}

Inner AttentionBuilder::makeBroadcast(stablehlo::BroadcastInDimOp op,
                                      const Dims &dims) {
  Dims inner;
  for (auto [i, place] : llvm::enumerate(op.getBroadcastDimensions()))
    inner.push_back(shapeOf(op.getOperand())[i] == 1 ? -1 : dims[place]);
  return read(op.getOperand(), inner);
}

/// Returns `value`, whose dimensions are `dims` without those of one element,
/// with its dimensions in ascending order.
Inner AttentionBuilder::inOrder(Value value, ArrayRef<int> dims) {
  SmallVector<std::pair<int, int64_t>> order;
  for (int dim : dims)
    if (dim >= 0)
      order.push_back({dim, order.size()});
  llvm::sort(order);
  return {transposed(value, llvm::to_vector(llvm::make_second_range(order))),
          sorted(dims)};
}

Inner AttentionBuilder::makeIota(stablehlo::IotaOp op, const Dims &dims) {
  int dim = dims[op.getIotaDimension()];
  Dims own = dim < 0 ? Dims() : Dims{dim};
  RankedTensorType type = typeOf(own, tensorOf(op).getElementType());
  if (own.empty())
    return {makeZeros(builder, op.getLoc(), type), own};
  return {stablehlo::IotaOp::create(builder, op.getLoc(), type, uint64_t(0)),
          own};
}

/// Makes a cheap op inside.
Inner AttentionBuilder::makeCheap(Operation *op, const Dims &dims) {
  if (auto iota = dyn_cast<stablehlo::IotaOp>(op))
    return makeIota(iota, dims);
  if (auto broadcast = dyn_cast<stablehlo::BroadcastInDimOp>(op))
    return makeBroadcast(broadcast, dims);
  if (auto transpose = dyn_cast<stablehlo::TransposeOp>(op)) {
    Dims before(dims.size());
    for (auto [place, dim] : llvm::enumerate(transpose.getPermutation()))
      before[dim] = dims[place];
    return read(transpose.getOperand(), before);
  }
  auto scalar =
      RankedTensorType::get({}, tensorOf(op->getResult(0)).getElementType());
  if (Value splat =
          resizeSplat(builder, op->getLoc(), op->getResult(0), scalar))
    return {splat, Dims()};
  return makeElementwise(op, dims);
}

/// Returns the value inside for one whose dimensions are `dims` of the
/// attention.
Inner AttentionBuilder::read(Value value, const Dims &dims) {
  if (scores.isMember(value))
    return readMember(value);
  std::pair<const void *, Dims> key(value.getAsOpaquePointer(), dims);
  if (auto it = others.find(key); it != others.end())
    return it->second;
  Operation *op = value.getDefiningOp();
  Inner inner =
      isCheap(op, dims) ? makeCheap(op, dims) : inOrder(addInput(value), dims);
  others[key] = inner;
  return inner;
}

namespace {

/// An operand of a dot, before its transpose.
struct DotOperand {
  Value value;
  SideDims dims;
};

} // namespace

/// Returns the operand as it is before a transpose, if the dot can read it
/// there.
static DotOperand getDotOperand(Dot dot, unsigned side) {
  DotOperand result{dot->getOperand(side), sideDims(dot, side)};
  auto transpose = result.value.getDefiningOp<stablehlo::TransposeOp>();
  while (transpose && stablehlo::readBeforeTranspose(
                          transpose, result.dims.batch, result.dims.contract)) {
    result.value = transpose.getOperand();
    transpose = result.value.getDefiningOp<stablehlo::TransposeOp>();
  }
  return result;
}

/// Returns the index of each dimension of a shape after those of one element
/// are dropped; -1 for these.
static SmallVector<int64_t> indicesWithoutUnitDims(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> places;
  int64_t next = 0;
  for (int64_t size : shape)
    places.push_back(size == 1 ? -1 : next++);
  return places;
}

static SmallVector<int64_t> pick(ArrayRef<int64_t> list,
                                 ArrayRef<int64_t> places) {
  SmallVector<int64_t> result;
  for (int64_t dim : list)
    if (places[dim] >= 0)
      result.push_back(places[dim]);
  return result;
}

/// Returns the transpose that is the only reader of a dot's result; else null.
static stablehlo::TransposeOp onlyTranspose(Dot dot) {
  return dot->hasOneUse() ? dyn_cast<stablehlo::TransposeOp>(*dot->user_begin())
                          : stablehlo::TransposeOp();
}

/// Makes scores from two inputs.
Inner AttentionBuilder::makeScoreDot(Dot dot) {
  Value values[2];
  SideDims dims[2];
  for (unsigned i = 0; i < 2; ++i) {
    DotOperand side = getDotOperand(dot, i);
    values[i] = addInput(side.value);
    SmallVector<int64_t> places = indicesWithoutUnitDims(shapeOf(side.value));
    dims[i] = {pick(side.dims.batch, places), pick(side.dims.contract, places)};
  }
  Value result = makeDot(builder, dot, values[0], values[1], dims[0], dims[1]);
  copies[dot] = result.getDefiningOp();
  return inOrder(result, scores.dims.find(dot.getResult())->second);
}

/// Makes a reduction over some dimensions of the attention.
Inner AttentionBuilder::makeReduction(Sum op,
                                      function_ref<bool(int)> isReduced) {
  const Dims &outer = scores.dims.find(op->getOperand(0))->second;
  Inner input = readMember(op->getOperand(0));
  input = {extend(input, sorted(outer)), sorted(outer)};
  Dims left;
  SmallVector<int64_t> places;
  for (auto [place, dim] : llvm::enumerate(input.dims)) {
    if (isReduced(dim))
      places.push_back(place);
    else
      left.push_back(dim);
  }
  Inner init = read(op->getOperand(1), Dims());
  return {fp8::makeReduction(builder, op, input.value, init.value, places),
          left};
}

/// Makes the reduction of rows of scores.
Inner AttentionBuilder::makeRow(Sum op) {
  return makeReduction(op, [&](int dim) { return scores.isKey(dim); });
}

/// Whether `sum` sums over `dim` inside. Only gradients of biases are summed
/// over batches there; other sums have a part for each batch.
bool AttentionBuilder::isSummedInside(Sum sum, int dim) const {
  return !llvm::is_contained(scores.getDimsLeft(sum), dim) &&
         (scores.isBiasGradient(sum) || scores.isQuery(dim) ||
          scores.isKey(dim));
}

/// Makes a sum of scores, or its parts.
Inner AttentionBuilder::makeReadingSum(Sum sum) {
  return makeReduction(sum, [&](int dim) { return isSummedInside(sum, dim); });
}

Inner AttentionBuilder::readMember(Value value) {
  auto it = members.find(value);
  if (it != members.end())
    return it->second;
  Operation *op = value.getDefiningOp();
  Inner inner;
  if (auto dot = dyn_cast<Dot>(op))
    inner = makeScoreDot(dot);
  else if (auto reduce = dyn_cast<stablehlo::ReduceOp>(op))
    inner = makeRow(reduce);
  else if (stablehlo::worksByElement(op))
    inner = makeElementwise(op, scores.dims.find(value)->second);
  else
    // Transposes, reshapes and broadcasts do not change the elements.
    inner = readMember(op->getOperand(0));
  members[value] = inner;
  return inner;
}

/// Makes the product of scores and another operand, without dimensions of one
/// element.
Value AttentionBuilder::makeReadingDot(Dot dot) {
  unsigned side = scores.scoreOperand(dot);
  Value score = dot->getOperand(side);
  DotOperand other = getDotOperand(dot, 1 - side);
  const Dims &outer = scores.dims.find(score)->second;
  Inner inner = readMember(score);
  Dims whole = sorted(outer);
  Value values[2];
  SideDims dims[2];
  values[side] = extend(inner, whole);
  values[1 - side] = addInput(other.value);
  // The index inside of each dimension of the score operand.
  SmallVector<int64_t> places;
  for (int dim : outer)
    places.push_back(dim < 0 ? -1 : llvm::find(whole, dim) - whole.begin());
  SideDims own = sideDims(dot, side);
  SmallVector<int64_t> otherPlaces =
      indicesWithoutUnitDims(shapeOf(other.value));
  dims[side] = {pick(own.batch, places), pick(own.contract, places)};
  dims[1 - side] = {pick(other.dims.batch, otherPlaces),
                    pick(other.dims.contract, otherPlaces)};
  Value result = makeDot(builder, dot, values[0], values[1], dims[0], dims[1]);
  copies[dot] = result.getDefiningOp();
  // Free dimensions of the scores are in ascending order inside.
  SmallVector<int64_t> free = pick(own.getFree(outer.size()), places);
  int64_t rank = tensorOf(result).getRank();
  int64_t begin = side == 0 ? dims[0].batch.size() : rank - free.size();
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(rank));
  for (auto [i, place] : llvm::enumerate(placesInOrder<int64_t>(free)))
    permutation[begin + i] = begin + place;
  return transposed(result, permutation);
}

/// Returns a member as it is outside, without dimensions of one element.
Value AttentionBuilder::makeOuter(Value member) {
  const Dims &dims = scores.dims.find(member)->second;
  Dims outer;
  llvm::copy_if(dims, std::back_inserter(outer),
                [](int dim) { return dim >= 0; });
  return transposed(extend(readMember(member), sorted(dims)),
                    placesInOrder<int>(outer));
}

//===----------------------------------------------------------------------===//
// The op
//===----------------------------------------------------------------------===//

/// Creates the op before the last reader, with its inputs reshaped before it.
Operation *AttentionBuilder::createOp() {
  Operation *last = readers.front();
  for (Operation *reader : readers)
    if (last->isBeforeInBlock(reader))
      last = reader;
  builder.setInsertionPoint(last);
  SmallVector<Value> operands;
  for (Value input : inputs)
    operands.push_back(makeReshape(builder, input.getLoc(), input,
                                   withoutUnits(shapeOf(input))));
  SmallVector<Type> types(ValueRange(yields).getTypes());
  Operation *op =
      isBackward(scores, readers)
          ? AttentionBackwardOp::create(builder, last->getLoc(), types,
                                        operands)
                .getOperation()
          : AttentionOp::create(builder, last->getLoc(), types, operands)
                .getOperation();
  op->getRegion(0).push_back(body);
  op->setAttr(FP8Dialect::kSoftmaxVerdictAttrName,
              makeVerdict(scores, readers, ScoreStorage::Tiled,
                          "computed tile by tile", nullptr));
  return op;
}

/// Erases an op outside. The report has one row for each dot of the user's, so
/// the copy inside gets the verdict.
void AttentionBuilder::eraseOutside(Operation *op) {
  VerdictAttr verdict = getVerdict(op);
  if (Operation *copy = copies.lookup(op);
      copy && verdict && !op->hasAttr(FP8Dialect::kRecomputeAttrName))
    copy->setAttr(FP8Dialect::kVerdictAttrName, verdict);
  op->erase();
}

/// Sums the parts of a sum over the dimensions that are left, and puts these
/// into their order outside.
Value AttentionBuilder::finishSum(Sum sum, Value inside) {
  const Dims &dims = scores.readDims(sum);
  Dims inner = sorted(dims), left = scores.getDimsLeft(sum), outer;
  llvm::erase_if(inner, [&](int dim) { return isSummedInside(sum, dim); });
  SmallVector<int64_t> places;
  for (auto [place, dim] : llvm::enumerate(inner))
    if (!llvm::is_contained(left, dim))
      places.push_back(place);
  if (!places.empty())
    inside =
        fp8::makeReduction(builder, sum, inside, sum->getOperand(1), places);
  for (auto [place, dim] : llvm::enumerate(dims))
    if (llvm::is_contained(left, dim))
      outer.push_back(dim);
  return transposed(inside, placesInOrder<int>(outer));
}

void AttentionBuilder::replaceResults(Operation *op) {
  builder.setInsertionPointAfter(op);
  for (auto [old, result] : llvm::zip(results, op->getResults())) {
    auto sum = old.getDefiningOp<Sum>();
    Value value = sum && llvm::is_contained(readers, sum)
                      ? finishSum(sum, result)
                      : result;
    Value shaped = makeReshape(builder, old.getLoc(), value, shapeOf(old));
    old.replaceUsesWithIf(shaped, [&](OpOperand &use) {
      return !inside.contains(use.getOwner());
    });
  }
  // Erase readers first.
  for (Operation *reader : readers) {
    auto dot = dyn_cast<Dot>(reader);
    if (stablehlo::TransposeOp transpose =
            dot ? onlyTranspose(dot) : stablehlo::TransposeOp())
      transpose->erase();
    eraseOutside(reader);
  }
  for (Value value : llvm::reverse(needed))
    if (value.use_empty())
      eraseOutside(value.getDefiningOp());
}

/// Puts a reader into the body.
void AttentionBuilder::addReader(Operation *reader) {
  if (auto sum = dyn_cast<Sum>(reader)) {
    results.push_back(sum->getResult(0));
    yields.push_back(makeReadingSum(sum).value);
    return;
  }
  auto dot = cast<Dot>(reader);
  Value result = dot.getResult(), inner = makeReadingDot(dot);
  if (stablehlo::TransposeOp transpose = onlyTranspose(dot)) {
    inner = transposed(inner,
                       pick(transpose.getPermutation(),
                            indicesWithoutUnitDims(shapeOf(dot.getResult()))));
    result = transpose;
  }
  results.push_back(result);
  yields.push_back(inner);
}

LogicalResult AttentionBuilder::run() {
  if (!chooseReaders())
    return failure();
  for (Value member : scores.members)
    if (!scores.isScore(member) && !needed.contains(member) &&
        !member.use_empty() &&
        llvm::any_of(member.getDefiningOp()->getOperands(),
                     [&](Value operand) { return scores.isScore(operand); }))
      addRow(member);
  body = new Block;
  builder.setInsertionPointToEnd(body);
  llvm::for_each(readers, [&](Operation *op) { addReader(op); });
  // Rows that ops outside read become results.
  for (Value value : needed)
    if (!scores.isScore(value) && isReadOutside(value)) {
      results.push_back(value);
      yields.push_back(makeOuter(value));
    }
  YieldOp::create(builder, results.front().getLoc(), yields);
  replaceResults(createOp());
  return success();
}
