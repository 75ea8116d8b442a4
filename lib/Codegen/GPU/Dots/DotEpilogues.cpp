//===- DotEpilogues.cpp - Nests on the sums of a dot ----------------------===//
//
// The elementwise nest behind a dot runs on the registers that hold the sums:
// for each two adjacent ones of a thread, the nest is emitted as for a point.
//
//===----------------------------------------------------------------------===//

#include "../Blocks/BlockLowering.h"

#include "fp8/Kernels/ContractionDims.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// Returns the loop of these that runs over more than one element in a tile;
/// fails if there are several.
static FailureOr<std::optional<unsigned>> onlyLoop(ArrayRef<unsigned> loops,
                                                   ArrayRef<int64_t> extents) {
  std::optional<unsigned> found;
  for (unsigned loop : loops) {
    if (extents[loop] == 1)
      continue;
    if (found)
      return failure();
    found = loop;
  }
  return found;
}

/// Returns the loops of `dot` over the rows and the columns of its tiles; fails
/// if either are several, or if a tile has several batches.
static FailureOr<std::array<std::optional<unsigned>, 2>>
sidesOf(linalg::GenericOp dot, ArrayRef<int64_t> tile) {
  ContractionDims dims = *inferContractionDims(dot);
  SmallVector<int64_t> extents = lowering::extentsIn(tile, dot);
  if (llvm::any_of(dims.batch, [&](unsigned d) { return extents[d] != 1; }))
    return failure();
  auto rows = onlyLoop(dims.m, extents), columns = onlyLoop(dims.n, extents);
  if (failed(rows) || failed(columns))
    return failure();
  return std::array{*rows, *columns};
}

/// Returns the map by which a nest reads `buffer`, if it reads one element for
/// each of its points; null otherwise.
static AffineMap readOfPoints(const Nest &nest, Value buffer) {
  AffineMap found;
  for (linalg::GenericOp op : nest.ops)
    for (OpOperand &operand : op->getOpOperands()) {
      if (operand.get() != buffer)
        continue;
      AffineMap map = op.getMatchingIndexingMap(&operand);
      if (op.isDpsInit(&operand) || !map.isPermutation() ||
          (found && found != map))
        return AffineMap();
      found = map;
    }
  return found;
}

/// Returns the loops of a nest along the rows and the columns of a dot whose
/// sums it reads, one element for each of its points; fails if it does not.
static FailureOr<std::array<std::optional<unsigned>, 2>>
loopsOfSums(linalg::GenericOp dot, const Nest &nest, ArrayRef<int64_t> tile) {
  auto sides = sidesOf(dot, tile);
  AffineMap read = readOfPoints(nest, dot.getDpsInits()[0]);
  if (failed(sides) || !read)
    return failure();
  std::array<std::optional<unsigned>, 2> loops;
  AffineMap written = dot.getIndexingMapsArray().back();
  for (auto [from, to] : llvm::zip(written.getResults(), read.getResults()))
    for (auto [side, loop] : llvm::zip(*sides, loops))
      if (side == cast<AffineDimExpr>(from).getPosition())
        loop = cast<AffineDimExpr>(to).getPosition();
  return loops;
}

std::optional<unsigned> BlockLowering::rowLoopOf(linalg::GenericOp dot,
                                                 const Nest &nest) const {
  return (*loopsOfSums(dot, nest, tile))[0];
}

/// Returns whether nothing but the nest reads the sums of a dot.
bool BlockLowering::isOnlyReader(const Nest &nest,
                                 linalg::GenericOp dot) const {
  Value buffer = dot.getDpsInits()[0];
  return locals.contains(buffer) && !sumsBlocks(dot) &&
         llvm::all_of(buffer.getUsers(), [&](Operation *user) {
           return user == dot || isa<linalg::FillOp>(user) ||
                  llvm::is_contained(nest.ops, user);
         });
}

/// Returns whether a nest is elementwise; or, with operands in place, whether
/// it reduces the columns of a dot in each step of the block, which every
/// thread can do for its own.
bool BlockLowering::fitsSums(
    const Nest &nest, std::array<std::optional<unsigned>, 2> loops) const {
  if (nest.reduction.none())
    return llvm::all_of(nest.ops, allParallel);
  auto [rows, columns] = loops;
  if (!dots.inPlace || !rows || !columns || nest.reduction.count() != 1 ||
      !nest.reduction.test(*columns))
    return false;
  return llvm::all_of(nest.ops, [&](linalg::GenericOp op) {
    if (allParallel(op))
      return true;
    for (auto [i, init] : llvm::enumerate(op.getDpsInits()))
      if (!sumsBlocks(op) || locals.contains(init) ||
          !reductionCombiner(op, i) || !fillBefore(init))
        return false;
    return true;
  });
}

/// Finds the dots of which the nest behind another dot reads the sums at the
/// same places: they stay in registers until then.
void BlockLowering::findHeldDots(linalg::GenericOp dot, const Nest &nest) {
  auto loops = loopsOfSums(dot, nest, tile);
  for (auto other : body().getOps<linalg::GenericOp>()) {
    if (other == dot || !isDot(other) || !other->isBeforeInBlock(dot) ||
        !isOnlyReader(nest, other))
      continue;
    auto own = loopsOfSums(other, nest, tile);
    if (succeeded(own) && *own == *loops)
      heldDots[other] = dot;
  }
}

/// Finds the dots whose only readers are the nest behind it: its threads
/// compute the nest on their sums.
void BlockLowering::findEpilogues() {
  epilogues.clear();
  heldDots.clear();
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    auto *op = std::get_if<Operation *>(&parts[i]);
    const Nest *nest = std::get_if<Nest>(&parts[i + 1]);
    auto dot = op ? dyn_cast<linalg::GenericOp>(*op) : linalg::GenericOp();
    if (!dot || !nest || !isOnlyReader(*nest, dot))
      continue;
    auto loops = loopsOfSums(dot, *nest, tile);
    if (failed(loops) || !fitsSums(*nest, *loops))
      continue;
    epilogues[dot] = nest;
    if (dots.inPlace)
      findHeldDots(dot, *nest);
  }
}

/// Whether a part is emitted with the dot before it.
bool BlockLowering::isOfSums(unsigned part) const {
  if (part >= parts.size())
    return false;
  const Nest *nest = std::get_if<Nest>(&parts[part]);
  return nest && isEmittedBefore(*nest);
}

/// Returns how many buffers in memory a nest on the sums of a dot accesses at
/// each of its points.
int64_t BlockLowering::countAccesses(const Nest &nest,
                                     linalg::GenericOp dot) const {
  llvm::SmallPtrSet<Value, 8> buffers;
  for (linalg::GenericOp op : nest.ops)
    for (OpOperand &operand : op->getOpOperands())
      if (!(locals.contains(operand.get()) &&
            staysInNest(operand.get(), parts)) &&
          operand.get() != dot.getDpsInits()[0] &&
          op.getMatchingIndexingMap(&operand).getNumResults() > 1)
        buffers.insert(operand.get());
  return buffers.size();
}

/// Makes the sums of a dot, from `number` on, known to a nest that reads them.
void BlockLowering::forwardSums(linalg::GenericOp dot, ArrayRef<Value> sums) {
  Value value = sums[0];
  if (sums.size() > 1)
    value = vector::FromElementsOp::create(
        builder, loc,
        VectorType::get({static_cast<int64_t>(sums.size())},
                        builder.getF32Type()),
        sums);
  forwarded[dot.getDpsInits()[0]] = value;
}

/// Emits the nest behind a dot for sums in adjacent columns. `number` is that
/// of the first in the tile, if threads have not exchanged theirs.
void BlockLowering::emitEpilogue(linalg::GenericOp dot, int64_t number,
                                 Value row, Value column,
                                 ArrayRef<Value> sums) {
  Nest nest = *epilogues.lookup(dot);
  auto sides = *loopsOfSums(dot, nest, tile);
  Loops loops = loopsOf(nest.ops.front());
  nest.vectorLoop.reset();
  for (auto [loop, index] : llvm::zip(sides, std::array{row, column}))
    if (loop)
      loops.index[*loop] =
          arith::AddIOp::create(builder, loc, loops.lower[*loop], index);
  if (sums.size() > 1)
    nest.vectorLoop = sides[1];
  nest.lanes = nest.vectorLoop ? sums.size() : 1;
  nest.startsAligned = nest.vectorLoop && startsAligned(nest, nest.lanes);
  forwardSums(dot, sums.take_front(nest.lanes));
  for (auto [other, reader] : heldDots)
    if (reader == dot)
      forwardSums(cast<linalg::GenericOp>(other),
                  ArrayRef(heldSums[other]).slice(number, nest.lanes));
  auto rows = rowValues.find(dot);
  if (rows == rowValues.end()) {
    emitBody(nest, loops, nest.lanes, {});
    return;
  }
  MutableArrayRef<Value> own = rows->second.ofRow(number);
  llvm::copy(emitBody(nest, loops, nest.lanes, SmallVector<Value>(own)),
             own.begin());
}
