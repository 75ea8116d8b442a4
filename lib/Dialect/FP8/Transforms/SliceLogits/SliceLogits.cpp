//===- SliceLogits.cpp - Large logits in slices of rows -------------------===//

#include "ExtendRows.h"
#include "LogitRows.h"

#include "../EffectiveRecipe.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Analysis/LinearLayers/LinearLayers.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8SLICELOGITS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;
using Dot = stablehlo::DotGeneralOp;

namespace {

/// Builds a loop over slices of the rows.
class SliceLoop {
public:
  SliceLoop(const LogitRows &logits, int64_t slices)
      : logits(logits), slices(slices), loc(logits.getDot().getLoc()),
        before(logits.getDot()->getContext()),
        inside(logits.getDot()->getContext()) {}
  void run();

private:
  /// A result that is read after the loop, and the carry that collects it. If
  /// only a transpose reads a sum of dots, the dots are transposed instead:
  /// that folds into them.
  struct Output {
    Value value;
    const RowWork *work;
    stablehlo::TransposeOp transpose;
    Type carry;
  };

  SmallVector<int64_t> shapeOfSlice(Value value, const RowDim &rows) const;
  Type typeOfCarry(Value value, const RowWork &work) const;
  void findOutputs();
  void makeLoop();
  void fillBody();
  void cloneOp(Operation *op, const RowWork &work);
  Value sliceOf(Value value, const RowDim &rows);
  bool followFromLarge(ArrayRef<RowOrigin> origins);
  bool followsFromLarge(Value value, const RowDim &rows);
  Value computeSlice(Value value, const RowDim &rows);
  Value readSlice(Value value, const RowDim &rows);
  Value countRows(RankedTensorType type, int64_t dim);
  Value nextCarry(const Output &output, Value carry);
  Value putSlice(Value stack, Value slice);
  Value combine(const Output &output, Value carry, Value part);
  Value joinSlices(Value stack, const RowDim &rows, Type type);
  void replaceOutputs();

  const LogitRows &logits;
  int64_t slices;
  Location loc;
  OpBuilder before, inside;
  SmallVector<Output> outputs;
  stablehlo::WhileOp loop;
  /// The index of the slice.
  Value counter;
  /// The value in the loop of each value with rows, by the dimension of its
  /// rows.
  DenseMap<std::pair<Value, int64_t>, Value> known;
  /// Whether values with rows follow from large ones.
  DenseMap<std::pair<Value, int64_t>, bool> ofLarge;
  /// Results of combining ops in the loop.
  DenseMap<Value, Value> parts;
};

} // namespace

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

static Value makeInteger(OpBuilder &b, Location loc, int64_t value) {
  return stablehlo::integerConstant(
      b, loc, RankedTensorType::get({}, b.getI32Type()), value);
}

/// Returns the permutation that moves dimension `from` to `to`.
static SmallVector<int64_t> moveDim(int64_t rank, int64_t from, int64_t to) {
  SmallVector<int64_t> order;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != from)
      order.push_back(dim);
  order.insert(order.begin() + to, from);
  return order;
}

static Value makeTranspose(OpBuilder &b, Location loc, Value value,
                           ArrayRef<int64_t> order) {
  if (llvm::is_sorted(order))
    return value;
  SmallVector<int64_t> shape;
  for (int64_t dim : order)
    shape.push_back(shapeOf(value)[dim]);
  return stablehlo::TransposeOp::create(b, loc, tensorOf(value).clone(shape),
                                        value, b.getDenseI64ArrayAttr(order));
}

SmallVector<int64_t> SliceLoop::shapeOfSlice(Value value,
                                             const RowDim &rows) const {
  SmallVector<int64_t> shape(shapeOf(value));
  shape[rows.dim] /= slices;
  return shape;
}

/// Returns the type of the carry for `value`. Sums of narrow floats are kept in
/// f32, because each slice would round them.
Type SliceLoop::typeOfCarry(Value value, const RowWork &work) const {
  RankedTensorType type = tensorOf(value);
  if (work.results) {
    SmallVector<int64_t> stack = shapeOfSlice(value, *work.results);
    stack.insert(stack.begin(), slices);
    return type.clone(stack);
  }
  auto element = dyn_cast<FloatType>(type.getElementType());
  if (element && element.getWidth() < 32)
    return type.clone(Float32Type::get(type.getContext()));
  return type;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// Splits `value` outside the loop, slices first, and reads one slice inside.
Value SliceLoop::readSlice(Value value, const RowDim &rows) {
  SmallVector<int64_t> split(shapeOf(value)), slice = shapeOfSlice(value, rows);
  split[rows.dim] = slices;
  split.insert(split.begin() + rows.dim + 1, slice[rows.dim]);
  Value stack = makeReshape(before, loc, value, split);
  stack = makeTranspose(before, loc, stack, moveDim(split.size(), rows.dim, 0));
  SmallVector<int64_t> one(slice);
  one.insert(one.begin(), 1);
  SmallVector<Value> starts(one.size(), makeInteger(inside, loc, 0));
  starts.front() = counter;
  Value part = stablehlo::DynamicSliceOp::create(
      inside, loc, tensorOf(stack).clone(one), stack, starts,
      inside.getDenseI64ArrayAttr(one));
  return makeReshape(inside, loc, part, slice);
}

/// Makes the iota along the rows of one slice, which counts from the number of
/// rows in the slices before. Floats are counted in integers, so that each is
/// rounded once, as in the iota of all rows.
Value SliceLoop::countRows(RankedTensorType type, int64_t dim) {
  RankedTensorType whole = isa<FloatType>(type.getElementType())
                               ? type.clone(inside.getI32Type())
                               : type;
  Value iota = stablehlo::IotaOp::create(inside, loc, whole, dim);
  Value rows = makeInteger(inside, loc, type.getDimSize(dim));
  Value offset = stablehlo::MulOp::create(inside, loc, counter, rows);
  offset = stablehlo::ConvertOp::create(
      inside, loc, RankedTensorType::get({}, whole.getElementType()), offset);
  offset = stablehlo::BroadcastInDimOp::create(inside, loc, whole, offset,
                                               inside.getDenseI64ArrayAttr({}));
  Value sum = stablehlo::AddOp::create(inside, loc, iota, offset);
  return whole == type ? sum
                       : stablehlo::ConvertOp::create(inside, loc, type, sum);
}

/// Whether a value with few elements a row is a sum of a large value, such as
/// the gradient of the labels' logits: the loop then computes both, and the
/// large one is never whole.
bool SliceLoop::followsFromLarge(Value value, const RowDim &rows) {
  auto [it, isNew] = ofLarge.try_emplace({value, rows.dim}, false);
  if (!isNew)
    return it->second;
  auto origins = findCheapOrigins(value, rows);
  bool follows = origins && followFromLarge(*origins);
  return ofLarge[{value, rows.dim}] = follows;
}

/// Whether any of the operands is large and computed, or a sum of such a value.
bool SliceLoop::followFromLarge(ArrayRef<RowOrigin> origins) {
  return llvm::any_of(origins, [&](const RowOrigin &origin) {
    Value operand = origin.operand->get();
    return (logits.isLarge(operand) && operand.getDefiningOp()) ||
           followsFromLarge(operand, origin.rows.front());
  });
}

/// Computes a slice of a constant, or of a large value that follows from
/// smaller tensors (a mask, one-hot labels); null if the slice has to be read.
Value SliceLoop::computeSlice(Value value, const RowDim &rows) {
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return nullptr;
  Operation *op = result.getOwner();
  RankedTensorType type = tensorOf(value).clone(shapeOfSlice(value, rows));
  if (matchPattern(value, m_Constant()))
    return resizeSplat(inside, loc, value, type);
  if (auto iota = dyn_cast<stablehlo::IotaOp>(op)) {
    int64_t dim = iota.getIotaDimension();
    if (dim == rows.dim)
      return countRows(type, dim);
    return stablehlo::IotaOp::create(inside, loc, type, dim);
  }
  auto origins = findCheapOrigins(value, rows);
  if (!origins || !(logits.isLarge(value) || followFromLarge(*origins)))
    return nullptr;
  cloneOp(op, RowWork{std::move(*origins), rows});
  return known.lookup({value, rows.dim});
}

Value SliceLoop::sliceOf(Value value, const RowDim &rows) {
  if (Value slice = known.lookup({value, rows.dim}))
    return slice;
  Value slice = computeSlice(value, rows);
  if (!slice)
    slice = readSlice(value, rows);
  known[{value, rows.dim}] = slice;
  return slice;
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

void SliceLoop::cloneOp(Operation *op, const RowWork &work) {
  SmallVector<Value> operands;
  for (OpOperand &operand : op->getOpOperands()) {
    const RowDim *rows = work.rowsOf(operand);
    operands.push_back(rows ? sliceOf(operand.get(), *rows) : operand.get());
  }
  Operation *copy = inside.clone(*op);
  copy->setOperands(operands);
  for (auto [result, slice] :
       llvm::zip_equal(op->getResults(), copy->getResults())) {
    if (!work.results) {
      // The partial sum of a slice is not rounded.
      if (auto dot = dyn_cast<Dot>(op); dot && !dot.getAlgorithm())
        slice.setType(typeOfCarry(result, work));
      parts[result] = slice;
      continue;
    }
    int64_t dim = work.results->dim;
    slice.setType(tensorOf(result).clone(shapeOfSlice(result, *work.results)));
    setRowAttributes(copy, dim, shapeOf(slice)[dim]);
    known[{result, dim}] = slice;
  }
}

Value SliceLoop::putSlice(Value stack, Value slice) {
  SmallVector<int64_t> one(shapeOf(slice));
  one.insert(one.begin(), 1);
  SmallVector<Value> starts(one.size(), makeInteger(inside, loc, 0));
  starts.front() = counter;
  return stablehlo::DynamicUpdateSliceOp::create(
      inside, loc, stack.getType(), stack, makeReshape(inside, loc, slice, one),
      starts);
}

Value SliceLoop::combine(const Output &output, Value carry, Value part) {
  if (part.getType() != carry.getType())
    part = stablehlo::ConvertOp::create(inside, loc, carry.getType(), part);
  auto reduce = output.value.getDefiningOp<stablehlo::ReduceOp>();
  Operation *combiner =
      reduce ? stablehlo::getCombiner(reduce.getBody()) : nullptr;
  if (isa_and_nonnull<stablehlo::MaxOp>(combiner))
    return stablehlo::MaxOp::create(inside, loc, carry, part);
  if (isa_and_nonnull<stablehlo::MinOp>(combiner))
    return stablehlo::MinOp::create(inside, loc, carry, part);
  return stablehlo::AddOp::create(inside, loc, carry, part);
}

Value SliceLoop::nextCarry(const Output &output, Value carry) {
  if (output.work->results)
    return putSlice(carry,
                    known.lookup({output.value, output.work->results->dim}));
  Value part = parts.lookup(output.value);
  if (auto transpose = output.transpose)
    part = makeTranspose(inside, loc, part, transpose.getPermutation());
  return combine(output, carry, part);
}

void SliceLoop::fillBody() {
  for (auto &[op, work] : logits.getOps())
    cloneOp(op, work);
  Value one = makeInteger(inside, loc, 1);
  SmallVector<Value> next{stablehlo::AddOp::create(inside, loc, counter, one)};
  for (auto [i, output] : llvm::enumerate(outputs))
    next.push_back(nextCarry(output, loop.getBody().getArgument(i + 1)));
  stablehlo::ReturnOp::create(inside, loc, next);
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

void SliceLoop::findOutputs() {
  for (auto &[op, work] : logits.getOps())
    for (Value result : op->getResults())
      if (logits.isReadOutside(result)) {
        auto carry = cast<RankedTensorType>(typeOfCarry(result, work));
        stablehlo::TransposeOp transpose;
        if (isa<Dot>(op) && !work.results && result.hasOneUse())
          transpose = dyn_cast<stablehlo::TransposeOp>(*result.user_begin());
        if (transpose)
          carry = carry.clone(shapeOf(transpose));
        outputs.push_back({result, &work, transpose, carry});
      }
}

/// Makes the value of a carry before the first slice.
static Value makeStart(OpBuilder &b, Location loc, Value value, Type type) {
  auto reduce = value.getDefiningOp<stablehlo::ReduceOp>();
  if (!reduce || isZero(reduce.getInitValues()[0]))
    return makeZeros(b, loc, type);
  // A maximum or minimum starts from its initial value.
  Value start = stablehlo::BroadcastInDimOp::create(b, loc, value.getType(),
                                                    reduce.getInitValues()[0],
                                                    b.getDenseI64ArrayAttr({}));
  if (value.getType() == type)
    return start;
  return stablehlo::ConvertOp::create(b, loc, type, start);
}

void SliceLoop::makeLoop() {
  SmallVector<Value> starts{makeInteger(before, loc, 0)};
  for (const Output &output : outputs)
    starts.push_back(output.work->results
                         ? makeZeros(before, loc, output.carry)
                         : makeStart(before, loc, output.value, output.carry));
  SmallVector<Type> types = llvm::to_vector(ValueRange(starts).getTypes());
  SmallVector<Location> locs(types.size(), loc);
  loop = stablehlo::WhileOp::create(before, loc, types, starts);
  Block *cond = before.createBlock(&loop.getCond(), {}, types, locs);
  Value isLess = stablehlo::CompareOp::create(
      before, loc, cond->getArgument(0), makeInteger(before, loc, slices),
      stablehlo::ComparisonDirection::LT);
  stablehlo::ReturnOp::create(before, loc, isLess);
  Block *body = before.createBlock(&loop.getBody(), {}, types, locs);
  counter = body->getArgument(0);
  inside.setInsertionPointToStart(body);
  before.setInsertionPoint(loop);
}

/// Joins the stacked slices to a value of `type`.
Value SliceLoop::joinSlices(Value stack, const RowDim &rows, Type type) {
  OpBuilder after(loop->getBlock(), std::next(loop->getIterator()));
  int64_t rank = shapeOf(stack).size();
  Value split = makeTranspose(after, loc, stack, moveDim(rank, 0, rows.dim));
  return makeReshape(after, loc, split, shapeOf(type));
}

void SliceLoop::replaceOutputs() {
  Block *block = loop->getBlock();
  for (auto [i, output] : llvm::enumerate(outputs)) {
    Value carry = loop.getResult(i + 1), whole;
    Value value = output.transpose ? output.transpose : output.value;
    if (output.work->results) {
      whole = joinSlices(carry, *output.work->results, value.getType());
    } else {
      whole = carry;
      OpBuilder after(block, std::next(loop->getIterator()));
      if (carry.getType() != value.getType())
        whole =
            stablehlo::ConvertOp::create(after, loc, value.getType(), carry);
    }
    value.replaceUsesWithIf(whole, [&](OpOperand &use) {
      return !logits.getOps().contains(
          block->findAncestorOpInBlock(*use.getOwner()));
    });
    if (output.transpose)
      output.transpose->erase();
  }
}

void SliceLoop::run() {
  Operation *last = logits.getOps().back().first;
  before.setInsertionPointAfter(last);
  findOutputs();
  makeLoop();
  fillBody();
  // Move the followers after the loop, because they read its results.
  Operation *place = loop;
  for (Operation *follower : logits.getFollowers()) {
    follower->moveAfter(place);
    place = follower;
  }
  replaceOutputs();
  for (auto &[op, work] : llvm::reverse(logits.getOps()))
    op->erase();
}

//===----------------------------------------------------------------------===//
// Which logits, and how many slices
//===----------------------------------------------------------------------===//

/// Every slice reads the weight and adds to its gradient. If these come from
/// memory, a slice needs this many rows to make that cost negligible.
static constexpr int64_t kLeastRows = 256, kCacheBytes = 1 << 20;

static int64_t bytesAsF32(Value value) {
  return tensorOf(value).getNumElements() * 4;
}

namespace {

/// The logits of one dot, if they take more than `bytes`.
struct LargeLogits {
  Dot dot;
  Value logits, weight;
  int64_t bytes;

  int64_t countRows() const;
  int64_t getLeastRows() const {
    return bytesAsF32(weight) > kCacheBytes ? kLeastRows : 1;
  }
  int64_t countSlices(int64_t extent) const;
  /// Returns the next extent that can be cut into slices that are neither too
  /// large nor too small; `extent` if it is an eighth larger, or more.
  int64_t getEvenExtent(int64_t extent) const;
  /// Returns the dimensions that may be cut, with their numbers of slices: the
  /// dimension with the smallest slices first or, if several have slices that
  /// are small enough, the outermost of these.
  SmallVector<std::pair<int64_t, int64_t>> getCuts() const;
};

struct SliceLogits : fp8::impl::FP8SliceLogitsBase<SliceLogits> {
  using FP8SliceLogitsBase::FP8SliceLogitsBase;

  void runOnOperation() override {
    FailureOr<Recipe> recipe = getEffectiveRecipe(getOperation());
    if (failed(recipe))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (const LargeLogits &large :
           findLarge(function, recipe->compute.logitsBytes))
        slice(large);
  }

private:
  SmallVector<LargeLogits> findLarge(func::FuncOp function, int64_t bytes);
  bool cut(const LargeLogits &large, const DenseSet<Operation *> &others = {});
  bool extend(const LargeLogits &large);
  Dot makeEven(const LargeLogits &large);
  void slice(const LargeLogits &large);
};

} // namespace

/// Each row has as many logits as the weight has elements for one contracted
/// index.
int64_t LargeLogits::countRows() const {
  Dot op = dot;
  int64_t contracted = 1;
  for (int64_t dim : op.getDotDimensionNumbers().getLhsContractingDimensions())
    contracted *= shapeOf(op.getLhs())[dim];
  return tensorOf(logits).getNumElements() * contracted /
         tensorOf(weight).getNumElements();
}

/// Returns the number of slices that rows of `extent` are cut into: the
/// smallest number whose slices take at most `bytes`, or the largest with
/// enough rows. 1: no slices.
int64_t LargeLogits::countSlices(int64_t extent) const {
  int64_t least = getLeastRows(), found = 1;
  for (int64_t slices = 2; slices <= extent; ++slices) {
    if (extent % slices != 0 || countRows() / slices < least)
      continue;
    found = slices;
    if (bytesAsF32(logits) / slices <= bytes)
      break;
  }
  return found;
}

int64_t LargeLogits::getEvenExtent(int64_t extent) const {
  int64_t least = llvm::divideCeil(getLeastRows() * extent, countRows());
  int64_t slices = std::min(llvm::divideCeil(bytesAsF32(logits), bytes),
                            llvm::divideCeil(extent, least));
  int64_t rows = std::max<int64_t>(llvm::divideCeil(extent, slices), least);
  int64_t even = rows * slices;
  return even - extent < extent / 8 ? even : extent;
}

SmallVector<std::pair<int64_t, int64_t>> LargeLogits::getCuts() const {
  SmallVector<std::pair<int64_t, int64_t>> cuts;
  for (auto [dim, extent] : llvm::enumerate(shapeOf(logits)))
    if (int64_t slices = countSlices(extent); slices > 1)
      cuts.push_back({dim, slices});
  auto keyOf = [&](std::pair<int64_t, int64_t> cut) {
    return std::pair(std::max(bytesAsF32(logits) / cut.second, bytes),
                     cut.first);
  };
  llvm::sort(cuts, [&](auto a, auto b) { return keyOf(a) < keyOf(b); });
  return cuts;
}

SmallVector<LargeLogits> SliceLogits::findLarge(func::FuncOp function,
                                                int64_t bytes) {
  auto isLarge = [&](Dot dot) {
    return bytes > 0 && bytesAsF32(dot.getResult()) > bytes;
  };
  WalkResult walked = function.walk([&](Dot dot) {
    return isLarge(dot) ? WalkResult::interrupt() : WalkResult::advance();
  });
  SmallVector<LargeLogits> found;
  if (!walked.wasInterrupted())
    return found;
  LinearLayers layers(function);
  for (const DotInfo &info : layers.getDots()) {
    if (!info.head || info.role != DotRole::Forward)
      continue;
    Dot dot = cast<Dot>(info.dot);
    Value weight =
        info.lhs == OperandKind::Weight ? dot.getLhs() : dot.getRhs();
    if (isLarge(dot))
      found.push_back({dot, dot.getResult(), weight, bytes});
  }
  return found;
}

/// Cuts the rows if no op needs all of them; leaves out `others`.
bool SliceLogits::cut(const LargeLogits &large,
                      const DenseSet<Operation *> &others) {
  Dot dot = large.dot;
  for (auto [dim, slices] : large.getCuts()) {
    LogitRows logits(dot, {dim, 1, shapeOf(dot.getResult())[dim]}, others);
    if (!logits.canSlice())
      continue;
    if (emitRemarks)
      dot.emitRemark() << "logits are computed in " << slices << " slices of "
                       << large.countRows() / slices << " rows";
    SliceLoop(logits, slices).run();
    ++numSliced;
    return true;
  }
  return false;
}

/// Lets the loss work on all rows if it reads a slice of them.
bool SliceLogits::extend(const LargeLogits &large) {
  SmallVector<stablehlo::SliceOp> parts;
  for (Operation *user : large.logits.getUsers())
    if (auto part = dyn_cast<stablehlo::SliceOp>(user))
      parts.push_back(part);
  bool changed = false;
  for (stablehlo::SliceOp part : parts)
    changed |= extendRows(part);
  return changed;
}

/// Adds rows of zeros to logits whose rows cannot be cut into parts of equal
/// size. Returns the dot that makes them; null if nothing changed.
Dot SliceLogits::makeEven(const LargeLogits &large) {
  for (auto [dim, extent] : llvm::enumerate(shapeOf(large.logits))) {
    int64_t even = large.getEvenExtent(extent);
    auto origins = findRowOrigins(cast<OpResult>(large.logits),
                                  RowDim{static_cast<int64_t>(dim), 1, extent});
    if (even == extent || large.countSlices(extent) > 1 || !origins ||
        llvm::any_of(*origins, [&](const RowOrigin &origin) {
          return origin.operand->get() == large.weight;
        }))
      continue;
    if (Dot dot = extendRows(large.dot, dim, even))
      return dot;
  }
  return nullptr;
}

void SliceLogits::slice(const LargeLogits &large) {
  if (cut(large) || (extend(large) && cut(large)))
    return;
  if (Dot even = makeEven(large))
    return slice({even, even.getResult(), large.weight, large.bytes});
  Dot dot = large.dot;
  Operation *obstacle = nullptr;
  for (auto [dim, slices] : large.getCuts()) {
    LogitRows logits(dot, {dim, 1, shapeOf(dot.getResult())[dim]});
    DenseSet<Operation *> others;
    if (Dot copy = logits.recompute(others)) {
      cut(large, others);
      slice({copy, copy.getResult(), large.weight, large.bytes});
      return;
    }
    if (!obstacle)
      obstacle = logits.getObstacle();
  }
  if (!emitRemarks)
    return;
  InFlightDiagnostic remark = dot.emitRemark() << "logits are computed whole: ";
  if (obstacle)
    remark << "'" << obstacle->getName() << "' needs all rows";
  else
    remark << "there are too few rows";
}
