//===- FormAttention.cpp - Softmaxes over scores become ops ---------------===//
//
// All that is between the dots that make scores and those that contract them
// moves into the body of one op. There, each tensor has exactly the dimensions
// of the attention that it depends on, in one order: transposes, reshapes and
// most broadcasts have no place in it. What is as large as the scores and needs
// only iotas, constants and small tensors (a causal mask) moves in too.
//
//===----------------------------------------------------------------------===//

#include "Scores.h"

#include "../SmallTensors.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"

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
using Dims = Scores::Dims;

namespace {

/// A value of the body and the dimensions of the attention that it has, in
/// ascending order unless it is the operand of a dot.
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

  /// Fails, with nothing changed, where results would be inputs.
  LogicalResult run();

private:
  // What is inside.
  void collect(Value value);
  SmallVector<Dot> dotsThatFeedTheOp();
  bool rowsFeedTheOp();
  bool chooseDots();

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
  Inner makeReduction(stablehlo::ReduceOp op);
  Value makeReadingDot(Dot dot);
  Value extend(const Inner &inner, ArrayRef<int> dims);
  Value transposed(Value value, ArrayRef<int64_t> permutation);
  RankedTensorType typeOf(ArrayRef<int> dims, Type element);
  bool isCheap(Operation *op, const Dims &dims);

  // The op.
  Operation *createOp();
  void replaceResults(Operation *op);

  const Scores &scores;
  Block &block;
  OpBuilder builder;
  /// The dots that contract scores in the op.
  SmallVector<Dot> dots;
  /// Members that the dots need.
  llvm::SetVector<Value> needed;
  SmallVector<Value> inputs, results, yields;
  Block *body = nullptr;
  DenseMap<Value, Value> arguments;
  DenseMap<Value, Inner> members;
  /// What is no member, by the dimensions that it is read along.
  std::map<std::pair<const void *, Dims>, Inner> others;
};

} // namespace

/// Dimensions of more than one element, in ascending order.
static Dims sorted(ArrayRef<int> dims) {
  Dims result;
  for (int dim : dims)
    if (dim >= 0)
      result.push_back(dim);
  llvm::sort(result);
  return result;
}

static SmallVector<int64_t> withoutUnits(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> result;
  llvm::copy_if(shape, std::back_inserter(result),
                [](int64_t size) { return size != 1; });
  return result;
}

//===----------------------------------------------------------------------===//
// What is inside
//===----------------------------------------------------------------------===//

void AttentionBuilder::collect(Value value) {
  if (!scores.isMember(value) || needed.contains(value))
    return;
  for (Value operand : value.getDefiningOp()->getOperands())
    collect(operand);
  needed.insert(value);
}

/// The dots that the op would have whose results reach one of its inputs.
SmallVector<Dot> AttentionBuilder::dotsThatFeedTheOp() {
  DenseSet<Operation *> inside;
  for (Value value : needed)
    inside.insert(value.getDefiningOp());
  inside.insert(dots.begin(), dots.end());
  return llvm::to_vector(llvm::make_filter_range(dots, [&](Dot dot) {
    DenseSet<Operation *> seen;
    SmallVector<Operation *> worklist{dot};
    while (!worklist.empty())
      for (Operation *user : worklist.pop_back_val()->getUsers()) {
        Operation *ancestor = block.findAncestorOpInBlock(*user);
        if (inside.contains(ancestor))
          return true;
        if (ancestor && seen.insert(ancestor).second)
          worklist.push_back(ancestor);
      }
    return false;
  }));
}

/// Rows that others read may not reach an input either.
bool AttentionBuilder::rowsFeedTheOp() {
  DenseSet<Operation *> inside, seen;
  SmallVector<Operation *> worklist;
  for (Value value : needed)
    inside.insert(value.getDefiningOp());
  inside.insert(dots.begin(), dots.end());
  auto addUsers = [&](Operation *op) {
    for (Operation *user : op->getUsers()) {
      Operation *ancestor = block.findAncestorOpInBlock(*user);
      if (ancestor && !inside.contains(ancestor) &&
          seen.insert(ancestor).second)
        worklist.push_back(ancestor);
    }
  };
  for (Value value : needed)
    if (!scores.isScore(value))
      addUsers(value.getDefiningOp());
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (llvm::any_of(op->getUsers(), [&](Operation *user) {
          return inside.contains(block.findAncestorOpInBlock(*user));
        }))
      return true;
    addUsers(op);
  }
  return false;
}

/// Chooses the dots of the op. Where a backward pass computes the forward pass
/// again, that part, on which the other depends, is an op of its own.
bool AttentionBuilder::chooseDots() {
  auto collectAll = [&] {
    needed.clear();
    for (Dot dot : dots)
      collect(dot->getOperand(scores.scoreOperand(dot)));
  };
  dots = scores.readingDots;
  collectAll();
  while (true) {
    SmallVector<Dot> early = dotsThatFeedTheOp();
    if (early.empty())
      return !rowsFeedTheOp();
    if (early.size() == dots.size())
      return false;
    dots = std::move(early);
    collectAll();
  }
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

/// What `value` is without barriers: the body is apart from all else anyway.
static Value behindBarriers(Value value) {
  while (auto barrier = value.getDefiningOp<stablehlo::OptimizationBarrierOp>())
    value = barrier->getOperand(cast<OpResult>(value).getResultNumber());
  return value;
}

/// The argument of the body that is `value`, without dimensions of one element.
Value AttentionBuilder::addInput(Value value) {
  value = behindBarriers(value);
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

/// `inner` with all of `dims`.
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

/// The elements of a constant that are all the same; null for other ops.
static DenseElementsAttr getSplat(Operation *op) {
  auto constant = dyn_cast<stablehlo::ConstantOp>(op);
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue())
                           : DenseElementsAttr();
  return elements && elements.isSplat() ? elements : DenseElementsAttr();
}

/// Is `op`, whose result has `dims`, better computed inside?
bool AttentionBuilder::isCheap(Operation *op, const Dims &dims) {
  if (!op)
    return false;
  if (isa<stablehlo::IotaOp, stablehlo::BroadcastInDimOp>(op) || getSplat(op))
    return true;
  return (isElementwiseOp(op) || isa<stablehlo::TransposeOp>(op)) &&
         scores.haveQueriesAndKeys(dims);
}

/// The operands, each with the dimensions of the result, and the op again.
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

/// `value`, whose dimensions are `dims` without those of one element, with its
/// dimensions in ascending order.
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

/// What `op`, which is cheap, computes.
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
  if (DenseElementsAttr splat = getSplat(op)) {
    auto type = RankedTensorType::get({}, splat.getElementType());
    return {stablehlo::ConstantOp::create(builder, op->getLoc(), type,
                                          splat.resizeSplat(type)),
            Dims()};
  }
  return makeElementwise(op, dims);
}

/// A value whose dimensions are `dims` of the attention.
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

/// Lists of the dimensions of one operand of a dot.
namespace {
struct SideDims {
  SmallVector<int64_t> batch, contract;
};
} // namespace

static SideDims sideDims(Dot dot, unsigned side) {
  auto numbers = dot.getDotDimensionNumbers();
  if (side == 0)
    return {SmallVector<int64_t>(numbers.getLhsBatchingDimensions()),
            SmallVector<int64_t>(numbers.getLhsContractingDimensions())};
  return {SmallVector<int64_t>(numbers.getRhsBatchingDimensions()),
          SmallVector<int64_t>(numbers.getRhsContractingDimensions())};
}

/// Where the dimensions of a shape are once those of one element are gone; -1
/// for these.
static SmallVector<int64_t> placesWithoutUnits(ArrayRef<int64_t> shape) {
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

namespace {
/// An operand of a dot, behind a transpose.
struct Side {
  Value value;
  SideDims dims;
};
} // namespace

/// The operand as it is before it is transposed for the dot, if the dot can
/// read it so: free dimensions keep their order.
static Side sideOf(Dot dot, unsigned side) {
  Side result{dot->getOperand(side), sideDims(dot, side)};
  while (auto transpose =
             result.value.getDefiningOp<stablehlo::TransposeOp>()) {
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    SmallVector<int64_t> free;
    for (auto [dim, from] : llvm::enumerate(permutation))
      if (!llvm::is_contained(result.dims.batch, dim) &&
          !llvm::is_contained(result.dims.contract, dim))
        free.push_back(from);
    if (!llvm::is_sorted(free))
      break;
    for (SmallVector<int64_t> *dims :
         {&result.dims.batch, &result.dims.contract})
      for (int64_t &dim : *dims)
        dim = permutation[dim];
    result.value = transpose.getOperand();
  }
  return result;
}

/// The transpose that alone reads the result of a dot.
static stablehlo::TransposeOp onlyTranspose(Dot dot) {
  return dot->hasOneUse() ? dyn_cast<stablehlo::TransposeOp>(*dot->user_begin())
                          : stablehlo::TransposeOp();
}

/// The dot `like` of other operands.
static Value makeDot(OpBuilder &builder, Dot like, Value lhs, Value rhs,
                     const SideDims &left, const SideDims &right) {
  SmallVector<int64_t> shape;
  for (int64_t dim : left.batch)
    shape.push_back(tensorOf(lhs).getDimSize(dim));
  for (auto [value, side] : {std::pair(lhs, &left), std::pair(rhs, &right)})
    for (int64_t dim = 0; dim < tensorOf(value).getRank(); ++dim)
      if (!llvm::is_contained(side->batch, dim) &&
          !llvm::is_contained(side->contract, dim))
        shape.push_back(tensorOf(value).getDimSize(dim));
  auto numbers = stablehlo::DotDimensionNumbersAttr::get(
      builder.getContext(), left.batch, right.batch, left.contract,
      right.contract);
  return Dot::create(builder, like.getLoc(),
                     tensorOf(like.getResult()).clone(shape), lhs, rhs, numbers,
                     like.getPrecisionConfigAttr(), like.getAlgorithmAttr());
}

/// Scores from two inputs.
Inner AttentionBuilder::makeScoreDot(Dot dot) {
  Value values[2];
  SideDims dims[2];
  for (unsigned i = 0; i < 2; ++i) {
    Side side = sideOf(dot, i);
    values[i] = addInput(side.value);
    SmallVector<int64_t> places = placesWithoutUnits(shapeOf(side.value));
    dims[i] = {pick(side.dims.batch, places), pick(side.dims.contract, places)};
  }
  Value result = makeDot(builder, dot, values[0], values[1], dims[0], dims[1]);
  return inOrder(result, scores.dims.find(dot.getResult())->second);
}

Inner AttentionBuilder::makeReduction(stablehlo::ReduceOp op) {
  const Dims &outer = scores.dims.find(op->getOperand(0))->second;
  Inner input = readMember(op->getOperand(0));
  input = {extend(input, sorted(outer)), sorted(outer)};
  Dims reduced;
  for (int64_t dim : op.getDimensions())
    if (outer[dim] >= 0)
      reduced.push_back(outer[dim]);
  Dims left;
  SmallVector<int64_t> places;
  for (auto [place, dim] : llvm::enumerate(input.dims)) {
    if (llvm::is_contained(reduced, dim))
      places.push_back(place);
    else
      left.push_back(dim);
  }
  Inner init = read(op->getOperand(1), Dims());
  OperationState state(op.getLoc(), op->getName());
  state.addOperands({input.value, init.value});
  state.addTypes(typeOf(left, tensorOf(op->getResult(0)).getElementType()));
  state.addAttribute("dimensions", builder.getDenseI64ArrayAttr(places));
  IRMapping mapping;
  op.getBody().cloneInto(state.addRegion(), mapping);
  return {builder.create(state)->getResult(0), left};
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
    inner = makeReduction(reduce);
  else if (isElementwiseOp(op))
    inner = makeElementwise(op, scores.dims.find(value)->second);
  else
    // Transposes, reshapes and broadcasts: the same elements.
    inner = readMember(op->getOperand(0));
  members[value] = inner;
  return inner;
}

/// A product of scores with something else; without dimensions of one element.
Value AttentionBuilder::makeReadingDot(Dot dot) {
  unsigned side = scores.scoreOperand(dot);
  Value score = dot->getOperand(side);
  Side other = sideOf(dot, 1 - side);
  const Dims &outer = scores.dims.find(score)->second;
  Inner inner = readMember(score);
  Dims whole = sorted(outer);
  Value values[2];
  SideDims dims[2];
  values[side] = extend(inner, whole);
  values[1 - side] = addInput(other.value);
  // The place of a dimension of the score operand inside.
  SmallVector<int64_t> places;
  for (int dim : outer)
    places.push_back(dim < 0 ? -1 : llvm::find(whole, dim) - whole.begin());
  SideDims own = sideDims(dot, side);
  SmallVector<int64_t> otherPlaces = placesWithoutUnits(shapeOf(other.value));
  dims[side] = {pick(own.batch, places), pick(own.contract, places)};
  dims[1 - side] = {pick(other.dims.batch, otherPlaces),
                    pick(other.dims.contract, otherPlaces)};
  Value result = makeDot(builder, dot, values[0], values[1], dims[0], dims[1]);
  // Free dimensions of the scores are in ascending order inside.
  SmallVector<int64_t> freePlaces;
  for (auto [dim, place] : llvm::enumerate(places))
    if (place >= 0 && !llvm::is_contained(own.batch, dim) &&
        !llvm::is_contained(own.contract, dim))
      freePlaces.push_back(place);
  if (llvm::is_sorted(freePlaces))
    return result;
  SmallVector<int64_t> ascending(freePlaces), permutation;
  llvm::sort(ascending);
  int64_t rank = tensorOf(result).getRank();
  int64_t begin =
      dims[0].batch.size() + (side == 0 ? 0
                                        : rank - int64_t(dims[0].batch.size()) -
                                              int64_t(freePlaces.size()));
  for (int64_t i = 0; i < rank; ++i)
    permutation.push_back(i);
  for (auto [i, place] : llvm::enumerate(freePlaces))
    permutation[begin + i] =
        begin + (llvm::find(ascending, place) - ascending.begin());
  return transposed(result, permutation);
}

//===----------------------------------------------------------------------===//
// The op
//===----------------------------------------------------------------------===//

/// The op in front of the last dot, with its inputs reshaped before it.
Operation *AttentionBuilder::createOp() {
  Operation *last = dots.front();
  bool isBackward = false;
  for (Dot dot : dots) {
    if (last->isBeforeInBlock(dot))
      last = dot;
    unsigned side = scores.scoreOperand(dot);
    const Dims &dims = scores.dims.find(dot->getOperand(side))->second;
    for (int64_t dim : sideDims(dot, side).contract)
      isBackward |= scores.isQuery(dims[dim]);
  }
  builder.setInsertionPoint(last);
  SmallVector<Value> operands;
  for (Value input : inputs)
    operands.push_back(makeReshape(builder, input.getLoc(), input,
                                   withoutUnits(shapeOf(input))));
  SmallVector<Type> types(ValueRange(yields).getTypes());
  Operation *op =
      isBackward ? AttentionBackwardOp::create(builder, last->getLoc(), types,
                                               operands)
                       .getOperation()
                 : AttentionOp::create(builder, last->getLoc(), types, operands)
                       .getOperation();
  op->getRegion(0).push_back(body);
  return op;
}

void AttentionBuilder::replaceResults(Operation *op) {
  builder.setInsertionPointAfter(op);
  for (auto [old, result] : llvm::zip(results, op->getResults())) {
    Value shaped = makeReshape(builder, old.getLoc(), result, shapeOf(old));
    old.replaceUsesWithIf(shaped, [&](OpOperand &use) {
      Operation *user = use.getOwner();
      return user->getNumResults() != 1 || !needed.contains(user->getResult(0));
    });
  }
  // Readers first.
  for (Dot dot : dots) {
    if (stablehlo::TransposeOp transpose = onlyTranspose(dot))
      transpose->erase();
    dot->erase();
  }
  for (Value value : llvm::reverse(needed))
    if (value.use_empty())
      value.getDefiningOp()->erase();
}

LogicalResult AttentionBuilder::run() {
  if (!chooseDots())
    return failure();
  body = new Block;
  builder.setInsertionPointToEnd(body);
  for (Dot dot : dots) {
    Value result = dot.getResult(), inner = makeReadingDot(dot);
    if (stablehlo::TransposeOp transpose = onlyTranspose(dot)) {
      inner =
          transposed(inner, pick(transpose.getPermutation(),
                                 placesWithoutUnits(shapeOf(dot.getResult()))));
      result = transpose;
    }
    results.push_back(result);
    yields.push_back(inner);
  }
  // Values of rows that others read.
  for (Value value : needed) {
    if (scores.isScore(value) ||
        llvm::all_of(value.getUsers(), [&](Operation *user) {
          return user->getNumResults() == 1 &&
                 needed.contains(user->getResult(0));
        }))
      continue;
    Inner inner = readMember(value);
    Dims outer;
    for (int dim : scores.dims.find(value)->second)
      if (dim >= 0)
        outer.push_back(dim);
    Value whole = extend(inner, sorted(outer));
    SmallVector<int64_t> permutation;
    Dims ascending = sorted(outer);
    for (int dim : outer)
      permutation.push_back(llvm::find(ascending, dim) - ascending.begin());
    results.push_back(value);
    yields.push_back(transposed(whole, permutation));
  }
  YieldOp::create(builder, results.front().getLoc(), yields);
  replaceResults(createOp());
  return success();
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
    for (Block *block : blocks) {
      // Rows that a forward pass hands to a backward pass keep the two apart
      // only once the first is an op.
      while (form(*block, /*isLast=*/false))
        ;
      form(*block, /*isLast=*/true);
    }
  }

private:
  /// Makes ops of the softmaxes of a block; true if there were some. Says in
  /// the `isLast` pass what became of the others.
  bool form(Block &block, bool isLast) {
    bool changed = false;
    for (const Scores &scores : findScores(block)) {
      Dot dot = scores.scoreDots.front();
      if (!scores.problem.empty()) {
        if (isLast)
          leave(dot, scores.obstacle, scores.problem);
      } else if (succeeded(AttentionBuilder(scores, block).run())) {
        ++numFormed;
        changed = true;
      } else if (isLast) {
        leave(dot, dot, "its result is one of its inputs");
      }
    }
    // Results may be read before what was the last dot.
    if (changed)
      sortTopologically(&block);
    return changed;
  }

  void leave(Operation *dot, Operation *obstacle, StringRef why) {
    ++numLeft;
    if (!emitRemarks)
      return;
    InFlightDiagnostic remark = dot->emitRemark()
                                << "scores are stored: " << why;
    if (obstacle && obstacle != dot)
      remark.attachNote(obstacle->getLoc()) << "here";
  }
};
} // namespace
