//===- ValueFlow.cpp - Sources and equality of values ---------------------===//

#include "ValueFlow.h"

#include "fp8/Analysis/LinearLayers/LinearLayers.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

static Block &getBody(stablehlo::WhileOp loop) {
  return loop->getRegion(1).front();
}

static stablehlo::WhileOp getLoop(Value value) {
  if (auto arg = dyn_cast<BlockArgument>(value))
    return dyn_cast_or_null<stablehlo::WhileOp>(arg.getOwner()->getParentOp());
  return value.getDefiningOp<stablehlo::WhileOp>();
}

static unsigned getIndex(Value value) {
  if (auto arg = dyn_cast<BlockArgument>(value))
    return arg.getArgNumber();
  return cast<OpResult>(value).getResultNumber();
}

SmallVector<Value> fp8::getFlowSources(Value value) {
  if (stablehlo::WhileOp loop = getLoop(value)) {
    unsigned i = getIndex(value);
    return {loop->getOperand(i), getBody(loop).back().getOperand(i)};
  }
  SmallVector<Value> sources;
  Operation *op = value.getDefiningOp();
  if (op && stablehlo::isBranch(op))
    for (Region &region : op->getRegions())
      sources.push_back(region.front().back().getOperand(getIndex(value)));
  return sources;
}

Value fp8::getLoopInvariant(BlockArgument arg) {
  stablehlo::WhileOp loop = getLoop(arg);
  if (!loop)
    return nullptr;
  unsigned i = arg.getArgNumber();
  Block &body = getBody(loop);
  return body.back().getOperand(i) == body.getArgument(i) ? loop->getOperand(i)
                                                          : Value();
}

/// Returns the stack that `value`, some elements of it or it and more elements,
/// comes from. If the number of layers is no multiple of those that an
/// iteration unrolls, the loop leaves some over: those at the end in the
/// forward pass, and those at the start in the backward pass. So the stacks of
/// both are not the same.
static Value getShiftedStack(Value value) {
  if (auto slice = value.getDefiningOp<stablehlo::SliceOp>()) {
    bool cutsFirst =
        !shapeOf(value).empty() &&
        shapeOf(slice.getOperand()).drop_front() == shapeOf(value).drop_front();
    return cutsFirst ? slice.getOperand() : Value();
  }
  auto concatenate = value.getDefiningOp<stablehlo::ConcatenateOp>();
  if (!concatenate || concatenate.getDimension() != 0)
    return nullptr;
  return *llvm::max_element(concatenate->getOperands(), [](Value a, Value b) {
    return shapeOf(a)[0] < shapeOf(b)[0];
  });
}

/// Returns the stack that `value` is one element of: the slice of an iteration,
/// or of a layer that the loop leaves over.
static Value getStackOf(Value value) {
  if (auto slice = value.getDefiningOp<stablehlo::DynamicSliceOp>())
    return slice->getOperand(0);
  auto slice = value.getDefiningOp<stablehlo::SliceOp>();
  if (!slice ||
      !stablehlo::isLayer(shapeOf(value), shapeOf(slice.getOperand())))
    return nullptr;
  Value stack = slice.getOperand();
  bool isExtended = llvm::any_of(stack.getUsers(), [](Operation *op) {
    auto concatenate = dyn_cast<stablehlo::ConcatenateOp>(op);
    return concatenate && concatenate.getDimension() == 0;
  });
  return isExtended ? stack : Value();
}

/// Returns the part of a concatenation that has a type.
static Value getPartOfType(Value whole, Type type) {
  if (Value source = stablehlo::getReshapeSource(whole))
    whole = source;
  auto concatenate = whole.getDefiningOp<stablehlo::ConcatenateOp>();
  return concatenate && concatenate->getOperand(0).getType() == type
             ? concatenate->getOperand(0)
             : Value();
}

/// Returns the value that a loop stored for `value`, a slice of the loop's
/// stack: the backward loop reads the activations of the forward loop this way.
/// With nested loops, the stack is itself a slice of what the outer loop
/// stored.
static Value getStoredSource(Value value) {
  Value stack = getStackOf(value);
  if (!stack)
    return nullptr;
  for (Value source = stack; source;) {
    stack = source;
    auto arg = dyn_cast<BlockArgument>(stack);
    source = arg ? getLoopInvariant(arg) : getLayoutSource(stack);
    if (!source && !arg)
      source = stablehlo::getReshapeSource(stack);
    if (!source && stack.getDefiningOp<stablehlo::DynamicSliceOp>())
      source = getStoredSource(stack);
    if (!source && !arg)
      source = getShiftedStack(stack);
  }
  auto loop = stack.getDefiningOp<stablehlo::WhileOp>();
  if (!loop)
    return nullptr;
  unsigned i = getIndex(stack);
  // An unrolled loop stores several values of one kind one after another; any
  // of them tells what the stack holds.
  Value stored;
  for (Value now = getBody(loop).back().getOperand(i);
       now != getBody(loop).getArgument(i);) {
    auto update = now.getDefiningOp<stablehlo::DynamicUpdateSliceOp>();
    if (!update)
      return nullptr;
    Value part = update->getOperand(1);
    if (part.getType() != value.getType())
      part = getPartOfType(part, value.getType());
    if (!part)
      return nullptr;
    if (!stored)
      stored = part;
    now = update->getOperand(0);
  }
  return stored;
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

Value fp8::getLayoutSource(Value value) {
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return nullptr;
  Operation *op = result.getOwner();
  if (isBarrier(op))
    return op->getOperand(result.getResultNumber());
  if (isa<stablehlo::ReshapeOp, stablehlo::TransposeOp, WindowsOp>(op))
    return op->getOperand(0);
  return nullptr;
}

/// Returns the operand of a concatenation that a slice extracts again: the body
/// of an unrolled loop passes on the values of its parts this way.
static Value getConcatenatedSource(Value value) {
  auto slice = value.getDefiningOp<stablehlo::SliceOp>();
  if (!slice)
    return nullptr;
  Value whole = slice->getOperand(0);
  while (true) {
    if (Value stored = getStoredSource(whole))
      whole = stored;
    else if (Value source = stablehlo::getReshapeSource(whole))
      whole = source;
    else
      break;
  }
  auto concatenate = whole.getDefiningOp<stablehlo::ConcatenateOp>();
  if (!concatenate || whole.getType() != slice->getOperand(0).getType())
    return nullptr;
  uint64_t dim = concatenate.getDimension();
  int64_t start = 0;
  for (Value part : concatenate->getOperands()) {
    if (start == slice.getStartIndices()[dim] &&
        part.getType() == value.getType())
      return part;
    start += cast<RankedTensorType>(part.getType()).getDimSize(dim);
  }
  return nullptr;
}

Value Views::getSameElementsSource(Value value, Operation *user) const {
  if (Value source = getLayoutSource(value))
    return source;
  if (Value source = getStoredSource(value))
    return source;
  if (Value source = getConcatenatedSource(value))
    return source;
  if (Value source = numbers.getBranchSource(value, user))
    return source;
  if (Value source = stablehlo::getReshapeSource(value))
    return source;
  // For a layer, a rescaled tensor is the same tensor.
  if (auto rescale = value.getDefiningOp<RescaleOp>())
    return rescale.getInput();
  auto convert = value.getDefiningOp<stablehlo::ConvertOp>();
  if (!convert)
    return nullptr;
  Value source = convert->getOperand(0);
  if (isa<FloatType>(getElementTypeOrSelf(source.getType())) &&
      isa<FloatType>(getElementTypeOrSelf(value.getType())))
    return source;
  return nullptr;
}

Value Views::getViewSource(Value value, Operation *user) const {
  if (auto arg = dyn_cast<BlockArgument>(value))
    return getLoopInvariant(arg);
  if (Value source = getSameElementsSource(value, user))
    return source;
  Operation *op = value.getDefiningOp();
  if (isa<stablehlo::BroadcastInDimOp, stablehlo::SliceOp,
          stablehlo::DynamicSliceOp, stablehlo::ReverseOp>(op))
    return op->getOperand(0);
  return nullptr;
}

SmallVector<Value> Views::getSameElements(Value value, Operation *user) const {
  SmallVector<Value> chain{value};
  while (Value source = getSameElementsSource(chain.back(), user))
    chain.push_back(source);
  return chain;
}

SmallVector<Value> Views::getView(Value value, Operation *user) const {
  SmallVector<Value> chain{value};
  while (Value source = getViewSource(chain.back(), user))
    chain.push_back(source);
  return chain;
}

//===----------------------------------------------------------------------===//
// Dimensions
//===----------------------------------------------------------------------===//

static DimSets mapReshape(const DimSets &source, ArrayRef<int64_t> from,
                          ArrayRef<int64_t> to, unsigned rootRank) {
  DimSets result(to.size(), llvm::SmallBitVector(rootRank));
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    // Find the smallest groups of dimensions with the same number of elements.
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
    // A dimension of one element may be anywhere.
    while (i < from.size() && from[i] == 1 && !(j < to.size() && to[j] == 1))
      ++i;
    while (j < to.size() && to[j] == 1 && !(i < from.size() && from[i] == 1))
      ++j;
  }
  return result;
}

DimSets fp8::getDimSets(ArrayRef<Value> chain) {
  auto rootType = cast<RankedTensorType>(chain.back().getType());
  unsigned rank = rootType.getRank();
  DimSets sets(rank, llvm::SmallBitVector(rank));
  for (unsigned i = 0; i < rank; ++i)
    // A dimension of one element does not affect what is contracted.
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
    } else if (auto windows = dyn_cast_or_null<WindowsOp>(op)) {
      DimSets split;
      for (auto [dim, set] : llvm::enumerate(sets))
        split.append(llvm::is_contained(windows.getDims(), dim) ? 2 : 1, set);
      sets = std::move(split);
    }
  }
  return sets;
}

llvm::SmallBitVector fp8::getTaps(ArrayRef<Value> chain) {
  auto type = cast<RankedTensorType>(chain.front().getType());
  llvm::SmallBitVector taps(type.getRank());
  for (auto [i, value] : llvm::enumerate(chain)) {
    auto windows = value.getDefiningOp<WindowsOp>();
    if (!windows)
      continue;
    for (auto [dim, set] : llvm::enumerate(getDimSets(chain.take_front(i + 1))))
      if (set.any() && llvm::all_of(set.set_bits(), [&](unsigned source) {
            return windows.isTap(source);
          }))
        taps.set(dim);
  }
  return taps;
}

llvm::SmallBitVector fp8::unite(const DimSets &sets, ArrayRef<int64_t> dims,
                                unsigned rank) {
  llvm::SmallBitVector result(rank);
  for (int64_t dim : dims)
    result |= sets[dim];
  return result;
}

//===----------------------------------------------------------------------===//
// Value numbers
//===----------------------------------------------------------------------===//

static bool isBroadcastConstant(Value value) {
  return stablehlo::skipBroadcasts(value)
             .getDefiningOp<stablehlo::ConstantOp>() != nullptr;
}

/// Returns the values that `value` may take, in the order of a branch's
/// regions: `value` is a result of the branch, or a select by a scalar, the
/// predicate of an `if`.
static SmallVector<Value> getChoices(Value value) {
  Operation *op = value.getDefiningOp();
  if (op && stablehlo::isBranch(op))
    return getFlowSources(value);
  auto select = dyn_cast_or_null<stablehlo::SelectOp>(op);
  if (!select ||
      cast<ShapedType>(select->getOperand(0).getType()).getRank() != 0)
    return {};
  return {select->getOperand(1), select->getOperand(2)};
}

Value ValueNumbers::getBranchSource(Value value, Operation *user) const {
  SmallVector<Value> sources = getChoices(value);
  if (sources.empty())
    return nullptr;
  Operation *op = value.getDefiningOp();
  unsigned predicate = getRead(op->getOperand(0), op);
  for (; user; user = user->getParentOp()) {
    Operation *parent = user->getParentOp();
    if (parent && stablehlo::isBranch(parent) &&
        parent->getNumRegions() == sources.size() &&
        getRead(parent->getOperand(0), parent) == predicate)
      return sources[user->getParentRegion()->getRegionNumber()];
  }
  Value only;
  for (Value source : sources) {
    if (isBroadcastConstant(source) || source == only)
      continue;
    if (only)
      return nullptr;
    only = source;
  }
  return only;
}

unsigned ValueNumbers::getRead(Value operand, Operation *user) const {
  while (Value source = getBranchSource(operand, user))
    operand = source;
  return numbers.lookup(operand);
}

void ValueNumbers::number(Region &region) {
  for (Block &block : region) {
    for (BlockArgument arg : block.getArguments()) {
      Value invariant = getLoopInvariant(arg);
      numbers[arg] = invariant ? numbers.lookup(invariant) : next++;
    }
    for (Operation &op : block)
      number(op);
  }
}

void ValueNumbers::number(Operation &op) {
  if (isBarrier(&op)) {
    for (auto [result, operand] :
         llvm::zip_equal(op.getResults(), op.getOperands()))
      numbers[result] = numbers.lookup(operand);
    return;
  }
  if (op.getNumResults() == 1)
    if (Value same = getEqual(op.getResult(0), &op)) {
      numbers[op.getResult(0)] = numbers.lookup(same);
      return;
    }
  // Ops inside of a region have their own numbers for the dots there. The op as
  // a whole is compared by the contents of its regions.
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

/// Returns a value that `result` merely repeats: one that a loop stored or a
/// branch returned, or the source of a chain of reshapes.
Value ValueNumbers::getEqual(Value result, Operation *user) const {
  for (Value value = result;;) {
    if (Value stored = getStoredSource(value))
      value = stored;
    else if (Value part = getConcatenatedSource(value))
      value = part;
    else if (Value returned = getBranchSource(value, user))
      value = returned;
    else if (Value source = stablehlo::getReshapeSource(value))
      value = source;
    else
      return nullptr;
    if (value.getType() == result.getType() && numbers.contains(value))
      return value;
  }
}

/// Returns the shape without its dimensions of one element.
static SmallVector<int64_t> squeeze(Value value) {
  SmallVector<int64_t> shape(shapeOf(value));
  llvm::erase(shape, 1);
  return shape;
}

/// Returns the value that `value` repeats with other dimensions of one element.
static Value getSqueezedSource(Value value) {
  auto result = dyn_cast<OpResult>(value);
  Value source = result && isBarrier(result.getOwner())
                     ? result.getOwner()->getOperand(result.getResultNumber())
                     : stablehlo::getReshapeSource(value);
  return source && squeeze(source) == squeeze(value) ? source : Value();
}

/// Adds a broadcast. Where its operand has dimensions of one element does not
/// matter: those of a weight in the forward pass may differ from those where it
/// is recomputed.
void ValueNumbers::appendBroadcast(stablehlo::BroadcastInDimOp broadcast,
                                   const DenseMap<Value, unsigned> &locals,
                                   Key &key) const {
  Value operand = broadcast->getOperand(0);
  for (auto [dim, size] :
       llvm::zip_equal(broadcast.getBroadcastDimensions(),
                       cast<ShapedType>(operand.getType()).getShape()))
    if (size != 1)
      key.push_back(dim);
  while (!locals.contains(operand)) {
    Value source = getSqueezedSource(operand);
    if (!source)
      break;
    operand = source;
  }
  auto local = locals.find(operand);
  key.push_back(local != locals.end());
  key.push_back(local != locals.end() ? local->second
                                      : getRead(operand, broadcast));
}

void ValueNumbers::append(Operation &op, DenseMap<Value, unsigned> &locals,
                          Key &key) {
  key.push_back(reinterpret_cast<uintptr_t>(op.getName().getAsOpaquePointer()));
  if (auto broadcast = dyn_cast<stablehlo::BroadcastInDimOp>(op)) {
    appendBroadcast(broadcast, locals, key);
    key.push_back(reinterpret_cast<uintptr_t>(
        op.getResult(0).getType().getAsOpaquePointer()));
    locals[op.getResult(0)] = locals.size();
    return;
  }
  key.push_back(
      reinterpret_cast<uintptr_t>(op.getAttrDictionary().getAsOpaquePointer()));
  // Slices that loops take of one tensor are equal up to the iteration, which
  // is enough for a layer: loops over stacked weights count up in the forward
  // and down in the backward pass.
  OperandRange operands = op.getOperands();
  if (isa<stablehlo::DynamicSliceOp>(op) &&
      op.getParentOfType<stablehlo::WhileOp>())
    operands = operands.take_front();
  key.push_back(operands.size());
  for (Value operand : operands) {
    auto local = locals.find(operand);
    key.push_back(local != locals.end());
    key.push_back(local != locals.end() ? local->second
                                        : getRead(operand, &op));
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
