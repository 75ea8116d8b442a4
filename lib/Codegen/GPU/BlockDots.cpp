//===- BlockDots.cpp - Dots of a block ------------------------------------===//

#include "BlockLowering.h"
#include "DotEmitter.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// The registers of a thread that sums may take from one block to the next.
static constexpr int64_t kMostKept = 128;

/// Returns the alignment of both operands of a dot in bytes.
std::array<int64_t, 2> BlockLowering::alignmentsOf(linalg::GenericOp op) const {
  std::array<int64_t, 2> result = {1, 1};
  for (unsigned i = 0; i < 2; ++i) {
    Value input = op.getDpsInputs()[i];
    if (auto argument = dyn_cast<BlockArgument>(input))
      result[i] = alignments[argument.getArgNumber()];
    else if (locals.contains(input))
      result[i] = kLocalAlignment;
  }
  return result;
}

/// Returns the strides of a dense result whose loops have these extents. The
/// strides of a result do not change any size.
static SmallVector<int64_t> denseResult(linalg::GenericOp dot,
                                        ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> shape;
  for (AffineExpr expr : dot.getIndexingMapsArray().back().getResults())
    shape.push_back(sizes[cast<AffineDimExpr>(expr).getPosition()]);
  return contraction::denseStrides(shape);
}

FailureOr<DotPlan> BlockLowering::planDot(linalg::GenericOp op,
                                          ArrayRef<int64_t> sizes,
                                          ArrayRef<int64_t> outStrides,
                                          std::array<Type, 2> localInputs) {
  return makeDotPlan(op, sizes, lowering::extentsIn(tile, op), outStrides,
                     alignmentsOf(op), localInputs, dots);
}

FailureOr<DotPlan> BlockLowering::planWithTma(KernelOp kernel,
                                              linalg::GenericOp dot,
                                              GPUPlanAttr plan,
                                              ArrayRef<int64_t> alignments) {
  SmallVector<int64_t> sizes = lowering::extentsIn(plan.getTile(), dot);
  std::array<Type, 2> localInputs;
  std::array<int64_t, 2> aligned = {1, 1};
  for (unsigned i = 0; i < 2; ++i) {
    Value input = dot.getDpsInputs()[i];
    if (auto argument = dyn_cast<BlockArgument>(input))
      aligned[i] = alignments[argument.getArgNumber()];
    else
      localInputs[i] = input.getType();
  }
  DotOptions options = {plan.getThreads(), plan.getStages(), plan.getWgmma(),
                        /*tma=*/true};
  return makeDotPlan(dot, sizes, sizes, denseResult(dot, sizes), aligned,
                     localInputs, options);
}

int64_t BlockLowering::dotScratchBytes(linalg::GenericOp op,
                                       ArrayRef<int64_t> tile) {
  SmallVector<int64_t> sizes = extentsOf(op, tile);
  std::array<Type, 2> localInputs = localInputTypes(op, tile);
  FailureOr<DotPlan> plan =
      planDot(op, sizes, denseResult(op, sizes), localInputs);
  if (failed(plan))
    return 0;
  if (plan->tma) {
    maps = {plan->boxes[0].map, plan->boxes[1].map};
    ringStages = plan->stages;
    sumRegisters = plan->sumsPerThread() * (plan->hasParts() ? 2 : 1);
  }
  if (plan->usesWgmma())
    dotAlignment = kWgmmaAlignment;
  return plan->getSharedBytes();
}

/// Returns the current tile of a dot, without scratch, and its plan.
FailureOr<std::pair<ContractionTile, DotPlan>>
BlockLowering::tileOfDot(linalg::GenericOp op) {
  ContractionTile contraction = contractionOf(op);
  contraction.accumulate = sumsBlocks(op);
  std::array<Type, 2> localInputs;
  for (unsigned i = 0; i < 2; ++i) {
    auto input = locals.find(op.getDpsInputs()[i]);
    if (input == locals.end())
      continue;
    if (!readsOwnTile(op, i))
      return op.emitOpError("expected to read what its block computes");
    contraction.localInputs[i] = input->second.memref;
    localInputs[i] = input->second.memref.getType();
  }
  SmallVector<int64_t> strides;
  FailureOr<DotPlan> plan = failure();
  if (succeeded(contraction::stridesOf(contraction.out.getType(), strides)))
    plan = planDot(op, contraction.sizes, strides, localInputs);
  if (failed(plan))
    return op.emitError(
        "expected a contraction of memrefs of static shape and strides");
  if (!plan->usesWgmma() && threads != kDotThreads)
    return op.emitOpError("expected a plan with ")
           << kDotThreads << " threads for a dot but got " << threads;
  if (dots.tma && !plan->tma)
    return op.emitOpError("expected operands that TMA can bring, but ")
           << plan->whyNotTma;
  auto memory = cast<MemRefType>(sharedArgument.getType());
  contraction.scratch = memref::ViewOp::create(
      builder, loc,
      MemRefType::get({plan->getSharedBytes()}, memory.getElementType(),
                      MemRefLayoutAttrInterface(), memory.getMemorySpace()),
      sharedArgument, constantIndex(dotOffset), ValueRange{});
  return std::pair(contraction, *plan);
}

LogicalResult BlockLowering::emitDot(linalg::GenericOp op) {
  auto tile = tileOfDot(op);
  if (failed(tile))
    return failure();
  // Sums that are kept leave no registers for what all blocks have in common.
  Value own = kept.empty() ? thread : knownFromHere(builder, loc, thread);
  DotEmitter emitter(builder, loc, tile->second, own, ring.get());
  if (epilogues.contains(op))
    emitter.setEpilogue([&](Value row, Value column, ArrayRef<Value> sums) {
      emitEpilogue(op, row, column, sums);
    });
  return emitter.emit(tile->first, kept.lookup(op));
}

//===----------------------------------------------------------------------===//
// Epilogues in registers
//===----------------------------------------------------------------------===//

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

/// Returns true if an elementwise nest reads `buffer` only at its own point,
/// once for each point.
static bool readsOwnPoints(const Nest &nest, Value buffer) {
  return llvm::all_of(nest.ops, [&](linalg::GenericOp op) {
    return allParallel(op) &&
           llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
             return operand.get() != buffer ||
                    (!op.isDpsInit(&operand) &&
                     op.getMatchingIndexingMap(&operand).isPermutation());
           });
  });
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
    if (locals.contains(buffer) && isRead && readsOwnPoints(*nest, buffer))
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
  AffineMap written = dot.getIndexingMapsArray().back(), read;
  for (linalg::GenericOp op : nest.ops)
    for (OpOperand *input : op.getDpsInputOperands())
      if (input->get() == buffer)
        read = op.getMatchingIndexingMap(input);
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
  known[buffer] = sums[0];
  if (nest.vectorLoop)
    known[buffer] = vector::FromElementsOp::create(
        builder, loc, VectorType::get({nest.lanes}, builder.getF32Type()),
        sums);
  emitBody(nest, loops, nest.lanes, {});
  known.clear();
}

//===----------------------------------------------------------------------===//
// Sums that stay in registers
//===----------------------------------------------------------------------===//

/// Returns how many sums a thread has of a dot that adds the blocks of the last
/// loop to one tile, which all blocks divide among the threads in the same way;
/// nullopt for other dots.
std::optional<int64_t> BlockLowering::keptSums(linalg::GenericOp op,
                                               ArrayRef<int64_t> largest) {
  std::optional<DotPlan> first;
  SmallVector<int64_t> sizes(largest.begin(), largest.end());
  int64_t rest = domain.back() % largest.back();
  for (int64_t last : {largest.back(), rest ? rest : largest.back()}) {
    sizes.back() = last;
    SmallVector<int64_t> extents = extentsOf(op, sizes);
    FailureOr<DotPlan> plan = planDot(op, extents, denseResult(op, extents),
                                      localInputTypes(op, sizes));
    if (failed(plan) || volumeOf(plan->outer) != 1 ||
        volumeOf(plan->rows) > plan->tileRows ||
        volumeOf(plan->columns) > plan->tileColumns)
      return std::nullopt;
    if (first && (first->multiplier != plan->multiplier ||
                  first->tileRows != plan->tileRows ||
                  first->tileColumns != plan->tileColumns))
      return std::nullopt;
    first = *plan;
  }
  return first->sumsPerThread();
}

/// Begins with the sums of every dot that nothing else reads until the last
/// block, as long as there are registers. The others are filled in memory.
LogicalResult BlockLowering::beginBlocks(ArrayRef<int64_t> largest) {
  int64_t registers = kMostKept;
  kept.clear();
  for (linalg::FillOp fill : firstFills) {
    Value buffer = fill.getOutputs()[0];
    linalg::GenericOp dot;
    for (Operation *user : buffer.getUsers())
      if (user != fill)
        dot = dyn_cast<linalg::GenericOp>(user);
    std::optional<int64_t> sums;
    auto type = cast<MemRefType>(buffer.getType());
    if (llvm::range_size(buffer.getUsers()) == 2 && dot && isDot(dot) &&
        type.getElementType().isF32() && !locals.contains(buffer))
      sums = keptSums(dot, largest);
    if (!sums || *sums > registers) {
      emitFill(fill);
      emitPartEnd();
      continue;
    }
    registers -= *sums;
    Value memory;
    {
      // LLVM keeps what lies in the entry block in registers.
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(&body());
      memory = memref::AllocaOp::create(
          builder, loc, MemRefType::get({*sums}, builder.getF32Type()));
    }
    for (int64_t i = 0; i < *sums; ++i)
      memref::StoreOp::create(builder, loc, fill.getInputs()[0], memory,
                              constantIndex(i));
    kept[dot] = memory;
  }
  return success();
}

/// Stores the sums that were kept.
LogicalResult BlockLowering::endBlocks(ArrayRef<int64_t> largest) {
  if (kept.empty())
    return success();
  tileOffsets.push_back(constantIndex(0));
  tileSizes.assign(largest.begin(), largest.end());
  placeLocals();
  for (auto [dot, memory] : kept) {
    auto tile = tileOfDot(cast<linalg::GenericOp>(dot));
    if (failed(tile) || failed(DotEmitter(builder, loc, tile->second, thread)
                                   .storeKept(tile->first, memory)))
      return failure();
  }
  kept.clear();
  return success();
}
