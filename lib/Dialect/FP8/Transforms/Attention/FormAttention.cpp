//===- FormAttention.cpp - Forms ops of softmaxes over scores -------------===//
//
// All ops between the dots that make scores and those that contract them move
// into the body of one op. There, each tensor has exactly the dimensions of the
// attention that it depends on, in one order, so that transposes, reshapes and
// most broadcasts disappear. A value that is as large as the scores and needs
// only iotas, constants and small tensors (a causal mask) moves in, too.
//
//===----------------------------------------------------------------------===//

#include "Scores.h"

#include "../EffectiveRecipe.h"
#include "../SmallTensors.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/IR/Barriers.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"
#include "fp8/Dialect/StableHLO/IR/DotOperands.h"
#include "fp8/Dialect/StableHLO/IR/Reductions.h"
#include "fp8/Support/Locations.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include <map>

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8FORMATTENTION
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;
using Dot = stablehlo::DotGeneralOp;
using Sum = Scores::Sum;
using Dims = Scores::Dims;

namespace {

/// A value of the body, with the dimensions of the attention that it has. They
/// are in ascending order except for the operand of a dot.
struct Inner {
  Value value;
  Dims dims;
};

/// Builds the op of one attention.
class AttentionBuilder {
public:
  AttentionBuilder(const Scores &scores, Block &block)
      : scores(scores), block(block), builder(block.getParent()->getContext()) {
  }

  /// Builds the op. Fails and changes nothing if results would be inputs.
  LogicalResult run();

private:
  // Choosing what is inside.
  void collect(Value value);
  void setReaders(SmallVector<Operation *> some);
  bool isInputOfOp(Operation *result) const;
  bool isReadOutside(Value value) const;
  bool chooseReaders();
  void addRow(Value row);

  // The body.
  Value addInput(Value value);
  Inner inOrder(Value value, ArrayRef<int> dims);
  Inner read(Value value, const Dims &dims);
  Inner readMember(Value value);
  Inner makeScoreDot(Dot dot);
  Inner makeElementwise(Operation *op, const Dims &dims);
  Inner makeBroadcast(stablehlo::BroadcastInDimOp op, const Dims &dims);
  Inner makeIota(stablehlo::IotaOp op, const Dims &dims);
  Inner makeCheap(Operation *op, const Dims &dims);
  Inner makeReduction(Sum op, function_ref<bool(int)> isReduced);
  Inner makeRow(Sum op);
  Inner makeReadingSum(Sum sum);
  bool isSummedInside(Sum sum, int dim) const;
  Value makeReadingDot(Dot dot);
  void addReader(Operation *reader);
  Value makeOuter(Value member);
  Value extend(const Inner &inner, ArrayRef<int> dims);
  Value transposed(Value value, ArrayRef<int64_t> permutation);
  RankedTensorType typeOf(ArrayRef<int> dims, Type element);
  bool isCheap(Operation *op, const Dims &dims);

  // The op.
  Operation *createOp();
  Value finishSum(Sum sum, Value inside);
  void replaceResults(Operation *op);
  void eraseOutside(Operation *op);

  const Scores &scores;
  Block &block;
  OpBuilder builder;
  /// The dots and sums that contract scores in the op.
  SmallVector<Operation *> readers;
  /// The members that the readers need.
  llvm::SetVector<Value> needed;
  /// The readers, and the ops that compute what they need.
  DenseSet<Operation *> inside;
  SmallVector<Value> inputs, results, yields;
  Block *body = nullptr;
  /// The copies inside of dots outside.
  DenseMap<Operation *, Operation *> copies;
  DenseMap<Value, Value> arguments;
  DenseMap<Value, Inner> members;
  /// Values that are not members, by the dimensions along which they are read.
  std::map<std::pair<const void *, Dims>, Inner> others;
};

} // namespace

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

/// The batching and contracting dimensions of one operand of a dot.
struct SideDims {
  SmallVector<int64_t> batch, contract;

  SmallVector<int64_t> getFree(int64_t rank) const {
    return stablehlo::getFreeDims(rank, batch, contract);
  }
};

/// An operand of a dot, before its transpose.
struct DotOperand {
  Value value;
  SideDims dims;
};

} // namespace

static SideDims sideDims(Dot dot, unsigned side) {
  stablehlo::OperandDims dims = stablehlo::getOperandDims(dot, side);
  return {SmallVector<int64_t>(dims.batching),
          SmallVector<int64_t>(dims.contracting)};
}

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

/// Makes a dot like `like`, on other operands.
static Value makeDot(OpBuilder &builder, Dot like, Value lhs, Value rhs,
                     const SideDims &left, const SideDims &right) {
  SmallVector<int64_t> shape;
  for (int64_t dim : left.batch)
    shape.push_back(tensorOf(lhs).getDimSize(dim));
  for (auto [value, side] : {std::pair(lhs, &left), std::pair(rhs, &right)})
    for (int64_t dim : side->getFree(tensorOf(value).getRank()))
      shape.push_back(tensorOf(value).getDimSize(dim));
  auto numbers = stablehlo::DotDimensionNumbersAttr::get(
      builder.getContext(), left.batch, right.batch, left.contract,
      right.contract);
  return Dot::create(builder, like.getLoc(),
                     tensorOf(like.getResult()).clone(shape), lhs, rhs, numbers,
                     like.getPrecisionConfigAttr(), like.getAlgorithmAttr());
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

/// Whether any of the ops that read scores sums over queries, batches or heads.
static bool isBackward(const Scores &scores, ArrayRef<Operation *> readers) {
  return llvm::any_of(readers, [&](Operation *reader) {
    auto dot = dyn_cast<Dot>(reader);
    const Dims &dims = scores.readDims(reader);
    return !dot ||
           llvm::any_of(sideDims(dot, scores.scoreOperand(dot)).contract,
                        [&](int64_t dim) { return scores.isQuery(dims[dim]); });
  });
}

/// Makes the verdict on the scores that `readers` read. If they are stored,
/// `obstacle` is the op that prevents the attention.
static SoftmaxVerdictAttr makeVerdict(const Scores &scores,
                                      ArrayRef<Operation *> readers,
                                      ScoreStorage kind, const Twine &reason,
                                      Operation *obstacle) {
  Dot dot = scores.scoreDots.front();
  VerdictAttr verdict = getVerdict(dot);
  auto extent = [&](unsigned begin, unsigned end) {
    return llvm::product_of(ArrayRef(scores.sizes).slice(begin, end - begin));
  };
  unsigned keys = scores.numBatch + scores.numQueries;
  MLIRContext *context = dot.getContext();
  return SoftmaxVerdictAttr::get(
      context, kind, isBackward(scores, readers), extent(0, scores.numBatch),
      extent(scores.numBatch, keys), extent(keys, scores.sizes.size()),
      verdict.getLoops(), verdict.getInBranch(), verdict.getRecomputed(),
      StringAttr::get(context, reason),
      obstacle ? StringAttr::get(context, describeLocation(obstacle->getLoc()))
               : StringAttr());
}

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

/// Returns, for each dimension of a dot's result, where it comes from: the
/// number of a dimension of the scores, which are operand `side` and have
/// `ownRank` dimensions, or `ownRank` plus that of a dimension of the other
/// one.
static SmallVector<int64_t> resultDims(const SideDims &own, int64_t ownRank,
                                       const SideDims &other, int64_t otherRank,
                                       unsigned side) {
  SmallVector<int64_t> dims = own.batch, free = own.getFree(ownRank), rest;
  for (int64_t dim : other.getFree(otherRank))
    rest.push_back(ownRank + dim);
  llvm::append_range(dims, side == 0 ? free : rest);
  llvm::append_range(dims, side == 0 ? rest : free);
  return dims;
}

/// Makes contracted heads batches. Returns their places among these.
static SmallVector<int64_t>
moveContractedHeads(SideDims &own, SideDims &other,
                    function_ref<bool(int64_t)> isHead) {
  SmallVector<int64_t> places;
  for (unsigned i = own.contract.size(); i-- > 0;) {
    if (!isHead(own.contract[i]))
      continue;
    places.push_back(own.batch.size());
    for (SideDims *each : {&own, &other}) {
      each->batch.push_back(each->contract[i]);
      each->contract.erase(each->contract.begin() + i);
    }
  }
  return places;
}

/// Makes heads batches that only the scores have. Returns the other operand,
/// broadcast to them.
static Value moveFreeHeads(OpBuilder &builder, Value scores, SideDims &own,
                           Value otherValue, SideDims &other,
                           function_ref<bool(int64_t)> isHead) {
  SmallVector<int64_t> shape(shapeOf(otherValue));
  auto places = llvm::to_vector(llvm::seq<int64_t>(0, shape.size()));
  for (int64_t place : own.getFree(shapeOf(scores).size()))
    if (isHead(place)) {
      own.batch.push_back(place);
      other.batch.push_back(shape.size());
      shape.push_back(shapeOf(scores)[place]);
    }
  if (shape.size() == places.size())
    return otherValue;
  return stablehlo::BroadcastInDimOp::create(
      builder, otherValue.getLoc(), tensorOf(otherValue).clone(shape),
      otherValue, builder.getDenseI64ArrayAttr(places));
}

/// Turns a dot of scores with a key that all heads share, where other dots have
/// keys of each head, into one of each head: the key is broadcast to heads, and
/// its gradient summed over them. Returns false if `scores` have no such
/// obstacle.
static bool separateHeads(const Scores &scores) {
  auto dot = dyn_cast_or_null<Dot>(scores.obstacle);
  if (!dot || !isAttentionDot(dot) ||
      scores.isScore(dot.getLhs()) == scores.isScore(dot.getRhs()))
    return false;
  unsigned side = scores.scoreOperand(dot);
  Value values[2] = {dot.getLhs(), dot.getRhs()};
  SideDims sides[2] = {sideDims(dot, 0), sideDims(dot, 1)};
  SideDims &own = sides[side], &other = sides[1 - side];
  int64_t ownRank = tensorOf(values[side]).getRank(),
          otherRank = tensorOf(values[1 - side]).getRank();
  size_t numBatch = own.batch.size();
  SmallVector<int64_t> before =
      resultDims(own, ownRank, other, otherRank, side);
  auto isHead = [&](int64_t place) {
    int dim = scores.readDims(dot)[place];
    return dim >= 0 && dim < static_cast<int>(scores.numBatch);
  };
  OpBuilder builder(dot);
  SmallVector<int64_t> places = moveContractedHeads(own, other, isHead);
  values[1 - side] = moveFreeHeads(builder, values[side], own, values[1 - side],
                                   other, isHead);
  if (own.batch.size() == numBatch)
    return false;
  SmallVector<int64_t> after = resultDims(
      own, ownRank, other, tensorOf(values[1 - side]).getRank(), side);
  for (int64_t place : places)
    after.erase(llvm::find(after, own.batch[place]));

  Location loc = dot.getLoc();
  auto parts =
      cast<Dot>(makeDot(builder, dot, values[0], values[1], sides[0], sides[1])
                    .getDefiningOp());
  parts->setDiscardableAttrs(dot->getDiscardableAttrDictionary());
  // Sums over heads are as exact as those of the dot.
  Type element = tensorOf(dot).getElementType(),
       wide = element.getIntOrFloatBitWidth() < 32 && !places.empty()
                  ? builder.getF32Type()
                  : element;
  parts.getResult().setType(tensorOf(parts).clone(wide));
  Value result = parts;
  if (!places.empty())
    result = fp8::makeReduction<stablehlo::AddOp>(
        builder, loc, result,
        makeZeros(builder, loc, RankedTensorType::get({}, wide)), places);
  if (wide != element)
    result = stablehlo::ConvertOp::create(
        builder, loc, tensorOf(result).clone(element), result);
  auto order = llvm::map_to_vector(before, [&](int64_t dim) -> int64_t {
    return llvm::find(after, dim) - after.begin();
  });
  if (!llvm::is_sorted(order))
    result =
        stablehlo::TransposeOp::create(builder, loc, dot.getType(), result,
                                       builder.getDenseI64ArrayAttr(order));
  dot.replaceAllUsesWith(result);
  dot.erase();
  return true;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct FormAttention : fp8::impl::FP8FormAttentionBase<FormAttention> {
  using FP8FormAttentionBase::FP8FormAttentionBase;

  void runOnOperation() override {
    SmallVector<Block *> blocks;
    getOperation().walk([&](Block *block) { blocks.push_back(block); });
    // Rows that a forward pass passes to a backward pass separate the two only
    // once the forward pass is an op.
    for (Block *block : blocks)
      while (form(*block))
        ;
  }

private:
  static SmallVector<Operation *> opsOf(const Scores &scores) {
    SmallVector<Operation *> ops(scores.scoreDots.begin(),
                                 scores.scoreDots.end());
    llvm::append_range(ops, scores.readers);
    for (Value member : scores.members)
      ops.push_back(member.getDefiningOp());
    return ops;
  }

  /// Makes ops of the softmaxes of a block. Returns true if there were any;
  /// else reports what became of those that are left.
  bool form(Block &block) {
    std::vector<Scores> lost, all = findScores(block, &lost);
    // In derivatives of derivatives a dot may belong to two attentions: its
    // result is the output of one and the scores of the other. Forming the
    // first replaces ops of the second, so that the second waits for the next
    // round.
    DenseSet<Operation *> replaced;
    bool changed = false;
    for (const Scores &scores : all) {
      SmallVector<Operation *> ops = opsOf(scores);
      if (scores.problem.empty() && !storeScores &&
          llvm::none_of(ops,
                        [&](Operation *op) { return replaced.contains(op); }) &&
          succeeded(AttentionBuilder(scores, block).run())) {
        ++numFormed;
        changed = true;
        replaced.insert_range(ops);
      }
    }
    for (const Scores &scores : all)
      changed |= !changed && !storeScores && separateHeads(scores);
    if (!changed) {
      // Other norms (of a product along its channels) are no softmax.
      llvm::erase_if(all, [](const Scores &s) { return !s.hasExponential(); });
      llvm::append_range(all, lost);
      llvm::for_each(all, [&](const Scores &scores) { leave(scores); });
      return false;
    }
    // Results may be read before the place of the last dot.
    sortTopologically(&block);
    return true;
  }

  std::string whyStored(const Scores &scores) const {
    if (storeScores)
      return "as asked for (store-scores)";
    return scores.problem.empty() ? "its result is one of its inputs"
                                  : scores.problem;
  }

  void leave(const Scores &scores) {
    ++numLeft;
    Dot dot = scores.scoreDots.front();
    std::string why = whyStored(scores);
    Operation *obstacle = storeScores ? nullptr : scores.obstacle;
    if (emitRemarks) {
      // Emit the remark before the dot has the verdict, because it prints the
      // dot.
      InFlightDiagnostic remark = dot->emitRemark()
                                  << "scores are stored: " << why;
      if (obstacle && obstacle != dot)
        remark.attachNote(obstacle->getLoc()) << "here";
    }
    dot->setAttr(FP8Dialect::kSoftmaxVerdictAttrName,
                 makeVerdict(scores, scores.readers, ScoreStorage::Stored, why,
                             obstacle));
  }
};
} // namespace
