//===- SavedOrigins.cpp - What loops and branches saved -------------------===//

#include "SavedOrigins.h"

#include "../SmallTensors.h"

#include "fp8/Dialect/StableHLO/IR/Barriers.h"

using namespace mlir;
using namespace mlir::fp8;
using stablehlo::ConcatenateOp;
using stablehlo::DynamicSliceOp;
using stablehlo::DynamicUpdateSliceOp;
using stablehlo::IfOp;
using stablehlo::StackedIteration;
using stablehlo::StackingLoop;
using stablehlo::stripReshapes;

const StackedIteration *ForwardPlace::getIteration(Block *body) const {
  const auto *found =
      llvm::find_if(iterations, [&](const StackedIteration &iteration) {
        return iteration.counter.getOwner() == body;
      });
  return found == iterations.end() ? nullptr : found;
}

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

/// Returns the number that `op` compares with its operand to take a branch.
/// JAX writes a choice of two as a case of a converted predicate.
static unsigned numberOf(Operation *op, unsigned branch) {
  return isa<IfOp>(op) ? 1 - branch : branch;
}

/// Returns the predicate that an index of branches is converted from.
static Value stripConversion(Value index) {
  index = stripReshapes(index);
  auto convert = index.getDefiningOp<stablehlo::ConvertOp>();
  return convert && tensorOf(convert.getOperand()).getElementType().isInteger(1)
             ? convert.getOperand()
             : index;
}

/// Returns the branch of `op`, at `place`, that is taken if `reader` runs,
/// because a branch around `reader` depends on the same value; null if unknown.
static Block *findTakenBranch(Operation *op, const ForwardPlace &place,
                              Operation *reader) {
  Value decision = stripConversion(op->getOperand(0));
  for (Region *region = reader->getParentRegion(); region;
       region = region->getParentRegion()) {
    Operation *parent = region->getParentOp();
    if (!stablehlo::isBranch(parent) ||
        parent->getNumRegions() != op->getNumRegions())
      continue;
    Origin origin = findOrigin(parent->getOperand(0), parent);
    if (stripConversion(origin.value) != decision ||
        !llvm::all_of(origin.place.iterations, [&](const auto &iteration) {
          return llvm::is_contained(place.iterations, iteration);
        }))
      continue;
    unsigned number = numberOf(parent, region->getRegionNumber());
    return &op->getRegion(numberOf(op, number)).front();
  }
  return nullptr;
}

/// Follows an origin that is the result of a branch into the branch.
static void enterBranches(Origin &origin, Operation *reader) {
  while (true) {
    origin.value = stripReshapes(origin.value);
    Operation *op = origin.value.getDefiningOp();
    Block *branch = op && stablehlo::isBranch(op)
                        ? findTakenBranch(op, origin.place, reader)
                        : nullptr;
    if (!branch)
      return;
    origin.place.branches.push_back(branch);
    origin.value = branch->getTerminator()->getOperand(
        cast<OpResult>(origin.value).getResultNumber());
  }
}

//===----------------------------------------------------------------------===//
// Stacks
//===----------------------------------------------------------------------===//

/// Finds what a loop stacked in the slot that `slice` reads.
static std::optional<Origin> findStacked(DynamicSliceOp slice,
                                         Operation *reader) {
  Value start = stablehlo::matchSlot(slice);
  if (!start)
    return std::nullopt;
  Origin origin = findOrigin(slice.getOperand(), reader);
  if (origin.value.getType() != slice.getOperand().getType())
    return std::nullopt;
  std::optional<StackingLoop> loop = stablehlo::matchStackingLoop(origin.value);
  if (!loop)
    return std::nullopt;
  origin.place.iterations.push_back(
      {loop->slot.counter, start, loop->slot.scale, loop->slot.offset});
  origin.value = loop->update.getUpdate();
  return origin;
}

/// Finds the operand of a concatenation that `slice` is.
static std::optional<Origin> findPart(stablehlo::SliceOp slice,
                                      Operation *reader) {
  Origin origin = findOrigin(slice.getOperand(), reader);
  auto concatenate = origin.value.getDefiningOp<ConcatenateOp>();
  if (!concatenate || concatenate.getType() != slice.getOperand().getType() ||
      llvm::any_of(slice.getStrides(), [](int64_t s) { return s != 1; }))
    return std::nullopt;
  unsigned along = concatenate.getDimension();
  int64_t begin = 0;
  for (Value part : concatenate.getInputs()) {
    if (begin == slice.getStartIndices()[along] &&
        part.getType() == slice.getType()) {
      origin.value = part;
      return origin;
    }
    begin += shapeOf(part)[along];
  }
  return std::nullopt;
}

/// Returns what `value` holds the elements of, before any barrier: a layer that
/// computes its activations again reads what is saved for it behind one.
static Value stripBarriers(Value value) {
  for (Value before; before != value;) {
    before = value;
    value = stripReshapes(stablehlo::skipBarriers(value));
  }
  return value;
}

Origin fp8::findOrigin(Value value, Operation *reader) {
  value = stripBarriers(value);
  std::optional<Origin> origin;
  if (auto slice = value.getDefiningOp<DynamicSliceOp>())
    origin = findStacked(slice, reader);
  else if (auto slice = value.getDefiningOp<stablehlo::SliceOp>())
    origin = findPart(slice, reader);
  if (!origin)
    origin = Origin{value, {}};
  enterBranches(*origin, reader);
  return *origin;
}

//===----------------------------------------------------------------------===//
// Holders
//===----------------------------------------------------------------------===//

Value fp8::getHolder(OpOperand &use, const ForwardPlace &place) {
  Operation *user = use.getOwner();
  if (isa<ConcatenateOp>(user) ||
      (user->getNumResults() == 1 &&
       stablehlo::getReshapeSource(user->getResult(0)) == use.get()))
    return user->getResult(0);
  Operation *parent = user->getParentOp();
  if (user->hasTrait<OpTrait::IsTerminator>())
    return llvm::is_contained(place.branches, user->getBlock())
               ? parent->getResult(use.getOperandNumber())
               : Value();
  auto update = dyn_cast<DynamicUpdateSliceOp>(user);
  const StackedIteration *iteration = place.getIteration(user->getBlock());
  if (!update || !iteration || use.get() != update.getUpdate() ||
      !update->hasOneUse())
    return nullptr;
  OpOperand &next = *update->use_begin();
  if (!next.getOwner()->hasTrait<OpTrait::IsTerminator>())
    return nullptr;
  Value stack = parent->getResult(next.getOperandNumber());
  // The slot of another stack may belong to another iteration.
  std::optional<StackingLoop> loop = stablehlo::matchStackingLoop(stack);
  return loop && loop->update == update &&
                 loop->slot.scale == iteration->scale &&
                 loop->slot.offset == iteration->offset
             ? stack
             : Value();
}

/// Reads the part of a concatenation that one of its operands is.
static Value readPart(OpBuilder &builder, OpOperand &use, Value whole) {
  auto concatenate = cast<ConcatenateOp>(use.getOwner());
  unsigned along = concatenate.getDimension();
  ArrayRef<int64_t> shape = shapeOf(use.get());
  SmallVector<int64_t> starts(shape.size(), 0), limits(shape),
      strides(shape.size(), 1);
  for (Value part :
       concatenate.getInputs().take_front(use.getOperandNumber())) {
    starts[along] += shapeOf(part)[along];
    limits[along] += shapeOf(part)[along];
  }
  return stablehlo::SliceOp::create(builder, whole.getLoc(),
                                    use.get().getType(), whole,
                                    builder.getDenseI64ArrayAttr(starts),
                                    builder.getDenseI64ArrayAttr(limits),
                                    builder.getDenseI64ArrayAttr(strides));
}

Value fp8::readFromHolder(OpBuilder &builder, OpOperand &use, Value whole,
                          const ForwardPlace &place) {
  Operation *user = use.getOwner();
  if (user->hasTrait<OpTrait::IsTerminator>())
    return whole;
  if (isa<ConcatenateOp>(user))
    return readPart(builder, use, whole);
  Location loc = whole.getLoc();
  RankedTensorType type = tensorOf(use.get());
  if (!isa<DynamicUpdateSliceOp>(user))
    return makeReshape(builder, loc, whole, type.getShape());
  Value index = place.getIteration(user->getBlock())->index;
  SmallVector<Value> starts{index};
  if (type.getRank() > 1)
    starts.append(type.getRank() - 1, makeZeros(builder, loc, index.getType()));
  return DynamicSliceOp::create(builder, loc, type, whole, starts,
                                builder.getDenseI64ArrayAttr(type.getShape()));
}
