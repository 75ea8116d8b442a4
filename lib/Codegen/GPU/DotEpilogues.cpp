//===- DotEpilogues.cpp - Nests on the sums of a dot ----------------------===//
//
// The elementwise nest behind a dot runs on the registers that hold the sums:
// for each two adjacent ones of a thread, the nest is emitted as for a point.
//
//===----------------------------------------------------------------------===//

#include "BlockLowering.h"

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

/// Returns the map by which an elementwise nest reads `buffer`, if it reads one
/// element for each of its points; null otherwise.
static AffineMap readOfPoints(const Nest &nest, Value buffer) {
  AffineMap found;
  for (linalg::GenericOp op : nest.ops) {
    if (!allParallel(op))
      return AffineMap();
    for (OpOperand &operand : op->getOpOperands()) {
      if (operand.get() != buffer)
        continue;
      AffineMap map = op.getMatchingIndexingMap(&operand);
      if (op.isDpsInit(&operand) || !map.isPermutation() ||
          (found && found != map))
        return AffineMap();
      found = map;
    }
  }
  return found;
}

/// Finds the dots whose only readers are an elementwise nest behind it: its
/// threads compute the nest on their sums.
void BlockLowering::findEpilogues() {
  epilogues.clear();
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    auto *op = std::get_if<Operation *>(&parts[i]);
    const Nest *nest = std::get_if<Nest>(&parts[i + 1]);
    auto dot = op ? dyn_cast<linalg::GenericOp>(*op) : linalg::GenericOp();
    if (!dot || !nest || sumsBlocks(dot) || failed(sidesOf(dot, tile)))
      continue;
    Value buffer = dot.getDpsInits()[0];
    bool isRead = llvm::all_of(buffer.getUsers(), [&](Operation *user) {
      return user == dot || isa<linalg::FillOp>(user) ||
             llvm::is_contained(nest->ops, user);
    });
    if (locals.contains(buffer) && isRead && readOfPoints(*nest, buffer))
      epilogues[dot] = nest;
  }
}

/// Whether a part is emitted with the dot before it.
bool BlockLowering::isOfSums(unsigned part) const {
  if (part >= parts.size())
    return false;
  const Nest *nest = std::get_if<Nest>(&parts[part]);
  return nest && isEmittedBefore(*nest);
}

/// Emits the nest behind a dot for one sum, or for two in adjacent columns.
void BlockLowering::emitEpilogue(linalg::GenericOp dot, Value row, Value column,
                                 ArrayRef<Value> sums) {
  Nest nest = *epilogues.lookup(dot);
  Value buffer = dot.getDpsInits()[0];
  auto sides = *sidesOf(dot, tile);
  AffineMap written = dot.getIndexingMapsArray().back(),
            read = readOfPoints(nest, buffer);
  Loops loops = loopsOf(nest.ops.front());
  nest.vectorLoop.reset();
  for (auto [from, to] : llvm::zip(written.getResults(), read.getResults())) {
    unsigned own = cast<AffineDimExpr>(to).getPosition();
    for (auto [side, index] : {std::pair(sides[0], row), {sides[1], column}})
      if (side == cast<AffineDimExpr>(from).getPosition()) {
        loops.index[own] =
            arith::AddIOp::create(builder, loc, loops.lower[own], index);
        if (sums.size() > 1 && side == sides[1])
          nest.vectorLoop = own;
      }
  }
  nest.lanes = nest.vectorLoop ? sums.size() : 1;
  nest.startsAligned = nest.vectorLoop && startsAligned(nest, nest.lanes);
  forwarded[buffer] = sums[0];
  if (nest.vectorLoop)
    forwarded[buffer] = vector::FromElementsOp::create(
        builder, loc, VectorType::get({nest.lanes}, builder.getF32Type()),
        sums);
  emitBody(nest, loops, nest.lanes, {});
}
